"""`redqueen tasks`: what teachers proposed, to browse, to look at or to write to a file."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from redqueen.commands.command import Reporting, optional_positive
from redqueen.console import Report, TextReport, printable
from redqueen.errors import InputError

if TYPE_CHECKING:
    from redqueen.analysis.browse import Filters
    from redqueen.analysis.training_rows import As
    from redqueen.runs.store import Store

SHOWN = 20
"""Rows of a listing, unless --limit says otherwise."""
_PLACE = re.compile("([0-9]{1,12}):([0-9]{1,12})", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class TasksCommand(Reporting):
    """Browse a run's tasks, the newest first, or write them to a file. A task is shown if it passes every filter."""

    folder: Annotated[Path, tyro.conf.arg(metavar="RUN")]
    """The run, finished or under way."""
    kind: str | None = None
    """Only tasks of this kind."""
    teacher: Annotated[str | None, tyro.conf.arg(metavar="ID")] = None
    """Only tasks of this teacher."""
    since: Annotated[int | None, tyro.conf.arg(metavar="STEP")] = None
    """From this step on."""
    until: Annotated[int | None, tyro.conf.arg(metavar="STEP")] = None
    """Up to this step."""
    text: str | None = None
    """Only tasks whose teacher wrote this somewhere, ASCII letters in either case."""
    solved_min: Annotated[float | None, tyro.conf.arg(metavar="RATE")] = None
    """Solved in at least this share of the attempts, 0 to 1."""
    solved_max: Annotated[float | None, tyro.conf.arg(metavar="RATE")] = None
    """Solved in at most this share of the attempts."""
    oversight: bool = False
    """Only tasks that are flagged for human review."""
    rejected: bool = False
    """Instead: the proposals that were rejected, with the reasons."""
    reason: str | None = None
    """With --rejected: only those that were rejected for this reason."""
    limit: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """At most this many; by default 20, all with --to."""
    show: Annotated[str | None, tyro.conf.arg(metavar="STEP:PLACE")] = None
    """Instead: one proposal in full, with all attempts and verdicts."""
    to: Annotated[Path | None, tyro.conf.arg(metavar="FILE.jsonl|FILE.parquet|FOLDER")] = None
    """Write them to this file, the oldest first; or, each once, as a taskset of verifiers (v1) to this new folder."""

    form: Annotated[Literal["sft", "dpo"] | None, tyro.conf.arg(name="as")] = None
    """With --to FILE.jsonl: what students wrote, for other trainers: right attempts as chats, or pairs of a right and a
    wrong one. It imports the run's task families, code that you trust."""

    def report(self) -> Report:
        from redqueen.analysis import browse
        from redqueen.runs.store import Store

        filters = self._filters()
        limit = optional_positive("--limit", self.limit)
        place = None if self.show is None else _place(self.show)
        if place is not None and self.to is not None:
            raise InputError("--show and --to exclude each other", "--show is for one proposal, --to for many")
        with Store.read(self.folder) as store:
            if place is not None:
                return browse.one(store, *place)
            if self.form is not None:
                return self._for_trainers(store, filters, limit, self.form)
            if self.to is None:
                return browse.listing(store, filters, limit or SHOWN)
            if not self.to.suffix:
                return self._taskset(store, filters, limit)
            from redqueen.analysis.table_files import write

            rows = write(self.to, filters.row_type, browse.rows(store, filters, limit, newest_first=False))
            line = printable(f"{rows:,} {'rejections' if self.rejected else 'tasks'} are in {self.to}")
            return TextReport({"file": str(self.to), "rows": rows}, [line])

    def _for_trainers(self, store: "Store", filters: "Filters", limit: int | None, form: "As") -> Report:
        from redqueen.analysis import browse, training_rows
        from redqueen.runs import CONFIG
        from redqueen.runs.rows import RejectionRow
        from redqueen.settings import load_run

        if self.to is None:
            raise InputError(f"--as {form} needs to know where to write", "add --to FILE.jsonl")
        if self.rejected:
            raise InputError(
                f"--as {form} is of attempts, and nobody attempts what was rejected", "leave out --rejected"
            )
        found = browse.rows(store, filters, limit, newest_first=False)
        tasks = (row for row in found if not isinstance(row, RejectionRow))
        rows = training_rows.write(self.to, store, load_run(self.folder / CONFIG), tasks, form)
        line = printable(f"{rows:,} rows for {form} are in {self.to}")
        return TextReport({"file": str(self.to), "rows": rows}, [line])

    def _taskset(self, store: "Store", filters: "Filters", limit: int | None) -> Report:
        from redqueen.analysis import browse, taskset_folder
        from redqueen.runs import CONFIG
        from redqueen.runs.rows import RejectionRow
        from redqueen.settings import load_run

        assert self.to is not None
        if self.rejected:
            raise InputError("a taskset has tasks, and --rejected asks for rejections", "leave one of the two out")
        found = browse.rows(store, filters, limit, newest_first=False)
        tasks = (row for row in found if not isinstance(row, RejectionRow))
        count = taskset_folder.write(self.to, load_run(self.folder / CONFIG), tasks)
        line = printable(f"{count:,} tasks are in {self.to}, a taskset of verifiers: `pip install {self.to}`")
        return TextReport({"folder": str(self.to), "tasks": count}, [line])

    def _filters(self) -> "Filters":
        from redqueen.analysis.browse import Filters
        from redqueen.tasks.verdicts import Reason

        for option, rate in (("--solved-min", self.solved_min), ("--solved-max", self.solved_max)):
            if rate is None:
                continue
            if not 0 <= rate <= 1:
                raise InputError(f"{option} cannot be {rate}", "use a share from 0 to 1")
            if self.rejected:
                raise InputError(f"{option} is of no use with --rejected", "nobody attempts what was rejected")
        if self.rejected and self.oversight:
            raise InputError("--oversight is of no use with --rejected", "only tasks are set aside")
        if self.reason is not None and not self.rejected:
            raise InputError("--reason is of no use without --rejected", "only what was rejected has one")
        if self.reason is not None and self.reason not in tuple(Reason):
            raise InputError(f"nothing is rejected for {self.reason}", f"the reasons are {', '.join(Reason)}")
        return Filters(
            kind=self.kind,
            teacher=self.teacher,
            since=self.since,
            until=self.until,
            text=self.text,
            min_rate=self.solved_min,
            max_rate=self.solved_max,
            oversight=self.oversight,
            rejected=self.rejected,
            reason=self.reason,
        )


def _place(text: str) -> tuple[int, int]:
    match = _PLACE.fullmatch(text)
    if match is None:
        raise InputError(f"--show cannot be {text}", "write STEP:PLACE as the listing does, such as 12:3")
    return int(match[1]), int(match[2])
