"""Whoever asks why a proposal was refused sees its program and what each run of it gave."""

import asyncio
import re

import pytest

from redqueen.tasks.archive import Archive
from redqueen.tasks.code import FAMILY, CodeTask
from redqueen.tasks.code.evidence import LONGEST
from redqueen.tasks.guards import Guards
from redqueen.tasks.verdicts import Reason, Rejection
from redqueen.verifier import Outcome, Result, Status
from tasks.proposing import fence, grade, pair, propose

CODE_O = FAMILY.kinds()["code_o"]


def refused(verifier, text: str, kind: str = "code_o", context=None) -> Rejection:
    became = propose(FAMILY.kinds()[kind], verifier, text, context)
    assert isinstance(became, Rejection)
    return became


def test_a_nondeterministic_program_shows_results_that_differ(verifier):
    program = "def f(x):\n    return [*{'a', 'b', 'c', 'd', 'e', 'f', 'g', x}]"
    became = refused(verifier, pair(program, "'h'"))
    assert (became.reason, became.program) == (Reason.NONDETERMINISTIC, program)
    assert len(became.runs) == 2, "its one call is made twice"
    for line in became.runs:
        when, _, gave = line.partition(", f('h'): ")
        given = gave.split(" | ")
        assert when == "when validated"
        assert len(given) == 8 and len(set(given)) > 1
        assert all(each.startswith("ok:['") for each in given)
    assert refused(verifier, pair(program, "'h'")) == became, "hash seeds are always the same"


SHOWN = {
    "raises": ("def f(x):\n    return x / 0", "1", "f(1): exc:ZeroDivisionError in each run"),
    "timeout": ("def f(x):\n    while x:\n        pass", "1", "f(1): timeout in each run"),
    "not_plain": ("def f(x):\n    return f", "1", "f(1): opaque in each run"),
    "none_result": ("def f(x):\n    x + 1", "1", "f(1): ok:None in each run"),
    "unanswerable": ("def f(x):\n    return '</' + x + '>'", "'think'", "f('think'): '</think>' in each run"),
}


@pytest.mark.parametrize("reason", SHOWN)
def test_a_program_that_ran_shows_what_its_calls_gave(reason, verifier):
    program, given, line = SHOWN[reason]
    became = refused(verifier, pair(program, given))
    assert (became.reason, became.program) == (reason, program)
    assert set(became.runs) == {f"when validated, {line}"}


NOT_RUN = {
    "a forbidden name": (pair("def f(x):\n    # why\n    return hash(x)", "1"), "forbidden_name"),
    "no input": (fence("python", "def f(x):\n    return x"), "no_input"),
    "no literal": (pair("def f(x):\n    return x", "y"), "not_literal"),
    "no Python": (pair("def f(x):\n    return (", "1"), "syntax"),
    "a text that was cut": ("```python\ndef f(x):\n    return", "cut"),
}


@pytest.mark.parametrize("name", NOT_RUN)
def test_a_program_that_was_not_run_is_shown_as_far_as_it_goes(name, verifier):
    text, reason = NOT_RUN[name]
    became = refused(verifier, text)
    assert (became.reason, became.runs) == (reason, ())
    assert became.program == text.removeprefix("```python\n").partition("\n```")[0]


def test_without_a_program_there_is_none_to_show(verifier):
    became = refused(verifier, "I would rather not.")
    assert (became.reason, became.program, became.runs) == (Reason.NO_PROGRAM, "", ())


@pytest.mark.parametrize("text", ["```inputs\n1", fence("inputs", "1"), fence("inputs", "1\n2\n3\ny"), "no"])
def test_inputs_that_are_refused_show_the_program_that_they_were_for(text, verifier):
    assert refused(verifier, text, "code_f", {"program": "def f(x):\n    return x"}).program.startswith("def f(x)")


def test_every_call_is_shown(verifier):
    became = refused(verifier, fence("inputs", "1\n2\n3\n4"), "code_f", {"program": "def f(x):\n    return 0"})
    assert became.reason is Reason.CONSTANT
    assert became.runs == tuple(f"when validated, f({given}): ok:0 in each run" for given in (1, 2, 3, 4))


class Turns:
    """A verifier under which programs return something else from their second batch on."""

    def __init__(self, verifier) -> None:
        self._verifier, self._batches = verifier, 0

    async def run(self, jobs):
        outcomes = await self._verifier.run(jobs)
        self._batches += any(job.source for job in jobs)
        if self._batches < 2:
            return outcomes
        other = (Result(Status.OK, value="8"),)
        return [Outcome(results=other, tier=each.tier, cpu_ms=each.cpu_ms, runs=(other, other)) for each in outcomes]


def test_what_a_grader_would_get_stands_beside_what_was_validated(verifier):
    became = refused(Turns(verifier), pair("def f(x):\n    return x", "7"))
    assert became.runs == (
        "when validated, f(7): ok:7 in each run",
        "called as a grader calls it, f(7): ok:8 in each run",
    )


@pytest.mark.parametrize("kind", ["code_i", "code_f"])
def test_a_void_attempt_says_what_the_truth_gave(kind, verifier):
    given, outputs = ("1", "2", "3", "4"), ("2", "4", "6", "8")
    task = {
        "code_i": CodeTask("code_i", program="def f(x):\n    return -1", inputs=given[:1], outputs=outputs[:1]),
        "code_f": CodeTask("code_f", program="def f(x):\n    return -1", inputs=given, outputs=outputs, shown=2),
    }[kind]
    answer = fence("input", "7") if kind == "code_i" else fence("python", "def f(x):\n    return 2 * x")
    [verdict] = grade(FAMILY.kinds()[kind], verifier, task, answer)
    assert verdict.void
    assert verdict.runs == tuple(f"beside an attempt, f({each}): ok:-1 in each run" for each in task.inputs)


def test_a_long_result_is_cut_and_says_how_long_it_was(verifier):
    became = refused(verifier, pair("def f(n):\n    return 'x' * n", "3000"))
    assert became.reason is Reason.OUTPUT_TOO_LONG
    [line] = set(became.runs)
    assert re.search(r": ok:'x{196}\.\.\. \(3,005 characters, SHA-256 [0-9a-f]{12}\.\.\.\) in each run$", line)


def test_long_results_that_differ_only_at_their_end_look_different(verifier):
    became = refused(verifier, pair("def f(n):\n    return 'x' * n + ''.join({'a', 'b', 'c', 'd', 'e', 'f'})", "400"))
    assert became.reason is Reason.NONDETERMINISTIC
    gave = became.runs[0].split(": ", 1)[1].split(" | ")
    assert len({each[:LONGEST] for each in gave}) == 1
    assert len(set(gave)) > 1


def test_a_duplicate_shows_the_program_and_what_it_returned(verifier):
    task = CodeTask("code_o", program="def f(x):\n    return x", inputs=("1",), outputs=("1",))
    _, became = asyncio.run(Guards().screen([task, task], Archive(), verifier))
    assert isinstance(became, Rejection) and became.reason is Reason.DUPLICATE
    assert (became.program, became.runs) == (task.program, ("when validated, f(1): 1 in each run",))
