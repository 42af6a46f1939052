"""AMC 23: 40 problems of the American Mathematics Competitions of 2023, with numbers for answers."""

from redqueen.evals.maths import Maths
from redqueen.evals.protocol import Hub


class Amc23(Maths):
    name = "amc23"
    title = "AMC 23"
    rows = 40
    sha256 = "bb9967805a63c9e6"
    hub = Hub(repository="math-ai/amc23", config="default", split="test", rows=40)
