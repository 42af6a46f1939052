"""Grades answers to items of reasoning-gym, by the graders of its generators.

All generators are made here once, and each grades two answers: what they read and import on the way, such as lists of
words, is then in memory. A guest cannot open a file. An item is canonical text of (generator, settings, question,
answer, metadata).
"""

import ast
import contextlib
import copy
import io

from reasoning_gym.factory import DATASETS  # pyright: ignore[reportMissingImports]
from watching import runs as watch_for

_WARM_SEED = 5
"""One that no generator takes long with."""
FULL = 1.0
"""The score of a right answer; a part of it is for wrong ones that come near."""


def grade(item, text):
    """ "correct" or "wrong"."""
    score, entry = _prepared(item)
    return "correct" if score(text, entry) >= FULL else "wrong"


def runs(item, text, word):
    """ "yes" where grading the text executes the word in it."""
    score, entry = _prepared(item)
    return "yes" if watch_for(lambda: score(text, entry), word) else "no"


def _prepared(item):
    generator, settings, question, answer, metadata = ast.literal_eval(item)
    if generator in _BROKEN:
        raise RuntimeError(_BROKEN[generator])
    dataset = _GRADERS[generator]
    if settings:
        dataset = copy.copy(dataset)
        dataset.config = DATASETS[generator][1](**settings)
    return _quiet(dataset.score_answer), {"question": question, "answer": answer, "metadata": metadata}


def _quiet(score):
    def scored(text, entry):
        with contextlib.redirect_stdout(io.StringIO()):
            return float(score(text, entry))

    return scored


def _made(generator):
    made, config = DATASETS[generator]
    dataset = made(config(seed=_WARM_SEED, size=1))
    entry = dataset[0]
    for text in (entry["answer"], "7"):
        if isinstance(text, str):
            dataset.score_answer(text, entry)
    return dataset


_GRADERS, _BROKEN = {}, {}
for _name in DATASETS:
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            _GRADERS[_name] = _made(_name)
    except Exception as _error:  # a generator that fails is said by whoever asks for it, and does not fail the others
        _BROKEN[_name] = f"{_name} cannot be made: {type(_error).__name__} {_error}"
