"""Control: the child is its parent, with a fresh optimiser."""

from redqueen.evolution.variation.adapter import Adapter, Parents
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.operator import Use, mutation


@mutation("control", Use.CONTROL, norm=(1, 1), cosine=(1, 1), copies=True, keeps_factors=True)
def copy_parent(parents: Parents, draws: Draws) -> Adapter:
    """The parent as it is."""
    [parent] = parents
    return parent.map(lambda stack: stack.with_factors(stack.a_S_R_I, stack.b_S_O_R))
