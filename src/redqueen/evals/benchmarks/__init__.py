"""All benchmarks, one file each. A new one is a file here and a line in `plugins.BENCHMARKS`."""

from redqueen.evals.protocol import Published
from redqueen.plugins import BENCHMARKS


def chosen(names: str) -> list[Published]:
    """The benchmarks that a list of names and suites means, each once. Suites are of those that come with the
    package."""
    benchmarks: dict[str, Published] = {}
    for name in (part.strip() for part in names.split(",")):
        if name in BENCHMARKS.suites:
            shipped: list[Published] = [BENCHMARKS.get(each) for each in BENCHMARKS.builtins]
            wanted = [each for each in shipped if name in ("all", each.suite)]
        else:
            wanted = [BENCHMARKS.get(name)]
        benchmarks |= {each.name: each for each in wanted}
    return list(benchmarks.values())
