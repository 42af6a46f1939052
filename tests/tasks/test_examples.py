"""The bundled examples, and that their report can say no."""

import asyncio
from dataclasses import replace
from io import StringIO

from rich.console import Console

from redqueen.tasks.code import FAMILY
from redqueen.tasks.code import run_examples as examples
from redqueen.tasks.code.examples import ATTEMPTS, PROPOSALS
from redqueen.tasks.verdicts import Grade, Reason


def shown(report) -> str:
    text = StringIO()
    report.render(Console(width=160, file=text))
    return text.getvalue()


def test_every_example_comes_out_as_stated(verifier):
    report = asyncio.run(examples.run_examples(verifier))
    assert [row for row in report.rows if not row.ok] == []
    assert report.ok
    assert len(report.rows) == len(PROPOSALS) + len(ATTEMPTS)
    assert "all as stated" in shown(report)


def test_the_examples_show_every_kind_accepted_rejected_right_and_wrong():
    kinds = {example.name: example.kind for example in PROPOSALS}
    assert len(kinds) == len(PROPOSALS)
    for kind in FAMILY.kinds():
        assert {True, False} == {example.reason is None for example in PROPOSALS if example.kind == kind}
        grades = {example.grade for example in ATTEMPTS if kinds[example.proposal] == kind}
        assert {Grade.CORRECT, Grade.WRONG} <= grades


def test_an_example_that_comes_out_otherwise_is_reported(verifier, monkeypatch):
    monkeypatch.setattr(examples, "PROPOSALS", (replace(PROPOSALS[0], reason=Reason.TIMEOUT), *PROPOSALS[1:]))
    monkeypatch.setattr(examples, "ATTEMPTS", (*ATTEMPTS[:-1], replace(ATTEMPTS[-1], grade=Grade.CORRECT)))
    report = asyncio.run(examples.run_examples(verifier))
    assert not report.ok
    assert [row.expected for row in report.rows if not row.ok] == ["rejected: timeout", "correct"]
    assert "2 not as stated" in shown(report)
    assert "wrong, should be correct" in shown(report)
