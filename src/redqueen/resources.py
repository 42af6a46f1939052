"""The engine and the verifier, opened as the settings ask for them, and what this machine is called in reports."""

import gc
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from redqueen.errors import ConfigError
from redqueen.settings.fields import bytes_in
from redqueen.settings.models import EngineConfig, VerifierConfig

if TYPE_CHECKING:
    import torch

    from redqueen.engine.local import LocalEngine
    from redqueen.verifier import LocalVerifier


def open_verifier(settings: VerifierConfig) -> "LocalVerifier":
    """A running pool as the settings ask for it. Close it, or use it in a `with` statement."""
    from redqueen.verifier import LocalVerifier, Tier

    return LocalVerifier(
        tier=None if settings.tier == "best" else Tier(settings.tier),
        minimum=Tier(settings.minimum),
        run_unprotected=settings.run_unprotected,
        workers=settings.workers,
    )


def open_engine(
    settings: EngineConfig,
    members: Sequence[str],
    seed: int = 0,
    engines: int = 1,
    *,
    room: int = 0,
    trains: bool = True,
) -> "LocalEngine":
    """The base with these members, as the settings ask for it. Close it, or use it in a `with` statement. `seed` draws
    the A factors that fresh members share; so many `engines` are to share the device's memory; `room` is for so many
    members that come later. What does not train keeps no memory for it."""
    import torch

    from redqueen.engine import memory
    from redqueen.engine.base import load as load_base
    from redqueen.engine.cap import capped
    from redqueen.engine.local import LocalEngine
    from redqueen.engine.split.group import on_one_device
    from redqueen.engine.split.leader import SplitEngine

    device, dtype = place(settings)
    parts = on_one_device(device, settings.tensor_parallel)
    most = most_memory(settings, device)
    options: dict[str, Any] = {
        "memory_bytes": None if engines * parts == 1 else memory.share(device, engines * parts),
        "most_bytes": None if most is None else most // parts,
        "host_bytes": memory.share(torch.device("cpu"), engines * settings.tensor_parallel),
        "members": members,
        "rank": settings.rank,
        "alpha": settings.alpha,
        "target_modules": settings.target_modules,
        "rows": settings.rows,
        "seed": seed,
        "room": room,
        "trains": trains,
    }
    if settings.tensor_parallel > 1:
        return SplitEngine(settings.base, settings.tensor_parallel, device=device, dtype=dtype, **options)
    refuse_base(settings.base, settings, device, dtype)
    with capped(device, most):
        return LocalEngine(load_base(settings.base, device=device, dtype=dtype, quantise=settings.quantise), **options)


def refuse_base(name: str, settings: EngineConfig, device: "torch.device", dtype: "torch.dtype") -> None:
    """One whose weights alone are more than an engine may take, by its configuration: before it is loaded."""
    from redqueen.engine import memory, shapes
    from redqueen.engine.cap import refuse_weights

    if (most := most_memory(settings, device)) is not None:
        weights = memory.Shape.of(shapes.outline(name, settings.quantise), fast=True).nbytes(dtype)
        refuse_weights(name, weights, most)


def most_memory(settings: EngineConfig, device: "torch.device") -> int | None:
    """What an engine may take of the device, in bytes."""
    from redqueen.engine import memory

    return None if settings.memory is None else bytes_in(settings.memory, memory.whole(device))


@contextmanager
def unwatched_objects() -> Iterator[None]:
    """Until the end, Python's garbage collector leaves alone what is there now: a pass over all objects of the
    libraries takes a few tenths of a second, in which no thread does anything else."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def place(settings: EngineConfig) -> "tuple[torch.device, torch.dtype]":
    """The device and the dtype that the settings come to on this machine."""
    import torch

    cuda = torch.cuda.is_available()
    if settings.device == "cuda" and not cuda:
        raise ConfigError(
            'engine.device is "cuda", and torch finds no CUDA device here',
            'set engine.device to "best" or "cpu"; `redqueen doctor` says what is missing',
        )
    device = torch.device("cuda" if cuda and settings.device != "cpu" else "cpu")
    if settings.dtype != "best":
        return device, torch.bfloat16 if settings.dtype == "bfloat16" else torch.float32
    return device, torch.bfloat16 if device.type == "cuda" else torch.float32


def machine_name() -> str:
    import torch

    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}"


def device_name(device: "torch.device") -> str:
    import torch

    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
