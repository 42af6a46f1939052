"""The mean of a role: what its members have learnt in common stays, what each has learnt by chance cancels out."""

from dataclasses import replace

from redqueen.evolution.variation.adapter import Adapter, Parents
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.lowrank import combined, refactored
from redqueen.evolution.variation.operator import Use, merge


@merge("model soups, arXiv 2203.05482", Use.OURS, norm=(0.3, 1), cosine=(0.2, 1))
def mean(parents: Parents, draws: Draws) -> Adapter:
    """The mean of all parents' Delta W, truncated to the rank."""
    stacks = zip(*(parent.stacks for parent in parents), strict=True)
    merged = (refactored(own[0], combined([(1 / len(own), stack) for stack in own])) for own in stacks)
    return replace(parents[0], stacks=tuple(merged))
