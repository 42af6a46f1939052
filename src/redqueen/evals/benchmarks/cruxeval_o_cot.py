"""CRUXEval-O with a chain of thought before the answer, after one example."""

from typing import ClassVar

from redqueen.evals.cruxeval import OutputPrediction


class CruxEvalOCot(OutputPrediction):
    name = "cruxeval_o_cot"
    title = "CRUXEval-O, chain of thought"
    tokens = 1_024
    thought = True
    examples: ClassVar = (
        "You are given a Python function and an assertion containing an input to the function. Complete the assertion "
        "with a literal (no unsimplified expressions, no function calls) containing the output when executing the "
        "provided code on the given input, even if the function is incorrect or incomplete. Do NOT output any extra "
        "information. Execute the program step by step before arriving at an answer, and provide the full assertion "
        """with the correct output in [ANSWER] and [/ANSWER] tags, following the examples.

[PYTHON]
def f(s):
    s = s + s
    return "b" + s + "a"
assert f("hi") == ??
[/PYTHON]
[THOUGHT]
Let's execute the code step by step:

1. The function f is defined, which takes a single argument s.
2. The function is called with the argument "hi", so within the function, s is initially "hi".
3. Inside the function, s is concatenated with itself, so s becomes "hihi".
"""
        '4. The function then returns a new string that starts with "b", followed by the value of s (which is now '
        """"hihi"), and ends with "a".
5. The return value of the function is therefore "bhihia".
[/THOUGHT]
[ANSWER]
assert f("hi") == "bhihia"
[/ANSWER]

"""
    )
