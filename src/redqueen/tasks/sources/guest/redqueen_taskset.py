"""Grades answers to tasks of a verifiers taskset, by the rewards of the taskset.

A task is made of its data alone; nothing of the taskset is loaded here. Rewards are coroutines: they run on a loop
without files, since a guest may open none. An item is canonical text of (module, class, prompt, data).
"""

import ast
import asyncio
import operator
import sys
import time

import verifiers.v1 as vf  # pyright: ignore[reportMissingImports]
from verifiers.v1.trace import VersionInfo  # pyright: ignore[reportMissingImports]
from watching import runs as watch_for

FULL = 1.0 - 1e-9
"""The sum of the weighted rewards of a right answer."""


def grade(item, text):
    """ "correct" or "wrong"."""
    return "correct" if _reward(item, text) >= FULL else "wrong"


def runs(item, text, word):
    """ "yes" where grading the text executes the word in it."""
    return "yes" if watch_for(lambda: _reward(item, text), word) else "no"


def _reward(item, text):
    module, name, prompt, data = ast.literal_eval(item)
    made = operator.attrgetter(name)(sys.modules[module])
    return _scored(made(made.data_type().model_validate_json(data)), prompt, text)


def _scored(task, prompt, text):
    trace = _trace(type(task).__name__, task.data, prompt, text)
    loop = _Loop()
    try:
        loop.run_until_complete(task.score(trace))
    finally:
        loop.close()
    return trace.reward


def _trace(name, data, prompt, text):
    """A conversation of one question and one answer."""
    return vf.Trace(
        # Left out, both would be asked of the system.
        id="answer",
        verifiers=VersionInfo(version=""),
        task=vf.TraceTask(type=name, data=data),
        agent=vf.AgentInfo(config=vf.AgentConfig()),
        nodes=[
            vf.MessageNode(message=vf.UserMessage(content=prompt)),
            vf.MessageNode(parent=0, message=vf.AssistantMessage(content=text), sampled=True),
        ],
    )


class _Nothing:
    """A selector that waits and sees nothing."""

    def select(self, timeout=None):
        if timeout:
            time.sleep(timeout)
        return []


class _Loop(asyncio.BaseEventLoop):
    def __init__(self):
        super().__init__()
        self._selector = _Nothing()

    def _process_events(self, event_list):
        return

    def _write_to_self(self):
        return


class _First(vf.Task[vf.TaskData]):
    @vf.reward
    async def answered(self, trace):
        return float(bool(trace.last_reply))


_scored(_First(vf.TaskData(prompt="1 + 1")), "1 + 1", "2")  # what scoring imports late is in memory then
