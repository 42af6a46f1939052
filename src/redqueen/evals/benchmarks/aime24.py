"""AIME 24: 30 problems of the American Invitational Mathematics Examinations of 2024."""

from redqueen.evals.aime import Aime
from redqueen.evals.protocol import Hub


class Aime24(Aime):
    name = "aime24"
    title = "AIME 24"
    rows = 30
    sha256 = "8a86c408058d225e"
    hub = Hub(repository="HuggingFaceH4/aime_2024", config="default", split="train", rows=30)
