"""Sums as tasks that need a container: no source for a race."""

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]
from sums_v1 import SumData, SumTask


class Contained(SumTask):
    NEEDS_CONTAINER = True


class Sums(vf.Taskset[Contained]):
    def load(self):
        yield Contained(SumData(prompt="1 + 1?", answer="2"), self.config.task)


__all__ = ["Sums"]
