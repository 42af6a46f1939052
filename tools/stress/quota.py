"""A share of the machine's CPU time, as containers are given one: a control group of its own with a quota."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SHARE = 0.2
_PERIOD_US = 100_000
_REMOVAL_S = 10.0


class Refused(Exception):
    """This machine does not let us do it; the text is one line."""


def own_group(mounts: str, groups: str) -> tuple[Path, bool]:
    """The group that we are in, and whether it is of the second version, which keeps all controllers in one tree.

    From the texts of /proc/self/mounts and /proc/self/cgroup. A container may not see its own path: then the mount.
    """
    found = [line.split()[1:4] for line in mounts.splitlines()]
    first = [place for place, kind, options in found if kind == "cgroup" and "cpu" in options.split(",")]
    second = [place for place, kind, _ in found if kind == "cgroup2"]
    if not first and not second:
        raise Refused("no control groups are mounted here: choose another load")
    controller = "cpu" if first else ""
    lines = [line.split(":", 2) for line in groups.splitlines()]
    inside = next((path for _, names, path in lines if controller in names.split(",")), "/")
    mount = Path((first or second)[0])
    own = mount / inside.lstrip("/")
    return (own if own.is_dir() else mount), not first


def _make(name: str) -> tuple[Path, Path]:
    """Our own group, and the one with the quota: in it, or beside it, as version 2 wants no processes above others."""
    own, second = own_group(Path("/proc/self/mounts").read_text(), Path("/proc/self/cgroup").read_text())
    above = own.parent if second and (own / "cgroup.type").exists() else own
    group, quota_us = above / name, int(SHARE * (os.cpu_count() or 1) * _PERIOD_US)
    group.mkdir()
    try:
        if second:
            (group / "cpu.max").write_text(f"{quota_us} {_PERIOD_US}")
        else:
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
    except OSError:
        group.rmdir()
        raise
    return own, group


def _remove(group: Path, own: Path) -> None:
    """Processes that are still in it go on in ours; those that fork meanwhile, too."""
    deadline = time.monotonic() + _REMOVAL_S
    while group.exists():
        for pid in (group / "cgroup.procs").read_text().split():
            _move(int(pid), own)
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _move(pid: int, group: Path) -> None:
    try:
        (group / "cgroup.procs").write_text(str(pid))
    except ProcessLookupError:
        return  # it has ended


@contextmanager
def limited(pid: int) -> Iterator[None]:
    """Give a process, and all that it starts from now on, a fifth of the machine."""
    try:
        own, group = _make(f"redqueen-stress-{os.getpid()}")
    except OSError as error:
        raise Refused(f"no control group can be made here ({error}): run as root, or choose another load") from error
    try:
        _move(pid, group)
        yield
    finally:
        _remove(group, own)
