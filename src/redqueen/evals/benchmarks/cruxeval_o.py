"""CRUXEval-O: what 800 small functions return, answered at once after two examples."""

from typing import ClassVar

from redqueen.evals.cruxeval import OutputPrediction


class CruxEvalO(OutputPrediction):
    name = "cruxeval_o"
    title = "CRUXEval-O"
    tokens = 256
    thought = False
    examples: ClassVar = (
        "You are given a Python function and an assertion containing an input to the function. Complete the assertion "
        "with a literal (no unsimplified expressions, no function calls) containing the output when executing the "
        "provided code on the given input, even if the function is incorrect or incomplete. Do NOT output any extra "
        "information. Provide the full assertion with the correct output in [ANSWER] and [/ANSWER] tags, following the "
        """examples.

[PYTHON]
def f(n):
    return n
assert f(17) == ??
[/PYTHON]
[ANSWER]
assert f(17) == 17
[/ANSWER]

[PYTHON]
def f(s):
    return s + "a"
assert f("x9j") == ??
[/PYTHON]
[ANSWER]
assert f("x9j") == "x9ja"
[/ANSWER]

"""
    )
