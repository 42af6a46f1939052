"""The verifier beside its alternatives: same programs, same workers, one run.

    python benchmarks/bench_verifier.py --seconds 5

The options are those of `redqueen bench verifier`. Bubblewrap takes part where it is installed.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from redqueen.bench import verifier
from redqueen.bench.verifier import PROGRAMS, VerifierPeer
from redqueen.commands.arguments import read
from redqueen.commands.bench import BenchVerifierCommand
from redqueen.commands.command import positive
from redqueen.commands.main import exit_status
from redqueen.console import show
from redqueen.errors import Fault, InputError

ISOLATION = {
    "fresh interpreter": "none",
    "bubblewrap": "namespaces",
    "evalplus's way": "none",
    "multiprocessing": "none",
}
"""Of each peer."""


def peers(workers: int) -> dict[str, VerifierPeer]:
    """Those that are installed."""
    installed = [name for name in ISOLATION if name != "bubblewrap" or shutil.which("bwrap")]
    return {name: VerifierPeer(ISOLATION[name], rate_of(name, workers)) for name in installed}


def rate_of(name: str, workers: int) -> Callable[[float], float]:
    """A peer's programs per second, in a process of its own, so that it starts small and clean."""
    script = Path(__file__).with_name("verifier_peers.py")

    def run(seconds: float) -> float:
        command = [sys.executable, str(script), name, str(seconds), str(workers)]
        done = subprocess.run(command, input=json.dumps(PROGRAMS), capture_output=True, text=True)
        if done.returncode != 0:
            raise Fault(f"the peer {name} failed: {done.stderr.strip().splitlines()[-1:]}")
        answer = json.loads(done.stdout)
        return answer["runs"] / answer["seconds"]

    return run


def main(argv: Sequence[str]) -> None:
    command = read(BenchVerifierCommand, "bench verifier", argv)
    if command is None:
        return
    if command.soak is not None:
        raise InputError("a soak has no peers", "use `redqueen bench verifier --soak`")
    contestants = peers(command.settings.verifier.workers or os.cpu_count() or 1)
    missing = [] if "bubblewrap" in contestants else ["bubblewrap is not installed: `apt-get install bubblewrap`"]
    report = verifier.compare(positive("--seconds", command.seconds), command.settings, contestants, missing)
    show(report, as_json=command.json)


if __name__ == "__main__":
    sys.exit(exit_status(lambda: main(sys.argv[1:])))
