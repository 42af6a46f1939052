"""Workers as actors of Ray. The one file that imports it, and only for a race that asks for a cluster.

Ray starts actors, carries calls and says who is gone. It restarts and repeats nothing: what a lost worker had is the
driver's business. Answers are taken out of its store at once, and nothing is kept there alone.
"""

import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ.setdefault("RAY_COLOR_PREFIX", "0")

import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from redqueen.cluster.daemons import DaemonLost, Daemons, reachable
from redqueen.cluster.links import ClusterMachine, Link, Lost, sharing
from redqueen.cluster.patience import START_S
from redqueen.cluster.verifier_worker import VerifierWorker
from redqueen.cluster.versions import versions
from redqueen.cluster.worker import Worker, memory_of
from redqueen.engine.messages import one_line
from redqueen.errors import InputError, Interrupted, MachineError
from redqueen.settings.models import EngineConfig

AT_ONCE = 100_000
"""Calls that an actor takes in: a worker that has much to do must still say that it is there."""
FREE_S = 20.0
"""How long a GPU is waited for that is to be looked at."""
GONE = (
    exceptions.RayActorError,
    exceptions.WorkerCrashedError,
    exceptions.NodeDiedError,
    exceptions.ObjectLostError,
    exceptions.OutOfMemoryError,
    exceptions.TaskCancelledError,
)
"""What Ray says of a worker, or of its answer, that is not to be had any more."""
DEAD = "The actor is dead because "
"""How the line begins in which Ray says why."""
GUESSES = " Some common causes include"
"""What else might be, after it."""
FULL = (exceptions.OutOfDiskError, exceptions.ObjectStoreFullError)


class RayWorkers:
    """Implements `Workers` on a cluster, which is this process's own where the address is `local`."""

    def __init__(self, address: str, workers: int) -> None:
        self._numbers, self._verifier_numbers = count(), count()
        self._links: list[RayLink] = []
        self._verifiers: list[RayLink] = []
        self._gpus = 0.0
        self._lost: DaemonLost | None = None
        _joined.join(address, workers, self._cut_off)

    @property
    def head(self) -> str:
        """The machine that the cluster's head is on."""
        return ray.get_runtime_context().gcs_address.rpartition(":")[0]

    def ask_for(self, gpus: float | None, workers: int, device: str, processes: int) -> float:
        """Each worker has so many GPUs, or one for each of its processes; refuses what the cluster does not have."""
        nodes: list[Mapping[str, float]] = [node["Resources"] for node in _nodes()]
        there = sum(node.get("GPU", 0.0) for node in nodes)
        gpus = _usual(gpus, there, device, processes)
        if device == "cuda" and gpus == 0:
            raise InputError("engine.device is cuda, and workers get no GPU", "set cluster.gpus_per_worker above 0")
        room = sum(_fits(node, gpus) for node in nodes)
        if room < workers:
            machines = "1 machine" if len(nodes) == 1 else f"{len(nodes)} machines"
            raise InputError(
                f"the cluster ({machines}, {there:g} GPUs) has room for {room} workers with a CPU and {gpus:g} GPUs "
                f"each, and {workers} are asked for",
                _mend(there, gpus),
            )
        self._gpus = gpus
        return gpus

    def machines(self, gpus: float | None, engine: EngineConfig) -> list[ClusterMachine]:
        """What the cluster has, and what workers would find there."""
        nodes = _nodes()
        gpus = _usual(gpus, sum(node["Resources"].get("GPU", 0.0) for node in nodes), engine.device)
        room = [_fits(node["Resources"], gpus) for node in nodes]
        tell_versions: Any = ray.remote(versions)
        tell_memory: Any = ray.remote(memory_of)

        def there(node: Mapping[str, Any], own_gpus: float) -> dict[str, Any]:
            at = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            return {"num_cpus": 0, "num_gpus": own_gpus, "scheduling_strategy": at}

        memory = [
            tell_memory.options(**there(node, gpus)).remote(engine, sharing(gpus, workers), workers)
            if workers
            else None
            for node, workers in zip(nodes, room, strict=True)
        ]
        try:
            found = ray.get([tell_versions.options(**there(node, 0)).remote() for node in nodes], timeout=START_S)
            has = [None if each is None else _within(each, FREE_S if gpus else START_S) for each in memory]
        except exceptions.RayError as error:
            mend = "install redqueen[cluster] on all machines"
            raise InputError(f"a machine of the cluster cannot run a worker: {one_line(error)}", mend) from None
        return [
            ClusterMachine(
                address=node["NodeManagerAddress"],
                cpus=int(node["Resources"].get("CPU", 0.0)),
                gpus=node["Resources"].get("GPU", 0.0),
                memory_gib=round(node["Resources"].get("memory", 0.0) / (1 << 30), 1),
                workers=workers,
                versions=its,
                worker=own,
            )
            for node, workers, its, own in zip(nodes, room, found, has, strict=True)
        ]

    def start(self) -> Link:
        if self._lost is not None:
            raise self._lost
        actor: Any = ray.remote(RayWorker)
        options = actor.options(
            num_cpus=1,
            num_gpus=self._gpus,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=AT_ONCE,
            scheduling_strategy="SPREAD",
        )
        started = options.remote()
        link = RayLink(f"worker {next(self._numbers)}", started, started.daemon.remote().future())
        self._links.append(link)
        return link

    def ask_for_verifiers(self, verifiers: int) -> None:
        """Refuses more than the cluster has machines for: each has all cores of one."""
        there = len(_for_verifiers())
        if there < verifiers:
            machines = "1 machine" if there == 1 else f"{there} machines"
            raise InputError(
                f"the cluster has {machines} for verifiers, which do not share one, and {verifiers} are asked for",
                f"set cluster.verifiers to {there} at most, or add machines",
            )

    def start_verifier(self) -> Link | None:
        """A verifier on a machine that has none; None where there is no such machine, or none can be reached. It asks
        for no CPU of Ray's, which are places for workers."""
        if self._lost is not None:
            return None
        taken = {link.node for link in self._verifiers if not link.ended}
        free = [node for node in _for_verifiers() if node["NodeID"] not in taken]
        if not free:
            return None
        most = max(free, key=lambda node: node["Resources"]["CPU"])
        daemon: Future[tuple[str, int]] = Future()
        daemon.set_result((most["NodeManagerAddress"], most["NodeManagerPort"]))
        place = most["NodeID"]
        actor: Any = ray.remote(VerifierWorker)
        options = actor.options(
            num_cpus=0,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=AT_ONCE,
            scheduling_strategy=NodeAffinitySchedulingStrategy(place, soft=False),
        )
        link = RayLink(f"verifier {next(self._verifier_numbers)}", options.remote(), daemon, place)
        self._verifiers.append(link)
        return link

    def _cut_off(self, lost: DaemonLost) -> None:
        self._lost = lost
        for link in (*self._links, *self._verifiers):
            link.fail(lost)

    def close(self) -> None:
        for link in (*self._links, *self._verifiers):
            link.end()
        _joined.leave(self._cut_off)


class _Joined:
    """This process's connection: Ray has one at a time, which all who need it share."""

    def __init__(self) -> None:
        self._users: list[Callable[[DaemonLost], None]] = []
        """How each is told that it is cut off."""
        self._reaper: subprocess.Popen[bytes] | None = None
        self._daemons: Daemons | None = None

    def join(self, address: str, workers: int, cut_off: Callable[[DaemonLost], None]) -> None:
        if not self._users:
            self._begin(address, workers)
        self._users.append(cut_off)

    def leave(self, cut_off: Callable[[DaemonLost], None]) -> None:
        self._users.remove(cut_off)
        if not self._users:
            if self._daemons is not None:
                self._daemons.close()
            ray.shutdown()
            if self._reaper is not None:
                self._reaper.communicate()

    def _begin(self, address: str, workers: int) -> None:
        # What becomes of its processes is said by us, in a line.
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if address == "local":
            # Ray's CPUs are slots; how many cores a worker uses is torch's business.
            options |= {"num_cpus": max(os.cpu_count() or 1, workers), "include_dashboard": False}
        with _signals_as_before():
            try:
                joined: Any = ray.init(address=address, **options)
            except Exception as error:  # of every type there is, the bare one included
                mode = os.environ.get("RAY_AUTH_MODE", "not set")
                mend = (
                    "a head with a token wants RAY_AUTH_MODE=token here and the same token "
                    f"(now it is {mode}), and versions of Ray and Python must be equal"
                )
                raise InputError(f"the cluster {address} cannot be joined: {one_line(error)}", mend) from None
        self._reaper = _reaper() if address == "local" else None
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        self._daemons = Daemons(joined.address_info["raylet_socket_name"], (host, int(port)), self._cut_off)

    def _cut_off(self, lost: DaemonLost) -> None:
        for tell in list(self._users):
            tell(lost)


_joined = _Joined()


class RayWorker(Worker):
    async def daemon(self) -> tuple[str, int]:
        """Where its machine's takes connections."""
        here = ray.get_runtime_context().get_node_id()
        [(host, port)] = [
            (node["NodeManagerAddress"], node["NodeManagerPort"]) for node in ray.nodes() if node["NodeID"] == here
        ]
        return host, port


class RayLink:
    """Implements `Link`."""

    def __init__(self, name: str, actor: Any, daemon: "Future[tuple[str, int]]", node: str | None = None) -> None:
        """`daemon` is where its machine's takes connections."""
        self.name, self.node, self._actor, self._daemon = name, node, actor, daemon
        self.ended = False
        self._lock = threading.Lock()
        self._unanswered: set[Future[Any]] = set()
        self._failed: DaemonLost | None = None
        self._gone: Future[Lost] | None = None
        """How it was lost, once that is known."""

    def call(self, method: str, *arguments: Any) -> "Future[Any]":
        answer: Future[Any] = Future()
        with self._lock:
            if self._failed is not None:
                answer.set_exception(self._failed)
                return answer
            self._unanswered.add(answer)
        try:
            said: Future[Any] = getattr(self._actor, method).remote(*arguments).future()
        except (*GONE, *FULL) as error:
            self._fail(answer, error)
            return answer
        said.add_done_callback(lambda said: self._heard(answer, said))
        return answer

    def fail(self, error: DaemonLost) -> None:
        """Whatever it was asked, or will be."""
        with self._lock:
            self._failed = error
            unanswered = list(self._unanswered)
        for answer in unanswered:
            self._settle(answer, None, error)

    def _heard(self, answer: "Future[Any]", said: "Future[Any]") -> None:
        if (error := said.exception()) is None:
            self._settle(answer, said.result(), None)
        else:
            self._fail(answer, error)

    def _fail(self, answer: "Future[Any]", error: BaseException) -> None:
        """Whether a machine answers is looked at once, and on a thread of its own: Ray's brings everybody's answers."""
        if not isinstance(error, GONE):
            self._settle(answer, None, self._told(error))
            return
        with self._lock:
            first, self._gone = self._gone is None, self._gone or Future()
        gone = self._gone
        if first:
            threading.Thread(target=lambda: gone.set_result(self._lost(error)), daemon=True).start()
        gone.add_done_callback(lambda gone: self._settle(answer, None, gone.result()))

    def _told(self, error: BaseException) -> BaseException:
        """What a call failed with, as our own."""
        if isinstance(error, FULL):
            return MachineError(
                "Ray's object store is full, and so is the disk that it spills to (RAY_TMPDIR, or /tmp)",
                "make room there on all machines; the same command goes on from the last checkpoint",
            )
        if isinstance(error, exceptions.RayTaskError) and isinstance(error.cause, Exception):
            return error.cause
        return error

    def _lost(self, error: BaseException) -> Lost:
        """Ray says that a worker cannot be reached some seconds before it says whether its machine has gone."""
        daemon = self._daemon
        if daemon.done() and daemon.exception() is None and not reachable(*daemon.result()):
            return Lost("nobody answers on its machine", "machine lost")
        why = (line.removeprefix(DEAD) for line in str(error).splitlines() if line.startswith(DEAD))
        return Lost(one_line(next(why, str(error)).partition(GUESSES)[0]))

    def _settle(self, answer: "Future[Any]", result: Any, error: BaseException | None) -> None:
        """Whoever comes first."""
        with self._lock:
            if answer not in self._unanswered:
                return
            self._unanswered.discard(answer)
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    def end(self) -> None:
        if not self.ended:
            self.ended = True
            ray.kill(self._actor)


@contextmanager
def _signals_as_before() -> Iterator[None]:
    """Ray takes SIGTERM for itself, and ends by it with a trace."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        raise Interrupted(signal.SIGTERM) from None
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _mend(there: float, gpus: float) -> str:
    """How to ask for no more than so many GPUs in all."""
    if gpus > there:
        return "lower cluster.gpus_per_worker, or leave it out" if there else "leave out cluster.gpus_per_worker"
    fewer = "cluster.workers or cluster.gpus_per_worker" if gpus else "cluster.workers"
    return f"lower {fewer}, or add machines"


def _reaper() -> "subprocess.Popen[bytes]":
    """Ends Ray's agents when its input does: all others end with this process, and these wait a minute for them."""
    ours = " ".join(str(process) for process in _descendants(os.getpid()) if _is_agent(process))
    words = ["sh", "-c", f"read _; kill -9 {ours}"]
    nowhere = subprocess.DEVNULL
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True)


def _descendants(process: int) -> list[int]:
    children = [
        int(child) for file in Path(f"/proc/{process}/task").glob("*/children") for child in _read(file).split()
    ]
    return children + [further for child in children for further in _descendants(child)]


def _is_agent(process: int) -> bool:
    return b"Agent" in _read(Path(f"/proc/{process}/cmdline"))


def _read(file: Path) -> bytes:
    """Empty where the process has ended."""
    try:
        return file.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def _within(asked: Any, seconds: float) -> Any:
    """The answer, or None where there is none by then."""
    done, _ = ray.wait([asked], timeout=seconds)
    if done:
        return ray.get(asked)
    ray.cancel(asked)
    return None


def _nodes() -> list[Mapping[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _for_verifiers() -> list[Mapping[str, Any]]:
    """Machines with CPUs, but for the driver's, whose cores it has already, where there are others."""
    nodes = [node for node in _nodes() if node["Resources"].get("CPU", 0.0) >= 1]
    here = ray.get_runtime_context().get_node_id()
    return [node for node in nodes if node["NodeID"] != here] or nodes


def _usual(gpus: float | None, there: float, device: str, processes: int = 1) -> float:
    """What each worker gets where nothing is asked for, on a cluster of so many."""
    if gpus is not None:
        return gpus
    return float(processes) if there and device != "cpu" else 0.0


def _fits(node: Mapping[str, float], gpus: float) -> int:
    """Workers that a machine has room for."""
    by_gpu = int(node.get("GPU", 0.0) / gpus + 1e-9) if gpus else AT_ONCE
    return min(int(node.get("CPU", 0.0)), by_gpu)
