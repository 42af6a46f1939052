"""Which worker of a cluster is slow: what its calls take beside the others'."""

import statistics
from collections.abc import Sequence

from redqueen.runs.rows import WorkerRow


def beside_others(rows: Sequence[WorkerRow]) -> dict[str, float]:
    """By worker, how many times as long as the median of the others its calls take: of all kinds of calls the one in
    which it is slowest. Without those who have nobody to be beside."""
    times: dict[str, list[float]] = {}
    for row in rows:
        for method, seconds in row.seconds.items():
            others = [other.seconds[method] for other in rows if other is not row and method in other.seconds]
            if others and (median := statistics.median(others)) > 0:
                times.setdefault(row.worker, []).append(seconds / median)
    return {worker: max(own) for worker, own in times.items()}
