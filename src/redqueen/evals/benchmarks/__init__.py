"""All benchmarks, one file each. A new one is a file here and a line in `plugins.BENCHMARKS`."""

from collections.abc import Iterable
from typing import get_args

from redqueen.errors import InputError
from redqueen.evals.protocol import Prompts, Published, Suite
from redqueen.plugins import BENCHMARKS


def chosen(names: Iterable[str], prompts: Prompts) -> list[Published]:
    """The benchmarks that names and suites mean, each once; they must be askable so. Suites are of those that come with
    the package."""
    benchmarks: dict[str, Published] = {}
    for name in names:
        if name in BENCHMARKS.suites:
            shipped: list[Published] = [BENCHMARKS.get(shipped_name) for shipped_name in BENCHMARKS.builtins]
            suites = [suite for suite in get_args(Suite) if suite != "race"] if name == "all" else [name]
            wanted = [benchmark for benchmark in shipped if benchmark.suite in suites]
        else:
            wanted = [BENCHMARKS.get(name)]
        benchmarks |= {benchmark.name: benchmark for benchmark in wanted}
    for benchmark in benchmarks.values():
        if benchmark.suite == "race" and prompts is not Prompts.CHAT:
            raise InputError(f"{benchmark.name} is asked as races ask, which is in a chat", "use chat prompts")
    return list(benchmarks.values())
