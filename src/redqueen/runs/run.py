"""A run: the directory of one race, held by one process at a time, and how it goes on after anything.

Records are written before the checkpoint that stands on them, so that the newest whole checkpoint is always a step of
the race. What the records hold beyond it is dropped: those steps are run again, and come out the same.
"""

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from redqueen.engine.protocol import MemberId, MemberState
from redqueen.errors import Fault, RunError
from redqueen.runs import CHECKPOINTS, CONFIG, FORKED_FROM, REPORT, checkpoints
from redqueen.runs.atomic import clear_leftovers, flush_entry, leftover, put_in_place, write_text
from redqueen.runs.checkpoints import Loaded
from redqueen.runs.lock import LOCK, take
from redqueen.runs.records_file import RECORDS
from redqueen.runs.settled import settled
from redqueen.runs.store import Store


@dataclass(kw_only=True)
class Run:
    """A run's directory, opened by `Run.open`. Close it, or use it in a `with` statement."""

    folder: Path
    store: Store
    loaded: Loaded | None
    """What to go on from; None at the beginning."""
    notes: list[str]
    """What the user should know about how it was opened, in lines."""
    last: int
    every: int
    """Which checkpoints are kept: see `checkpoints.prune`."""
    _lock: int
    _known: set[int] = field(default_factory=set)
    """Steps whose checkpoints this process has seen whole."""
    _saved: int | None = None

    @classmethod
    def open(cls, folder: Path, config_toml: str, *, free: Collection[str] = (), last: int = 2, every: int = 0) -> Self:
        """Begin a run in a folder that is not there or empty, or go on with the one in it.

        A run keeps its settings. Those in `free`, dotted keys or whole sections, may be others the next time.
        """
        with _plain(folder):
            _refuse_other_folders(folder)
            folder.mkdir(parents=True, exist_ok=True)
            lock = take(folder)
        try:
            with _plain(folder):
                clear_leftovers(folder)
                _settle(folder / CONFIG, config_toml, None if _not_begun(folder) else free)
                (folder / CHECKPOINTS).mkdir(exist_ok=True)
                clear_leftovers(folder / CHECKPOINTS)
                flush_entry(folder)
            store = _open_store(folder)
            try:
                loaded, notes = _resume(folder, store)
            except BaseException:
                store.close()
                raise
        except BaseException:
            os.close(lock)
            raise
        known = set() if loaded is None else {loaded.step}
        return cls(
            folder=folder,
            store=store,
            loaded=loaded,
            notes=notes,
            last=last,
            every=every,
            _lock=lock,
            _known=known,
            _saved=loaded.step if loaded else None,
        )

    def save(
        self,
        step: int,
        state: Mapping[str, Any],
        members: Mapping[MemberId, MemberState],
        *,
        base_name: str,
        modules: Iterable[str],
    ) -> None:
        """Make this step the one to go on from. Its records have been written; saving it again changes nothing."""
        if self.store.last_step() < step:
            raise Fault(f"the checkpoint of step {step} comes before its records")
        if step == self._saved:
            return
        folder = self.folder / CHECKPOINTS
        checkpoints.save(folder, step, state, members, base_name=base_name, modules=modules)
        self._saved = step
        self.store.mark_saved(step)
        self.store.journal_prune(step)
        self._known = checkpoints.prune(folder, self.last, self.every, known=self._known | {step})

    def close(self) -> None:
        """Let go of the directory; closing twice is fine."""
        if self._lock >= 0:
            try:
                self.store.close()
            finally:
                os.close(self._lock)
                self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def fork(source: Path, step: int, target: Path, config_toml: str) -> None:
    """A run of its own that goes on from a checkpoint of another one, which may be at work and is left as it is."""
    with Store.read(source) as records:
        last = records.last_step()
        usable = [saved for saved in checkpoints.steps(source / CHECKPOINTS) if saved <= last]
        if step not in usable:
            steps = ", ".join(map(str, usable))
            mend = f"fork from one of the steps {steps}" if steps else "wait for its first checkpoint"
            raise RunError(f"{source} has no checkpoint of step {step}", mend)
        with _plain(target):
            if target.exists() and not (target.is_dir() and not any(target.iterdir())):
                raise RunError(f"{target} is there already", "name another folder")
            target.parent.mkdir(parents=True, exist_ok=True)
            with put_in_place(target) as aside:
                (aside / CHECKPOINTS).mkdir(parents=True)
                checkpoints.copy(source / CHECKPOINTS / checkpoints.name(step), aside / CHECKPOINTS)
                records.copy_to(aside)
                with Store.open(aside) as store:
                    store.drop_after(step)
                    store.drop_worker_events()
                    store.mark_saved(step)
                    # Another run's verdicts, for steps that this one may take otherwise.
                    store.journal_prune(sys.maxsize)
                    store.set_facts({FORKED_FROM: origin_of(source, step)})
                    store.shrink()
                write_text(aside / CONFIG, config_toml)


def origin_of(source: Path, step: int) -> str:
    """What a fork says of where it comes from."""
    return f"{source.absolute()}, step {step}"


def _refuse_other_folders(folder: Path) -> None:
    """Only a run, or what became of one that was hardly begun, or nothing."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RunError(f"{folder} is no folder", "name another one")
    names = {path.name for path in folder.iterdir()}
    begun = all(name == LOCK or leftover(name) for name in names)
    if RECORDS in names and CONFIG not in names:
        mend = f"restore it from a copy (a finished run has its settings in {REPORT} too), or name another folder"
        raise RunError(f"{folder} has lost its {CONFIG}", mend)
    if not begun and not (CONFIG in names and names & {RECORDS, LOCK}):
        raise RunError(f"{folder} is not empty and no run", "name another folder, or a run's")


def _not_begun(folder: Path) -> bool:
    """Whether nothing has been done there yet, as when the first start failed: then there is nothing to mix up."""
    if checkpoints.steps(folder / CHECKPOINTS):
        return False
    if not (folder / RECORDS).exists():
        return True
    with Store.open(folder) as store:
        last = store.last_step()
        # The folder is older than the records are, and a folder that a disk is missing from may well be there.
        if store.saved() or (last and not (folder / CHECKPOINTS).is_dir()):
            raise RunError(
                f"{folder} has lost its {CHECKPOINTS}, with records of {last} steps",
                f"mount or restore {folder / CHECKPOINTS}, or name another folder to begin at step 1",
            )
        return last == 0


def _settle(path: Path, wanted_toml: str, free: Collection[str] | None) -> None:
    """Write the settings down, or compare them with those that are there; None compares nothing."""
    if free is None or not path.exists():
        write_text(path, wanted_toml)
        return
    here, wanted = settled(path, wanted_toml, free)
    if here != wanted:
        write_text(path, wanted_toml)


def _open_store(folder: Path) -> Store:
    if (folder / RECORDS).exists():
        return Store.open(folder)
    if checkpoints.steps(folder / CHECKPOINTS):
        raise RunError(f"{folder} has lost its {RECORDS}", "restore it from a copy, or name another folder")
    return Store.create(folder)


def _resume(folder: Path, store: Store) -> tuple[Loaded | None, list[str]]:
    """Find the checkpoint to go on from, and take the records back to it."""
    saved, last = checkpoints.steps(folder / CHECKPOINTS), store.last_step()
    path, damaged = checkpoints.newest(folder / CHECKPOINTS, last)
    notes = [f"{skipped} is passed over: {why}" for skipped, why in damaged]
    ahead = [folder / CHECKPOINTS / checkpoints.name(step) for step in saved if step > last]
    notes += [f"{skipped} is passed over: the records end at step {last}" for skipped in ahead]
    if saved and path is None:
        raise RunError(
            f"{folder} has no checkpoint to go on from: {'; '.join(notes)}",
            "restore one from a copy, or name another folder to begin at step 1",
        )
    loaded = None if path is None else checkpoints.load(path)
    with _plain(folder):
        for checkpoint in ahead:
            # Otherwise it would be the newest again as soon as the race is there, with another race's records.
            checkpoints.set_aside(checkpoint)
    start = 0 if loaded is None else loaded.step
    if loaded is not None:
        store.mark_saved(start)
    if last > start:
        notes.append(f"steps {start + 1} to {last} were not saved and are run again")
        store.drop_after(start)
    # A crash may have come between a checkpoint and this.
    store.journal_prune(start)
    return loaded, notes


@contextmanager
def _plain(folder: Path) -> Iterator[None]:
    """What the disk says, in one line."""
    try:
        yield
    except OSError as error:
        mend = "mend that, or name another folder"
        raise RunError(f"{folder} cannot be used: {error.strerror or error}", mend) from None
