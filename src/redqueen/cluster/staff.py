"""The workers of a race: which shard is where, what each was asked, and what is done about those that are lost.

A call goes to where its shard is at home, with what that worker lacks of the shard's ledger. When a worker is lost, its
shards begin anew on others, from the ledger, and what it had not answered is asked again there; what it answers late is
not heard. A worker is lost when it ends, when it is silent for longer than the patience, when a call takes many times
longer than any did, or when its device fails.
"""

import statistics
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

import torch

from redqueen.cluster.daemons import DaemonLost
from redqueen.cluster.hands import Hand, Job, WorkerEvent, WorkerNow
from redqueen.cluster.ledger import Ledger, Update
from redqueen.cluster.links import Lost, Workers
from redqueen.cluster.patience import AGAIN_S, MANY, MOST_LOSSES, START_S, beat_s, is_silent
from redqueen.cluster.placement import grouped, homes
from redqueen.cluster.versions import versions
from redqueen.cluster.worker import Brief, Greeting, Opening
from redqueen.engine.memory import Limits
from redqueen.engine.messages import one_line, say
from redqueen.engine.protocol import MemberId
from redqueen.engine.split.group import Lost as PartLost
from redqueen.errors import InputError, MachineError


class Staff:
    """All of it on one thread, but for answers that come in."""

    def __init__(
        self, workers: Workers, ledgers: Sequence[Ledger], opening: Opening, *, count: int, patience_s: float
    ) -> None:
        """Waits until all workers are open."""
        self._workers, self._opening, self._patience_s = workers, opening, patience_s
        self._beat_s = beat_s(patience_s)
        self.ledgers = ledgers
        self.events: list[WorkerEvent] = []
        """All so far; it only grows."""
        self._events: SimpleQueue[tuple[Hand, Job | str, Future[Any]]] = SimpleQueue()
        self._here: list[Hand] = []
        self._coming: list[Hand] = []
        self._homes: list[Hand | None] = [None] * len(ledgers)
        self._stranded: list[Job] = []
        """They wait for a worker."""
        self._longest: dict[str, float] = {}
        """Seconds for each thing that a call is about, by method, since the last loss."""
        self._limits: Limits | None = None
        self._greetings: list[Greeting] = []
        self._next_beat = 0.0
        self._looked = time.monotonic()
        """When workers were last looked after."""
        self._hire_at: list[float] = []
        self._alone_since = time.monotonic()
        self._began = False
        for _ in range(count):
            self._hire()
        while self._coming:
            self.wait(self._beat_s)
        self._began = True
        self._move()

    @property
    def now(self) -> list[WorkerNow]:
        """Those that are here. Anybody may ask at any time: what is read is replaced whole, or copied at once."""
        hands, at_home = list(self._here), list(self._homes)
        return [
            WorkerNow(
                name=hand.link.name,
                machine=hand.greeting.machine,
                process=hand.greeting.process,
                members=tuple(
                    member for shard, at in enumerate(at_home) if at is hand for member in self.ledgers[shard].members
                ),
                seconds={method: statistics.fmean(list(took)) for method, took in list(hand.took.items()) if took},
            )
            for hand in hands
            if hand.greeting is not None
        ]

    @property
    def exact(self) -> bool:
        """Whether batches do not depend on the time."""
        return self._greetings[0].exact

    @property
    def device(self) -> str:
        """What workers compute on: cpu or cuda."""
        return self._greetings[0].device

    @property
    def computes_on(self) -> str:
        """The workers' devices, by name."""
        return ", ".join(dict.fromkeys(greeting.computes_on for greeting in self._greetings))

    @property
    def homes(self) -> list[str | None]:
        """The worker of each shard, by name."""
        return [None if hand is None else hand.link.name for hand in self._homes]

    @property
    def dtype(self) -> torch.dtype:
        return self._greetings[0].dtype

    @property
    def norms(self) -> Mapping[str, float]:
        """Of the weights that members adapt: every worker has the same base."""
        return self._greetings[0].norms

    def ask(self, jobs: Sequence[Job]) -> list[Any]:
        """The answers, in order."""
        for job in jobs:
            self.send(job)
        while not all(job.done for job in jobs):
            self.wait(self._beat_s)
        for job in jobs:
            if job.error is not None:
                raise job.error
        return [job.answer for job in jobs]

    def send(self, job: Job) -> None:
        hand, ledger = self._homes[job.shard], self.ledgers[job.shard]
        if hand is None:
            self._stranded.append(job)
            return
        start = hand.has.get(job.shard)
        brief = Brief(
            shard=job.shard, epoch=ledger.epoch, start=start, end=ledger.end, entries=tuple(ledger.since(start))
        )
        hand.has[job.shard] = ledger.end
        hand.jobs.add(job)
        job.sent = time.monotonic()
        job.again = sum(len(entry.batch) for entry in brief.entries if isinstance(entry, Update))
        self._call(hand, job, job.method, brief, *job.arguments)

    def wait(self, seconds: float) -> None:
        """Until somebody has answered, or for this long."""
        try:
            self._heed(*self._events.get(timeout=min(seconds, self._beat_s)))
            while True:
                self._heed(*self._events.get_nowait())
        except Empty:
            self._watch(time.monotonic())

    def settle(self) -> None:
        """Let workers that came late have their part, where no update would have to be done again for it."""
        if not any(hand.jobs for hand in self._here) and not any(ledger.updates for ledger in self.ledgers):
            self._move()

    def _call(self, hand: Hand, what: Job | str, method: str, *arguments: Any) -> None:
        hand.link.call(method, *arguments).add_done_callback(lambda answer: self._events.put((hand, what, answer)))

    def _heed(self, hand: Hand, what: Job | str, answer: "Future[Any]") -> None:
        if hand not in self._here and hand not in self._coming:
            return  # what it was asked is asked of others
        error = answer.exception()
        if isinstance(error, DaemonLost):
            raise error
        if isinstance(error, Lost | PartLost | torch.AcceleratorError):
            what_became = "its device failed" if isinstance(error, torch.AcceleratorError) else "died"
            self._lose(hand, error.what if isinstance(error, Lost) else what_became, one_line(error))
            return
        if isinstance(what, Job):
            self._answered(hand, what, answer)
        elif error is not None and self._began:
            self._lose(hand, "failed", one_line(error))
        elif error is not None:
            raise error
        elif what == "beat":
            hand.asked = None
            if hand in self._coming:
                self._alone_since = time.monotonic()  # one that begins has found room
        elif what == "open":
            self._greeted(hand, answer.result())
        elif what == "agree":
            self._coming.remove(hand)
            self._here.append(hand)
            self._happened(hand, "opened", hand.place)
            if self._began:
                say(f"{hand.link.name} is open {hand.place}")
                if not any(self._homes):
                    self._move()

    def _answered(self, hand: Hand, job: Job, answer: "Future[Any]") -> None:
        hand.jobs.remove(job)
        hand.answered = time.monotonic()
        took = (hand.answered - job.sent) / job.size
        self._longest[job.method] = max(took, self._longest.get(job.method, 0.0))
        hand.took[job.method].append(took)
        job.error = answer.exception()
        if job.error is None:
            job.answer = answer.result()
            if job.update is not None:
                ledger = self.ledgers[job.shard]
                ledger.update(hand.has[job.shard], job.update)
                hand.has[job.shard] = ledger.end
        job.done = True

    def _hire(self) -> None:
        hand = Hand(self._workers.start())
        self._coming.append(hand)
        self._call(hand, "open", "open", versions(self._opening.engine["quantise"]), self._opening)

    def _greeted(self, hand: Hand, greeting: Greeting) -> None:
        self._greetings.append(greeting)
        hand.greeting = greeting
        if greeting.device != self.device:
            raise InputError(
                f"{hand.link.name} computes on {greeting.device}, and others on {self.device}",
                "set engine.device to what all of them have",
            )
        if self._limits is not None:
            self._call(hand, "agree", "agree", self._limits)
        elif len(self._greetings) == len(self._coming):
            self._limits = Limits.least([greeting.limits for greeting in self._greetings])
            for each in self._coming:
                self._call(each, "agree", "agree", self._limits)

    def _happened(self, hand: Hand, what: str, cause: str) -> None:
        self.events.append(WorkerEvent(time.time(), hand.link.name, what, cause))

    def _lose(self, hand: Hand, what: str, why: str) -> None:
        """`what` in one or two words, and why that is thought."""
        if not self._began:
            raise MachineError(
                f"{hand.link.name} could not be opened: {why}",
                "look at its log; if it waits for room in the cluster, ask for fewer workers",
            )
        hand.link.end()
        if hand in self._coming:
            self._coming.remove(hand)
            self._hire_at.append(time.monotonic() + AGAIN_S)
            self._happened(hand, "could not be opened", why)
            say(f"{hand.link.name} could not be opened ({why}); another is tried")
            return
        self._here.remove(hand)
        self._longest.clear()
        if not self._here:
            self._alone_since = time.monotonic()
        others = "others have its members" if self._here else "nobody is left, and another is waited for"
        self._happened(hand, what, why)
        say(f"{hand.link.name} {hand.place}, is lost ({why}); {others}")
        self._hire()
        self._move(evenly=False)
        for job in sorted(hand.jobs, key=lambda job: job.sent):
            job.losses += 1
            if job.losses == MOST_LOSSES:
                raise MachineError(
                    f"{MOST_LOSSES} workers were lost over the same call ({job.method}, the last: {why})",
                    "look at their logs; the same command goes on from the last checkpoint",
                )
            self.send(job)

    def _move(self, *, evenly: bool = True) -> None:
        """Give shards without a home one, and, evenly, workers their parts. Those that have something to do keep what
        they have."""
        before, self._homes = self._homes, homes(self._homes, self._here, evenly=evenly)
        taken: list[tuple[Hand, MemberId]] = []
        for shard, (old, new) in enumerate(zip(before, self._homes, strict=True)):
            if new is old:
                continue
            self.ledgers[shard].epoch += 1
            taken += [(new, member) for member in self.ledgers[shard].members if new is not None]
            if old is not None and old in self._here and old.has.pop(shard, None) is not None:
                self._call(old, "beat", "drop", shard, self.ledgers[shard].epoch)
        for hand, members in grouped(taken).items():
            self._happened(hand, "took members", ", ".join(members))
        stranded, self._stranded = self._stranded, []
        for job in stranded:
            self.send(job)

    def _watch(self, now: float) -> None:
        """Look after those who say nothing."""
        if now - self._looked > 4 * self._beat_s:
            self._begin_again(now)
        self._looked = now
        if not self._here and self._began and now - self._alone_since > self._patience_s:
            what = f"no worker is left, and none came within {self._patience_s:g} s"
            raise MachineError(what, "the same command goes on from the last checkpoint")
        if now < self._next_beat:
            return
        self._next_beat = now + self._beat_s
        if self._hire_at and self._hire_at[0] <= now:
            del self._hire_at[0]
            self._hire()
        for hand in [*self._here, *self._coming]:
            if hand not in self._here and hand not in self._coming:
                continue  # lost with another
            if (slow := self._late(hand, now)) is not None:
                why = f"{slow.method} takes {now - slow.sent:.0f} s, many times longer than it did"
                self._lose(hand, "stopped answering", why)
            elif hand.asked is None:
                hand.asked = now
                self._call(hand, "beat", "beat")
            elif is_silent(hand.asked, now, self._patience_of(hand)):
                self._lose(hand, "stopped answering", f"silent for {self._patience_of(hand):g} s")

    def _begin_again(self, now: float) -> None:
        """This process was stopped, or had other things to do: what came in meanwhile may still be on its way, so
        nobody has been silent yet."""
        self._alone_since = now
        for hand in [*self._here, *self._coming]:
            hand.answered = now
            if hand.asked is not None:
                hand.asked = now

    def _patience_of(self, hand: Hand) -> float:
        return self._patience_s if hand in self._here else max(START_S, self._patience_s)

    def _late(self, hand: Hand, now: float) -> Job | None:
        """What a worker takes much too long for. It may do one thing after the other, so that all it has been asked
        counts, from its last answer on."""
        usual = [self._usual(job) for job in hand.jobs]
        if not hand.jobs or None in usual:
            return None
        first = min(hand.jobs, key=lambda job: job.sent)
        allowed = max(self._patience_s, MANY * sum(seconds for seconds in usual if seconds is not None))
        return first if now - max(first.sent, hand.answered) > allowed else None

    def _usual(self, job: Job) -> float | None:
        """The seconds that it would take if all were as slow as the slowest so far; None where that is not known."""
        own, again = self._longest.get(job.method), self._longest.get("update", 0.0 if job.again == 0 else None)
        return None if own is None or again is None else own * job.size + again * job.again
