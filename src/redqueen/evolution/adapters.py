"""Adapters as users name them: PEFT folders, and members of runs (`runs.naming`)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from redqueen.analysis import export
from redqueen.analysis.folders import NamedAdapter
from redqueen.engine import peft
from redqueen.errors import InputError
from redqueen.evolution.consensus import exported
from redqueen.runs.naming import named
from redqueen.runs.records_file import meant


def read_adapters(whats: Sequence[str], *, whole_runs: bool) -> tuple[list[NamedAdapter], list[str]]:
    """The adapters in their order, and what should be said about them. With `whole_runs` a run stands for all its
    members; otherwise it is refused."""
    notes: list[str] = []
    return [adapter for what in whats for adapter in _read(what, whole_runs, notes)], notes


def _read(what: str, whole_runs: bool, notes: list[str]) -> Iterator[NamedAdapter]:
    of_run = named(what)
    if of_run is None:
        if not Path(what).is_dir():
            mend = meant(Path(what)) or "give a PEFT folder, or a member of a run as RUN/MEMBER"
            raise InputError(f"{what} is no PEFT folder and no member of a run", mend)
        yield NamedAdapter(what, peft.load(what), Path(what))
        return
    if of_run.member is None and not whole_runs:
        raise InputError(f"{what} is a whole run", f"name one of its members, such as {what}/student or {what}/s0")
    checkpoint, told = export.find(of_run.run, of_run.step)
    notes += told
    if of_run.member is not None:
        id, told = export.named(of_run.run, checkpoint, of_run.member)
        notes += told
        yield NamedAdapter(what, *exported(checkpoint, id))
        return
    for id in export.members(checkpoint):
        yield NamedAdapter(f"{what}/{id}", *exported(checkpoint, id))
