"""What this machine offers and what it lacks. Nothing is changed, and nothing that is missing is an error: it is
reported with the command that mends it."""

import os
import platform
import shutil
import sys
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console
from rich.text import Text

from redqueen import __version__
from redqueen.cluster.links import ClusterMachine, WorkerMemory
from redqueen.console import size_text
from redqueen.engine.messages import one_line
from redqueen.errors import InputError
from redqueen.resources import most_memory, place
from redqueen.settings.fields import bytes_in
from redqueen.settings.models import ClusterConfig, EngineConfig, VerifierConfig
from redqueen.verifier import AvailableTier, Tier, available_tier
from redqueen.verifier.zygotes import available_cores

if TYPE_CHECKING:  # torch takes seconds to import, and may be missing
    import torch

    from redqueen.engine.memory import MemoryPlan

GIB = 1 << 30
ROW_TOKENS = 2048
"""A long completion with its prompt, the unit of the cache's size."""
FIT_MEMBERS, FIT_RANKS = (1, 8, 64), (8, 16, 64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    system: str
    arch: str
    cores: int
    """That this process may use."""
    memory_gib: float
    python: str


@dataclass(frozen=True, slots=True)
class Device:
    kind: str
    """`cuda`, `mps`, `cpu`, or `none` without a torch that works."""
    torch: str | None
    accelerators: tuple[str, ...] = ()
    """Name and memory of each."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that is missing, what that means, and the command that mends it."""

    what: str
    why: str
    mend: str


@dataclass(frozen=True, slots=True)
class Fit:
    """What fits with so many members of this rank."""

    members: int
    rank: int
    micro_tokens: int
    """Tokens of an update that go through the base at once; 0 where it does not fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Most:
    """The most members of a rank that leave room to work: for tokens at once, and for one long completion."""

    trained: int
    evolved: int
    """By evolution alone, for which nothing is kept to train."""
    trained_host: int
    """What those in training take of the host's memory; 0 where masters and moments are on the device."""
    evolved_host: int

    def __str__(self) -> str:
        masters = f" (masters in {size_text(self.evolved_host)} of the host's memory)" if self.evolved_host else ""
        trained = f"{self.trained:,} members in training{_hosted(self.trained_host)}"
        return f"{trained}, {self.evolved:,} by evolution alone{masters}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseCheckup:
    """What a base with its members needs on this machine's device, in bytes unless a name says otherwise."""

    name: str
    path: str
    """`llama`, the fast one, or `general`."""
    why: str | None
    """Why it is not the fast path."""
    parameters: int
    device: str
    dtype: str
    memory: int
    """Free memory of the device."""
    members: int
    rank: int
    quantise: str
    base_bytes: int
    members_bytes: int
    """Weights, optimiser states and gradients of all members; where they are hosted what they compute with."""
    hosted: bool
    """Masters and moments are in the host's memory, for which the device has no room."""
    host_bytes: int
    """What they take there."""
    together: int
    """Members whose gradients are there at the same time."""
    micro_tokens: int
    checkpointing: bool
    update_peak: int
    """Predicted, without a cache beside it."""
    cache_tokens: int
    cache_rows: int
    """Completions of 2,048 tokens that the cache holds."""
    fits: tuple[Fit, ...]
    most: Most

    def rows(self) -> list[tuple[str, str]]:
        path = "path llama, the fast one" if self.why is None else f"path general ({self.why})"
        trained = f"{_count(self.members)} of rank {self.rank} in training"
        stored = "" if self.quantise == "none" else f", its linear layers in {self.quantise},"
        lines = [
            ("base", f"{self.name}: {self.parameters / 1e6:,.1f} million parameters, {path}"),
            ("", f"on {self.device} in {self.dtype}, {size_text(self.memory)} of memory free"),
            ("", f"the base{stored} takes {size_text(self.base_bytes)}, {trained} {size_text(self.members_bytes)}"),
        ]
        if self.hosted and self.micro_tokens:
            where = f"their masters and moments take {size_text(self.host_bytes)} of the host's memory"
            lines.append(("", f"{where}, gradients {self.together:,} at a time"))
        if self.micro_tokens:
            kept = "the blocks' inputs kept" if self.checkpointing else "all activations kept"
            rows = f"{self.cache_rows:,} rows of {ROW_TOKENS:,}"
            lines += [
                ("", f"an update: {self.micro_tokens:,} tokens at once, {kept}, at most {size_text(self.update_peak)}"),
                ("", f"the cache: {self.cache_tokens:,} tokens, {rows}"),
            ]
        else:
            lines.append(("", "this does not fit: use fewer members, a lower rank or a smaller base"))
        lines.append(("what fits", f"{'tokens at once':<16}" + "".join(f"{f'rank {rank}':>16}" for rank in FIT_RANKS)))
        for members in FIT_MEMBERS:
            fits = [fit.micro_tokens for fit in self.fits if fit.members == members]
            cells = [f"{tokens:,}" if tokens else "does not fit" for tokens in fits]
            lines.append(("", f"{_count(members):<16}" + "".join(f"{cell:>16}" for cell in cells)))
        lines.append(("", f"at most, of rank {self.rank}: {self.most}"))
        return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFit:
    """What fits on each worker of a machine of a cluster, if there are as many as it has room for; bytes."""

    device: str
    dtype: str
    memory: int
    base_bytes: int
    member_bytes: int
    """Weights, optimiser state and gradients of one member."""
    rank: int
    members: int
    """The most that leave room to train."""
    evolved: int
    """The most by evolution alone."""
    host_bytes: int
    """What the most take of the machine's memory for each worker, if their masters and moments are there."""

    def line(self, workers: int) -> str:
        each = f"each of {workers} workers has {size_text(self.memory)} ({self.device}, {self.dtype})"
        sizes = f"the base {size_text(self.base_bytes)}, a member of rank {self.rank} {size_text(self.member_bytes)}"
        alone = f"by evolution alone for {self.evolved:,} each"
        room = f"room for {self.members:,} members each{_hosted(self.host_bytes)}, {workers * self.members:,} in all"
        return f"{each}, {sizes}: {room}, {alone}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """The report of `redqueen doctor`."""

    redqueen: str
    machine: Machine
    device: Device
    isolation: AvailableTier
    missing: tuple[Missing, ...]
    base: BaseCheckup | None = None
    cluster: tuple[ClusterMachine, ...] = ()
    cluster_fits: tuple[WorkerFit | None, ...] = ()
    """Of each machine, where a base was named; None where there is no telling."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def _cluster_lines(self) -> Iterator[str]:
        for number, machine in enumerate(self.cluster):
            yield _of(machine)
            if self.cluster_fits:
                fit = self.cluster_fits[number]
                taken = "how many members fit cannot be told: its GPUs are taken, or it has room for no worker"
                yield "  " + (taken if fit is None else fit.line(machine.workers))

    def render(self, console: Console) -> None:
        machine, device = self.machine, self.device
        size = f"{machine.cores} {'core' if machine.cores == 1 else 'cores'}, {machine.memory_gib:.1f} GiB of memory"
        torch = f"{'; '.join(device.accelerators) or device.kind} (torch {device.torch})"
        rows = [
            ("redqueen", f"{self.redqueen}, Python {machine.python}"),
            ("machine", f"{machine.system} on {machine.arch}, {size}"),
            ("device", "none: torch cannot be imported" if device.torch is None else torch),
            ("isolation", str(self.isolation.tier)),
            *(("", f"not {refusal.tier}: {refusal.why}") for refusal in self.isolation.refusals),
            *(self.base.rows() if self.base is not None else ()),
            *(("cluster" if not number else "", line) for number, line in enumerate(self._cluster_lines())),
            ("missing", "nothing" if not self.missing else ""),
        ]
        for name, text in rows:
            _line(console, (f"{name:<11}", "bold"), text)
        for item in self.missing:
            _line(console, f"  {item.what}: {item.why}")
            _line(console, f"    {item.mend}")


def check(
    settings: VerifierConfig,
    base: BaseCheckup | None = None,
    cluster: Sequence[ClusterMachine] = (),
    cluster_fits: Sequence[WorkerFit | None] = (),
) -> Checkup:
    """Check this machine; the settings say which isolation would be refused."""
    isolation = available_tier()
    weaker = "programs run under a weaker isolation"
    if isolation.tier.strength < Tier(settings.minimum).strength:
        weaker = "programs run unprotected" if settings.run_unprotected else "programs are refused"
    missing = [Missing(f"isolation tier {refusal.tier}", weaker, refusal.mend) for refusal in isolation.refusals]
    device, device_missing = _device()
    missing += device_missing
    if sys.platform == "linux" and shutil.which("bwrap") is None:
        why = "benchmarks/bench_verifier.py leaves it out of its comparison; nothing else needs it"
        missing.append(Missing("bubblewrap", why, "apt install bubblewrap"))
    if base is not None and base.quantise != "none" and find_spec("bitsandbytes") is None:
        why = f"no base can be stored in {base.quantise} without it"
        missing.append(Missing("bitsandbytes", why, "pip install 'redqueen[quantise]'"))
    machine = _machine()
    return Checkup(
        redqueen=__version__,
        machine=machine,
        device=device,
        isolation=isolation,
        missing=tuple(missing),
        base=base,
        cluster=tuple(cluster),
        cluster_fits=tuple(cluster_fits),
    )


def check_cluster(settings: ClusterConfig, engine: EngineConfig) -> list[ClusterMachine]:
    """The machines of the cluster that the settings name, each asked for what it has installed."""
    from redqueen.cluster.connect import machines

    return machines(settings, engine)


def check_workers(name: str, engine: EngineConfig, machines: Sequence[ClusterMachine]) -> list[WorkerFit | None]:
    """How many members of the base would fit on the workers of each machine."""
    import torch

    from redqueen.engine import memory, shapes
    from redqueen.engine.adaptable import adaptable, llama_family

    model = shapes.outline(name, engine.quantise)
    linears = adaptable(model, engine.target_modules)
    shape = memory.Shape.of(model, fast=llama_family(model) is None)
    fits: list[WorkerFit | None] = []
    for machine in machines:
        if (has := machine.worker) is None:
            fits.append(None)
            continue

        def planned(members: int, *, trains: bool, has: WorkerMemory = has) -> memory.MemoryPlan:
            return memory.plan(
                shape,
                linears,
                rank=engine.rank,
                members=members,
                memory=has.size,
                device=has.device,
                dtype=getattr(torch, has.dtype),
                trains=trains,
                host=has.host,
            )

        plan, most = planned(1, trains=True), _most(planned)
        fits.append(
            WorkerFit(
                device=has.device,
                dtype=has.dtype,
                memory=has.size,
                base_bytes=plan.weights,
                member_bytes=plan.member + plan.trained_member,
                rank=engine.rank,
                members=most.trained,
                evolved=most.evolved,
                host_bytes=most.trained_host,
            )
        )
    return fits


class _Planned(Protocol):
    def __call__(self, members: int, *, trains: bool) -> "MemoryPlan": ...


def _most(planned: _Planned) -> Most:
    def too_many(members: int, trains: bool) -> bool:
        plan = planned(members, trains=trains)
        return plan.micro_tokens == 0 or plan.cache_tokens < ROW_TOKENS

    def find(*, trains: bool) -> tuple[int, int]:
        """How many, and what they take of the host's memory."""
        bound = 1
        while not too_many(bound, trains):
            bound *= 2
        most = bisect_left(range(1, bound), True, key=lambda members: too_many(members, trains))
        return most, planned(most, trains=trains).host if most else 0

    (trained, trained_host), (evolved, evolved_host) = find(trains=True), find(trains=False)
    return Most(trained=trained, evolved=evolved, trained_host=trained_host, evolved_host=evolved_host)


def check_base(name: str, members: int, settings: EngineConfig) -> BaseCheckup:
    """What would fit if this base were loaded now. Only its configuration is read."""
    try:
        from redqueen.engine import memory, shapes
        from redqueen.engine.adaptable import adaptable, llama_family
    except (ImportError, OSError) as error:
        raise InputError(
            f"no base can run here ({one_line(error)})", "`redqueen doctor` says what is missing"
        ) from None
    device, dtype, free, host = room(settings)
    model = shapes.outline(name, settings.quantise)
    linears, why = adaptable(model, settings.target_modules), llama_family(model)
    shape = memory.Shape.of(model, fast=why is None)

    def planned(members: int, rank: int = settings.rank, *, trains: bool = True) -> memory.MemoryPlan:
        return memory.plan(
            shape, linears, rank=rank, members=members, memory=free, device=device, dtype=dtype, trains=trains,
            host=host,
        )  # fmt: skip

    plan = planned(members)
    return BaseCheckup(
        name=name,
        path="llama" if why is None else "general",
        why=why,
        parameters=shape.parameters,
        device=device,
        dtype=str(dtype).removeprefix("torch."),
        memory=free,
        members=members,
        rank=settings.rank,
        quantise=settings.quantise,
        base_bytes=plan.weights,
        members_bytes=plan.resident() - plan.weights,
        hosted=plan.hosted,
        host_bytes=plan.host,
        together=plan.together,
        micro_tokens=plan.micro_tokens,
        checkpointing=plan.checkpointing,
        update_peak=plan.peak(plan.micro_tokens),
        cache_tokens=plan.cache_tokens,
        cache_rows=plan.cache_tokens // ROW_TOKENS,
        fits=tuple(
            Fit(members, rank, planned(members, rank).micro_tokens) for members in FIT_MEMBERS for rank in FIT_RANKS
        ),
        most=_most(planned),
    )


def room(settings: EngineConfig) -> tuple[str, "torch.dtype", int, int | None]:
    """The kind of device that an engine would run on, its dtype, and the bytes that it may take of it and of the host.
    For a GPU that is not here, engine.memory says how much it has, and nothing is known of its host."""
    import torch

    from redqueen.engine import memory

    most = settings.memory
    if settings.device == "cuda" and not torch.cuda.is_available() and most is not None and "%" not in most:
        return "cuda", torch.float32 if settings.dtype == "float32" else torch.bfloat16, bytes_in(most, 0), None
    device, dtype = place(settings)
    free, capped = memory.available(device), most_memory(settings, device)
    host = memory.available(torch.device("cpu"))
    return device.type, dtype, free if capped is None else min(free, capped), host


def _machine() -> Machine:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    system = f"{platform.system()} {platform.release()}"
    return Machine(
        system=system,
        arch=platform.machine(),
        cores=available_cores(),
        memory_gib=round(memory / GIB, 1),
        python=platform.python_version(),
    )


def _device() -> tuple[Device, list[Missing]]:
    try:
        import torch
    except (ImportError, OSError) as error:  # OSError: a shared library that torch needs is missing
        item = Missing("torch", f"it cannot be imported ({one_line(error)}): no model can run", "pip install torch")
        return Device("none", None), [item]
    with warnings.catch_warnings():
        # What torch would warn about here is reported below, with how to mend it.
        warnings.simplefilter("ignore")
        cuda = torch.cuda.is_available()
    if cuda:
        gpus = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
        names = tuple(f"{gpu.name}, {gpu.total_memory / GIB:.0f} GiB" for gpu in gpus)
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


def _of(machine: ClusterMachine) -> str:
    has = f"{machine.cpus} CPUs, {machine.gpus:g} GPUs, {machine.memory_gib:g} GiB: room for {machine.workers} workers"
    return f"{machine.address}: {has}; {', '.join(f'{name} {its}' for name, its in machine.versions.items())}"


def _hosted(size: int) -> str:
    return f" (masters and moments in {size_text(size)} of the host's memory)" if size else ""


def _count(members: int) -> str:
    return f"{members} {'member' if members == 1 else 'members'}"


def _line(console: Console, *parts: str | tuple[str, str]) -> None:
    # Text, not markup: a device's name or a kernel's message may hold brackets.
    console.print(Text.assemble(*parts), soft_wrap=True)
