"""All benchmarks, one file each. A new one is a file here and a line in `plugins.BENCHMARKS`."""

from collections.abc import Iterable

from redqueen.evals.protocol import Published
from redqueen.plugins import BENCHMARKS


def chosen(names: Iterable[str]) -> list[Published]:
    """The benchmarks that names and suites mean, each once. Suites are of those that come with the package."""
    benchmarks: dict[str, Published] = {}
    for name in names:
        if name in BENCHMARKS.suites:
            shipped: list[Published] = [BENCHMARKS.get(shipped_name) for shipped_name in BENCHMARKS.builtins]
            wanted = [benchmark for benchmark in shipped if name in ("all", benchmark.suite)]
        else:
            wanted = [BENCHMARKS.get(name)]
        benchmarks |= {benchmark.name: benchmark for benchmark in wanted}
    return list(benchmarks.values())
