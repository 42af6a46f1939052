"""Workers as actors of Ray. The one file that imports it, and only for a race that asks for a cluster.

Ray starts actors, carries calls and says who is gone. It restarts and repeats nothing: what a lost worker had is the
driver's business. Answers are taken out of its store at once, and nothing is kept there alone.
"""

import logging
import os
import subprocess
from collections.abc import Mapping
from concurrent.futures import Future
from itertools import count
from pathlib import Path
from typing import Any

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"

import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from redqueen.cluster.links import ClusterMachine, Link, Lost
from redqueen.cluster.staff import START_S
from redqueen.cluster.verifier_worker import VerifierWorker
from redqueen.cluster.versions import versions
from redqueen.cluster.worker import Worker
from redqueen.engine.messages import one_line
from redqueen.errors import InputError, MachineError

AT_ONCE = 100_000
"""Calls that an actor takes in: a worker that has much to do must still say that it is there."""
GONE = (
    exceptions.RayActorError,
    exceptions.WorkerCrashedError,
    exceptions.NodeDiedError,
    exceptions.ObjectLostError,
    exceptions.OutOfMemoryError,
    exceptions.TaskCancelledError,
)
"""What Ray says of a worker, or of its answer, that is not to be had any more."""


class RayWorkers:
    """Implements `Workers` on a cluster, which is this process's own where the address is `local`."""

    def __init__(self, address: str, workers: int) -> None:
        self._numbers, self._verifier_numbers = count(), count()
        self._links: list[RayLink] = []
        self._verifiers: list[RayLink] = []
        self._gpus = 0.0
        _joined.join(address, workers)

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
                "lower cluster.workers or cluster.gpus_per_worker, or add machines",
            )
        self._gpus = gpus
        return gpus

    def machines(self, gpus: float | None, device: str) -> list[ClusterMachine]:
        """What the cluster has, and what workers would find there."""
        nodes = _nodes()
        gpus = _usual(gpus, sum(node["Resources"].get("GPU", 0.0) for node in nodes), device)
        task: Any = ray.remote(versions)
        asked = [
            task.options(num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False))
            for node in nodes
        ]
        try:
            found = ray.get([each.remote() for each in asked], timeout=START_S)
        except exceptions.RayError as error:
            mend = "install redqueen[cluster] on all machines"
            raise InputError(f"a machine of the cluster cannot run a worker: {one_line(error)}", mend) from None
        return [
            ClusterMachine(
                address=node["NodeManagerAddress"],
                cpus=int(node["Resources"].get("CPU", 0.0)),
                gpus=node["Resources"].get("GPU", 0.0),
                memory_gib=round(node["Resources"].get("memory", 0.0) / (1 << 30), 1),
                workers=_fits(node["Resources"], gpus),
                versions=its,
            )
            for node, its in zip(nodes, found, strict=True)
        ]

    def start(self) -> Link:
        actor: Any = ray.remote(Worker)
        options = actor.options(
            num_cpus=1,
            num_gpus=self._gpus,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=AT_ONCE,
            scheduling_strategy="SPREAD",
        )
        link = RayLink(f"worker {next(self._numbers)}", options.remote())
        self._links.append(link)
        return link

    def ask_for_verifiers(self, verifiers: int) -> None:
        """Refuses more than the cluster has machines for: each has all cores of one."""
        there = len(_for_verifiers())
        if there < verifiers:
            raise InputError(
                f"the cluster has room for {there} verifiers, one on each machine beside the driver's, and {verifiers} "
                "are asked for",
                "lower cluster.verifiers, or add machines",
            )

    def start_verifier(self) -> Link | None:
        """A verifier on a machine that has none; None where there is no such machine. It asks for no CPU of Ray's,
        which are places for workers."""
        taken = {link.node for link in self._verifiers if not link.ended}
        free = [node for node in _for_verifiers() if node["NodeID"] not in taken]
        if not free:
            return None
        place = max(free, key=lambda node: node["Resources"]["CPU"])["NodeID"]
        actor: Any = ray.remote(VerifierWorker)
        options = actor.options(
            num_cpus=0,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=AT_ONCE,
            scheduling_strategy=NodeAffinitySchedulingStrategy(place, soft=False),
        )
        link = RayLink(f"verifier {next(self._verifier_numbers)}", options.remote(), place)
        self._verifiers.append(link)
        return link

    def close(self) -> None:
        for link in (*self._links, *self._verifiers):
            link.end()
        _joined.leave()


class _Joined:
    """This process's connection: Ray has one at a time, which all who need it share."""

    def __init__(self) -> None:
        self._users = 0
        self._reaper: subprocess.Popen[bytes] | None = None

    def join(self, address: str, workers: int) -> None:
        if self._users == 0:
            self._begin(address, workers)
        self._users += 1

    def leave(self) -> None:
        self._users -= 1
        if self._users == 0:
            ray.shutdown()
            if self._reaper is not None:
                self._reaper.communicate()

    def _begin(self, address: str, workers: int) -> None:
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address == "local":
            # Ray's CPUs are slots; how many cores a worker uses is torch's business.
            options |= {"num_cpus": max(os.cpu_count() or 1, workers), "include_dashboard": False}
        try:
            ray.init(address=address, **options)
        except (ConnectionError, RuntimeError, ValueError, OSError, exceptions.RayError) as error:
            mend = "look at `ray status` on its machines; versions of Ray and Python must be equal, and tokens too"
            raise InputError(f"the cluster {address} cannot be joined: {one_line(error)}", mend) from None
        self._reaper = _reaper() if address == "local" else None


_joined = _Joined()


class RayLink:
    """Implements `Link`."""

    def __init__(self, name: str, actor: Any, node: str | None = None) -> None:
        self.name, self.node, self._actor = name, node, actor
        self.ended = False

    def call(self, method: str, *arguments: Any) -> "Future[Any]":
        answer: Future[Any] = Future()
        try:
            said: Future[Any] = getattr(self._actor, method).remote(*arguments).future()
        except GONE as error:
            answer.set_exception(Lost(one_line(error)))
            return answer
        said.add_done_callback(lambda said: _settle(answer, said))
        return answer

    def end(self) -> None:
        if not self.ended:
            self.ended = True
            ray.kill(self._actor)


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


def _settle(answer: "Future[Any]", said: "Future[Any]") -> None:
    error = said.exception()
    if error is None:
        answer.set_result(said.result())
    elif isinstance(error, GONE):
        answer.set_exception(Lost(one_line(error)))
    elif isinstance(error, exceptions.OutOfDiskError | exceptions.ObjectStoreFullError):
        what, mend = f"the cluster has no room left: {one_line(error)}", "free disks; the same command goes on"
        answer.set_exception(MachineError(what, mend))
    elif isinstance(error, exceptions.RayTaskError):
        answer.set_exception(error.cause if isinstance(error.cause, Exception) else error)
    else:
        answer.set_exception(error)
