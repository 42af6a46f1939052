"""CRUXEval-I: inputs for which 800 small functions return what is shown, answered at once after two examples."""

from typing import ClassVar

from redqueen.evals.cruxeval import InputPrediction


class CruxEvalI(InputPrediction):
    name = "cruxeval_i"
    title = "CRUXEval-I"
    tokens = 256
    thought = False
    examples: ClassVar = (
        "You will be given a function f and an output in the form f(??) == output. Find any input such that executing "
        "f on the input leads to the given output. There may be multiple answers, but you should only output one. In "
        "[ANSWER] and [/ANSWER] tags, complete the assertion with one such input that will produce the output when "
        """executing the function.

[PYTHON]
def f(my_list):
    count = 0
    for i in my_list:
        if len(i) % 2 == 0:
            count += 1
    return count
assert f(??) == 3
[/PYTHON]
[ANSWER]
assert f(["mq", "px", "zy"]) == 3
[/ANSWER]

[PYTHON]
def f(s1, s2):
    return s1 + s2
assert f(??) == "banana"
[/PYTHON]
[ANSWER]
assert f("ba", "nana") == "banana"
[/ANSWER]

"""
    )
