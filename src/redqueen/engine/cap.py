"""`engine.memory`: a device that gives this process no more, and a plan that keeps to it and says what it gave up."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from redqueen.engine import memory
from redqueen.engine.memory import MemoryPlan
from redqueen.engine.messages import say, size_text
from redqueen.errors import InputError

_LESS = "use fewer members, a lower rank or a smaller base (`redqueen doctor --base` says what fits)"


@contextmanager
def capped(device: torch.device, most_bytes: int | None) -> Iterator[None]:
    """From here on this process gets no more of a GPU, until `uncap`, or until what is done here fails. None changes
    nothing."""
    if most_bytes is None:
        yield
        return
    _give(device, min(1.0, most_bytes / memory.whole(device)))
    try:
        yield
    except BaseException as error:
        uncap(device)
        if memory.out_of_memory(error):
            what = f"the base with its members does not fit within engine.memory ({size_text(most_bytes)})"
            raise InputError(what, f"raise engine.memory, or {_LESS}") from error
        raise


def uncap(device: torch.device) -> None:
    _give(device, 1.0)


def refuse_weights(name: str, weights: int, most_bytes: int | None) -> None:
    """Before a base is loaded whose weights alone take more than an engine may."""
    if most_bytes is not None and weights > most_bytes * (1 - memory.SPARE):
        raise InputError(
            f"the weights of {name} take {size_text(weights)} and do not fit within engine.memory "
            f"({size_text(most_bytes)})",
            "raise engine.memory, use a smaller base, or engine.quantise",
        )


def kept_plan(
    planned: Callable[[int, int | None], MemoryPlan],
    *,
    free: int,
    most_bytes: int | None,
    host: int,
    members: str,
    does: str,
) -> MemoryPlan:
    """What `planned` makes of so many bytes of the device, the base's included, and of the host: of no more than
    `most_bytes`. Says what was given up, and refuses `members` that leave no room for what the engine `does`."""
    roomy = planned(free, host)
    size = free if most_bytes is None else min(free, most_bytes)
    plan = planned(size, host)
    within = " within engine.memory" if plan != roomy else ""
    if plan.micro_tokens == 0:
        unbounded = planned(size, None)
        wanted = size_text(unbounded.host)
        short = f", and {size_text(host)} of the host's memory cannot hold their masters ({wanted}) and copies of them"
        raise InputError(
            f"{members} leave no room to {does}{within}{short * bool(unbounded.micro_tokens)}",
            "raise engine.memory, or " * bool(roomy.micro_tokens) + _LESS,
        )
    if within:
        say(f"within engine.memory there is room for {plan.described()}; without it for {roomy.described()}")
    elif plan.hosted:
        say(f"there is room for {plan.described()}")
    return plan


def _give(device: torch.device, share: float) -> None:
    if device.type == "cuda":
        # torch wants the number of a device.
        number = torch.cuda.current_device() if device.index is None else device.index
        torch.cuda.set_per_process_memory_fraction(share, number)
