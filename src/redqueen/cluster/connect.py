"""The engine and the verifier of a race: in this process, or also on a Ray cluster, which is started or joined here.

What cannot work is refused before anything is loaded: no Ray, an address that nobody answers at, a cluster on other
machines that takes anybody in, fewer resources than are asked for.
"""

import os
import secrets
import socket
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from importlib.util import find_spec
from typing import TYPE_CHECKING

from redqueen.cluster.asked import is_asked_for, refuse_settings, refuse_unnumbered
from redqueen.cluster.engine import ClusterEngine
from redqueen.cluster.inside import Inside
from redqueen.cluster.links import ClusterMachine, Workers, sharing
from redqueen.cluster.placement import shard_of
from redqueen.cluster.verifier import ClusterVerifier
from redqueen.engine.messages import say
from redqueen.engine.protocol import MemberId
from redqueen.engine.queued import QueuedEngine
from redqueen.engine.shapes import described
from redqueen.errors import InputError
from redqueen.resources import open_engine, open_verifier
from redqueen.settings import Config
from redqueen.settings.models import ClusterConfig, EngineConfig
from redqueen.verifier import OpenVerifier

if TYPE_CHECKING:
    from redqueen.cluster.ray import RayWorkers

ANSWER_S = 10.0
"""How long a cluster's head may take to answer."""


def open_members(
    settings: Config, members: Sequence[MemberId], engines: int = 1, *, trains: bool = True
) -> QueuedEngine:
    """An engine with these members, of this process or, where the settings say so, on workers. Close it, or use it in a
    `with` statement. In this process so many `engines` are to share the device's memory. What does not train keeps no
    memory for it."""
    refuse_unnumbered(settings.cluster)
    if is_asked_for(settings.cluster):
        return open_cluster(settings, members, trains=trains)
    return open_engine(settings.engine, members, settings.run.seed, engines, trains=trains)


def open_cluster(settings: Config, members: Sequence[MemberId], *, trains: bool = True) -> ClusterEngine:
    """An engine with these members in its shards. Close it, or use it in a `with` statement."""
    cluster, engine = settings.cluster, settings.engine
    shards, count = cluster.shards or 1, _workers_wanted(cluster)
    base = described(engine.base, engine.quantise)
    workers, on_one_device = _workers(cluster, count, engine)
    if cluster.address is not None:
        say(f"{'1 worker is' if count == 1 else f'{count} workers are'} started on the cluster {cluster.address}")
    busy = len({shard_of(member, shards) for member in members})
    if 0 < busy < count:
        parts = "1 shard" if shards == 1 else f"{shards} shards"
        who = f"{len(members)} members in {parts} keep {busy} of {count} workers busy"
        say(f"{who}; the others only take the places of lost ones")
    return ClusterEngine(
        base,
        workers,
        engine,
        members=members,
        shards=shards,
        count=count,
        sharing=on_one_device,
        patience_s=cluster.patience_s,
        seed=settings.run.seed,
        trains=trains,
    )


def open_judges(settings: Config, workers: int | None = None) -> OpenVerifier:
    """A verifier as the settings ask for it, on this machine's cores and, where they say so, on those of a cluster's
    machines. Close it, or use it in a `with` statement. `workers` is for settings that leave the pool's open."""
    verifier, cluster = settings.verifier, settings.cluster
    refuse_settings(cluster)
    own = open_verifier(verifier.model_copy(update={"workers": verifier.workers or workers}))
    if cluster.verifiers == 0:
        return own
    with ExitStack() as undo:
        undo.callback(own.close)
        ray = _joined(cluster, _workers_wanted(cluster))
        undo.callback(ray.close)
        ray.ask_for_verifiers(cluster.verifiers)
        opened = ClusterVerifier(
            own,
            ray.start_verifier,
            ray.close,
            count=cluster.verifiers,
            workers=verifier.workers,
            patience_s=cluster.patience_s,
        )
        undo.pop_all()
    return opened


def machines(cluster: ClusterConfig, engine: EngineConfig) -> list[ClusterMachine]:
    """Of the cluster that the settings name."""
    workers = _joined(cluster, 1)
    try:
        return workers.machines(cluster.gpus_per_worker, engine)
    finally:
        workers.close()


def _workers_wanted(cluster: ClusterConfig) -> int:
    return 1 if cluster.address is None else cluster.workers or cluster.shards or 1


def _workers(cluster: ClusterConfig, count: int, engine: EngineConfig) -> tuple[Workers, int]:
    """Where they come from, and how many of them share a device."""
    if cluster.address is None:
        return Inside(), 1
    workers = _joined(cluster, count)
    try:
        gpus = workers.ask_for(cluster.gpus_per_worker, count, engine.device, engine.tensor_parallel)
    except BaseException:
        workers.close()
        raise
    return workers, sharing(gpus, count)


def _joined(cluster: ClusterConfig, count: int) -> "RayWorkers":
    """The cluster, with room for so many workers if it is started here."""
    assert cluster.address is not None
    if find_spec("ray") is None:
        raise InputError("a cluster needs Ray, which is not installed", "run `pip install 'redqueen[cluster]'`")
    if cluster.address == "local":
        _lock()
    elif cluster.address != "auto":
        _refuse_address(cluster.address)
    from redqueen.cluster.ray import RayWorkers

    workers = RayWorkers(cluster.address, count)
    try:
        if not is_here(workers.head):
            _refuse_without_token(workers.head)
    except BaseException:
        workers.close()
        raise
    return workers


def _lock() -> None:
    """Ray listens to the whole network, also for a cluster of one machine: let nobody in who has no token, which is
    new. It heeds this until it is imported; who has done that, or has set the mode, knows why."""
    if "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _refuse_address(address: str) -> None:
    host, _, port = address.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise InputError(
            f"cluster.address cannot be {address}", "write local, auto or HOST:PORT, such as 10.0.0.5:6379"
        )
    try:
        with closing(socket.create_connection((host, int(port)), timeout=ANSWER_S)):
            pass
    except OSError as error:
        why = error.strerror or str(error)
        mend = "start its head there (`ray start --head`), or set cluster.address to local"
        raise InputError(f"no cluster answers at {address} ({why})", mend) from None
    if not is_here(host):
        _refuse_without_token(host)


def _refuse_without_token(host: str) -> None:
    if os.environ.get("RAY_AUTH_MODE") != "token":
        raise InputError(
            f"the cluster's head is another machine ({host}), and without a token Ray lets anybody run code on it",
            "set RAY_AUTH_MODE=token on all machines and for this command (docs/cluster.md)",
        )


def is_here(host: str) -> bool:
    """Whether it is this machine: nobody else's address can be bound."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    for family, kind, protocol, _, place in found:
        with closing(socket.socket(family, kind, protocol)) as probe:
            try:
                probe.bind((place[0], 0))
                return True
            except OSError:
                continue
    return False
