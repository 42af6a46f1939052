"""What settings ask of a cluster, as far as they alone say."""

from redqueen.errors import ConfigError
from redqueen.settings.models import ClusterConfig


def is_asked_for(cluster: ClusterConfig) -> bool:
    return cluster.address is not None or (cluster.shards or 1) > 1


def refuse_settings(cluster: ClusterConfig) -> None:
    """Refuse settings that no cluster can have."""
    if cluster.address is None and cluster.workers is not None:
        raise ConfigError(
            "cluster.workers are workers of a cluster, and cluster.address names none",
            'set cluster.address to "local", or leave out cluster.workers',
        )
    if cluster.address is None and cluster.verifiers:
        raise ConfigError(
            "cluster.verifiers run on machines of a cluster, and cluster.address names none",
            "set cluster.address, or leave out cluster.verifiers: the cores here are verifier.workers",
        )
    gpus = cluster.gpus_per_worker
    if gpus is not None and gpus > 1 and not gpus.is_integer():
        raise ConfigError(
            f"a worker cannot have {gpus:g} GPUs", "set cluster.gpus_per_worker to a part of one, or to whole ones"
        )


def refuse_unnumbered(cluster: ClusterConfig) -> None:
    """Refuse a cluster without a number of workers, which is only for looking at it."""
    if cluster.address is not None and cluster.workers is None and cluster.shards is None:
        raise ConfigError(
            "cluster.address names a cluster, and nothing says how many workers are wanted",
            "set cluster.workers, for example to the number of GPUs",
        )
