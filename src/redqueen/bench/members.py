"""What members cost beside the base: memory at rest, and the time to swap one in or out.

Memory is what the device says before and after, not what a formula says: the allocator's count on CUDA, the resident
set of the process on a CPU.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

from redqueen.bench import workload
from redqueen.engine import memory
from redqueen.engine.local import LocalEngine
from redqueen.errors import InputError
from redqueen.resources import device_name, machine_name, place
from redqueen.settings.models import EngineConfig

if TYPE_CHECKING:
    from rich.console import Console

REPEATS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersReport:
    """What `redqueen bench members` found."""

    machine: str
    device: str
    dtype: str
    shape: str
    rank: int
    members: int
    parameters_per_member: int
    base_bytes: int
    members_bytes: int
    """All members as they are sampled: masters, and the copy that the base's dtype asks for."""
    trained_bytes: int
    """The same with both moments of the optimiser."""
    write_ms: float
    """Median time to give a member other weights, from the host's memory."""
    read_ms: float
    repeats: int

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def render(self, console: "Console") -> None:
        from rich.table import Table

        console.print(f"{self.machine}; {self.device}, {self.dtype}", soft_wrap=True)
        each = f"{self.parameters_per_member / 1e6:,.2f} million parameters each"
        console.print(f"{self.members} members of rank {self.rank} on {self.shape}, {each}", soft_wrap=True)
        table = Table("", "measured")
        table.columns[1].justify = "right"
        for name, cell in (
            ("the base", workload.size(self.base_bytes)),
            ("its members", workload.size(self.members_bytes)),
            ("its members with optimiser states", workload.size(self.trained_bytes)),
            ("swap one in (write)", f"{self.write_ms:,.2f} ms"),
            ("swap one out (read)", f"{self.read_ms:,.2f} ms"),
        ):
            table.add_row(name, cell)
        console.print(table)
        console.print(f"times are medians of {self.repeats}", soft_wrap=True)


def measure(base: str, members: int, rank: int, settings: EngineConfig) -> MembersReport:
    """`base` is a base's name, or `random:SHAPE`."""
    device, dtype = place(settings)
    workload.afford(base, device, dtype)
    names = [f"m{index}" for index in range(members)]
    start = _taken(device)
    loaded = workload.open_base(base, device, dtype)
    base_bytes = _taken(device) - start
    with LocalEngine(
        loaded, rank=rank, alpha=settings.alpha, target_modules=settings.target_modules, rows=settings.rows
    ) as engine:
        wanted = members * (engine.plan.member + engine.plan.trained_member)
        if wanted > memory.available(device):
            raise InputError(
                f"{members} members of rank {rank} take {workload.size(wanted)}, "
                f"and {workload.size(memory.available(device))} are free",
                "use fewer members or a lower rank",
            )
        start = _taken(device)
        engine.bank.add(names)
        members_bytes = _taken(device) - start
        for name in names:
            engine.bank.adam(engine.bank.row(name))
        trained_bytes = _taken(device) - start
        state = engine.read(names[0])
        write_ms = _median_ms(lambda: engine.write(names[-1], state), device)
        read_ms = _median_ms(lambda: engine.read(names[-1]), device)
        parameters = engine.bank.parameters_per_member
    return MembersReport(
        machine=machine_name(),
        device=device_name(device),
        dtype=str(dtype).removeprefix("torch."),
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


def _taken(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def _median_ms(work: Callable[[], object], device: torch.device) -> float:
    times = []
    for _ in range(REPEATS):
        workload.synchronize(device)
        started = time.perf_counter()
        work()
        workload.synchronize(device)
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)
