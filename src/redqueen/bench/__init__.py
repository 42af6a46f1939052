"""Benchmarks of the parts. Scripts that compare them with peers are in benchmarks/ beside the package."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class BenchReport:
    """What a benchmark measured; a subclass says how it is printed."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
