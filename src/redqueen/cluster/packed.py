"""A member as one flat vector: a store takes that in a fraction of the time that hundreds of small tensors take."""

from dataclasses import dataclass

import numpy as np
import torch

from redqueen.engine.bank import Bank
from redqueen.engine.protocol import MemberId, MemberState


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    values_N: np.ndarray
    """float32: the weights as the bank lays them out, then both moments where there is an optimiser."""
    step: int | None
    """The optimiser's; None where there is none."""


def pack(member: MemberId, state: MemberState, bank: Bank) -> Packed:
    """`bank` has the layout, which the base and the adapters' shape decide. Refuses what is no member of it."""
    values_N, optimiser = torch.cat(bank.pack(member, state)).numpy(), bank.kept(state)
    return Packed(values_N, None if optimiser is None else optimiser.step)


def unpack(packed: Packed, bank: Bank) -> MemberState:
    # torch warns of arrays that nobody may write to, and copies them anyway.
    values_N = torch.from_numpy(np.array(packed.values_N))
    return bank.unpack(values_N.split(bank.width), packed.step)


def weights(packed: Packed, bank: Bank) -> Packed:
    """Without its optimiser."""
    return Packed(packed.values_N[: bank.width], None)
