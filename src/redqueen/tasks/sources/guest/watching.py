"""Whether a grader runs what a student wrote: code that has the student's word in it and is executed.

Python says what it executes (an audit event). A text that is only parsed, as `ast.literal_eval` does, is not executed.
"""

import sys

_words = []
"""The word that is watched for, if one is."""
_found = []


def _hook(event, arguments):
    if _words and event == "exec" and _mentions(arguments[0], _words[0]):
        _found.append(event)


def _mentions(code, word):
    inner = [constant for constant in code.co_consts if hasattr(constant, "co_consts")]
    words = (*code.co_names, *code.co_varnames, *(each for each in code.co_consts if isinstance(each, str)))
    return any(word in each for each in words) or any(_mentions(each, word) for each in inner)


def runs(grade, word):
    """Whether `grade()` executes code that has this word in it."""
    _words[:], _found[:] = [word], []
    try:
        grade()
    except Exception:  # whatever it ran, it ran before
        pass
    finally:
        _words.clear()
    return bool(_found)


sys.addaudithook(_hook)
