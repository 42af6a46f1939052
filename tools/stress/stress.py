"""Does a verdict depend on what else the machine does? Measure it under a load that this script holds itself.

    python tools/stress/stress.py verdicts --load forks    programs with known verdicts, through verifiers
    python tools/stress/stress.py races --load forks       races that are killed and resumed, beside one left alone
    python tools/stress/stress.py hold --load moderate -- COMMAND ...      whatever you like

No load outlives the script, however that ends. Only public parts of the package are used, so that with
PYTHONPATH=CHECKOUT/src the same script measures another version of it. Exit status 1: something was wrong.
"""

import argparse
import json
import platform
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import interrupted
import verdicts
from cases import CLASSES
from loads import BESIDE, LOADS, dying_with_us, under

import redqueen
from redqueen.errors import InputError, UserError


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


def _races(asked: argparse.Namespace) -> int:
    _head(asked.load)
    settings = ("--run.steps", str(asked.steps), *asked.settings)
    found = interrupted.measure(asked.load, asked.races, asked.seed, settings)
    interrupted.show(found)
    if asked.json:
        print(json.dumps(found.as_json()))
    return 1 if found.differing else 0


def _hold(asked: argparse.Namespace) -> int:
    if asked.load not in BESIDE:
        raise InputError(
            f"the load {asked.load} is for what this script runs itself", f"hold one of {', '.join(BESIDE)}"
        )
    with under(asked.load), subprocess.Popen(dying_with_us(asked.command)) as command:
        try:
            status = command.wait()
        finally:
            command.terminate()
    return status if status >= 0 else 128 - status


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
    part = _part(
        parts, _races, "races", "races that are killed and resumed, beside one left alone on the quiet machine"
    )
    part.add_argument("--races", type=int, default=10, help="races that are killed, up to three times each")
    part.add_argument("--steps", type=int, default=4, help="of a race")
    part.add_argument("--seed", type=int, default=0, help="where the random moments come from")
    part.add_argument("--json", action="store_true", help="print one line of JSON as well")
    part.add_argument("settings", nargs="*", help="further settings of the races, after `--`")
    part = _part(parts, _hold, "hold", "hold a load while a command runs, and end with its status")
    part.add_argument("command", nargs="+", help="after `--`")
    return parser


def main(words: list[str]) -> int:
    asked = _parser().parse_args(words)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell has its background jobs ignore
    try:
        return asked.run(asked)
    except UserError as error:
        print(error, file=sys.stderr)
        return error.exit_status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
