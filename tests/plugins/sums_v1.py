"""Sums, as a taskset of verifiers (v1), and the same with something that a source cannot have."""

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]


class SumData(vf.TaskData):
    answer: str


class SumTask(vf.Task[SumData]):
    @vf.reward
    async def right(self, trace) -> float:
        return float(trace.last_reply.split()[-1:] == [self.data.answer])


class Sums(vf.Taskset[SumTask]):
    def load(self):
        for left in range(100, 160):
            yield SumTask(SumData(prompt=f"What is {left} + {3 * left}?", answer=str(4 * left)), self.config.task)


__all__ = ["Sums"]
