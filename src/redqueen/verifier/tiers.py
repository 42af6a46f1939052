"""Isolation tiers, and how this machine's is found: by trying, not by reading version numbers.

A tier counts as available when a zygote could shut itself in that way and then some canaries, small programs
that each try one thing they must not be able to do, all came out as they should.
"""

import platform
import sys
from dataclasses import dataclass
from enum import StrEnum

from redqueen.verifier.jobs import Job, Limits, Outcome, Status


class Tier(StrEnum):
    """How untrusted programs are kept in, strongest first."""

    FULL = "full"
    """The system-call filter, inside namespaces of its own."""
    SECCOMP = "seccomp"
    """The system-call filter alone: in containers, and where users may not make namespaces."""
    NONE = "none"
    """Limits only. Refused unless the user insists."""

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
class Examination:
    """The strongest tier of this machine and why it is not a stronger one."""

    tier: Tier
    refusals: tuple[Refusal, ...]


_TRIED = "import os\ndef f():\n    {}\n    return 'reached'"
_LIMITS = Limits(cpu_s=0.1, memory_mb=64)
"""The loop among them costs this much at every start."""
_REFUSED = ("exc:PermissionError",)

CANARIES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("an honest program", "def f():\n    return [1, 'x', 2.5]", ("ok:[1, 'x', 2.5]",)),
    ("opening a file", _TRIED.format("os.open('/', os.O_RDONLY)"), _REFUSED),
    ("looking for a file", _TRIED.format("os.stat('/')"), _REFUSED),
    ("writing to another descriptor", _TRIED.format("os.write(2, b'x')"), _REFUSED),
    ("reading from its reply", _TRIED.format("os.read(3, 1)"), _REFUSED),
    ("forking", _TRIED.format("os.fork()"), _REFUSED),
    ("executing a program", _TRIED.format("os.execv('/bin/true', ['true'])"), _REFUSED),
    ("signalling its parent", _TRIED.format("os.kill(os.getppid(), 0)"), _REFUSED),
    ("making a pipe", _TRIED.format("os.pipe()"), _REFUSED),
    ("asking for entropy", _TRIED.format("os.urandom(1)"), _REFUSED),
    ("an unlisted system call", _TRIED.format("os.memfd_create('x')"), ("violation",)),
    ("an infinite loop", _TRIED.format("while True: pass"), ("timeout",)),
    ("taking all memory", _TRIED.format("bytearray(128 << 20)"), ("memory",)),
    ("depending on the hash seed", "def f():\n    return [hash(c) for c in 'abcdef']", ("nondet",)),
)


def canary_jobs() -> list[Job]:
    return [Job.calls(source, [""], limits=_LIMITS) for _, source, _ in CANARIES]


def failed_canary(outcomes: list[Outcome]) -> str | None:
    """What the first canary that got through did, or None."""
    for (what, _, expected), outcome in zip(CANARIES, outcomes, strict=True):
        verdict = outcome.results[0].verdict
        if verdict not in expected:
            return f"{what} came out as {verdict} and not as {' or '.join(expected)}"
    return None


def merely_slow(outcomes: list[Outcome]) -> bool:
    """Whether every canary that came out wrong ran out of time, which says nothing of what would have held it."""
    verdicts = [outcome.results[0].verdict for outcome in outcomes]
    wrong = [got for got, (_, _, expected) in zip(verdicts, CANARIES, strict=True) if got not in expected]
    return bool(wrong) and set(wrong) == {str(Status.TIMEOUT)}


def unsupported(tier: Tier) -> Refusal | None:
    """Why a tier needs no trying on this platform."""
    from redqueen.verifier.guest.filters import ARCHITECTURES

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


def mend(tier: Tier, why: str) -> str:
    """What the user can do about a refused tier."""
    if tier is Tier.FULL:
        return (
            "allow namespaces to this user: `sysctl kernel.unprivileged_userns_clone=1` (Debian), "
            "`sysctl kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu), or in a container "
            "`--cap-add SYS_ADMIN --security-opt seccomp=unconfined`"
        )
    return "use a kernel with CONFIG_SECCOMP_FILTER, and a container that allows prctl(PR_SET_SECCOMP)"
