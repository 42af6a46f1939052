"""X4, extrapolation: past the better parent, away from the worse."""

from redqueen.errors import ConfigError
from redqueen.evolution.variation.adapter import Adapter, Parents
from redqueen.evolution.variation.draws import Draws
from redqueen.evolution.variation.linear import weighted
from redqueen.evolution.variation.operator import Use, crossover


@crossover("PopuLoRA X4", Use.LIVE, norm=(1, 1.6), cosine=(-0.35, 1))
def extrapolation(parents: Parents, draws: Draws, *, least: float = 1.0, most: float = 1.5) -> Adapter:
    """worse + eta (better - worse), eta ~ U(least, most)."""
    if least > most:
        raise ConfigError(f"extrapolation cannot draw from {least:g} to {most:g}", "let most be the larger one")
    return weighted(parents, draws.number(least, most))
