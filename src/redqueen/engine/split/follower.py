"""A process with a part of a base. It does what the leader tells it, in the same order: `python -m` with a descriptor.

Whoever goes on alone would wait for ever, so the process ends with its leader, and with whatever goes wrong in it.
"""

import os
import pickle
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import torch

from redqueen.engine.base import load
from redqueen.engine.local import LocalEngine
from redqueen.engine.protocol import Sample, SampleRequest
from redqueen.engine.split.group import Lost, connected
from redqueen.engine.split.part import Part, Sum
from redqueen.engine.split.told import Agreed, Loaded, Opening, Removed, Took, Turn, Wrote, digest
from redqueen.errors import InputError


@dataclass(slots=True, eq=False)
class _Call:
    requests: Sequence[SampleRequest]


class _Heard:
    """In the place of streams: what the leader takes into its batch."""

    def __init__(self, receive: Any, apply: Any) -> None:
        self._receive, self._apply = receive, apply
        self.tokens: list[Any] = []

    def take(self, step: int, rows: int) -> list[_Call]:
        while not isinstance(message := self._receive(), Took):
            self._apply(message)
        return [_Call(requests) for requests in message.calls]

    def done(self, call: _Call, index: int, sample: Sample) -> None:
        self.tokens.append(sample.tokens)

    def answer(self, call: _Call, error: BaseException | None = None) -> None: ...

    def fail(self, error: BaseException) -> None: ...


def follow(connection: Connection) -> None:
    def receive() -> Any:
        return pickle.loads(connection.recv_bytes())

    opening: Opening = receive()

    def connect() -> Sum:
        connection.send_bytes(b"")  # the next process may load its part now
        assert isinstance(receive(), Loaded)
        return connected(opening.meeting, opening.rank, opening.size, opening.device)

    if opening.device.type == "cuda":
        torch.cuda.set_device(opening.device)
    torch.set_num_threads(max(1, torch.get_num_threads() // opening.size))
    part = Part(rank=opening.rank, size=opening.size, device=opening.device, connect=connect)
    base = load(opening.base, device=torch.device("cpu"), dtype=opening.dtype)
    with LocalEngine(base, part=part, **opening.options) as engine:
        connection.send_bytes(pickle.dumps(engine.limits))

        def apply(message: Any) -> None:
            match message:
                case Wrote(member, state):
                    engine.bank.write(member, state)
                case Removed(member):
                    engine.bank.remove(member)
                case Agreed(limits):
                    engine.agree(limits)

        while True:
            message = receive()
            if not isinstance(message, Turn):
                apply(message)
                continue
            heard = _Heard(receive, apply)
            try:
                found = engine.run(message.kind, heard if message.kind == "sample" else message.items, message.recipe)
            except Lost:
                raise
            except InputError:
                continue  # the leader was told the same, and nothing has changed
            connection.send_bytes(digest(message.kind, heard.tokens if message.kind == "sample" else found))


def main() -> None:
    connection = Connection(int(sys.argv[1]))
    try:
        follow(connection)
    except (EOFError, ConnectionError, Lost):
        os._exit(0)  # the leader or another part is gone, and nothing here is to be saved


if __name__ == "__main__":
    main()
