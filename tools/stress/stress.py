"""Does a verdict depend on what else the machine does? Measure it under a load that this script holds itself.

python tools/stress/stress.py verdicts --load forks    programs with known verdicts, through verifiers
"""

import argparse
import json
import platform
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import verdicts
from cases import CLASSES
from loads import LOADS

import redqueen
from redqueen.errors import UserError


def _head(load: str) -> None:
    print(f"load {load}: {LOADS[load]}")
    print(f"{platform.machine()}, Python {platform.python_version()}, {Path(redqueen.__file__).parent}", flush=True)


def _verdicts(asked: argparse.Namespace) -> int:
    _head(asked.load)
    counts = {kind: getattr(asked, kind) for kind in CLASSES}
    found = verdicts.measure(asked.load, counts, asked.starts, asked.seed)
    verdicts.show(found)
    if asked.json:
        print(json.dumps(found.as_json()))
    return 0 if found.good else 1


def _part(parts: argparse._SubParsersAction, run: Callable[..., int], name: str, about: str) -> argparse.ArgumentParser:
    part = parts.add_parser(name, help=about, description=about)
    part.add_argument("--load", choices=LOADS, default="quiet", help="; ".join(f"{k}: {v}" for k, v in LOADS.items()))
    part.set_defaults(run=run)
    return part


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(required=True)
    part = _part(parts, _verdicts, "verdicts", "programs with known verdicts, through verifiers")
    for kind, count in CLASSES.items():
        part.add_argument(f"--{kind}", type=int, default=count, help=f"programs of the class {kind}")
    part.add_argument("--starts", type=int, default=10, help="verifiers that are opened, one after the other")
    part.add_argument("--seed", type=int, default=0, help="where programs and their order come from")
    part.add_argument("--json", action="store_true", help="print one line of JSON as well")
    return parser


def main(words: list[str]) -> int:
    # Like Ctrl-C: loads are taken away on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    asked = _parser().parse_args(words)
    try:
        return asked.run(asked)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
