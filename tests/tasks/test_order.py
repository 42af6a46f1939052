"""Programs that return the order of a set are refused for it, however small the set is."""

import asyncio
import subprocess
import sys
from itertools import combinations

import pytest

from redqueen.tasks.code.order import seeds_for
from redqueen.tasks.code.pairs import validate_pairs
from redqueen.tasks.code.task import DEFAULT_LIMITS, CodeDraft
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.verifier import MOST_SEEDS, USUAL_SEEDS
from redqueen.verifier.jobs import HASH_SEEDS

WORDS = ("a", "b", "x", "cat", "dog", "red", "blue", "one")


def validated(verifier, *drafts: tuple[str, str]) -> list:
    wanted = [CodeDraft("code_o", program, (given,)) for program, given in drafts]
    return asyncio.run(validate_pairs(wanted, DEFAULT_LIMITS, verifier))


@pytest.mark.parametrize(
    "program",
    [
        "def f(x):\n    return list({x[0], x[1]})",
        "def f(x):\n    return ''.join(set(x))",
        "def f(x):\n    return next(iter(frozenset(x)))",
        "def f(x):\n    seen = {w for w in x}\n    return seen.pop()",
        "def f(x):\n    return [w for w in dict.fromkeys(x).keys() & dict.fromkeys(x).keys()]",
        "def f(x):\n    return str(set(x))",
        "def f(x):\n    a = dict.fromkeys(x).keys()\n    b = dict.fromkeys(x).keys()\n    return list(a & b)",
        "def f(x):\n    a = dict.fromkeys(x).keys()\n    a &= dict.fromkeys(x).keys()\n    return list(a)",
        "def f(x):\n    return list(dict.fromkeys(x).keys().__sub__([]))",
        "import typing\ndef f(x):\n    return list(typing.get_origin(typing.Set[str])(x))",
        "from collections.abc import KeysView\ndef f(x):\n    return list(KeysView(dict.fromkeys(x)) & set(x))",
        "import operator\ndef f(x):\n    a = dict.fromkeys(x).keys()\n    return list(operator.and_(a, a))",
    ],
)
def test_the_order_of_two_strings_in_a_set_is_no_result(verifier, program) -> None:
    """Every pair: two seeds would let about half of them through."""
    results = validated(verifier, *((program, str(list(pair))) for pair in combinations(WORDS, 2)))
    reasons = {result.reason if isinstance(result, Rejection) else "accepted" for result in results}
    assert reasons == {Reason.NONDETERMINISTIC}


def test_the_order_of_a_set_that_is_given_is_no_result_either(verifier) -> None:
    results = validated(verifier, *(("def f(x): return list(x)", str(set(pair))) for pair in combinations(WORDS, 2)))
    assert all(isinstance(result, Rejection) and result.reason is Reason.NONDETERMINISTIC for result in results)


def test_what_a_set_is_good_for_is_welcome(verifier) -> None:
    programs = (
        "def f(x): return sorted(set(x))",
        "def f(x): return len({w[0] for w in x})",
        "def f(x): return set(x) == {'cat', 'dog'}",
        "def f(x): return {w: len(w) for w in set(x)}",
        "def f(x): return set(x) | {'red'}",
        "def f(x): return list({3, 1, 2})",
    )
    results = validated(verifier, *((program, "['cat', 'dog']") for program in programs))
    assert not [result for result in results if isinstance(result, Rejection)]


def test_only_programs_that_may_have_a_set_are_run_under_more_seeds() -> None:
    assert seeds_for("def f(x): return x.keys()", ("1",)) == USUAL_SEEDS
    assert seeds_for("def f(x): return x + 1", ("1", "[2]")) == USUAL_SEEDS
    assert seeds_for("def f(x): return x.keys() - {}", ("1",)) == MOST_SEEDS
    assert seeds_for("def f(x): return x", ("{1: 2}",)) == MOST_SEEDS
    assert seeds_for("def f(x): return x", ("set()",)) == MOST_SEEDS


ORDERS = """
import itertools, string
short = "apple banana cherry cat dog hello world red green blue foo bar"
words = [*string.ascii_letters, *string.digits, *"_-. ", *short.split()]
print("".join(str(int(next(iter({a, b})) == a)) for a, b in itertools.combinations(words, 2)))
"""


@pytest.mark.skipif(
    sys.hash_info.algorithm != "siphash13", reason="another hash function than the seeds were chosen for"
)
def test_no_two_letters_digits_or_short_words_have_one_order_under_all_seeds() -> None:
    orders = [
        subprocess.run(
            [sys.executable, "-S", "-c", ORDERS],
            env={"PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in HASH_SEEDS
    ]
    firsts = [set(pair) for pair in zip(*orders, strict=True)]
    assert len(firsts) > 2000
    assert sum(len(pair) == 1 for pair in firsts) == 0
    assert sum(len(set(pair)) == 1 for pair in zip(*orders[:2], strict=True)) > len(firsts) / 3, (
        "two seeds would not do"
    )
