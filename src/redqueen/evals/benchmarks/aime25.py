"""AIME 25: 30 problems of the American Invitational Mathematics Examinations of 2025."""

from redqueen.evals.aime import Aime
from redqueen.evals.protocol import Hub


class Aime25(Aime):
    name = "aime25"
    title = "AIME 25"
    rows = 30
    sha256 = "acd5edd00d416839"
    hub = Hub(repository="math-ai/aime25", config="default", split="test", rows=30)
