"""Operators beside those of PyPI's `populora`: same slots, same rank, one run.

    python -m venv peer && peer/bin/pip install populora
    python benchmarks/bench_operators.py --peer peer/bin/python

The other options are those of `redqueen bench operators`. The peer changes its population in place, so it is compared
with the operator alone.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Annotated, Any

import torch
import tyro

from redqueen.bench.operators import OperatorsReport, Slots
from redqueen.commands.arguments import read
from redqueen.commands.bench import BenchOperatorsCommand
from redqueen.commands.main import exit_status
from redqueen.errors import InputError

OPERATORS = {
    "spectral": ("svd_structured", True),
    "slot_noise": ("layer_selective_gaussian", True),
    "component_mask": ("component_masking", True),
    "full_noise": ("full_gaussian", True),
    "input_noise": ("neftune_style", True),
    "dare": ("dare", False),
    "layer_wise": ("layer_wise", True),
    "svd_subspace": ("svd_subspace", True),
    "extrapolation": ("extrapolative", False),
    "linear_0_5": ("average", False),
}
"""Operator -> the peer's name for it, and whether both do the same work. If not, the peer mixes factors entry by entry,
which costs next to nothing and is another operation."""


@dataclass(frozen=True, kw_only=True)
class BesidePopulora(BenchOperatorsCommand):
    """What a child costs with every operator, beside PyPI's populora: same slots, same rank, same run."""

    peer: Annotated[str | None, tyro.conf.arg(metavar="PYTHON")] = None
    """An interpreter that has populora and torch."""

    def report(self) -> OperatorsReport:
        if self.peer is None:
            mend = "`python -m venv peer && peer/bin/pip install populora`, and then --peer peer/bin/python"
            raise InputError("--peer names no interpreter that has populora", mend)
        return self.measure(partial(Populora.started, self.peer))


class Populora:
    """`populora` in an interpreter of its own, which waits while others take their turn."""

    operators = OPERATORS

    def __init__(self, process: "subprocess.Popen[str]", errors: IO[bytes], python: str) -> None:
        self._process, self._errors, self._python = process, errors, python
        self.version = ""

    @classmethod
    @contextmanager
    def started(cls, python: str, slots: Slots, rank: int, device: torch.device) -> Iterator["Populora"]:
        # Isolated, so that nothing beside the script can pass for one of the peer's modules.
        command = [python, "-I", str(Path(__file__).with_name("operators_peer.py"))]
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
                )
            except OSError as error:
                raise InputError(
                    f"--peer {python} cannot be run: {error.strerror}", "name a Python interpreter"
                ) from None
            peer = cls(process, errors, python)
            try:
                settings = {"slots": slots, "rank": rank, "device": device.type, "threads": torch.get_num_threads()}
                peer.version = peer._ask(settings)["version"]
                yield peer
            finally:
                process.kill()
                process.communicate()

    def seconds(self, operator: str) -> float:
        return self._ask({"operator": operator})["seconds"]

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            print(json.dumps(question), file=stdin, flush=True)
            answer = stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self._process.wait()
            self._errors.seek(0)
            lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
            raise InputError(
                f"the peer in {self._python} failed: {lines[-1] if lines else 'it said nothing'}",
                "name an interpreter that has populora and torch",
            )
        return json.loads(answer)


def main(argv: Sequence[str]) -> None:
    command = read(BesidePopulora, "bench operators", argv)
    if command is not None:
        command.run()


if __name__ == "__main__":
    sys.exit(exit_status(lambda: main(sys.argv[1:])))
