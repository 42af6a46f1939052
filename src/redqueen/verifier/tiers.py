"""Isolation tiers, and how this machine's is found: by trying, not by reading version numbers.

A tier is available when a zygote could isolate itself that way, and then every canary, a small program that tries one
forbidden thing, came out as it should.
"""

import platform
import sys
from dataclasses import dataclass
from enum import StrEnum

from redqueen.verifier.guest.filters import ARCHITECTURES
from redqueen.verifier.jobs import Job, Limits, Outcome, Status


class Tier(StrEnum):
    """How untrusted programs are kept in, strongest first."""

    FULL = "full"
    """The system-call filter, inside namespaces of its own."""
    SECCOMP = "seccomp"
    """The system-call filter alone: in containers, and where users may not make namespaces."""
    NONE = "none"
    """Limits only; refused unless the user insists."""

    @property
    def strength(self) -> int:
        return len(Tier) - list(Tier).index(self)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a tier is not available, and what would change that."""

    tier: Tier
    why: str
    mend: str


@dataclass(frozen=True, slots=True)
class AvailableTier:
    """The strongest tier of this machine and why it is not a stronger one."""

    tier: Tier
    refusals: tuple[Refusal, ...]


_TRY = "import os\ndef f():\n    {}\n    return 'reached'"
_LIMITS = Limits(cpu_s=0.1, memory_mb=64)
"""The infinite loop costs this much at every start."""
_REFUSED = ("exc:PermissionError",)

CANARIES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("an honest program", "def f():\n    return [1, 'x', 2.5]", ("ok:[1, 'x', 2.5]",)),
    ("opening a file", _TRY.format("os.open('/', os.O_RDONLY)"), _REFUSED),
    ("looking for a file", _TRY.format("os.stat('/')"), _REFUSED),
    ("writing to another descriptor", _TRY.format("os.write(2, b'x')"), _REFUSED),
    ("reading from its reply", _TRY.format("os.read(3, 1)"), _REFUSED),
    ("forking", _TRY.format("os.fork()"), _REFUSED),
    ("executing a program", _TRY.format("os.execv('/bin/true', ['true'])"), _REFUSED),
    ("signalling its parent", _TRY.format("os.kill(os.getppid(), 0)"), _REFUSED),
    ("making a pipe", _TRY.format("os.pipe()"), _REFUSED),
    ("asking for entropy", _TRY.format("os.urandom(1)"), _REFUSED),
    ("an unlisted system call", _TRY.format("os.memfd_create('x')"), ("violation",)),
    ("an infinite loop", _TRY.format("while True: pass"), ("timeout",)),
    ("taking all memory", _TRY.format("bytearray(128 << 20)"), ("memory",)),
    ("depending on the hash seed", "def f():\n    return [hash(c) for c in 'abcdef']", ("nondet",)),
)


def canary_jobs() -> list[Job]:
    return [Job.calls(source, [""], limits=_LIMITS) for _, source, _ in CANARIES]


def failed_canaries(outcomes: list[Outcome]) -> list[tuple[str, Status]]:
    """What each canary that came out wrong did, and its status."""
    results = [outcome.results[0] for outcome in outcomes]
    return [
        (f"{what} came out as {result.verdict} and not as {' or '.join(expected)}", result.status)
        for (what, _, expected), result in zip(CANARIES, results, strict=True)
        if result.verdict not in expected
    ]


def unsupported(tier: Tier) -> Refusal | None:
    """Why this platform cannot have a tier, if it cannot."""
    if tier is Tier.NONE:
        return None
    if sys.platform != "linux":
        return Refusal(
            tier,
            f"{platform.system()} has no seccomp",
            "run Red Queen on Linux (a virtual machine or a container will do)",
        )
    if platform.machine() not in ARCHITECTURES:
        known = " and ".join(ARCHITECTURES)
        return Refusal(tier, f"no system-call table for {platform.machine()}", f"use a machine with {known}")
    return None


def mend(tier: Tier) -> str:
    if tier is Tier.FULL:
        return (
            "allow namespaces to this user: `sysctl kernel.unprivileged_userns_clone=1` (Debian), "
            "`sysctl kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu), or in a container "
            "`--cap-add SYS_ADMIN --security-opt seccomp=unconfined`"
        )
    return "use a kernel with CONFIG_SECCOMP_FILTER, and a container that allows prctl(PR_SET_SECCOMP)"
