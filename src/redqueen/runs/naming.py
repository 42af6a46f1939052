"""How a user names what a run has, in every command: RUN, RUN:STEP, RUN/MEMBER and RUN:STEP/MEMBER.

MEMBER is an id such as s0.2, `student` or `teacher` for the best one, or `soup` for the mean of all students. Without a
step the newest whole checkpoint is meant.
"""

from dataclasses import dataclass
from pathlib import Path

from redqueen.errors import InputError
from redqueen.runs.records_file import RECORDS, RecordsFile


@dataclass(frozen=True, slots=True)
class Named:
    run: Path
    step: int | None = None
    member: str | None = None


def named(what: str) -> Named | None:
    """What is meant of a run; None where it is none."""
    try:
        return _named(what)
    except OSError as error:
        raise InputError(
            f"{what} cannot be read: {error.strerror}", "give the folder of a run that you may read"
        ) from None


def _named(what: str) -> Named | None:
    if (Path(what) / RECORDS).is_file():
        return Named(Path(what))
    for name, member in ((what, None), (str(Path(what).parent), Path(what).name)):
        if member is not None and (Path(name) / RECORDS).is_file() and not Path(what).exists():
            return Named(Path(name), member=member)
        folder, _, step = name.rpartition(":")
        if folder and step.isascii() and step.isdigit() and (Path(folder) / RECORDS).is_file():
            return Named(Path(folder), int(step), member)
    return None


def named_in_run(what: str, member: str | None = None, step: int | None = None) -> Named:
    """The same for what must be of a run. Its member and its step may also come from options of their own."""
    found = named(what)
    if found is None:
        RecordsFile.read(Path(what)).close()  # refuses it
        raise InputError(f"{what} is not a run folder", "give RUN, RUN:STEP, RUN/MEMBER or RUN:STEP/MEMBER")
    for noun, own, other in (("member", found.member, member), ("step", found.step, step)):
        if own is not None and other is not None:
            raise InputError(f"{what} names a {noun}, and so does --{noun} {other}", f"leave out --{noun}")
    return Named(
        found.run,
        found.step if step is None else step,
        found.member if member is None else member,
    )
