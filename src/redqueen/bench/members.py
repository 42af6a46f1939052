"""What members cost beside the base: memory at rest, and the time to swap one in or out.

Memory is measured, not computed: the allocator's count on CUDA, the resident set of the process on a CPU.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from redqueen.bench import BenchReport, workload
from redqueen.console import print_table, size_text
from redqueen.engine import memory
from redqueen.engine.cap import capped
from redqueen.engine.local import LocalEngine
from redqueen.errors import InputError
from redqueen.resources import device_name, machine_name, most_memory, place, refuse_base
from redqueen.settings.models import EngineConfig

if TYPE_CHECKING:
    from rich.console import Console

REPEATS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersReport(BenchReport):
    machine: str
    device: str
    dtype: str
    quantise: str
    shape: str
    rank: int
    members: int
    parameters_per_member: int
    base_bytes: int
    members_bytes: int
    """All members: masters, and the copy in the base's dtype."""
    trained_bytes: int
    """The same with both moments of the optimiser."""
    write_ms: float
    """Median time to give a member other weights, from the host's memory."""
    read_ms: float
    repeats: int

    def render(self, console: "Console") -> None:
        stored = "" if self.quantise == "none" else f", linear layers in {self.quantise}"
        console.print(f"{self.machine}; {self.device}, {self.dtype}{stored}", soft_wrap=True)
        size = f"{self.parameters_per_member / 1e6:,.2f} million parameters each"
        console.print(f"{self.members} members of rank {self.rank} on {self.shape}, {size}", soft_wrap=True)
        figures = {
            "the base": size_text(self.base_bytes),
            "its members": size_text(self.members_bytes),
            "its members with optimiser states": size_text(self.trained_bytes),
            "swap one in (write)": f"{self.write_ms:,.2f} ms",
            "swap one out (read)": f"{self.read_ms:,.2f} ms",
        }
        print_table(console, {"": list(figures)}, {"measured": list(figures.values())})
        console.print(f"times are medians of {self.repeats}", soft_wrap=True)


def measure(base: str, members: int, rank: int, settings: EngineConfig) -> MembersReport:
    """`base` is a base's name, or `random:SHAPE`."""
    device, dtype = place(settings)
    workload.afford(base, device, dtype, settings.quantise)
    names = [f"m{index}" for index in range(members)]
    start = workload.allocated(device)
    most = most_memory(settings, device)
    refuse_base(base, settings, device, dtype)
    with capped(device, most):
        loaded = workload.open_base(base, device, dtype, settings.quantise)
        base_bytes = workload.allocated(device) - start
        opened = LocalEngine(
            loaded,
            rank=rank,
            alpha=settings.alpha,
            target_modules=settings.target_modules,
            rows=settings.rows,
            most_bytes=most,
            hosted=False,
        )
    with opened as engine:
        needed = members * (engine.plan.member + engine.plan.trained_member)
        free = memory.available(device) if most is None else min(memory.available(device), most - base_bytes)
        if needed > free:
            raise InputError(
                f"{members} members of rank {rank} take {size_text(needed)}, and {size_text(free)} are free",
                "use fewer members or a lower rank",
            )
        start = workload.allocated(device)
        engine.bank.add(names)
        members_bytes = workload.allocated(device) - start
        for name in names:
            engine.bank.adam(engine.bank.row(name))
        trained_bytes = workload.allocated(device) - start
        state = engine.read(names[0])
        write_ms = _median_ms(lambda: engine.write(names[-1], state), device)
        read_ms = _median_ms(lambda: engine.read(names[-1]), device)
        parameters = engine.bank.parameters_per_member
    return MembersReport(
        machine=machine_name(),
        device=device_name(device),
        dtype=str(dtype).removeprefix("torch."),
        quantise=settings.quantise,
        shape=base,
        rank=rank,
        members=members,
        parameters_per_member=parameters,
        base_bytes=base_bytes,
        members_bytes=members_bytes,
        trained_bytes=trained_bytes,
        write_ms=write_ms,
        read_ms=read_ms,
        repeats=REPEATS,
    )


def _median_ms(work: Callable[[], object], device: torch.device) -> float:
    return 1000 * statistics.median(workload.timed(work, device)[1] for _ in range(REPEATS))
