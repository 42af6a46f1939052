"""Members of a role that move towards their mean: what one of them has learnt reaches the others.

The factors A and B are averaged as they stand, and the optimiser's moments with them, as local SGD does. That is the
mean of what members do only as long as they come from the same factors: founders do, and so do children of operators
that keep them (`Operator.keeps_factors`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from redqueen.analysis.export import member_folder
from redqueen.engine import peft
from redqueen.engine.protocol import MemberId, MemberState, OptimiserState, Recipe
from redqueen.errors import InputError
from redqueen.evolution.variation import child
from redqueen.evolution.variation.mean import mean
from redqueen.population.members import SOUP
from redqueen.runs.checkpoints import MEMBERS, population

Factors = Mapping[str, tuple[Tensor, Tensor]]


@torch.no_grad()
def pulled(states: Sequence[MemberState], way: float, counted: Sequence[MemberState]) -> list[MemberState]:
    """The members, each `way` (from 0 to 1) nearer to the mean of those that count; a fresh optimiser stays so."""
    factors = _nearer([state.factors for state in states], way, [state.factors for state in counted])
    moments = iter(_averaged(_optimisers(states), way, _optimisers(counted)))
    return [
        replace(state, factors=own, optimiser=state.optimiser and next(moments))
        for state, own in zip(states, factors, strict=True)
    ]


def _optimisers(states: Sequence[MemberState]) -> list[OptimiserState]:
    return [state.optimiser for state in states if state.optimiser is not None]


def _averaged(
    optimisers: Sequence[OptimiserState], way: float, counted: Sequence[OptimiserState]
) -> list[OptimiserState]:
    """Moments begin at 0 and grow with a member's steps: they are averaged as they would be after many, and each keeps
    its own growth. Without any that count they stay."""
    if not counted:
        return list(optimisers)
    first = _nearer([_grown(one)[0] for one in optimisers], way, [_grown(one)[0] for one in counted])
    second = _nearer([_grown(one)[1] for one in optimisers], way, [_grown(one)[1] for one in counted])
    return [
        OptimiserState(one.step, *(_scaled(moment, share) for moment, share in zip(moments, _growth(one), strict=True)))
        for one, *moments in zip(optimisers, first, second, strict=True)
    ]


def _growth(optimiser: OptimiserState) -> list[float]:
    """The share of their final size that both moments have."""
    return [1 - beta**optimiser.step for beta in Recipe(lr=0.0).betas]


def _grown(optimiser: OptimiserState) -> list[Factors]:
    """Both moments, as they would be after many steps."""
    moments = optimiser.exp_avg, optimiser.exp_avg_sq
    return [_scaled(moment, 1 / share) for moment, share in zip(moments, _growth(optimiser), strict=True)]


def _scaled(factors: Factors, by: float) -> Factors:
    return {name: (a * by, b * by) for name, (a, b) in factors.items()}


def _nearer(members: Sequence[Factors], way: float, counted: Sequence[Factors]) -> list[Factors]:
    means = {
        name: tuple(torch.stack([own[name][half] for own in counted]).mean(0) for half in (0, 1)) for name in counted[0]
    }
    return [
        {name: (torch.lerp(a, means[name][0], way), torch.lerp(b, means[name][1], way)) for name, (a, b) in own.items()}
        for own in members
    ]


def exported(checkpoint: Path, member: MemberId) -> tuple[MemberState, Path]:
    """A member's weights and the PEFT folder that they are in; the soup's, and that of one of its students."""
    if member != SOUP:
        folder = member_folder(checkpoint, member)
        return peft.load(folder), folder
    folders = [checkpoint / MEMBERS / student.id for student in population(checkpoint).students]
    if len(folders) < 2:
        raise InputError("a soup is of several students, and this run has one", "name that one instead")
    return soup([peft.load(folder) for folder in folders]), folders[0]


def weights_of(checkpoint: Path, member: MemberId) -> MemberState:
    """Those of a member, or of the soup."""
    return exported(checkpoint, member)[0]


def soup(states: Sequence[MemberState]) -> MemberState:
    """The mean of members, as one member of their rank."""
    return child(mean, states, seed=0)
