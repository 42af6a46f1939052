"""The engine beside PEFT and vLLM, where they are installed: same base, same texts, one run.

    python benchmarks/bench_engine.py sample --shape 135m --members 1,8
    python benchmarks/bench_engine.py update --shape 135m --members 1,8

The options are those of `redqueen bench sample` and `redqueen bench update`.
"""

import sys
from collections.abc import Sequence

import engine_peers

from redqueen.bench import engine
from redqueen.commands.arguments import read
from redqueen.commands.bench import BenchSampleCommand, BenchUpdateCommand
from redqueen.commands.main import exit_status
from redqueen.console import show
from redqueen.errors import InputError


def main(argv: Sequence[str]) -> None:
    match list(argv):
        case ["sample", *words]:
            command, measured = read(BenchSampleCommand, "bench sample", words), engine.sample
            peers = engine_peers.samplers
        case ["update", *words]:
            command, measured = read(BenchUpdateCommand, "bench update", words), engine.update
            peers = engine_peers.trainers
        case _:
            raise InputError("there are two benchmarks of the engine", "begin with sample or update")
    if command is not None:
        show(measured(command.options(), command.settings.engine, peers), as_json=command.json)


if __name__ == "__main__":
    sys.exit(exit_status(lambda: main(sys.argv[1:])))
