"""Minerva: 272 questions of university courses in science, with numbers and formulas for answers."""

from redqueen.evals.maths import Maths
from redqueen.evals.protocol import Hub


class MinervaMath(Maths):
    name = "minerva_math"
    title = "Minerva"
    rows = 272
    sha256 = "73a949faa661d8ad"
    hub = Hub(repository="math-ai/minervamath", config="default", split="test", rows=272)
