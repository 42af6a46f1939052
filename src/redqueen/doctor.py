"""What this machine offers and what it lacks: data first, then two ways to show it.

Nothing here changes anything, and nothing that is missing is an error: every lack comes with the command that
mends it.
"""

import importlib.util
import os
import platform
import shutil
import sys
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from redqueen import __version__
from redqueen.config import VerifierConfig
from redqueen.verifier import Examination, Tier, examine

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Machine:
    """The computer, as far as a run depends on it."""

    system: str
    arch: str
    cores: int
    """Those that this process may use."""
    memory_gib: float
    python: str


@dataclass(frozen=True, slots=True)
class Device:
    """Where models would run."""

    kind: str
    """`cuda`, `mps`, `cpu`, or `none` without a torch that works."""
    torch: str | None
    accelerators: tuple[str, ...] = ()
    """Name and memory of each."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that is not there, what that means, and the command that mends it."""

    what: str
    why: str
    mend: str


@dataclass(frozen=True, slots=True)
class Checkup:
    """All that `redqueen doctor` knows."""

    redqueen: str
    machine: Machine
    device: Device
    isolation: Examination
    missing: tuple[Missing, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def render(self, console: Console) -> None:
        machine = self.machine
        size = f"{machine.cores} {'core' if machine.cores == 1 else 'cores'}, {machine.memory_gib:.1f} GiB of memory"
        rows = [
            ("redqueen", f"{self.redqueen}, Python {machine.python}"),
            ("machine", f"{machine.system} on {machine.arch}, {size}"),
            ("device", _device_line(self.device)),
            ("isolation", str(self.isolation.tier)),
            *(("", f"not {refusal.tier}: {refusal.why}") for refusal in self.isolation.refusals),
            ("missing", "nothing" if not self.missing else ""),
        ]
        for name, text in rows:
            _line(console, (f"{name:<11}", "bold"), text)
        for item in self.missing:
            _line(console, f"  {item.what}: {item.why}")
            _line(console, f"    {item.mend}")


def check(settings: VerifierConfig) -> Checkup:
    """Look at this machine; the settings say which isolation would be refused."""
    isolation = examine()
    device, device_missing = _device()
    missing = (*_isolation_missing(isolation, settings), *device_missing, *_tool_missing())
    return Checkup(__version__, _machine(), device, isolation, missing)


def _machine() -> Machine:
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    system = f"{platform.system()} {platform.release()}"
    return Machine(system, platform.machine(), cores, round(memory / GIB, 1), platform.python_version())


def _device() -> tuple[Device, list[Missing]]:
    try:
        import torch
    except (ImportError, OSError) as error:  # OSError: a shared library that torch needs is missing
        item = Missing("torch", f"it cannot be imported ({_first_line(error)}): no model can run", "pip install torch")
        return Device("none", None), [item]
    with warnings.catch_warnings():
        # Whatever torch would warn about here is said below, with what to do about it.
        warnings.simplefilter("ignore")
        cuda = torch.cuda.is_available()
    if cuda:
        found = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
        names = tuple(f"{gpu.name}, {gpu.total_memory / GIB:.0f} GiB" for gpu in found)
        return Device("cuda", torch.__version__, names), []
    if torch.backends.mps.is_available():
        return Device("mps", torch.__version__), []
    device = Device("cpu", torch.__version__)
    if not Path("/proc/driver/nvidia/version").exists():
        return device, []
    why = f"this machine has an NVIDIA GPU that torch {torch.__version__} cannot use"
    if torch.version.cuda is None:
        return device, [Missing("CUDA", f"{why}: it is a build without CUDA", "pip install --force-reinstall torch")]
    return device, [Missing("CUDA", why, f"update the NVIDIA driver to one for CUDA {torch.version.cuda}")]


def _isolation_missing(isolation: Examination, settings: VerifierConfig) -> list[Missing]:
    missing = []
    for refusal in isolation.refusals:
        why = "programs run under a weaker isolation"
        if isolation.tier.strength < Tier(settings.minimum).strength:
            why = "programs run unprotected" if settings.run_unprotected else "programs are refused"
        missing.append(Missing(f"isolation tier {refusal.tier}", why, refusal.mend))
    return missing


def _tool_missing() -> list[Missing]:
    missing = []
    if importlib.util.find_spec("numpy") is None:
        missing.append(Missing("numpy", "programs that import it cannot be judged", "pip install numpy"))
    if sys.platform == "linux" and shutil.which("bwrap") is None:
        why = "`redqueen bench verifier` leaves bubblewrap out of its comparison; nothing else needs it"
        missing.append(Missing("bubblewrap", why, "apt install bubblewrap"))
    return missing


def _device_line(device: Device) -> str:
    if device.torch is None:
        return "none: torch cannot be imported"
    where = "; ".join(device.accelerators) or device.kind
    return f"{where} (torch {device.torch})"


def _line(console: Console, *parts: str | tuple[str, str]) -> None:
    # Text, not markup: a device's name or a kernel's message may hold brackets.
    console.print(Text.assemble(*parts), soft_wrap=True)


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
