"""The engine whose base is split: its own part, and the processes that have the others."""

import contextlib
import pickle
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from redqueen.engine.bank import Bank
from redqueen.engine.base import load
from redqueen.engine.call_queue import Kind
from redqueen.engine.local import LocalEngine
from redqueen.engine.memory import Limits
from redqueen.engine.protocol import MemberId, MemberState, Recipe, Sample
from redqueen.engine.shapes import outline
from redqueen.engine.split.group import Lost, connected, device_of
from redqueen.engine.split.part import Part, Sum, refuse
from redqueen.engine.split.told import Agreed, Loaded, Opening, Removed, Took, Turn, Wrote, digest
from redqueen.engine.streams import Call, Streams
from redqueen.errors import InputError, MachineError

_END_S = 10
"""For processes to end by themselves."""


class Followers:
    """The other processes, and the way to them."""

    def __init__(self, opening: Opening) -> None:
        """Each has loaded its part when the next one begins: the memory of the host has the whole base once."""
        self.processes: list[subprocess.Popen[bytes]] = []
        self._connections: list[Connection] = []
        try:
            for rank in range(1, opening.size):
                self._begin(replace(opening, rank=rank, device=device_of(rank, opening.device)))
        except BaseException:
            self.close()
            raise

    def _begin(self, opening: Opening) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            place = theirs.fileno()
            command = [sys.executable, "-m", "redqueen.engine.split.follower", str(place)]
            # Not ended by the terminal, but by us.
            process = subprocess.Popen(command, pass_fds=[place], stdin=subprocess.DEVNULL, start_new_session=True)
        self.processes.append(process)
        self._connections.append(Connection(ours.detach()))
        self._connections[-1].send_bytes(pickle.dumps(opening))
        self._answer(self._connections[-1])

    def limits(self) -> list[Limits]:
        """Of each, once it has opened its engine."""
        return [pickle.loads(self._answer(connection)) for connection in self._connections]

    def tell(self, message: Any) -> None:
        data = pickle.dumps(message)
        try:
            for connection in self._connections:
                connection.send_bytes(data)
        except OSError:
            self.close()
            raise Lost from None

    def compare(self, own: bytes) -> None:
        """Every process must have found the same: from here on they would go apart."""
        if any(self._answer(connection) != own for connection in self._connections):
            self.close()
            what = "the processes of a base that is split have computed different results"
            raise MachineError(what, "use devices of one kind; a run goes on from its last checkpoint")

    def _answer(self, connection: Connection) -> bytes:
        try:
            return connection.recv_bytes()
        except (EOFError, OSError):
            self.close()
            raise Lost from None

    def close(self) -> None:
        for connection in self._connections:
            connection.close()
        end = time.monotonic() + _END_S
        for process in self.processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, end - time.monotonic()))
            process.kill()
            process.wait()


class _Told:
    """Streams whose every batch the followers hear of."""

    def __init__(self, streams: Streams, followers: Followers) -> None:
        self._streams, self.followers = streams, followers
        self.tokens: list[Any] = []

    def take(self, step: int, rows: int) -> list[Call]:
        calls = self._streams.take(step, rows)
        self.followers.tell(Took([call.requests for call in calls]))
        return calls

    def done(self, call: Call, index: int, sample: Sample) -> None:
        self.tokens.append(sample.tokens)
        self._streams.done(call, index, sample)

    def answer(self, call: Call, error: BaseException | None = None) -> None:
        self._streams.answer(call, error)

    def fail(self, error: BaseException) -> None:
        self._streams.fail(error)


class _Everywhere:
    """The members, who are the same in all processes."""

    def __init__(self, bank: Bank, followers: Followers) -> None:
        self._bank, self.followers = bank, followers
        self.read, self.views, self.fresh = bank.read, bank.views, bank.fresh

    def write(self, member: MemberId, state: MemberState) -> None:
        self._bank.write(member, state)
        self.followers.tell(Wrote(member, state))

    def remove(self, member: MemberId) -> None:
        self._bank.remove(member)
        self.followers.tell(Removed(member))


class SplitEngine(LocalEngine):
    """An engine with a process for each part of the base; the first part is in this one."""

    def __init__(self, base: str, size: int, *, device: torch.device, dtype: torch.dtype, **options: Any) -> None:
        """`options` are those of the engine; its memory is that of one process."""
        refuse(outline(base), size)
        self._threads = torch.get_num_threads()
        with tempfile.TemporaryDirectory() as folder:
            opening = Opening(
                base=base, dtype=dtype, device=device, rank=0, size=size, meeting=Path(folder) / "meeting",
                options=options,
            )  # fmt: skip
            self.followers = Followers(opening)
            try:
                torch.set_num_threads(max(1, self._threads // size))
                own = device_of(0, device)
                part = Part(rank=0, size=size, device=own, connect=lambda: self._connected(opening, own))
                super().__init__(load(base, device=torch.device("cpu"), dtype=dtype), part=part, **options)
                self.agree(Limits.least([self.limits, *self.followers.limits()]))
            except BaseException:
                self._end()
                raise
        self._held = _Everywhere(self.bank, self.followers)

    def _connected(self, opening: Opening, own: torch.device) -> Sum:
        self.followers.tell(Loaded())
        return connected(opening.meeting, 0, opening.size, own)

    def agree(self, limits: Limits) -> None:
        super().agree(limits)
        self.followers.tell(Agreed(limits))

    def run(self, kind: Kind, items: Any, recipe: Recipe | None) -> Any:
        self.followers.tell(Turn(kind, None if kind == "sample" else items, recipe))
        told = _Told(items, self.followers) if kind == "sample" else None
        try:
            found = super().run(kind, told or items, recipe)
        except BaseException as error:
            if not isinstance(error, InputError):
                self.followers.close()  # they wait for sums that do not come
            raise
        self.followers.compare(digest(kind, found if told is None else told.tokens))
        return found

    def close(self) -> None:
        super().close()
        self._end()

    def _end(self) -> None:
        self.followers.close()
        torch.set_num_threads(self._threads)
