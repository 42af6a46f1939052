"""The frame around the commands: from the words on the command line to a command that runs, and its exit status.

Exit status 0 is done, 2 the user's mistake (one line: what, and how to mend it), 1 our fault. Whatever is heavy
(torch, the verifier) is imported by the command that needs it, so that help and mistakes come at once.
"""

import io
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence

from redqueen import __version__, open_files
from redqueen.commands import words
from redqueen.commands.index import COMMANDS, Entry
from redqueen.console import printable
from redqueen.errors import InputError, RedQueenError, UserError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    return framed(lambda: _run(sys.argv[1:] if argv is None else argv))


def framed(work: Callable[[], None]) -> int:
    """Do the work of a command; the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        work()
        # Here and not at exit, where a reader that has gone could only be reported by a traceback.
        print(end="", flush=True)
        return 0
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has gone. Python would try to flush once more at exit: let it reach nobody.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as raised:
        error = raised if isinstance(raised, UserError) else open_files.exhausted(raised) or raised
        if isinstance(error, RedQueenError):
            print(f"redqueen: {printable(str(error))}", file=sys.stderr)
            return error.exit_status
        traceback.print_exc()
        print("redqueen: this is a fault of Red Queen's; please report it with the lines above", file=sys.stderr)
        return 1


def _run(argv: Sequence[str]) -> None:
    match list(argv):
        case []:
            raise InputError("a command is missing", "try `redqueen --help`")
        case ["-h" | "--help", *_]:
            print(_overview(COMMANDS))
        case ["--version"]:
            print(f"redqueen {__version__}")
        case [first, "-h" | "--help", *_] if group := words.group(first, COMMANDS):
            print(_overview(group))
        case given:
            name, rest = words.match(given, COMMANDS)
            _run_command(name, rest)


def _run_command(name: str, rest: Sequence[str]) -> None:
    from redqueen.commands import arguments

    try:
        command = arguments.read(COMMANDS[name].load(), name, rest)
    except SystemExit:  # --help has printed what was asked for
        return
    command.run()


def _overview(commands: Mapping[str, Entry]) -> str:
    width = max(len(name) for name in commands)
    listed = [f"  {name:<{width}}  {command.about()}" for name, command in commands.items()]
    return "\n".join(
        [
            "usage: redqueen COMMAND [OPTIONS]",
            "",
            "Populations of teacher and student LoRA adapters that teach themselves to reason.",
            "",
            *listed,
            "",
            "`redqueen COMMAND --help` lists a command's options, `redqueen --version` says which this is.",
        ]
    )
