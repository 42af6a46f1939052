"""From the words on the command line to a command that runs, and its exit status.

Exit status 0 is done, 2 the user's mistake (one line: what, and how to mend it) or a plug-in's, 1 our fault, 130 and
143 the end by a signal. Whatever is heavy (torch, the verifier) is imported by the command that needs it, so that help
and mistakes come at once.
"""

import io
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence

from redqueen import __version__, open_files
from redqueen.commands.index import COMMANDS, CommandEntry, find_command, group
from redqueen.console import printable
from redqueen.errors import InputError, Interrupted, RedQueenError, UserError


def main(argv: Sequence[str] | None = None) -> int:
    return exit_status(lambda: _run(sys.argv[1:] if argv is None else argv))


def exit_status(work: Callable[[], None]) -> int:
    """Do the work of a command, print its error if there is one, and give the exit status."""
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
    except Interrupted as interrupted:
        return interrupted.exit_status
    except BrokenPipeError:
        # Whoever read our output has gone. Python would try to flush once more at exit: let it reach nobody.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (Exception, SystemExit) as raised:
        error = raised if isinstance(raised, UserError) else open_files.exhausted(raised) or raised
        if isinstance(error, RedQueenError):
            print(f"redqueen: {printable(str(error))}", file=sys.stderr)
            return error.exit_status
        traceback.print_exc()
        from redqueen import plugins

        if (place := plugins.at_fault(raised)) is not None:
            print(f"redqueen: a plug-in failed: {printable(place)}; mend it there", file=sys.stderr)
            return 2
        whose = "Red Queen's or of a plug-in's; if it is ours," if plugins.any_loaded() else "Red Queen's;"
        print(f"redqueen: this is a fault of {whose} please report it with the lines above", file=sys.stderr)
        return 1


def _run(argv: Sequence[str]) -> None:
    match list(argv):
        case []:
            raise InputError("a command is missing", "try `redqueen --help`")
        case ["-h" | "--help", *_]:
            print(_overview(COMMANDS))
        case ["--version"]:
            print(f"redqueen {__version__}")
        case [first, "-h" | "--help", *_] if commands := group(first):
            print(_overview(commands))
        case _:
            name, words = find_command(argv)
            from redqueen.commands import arguments

            command = arguments.read(COMMANDS[name].load(), name, words)
            if command is not None:
                command.run()


def _overview(commands: Mapping[str, CommandEntry]) -> str:
    width = max(map(len, commands))
    return "\n".join(
        [
            "usage: redqueen COMMAND [OPTIONS]",
            "",
            "Populations of teacher and student LoRA adapters that teach themselves to reason.",
            "",
            *(f"  {name:<{width}}  {command.about()}" for name, command in commands.items()),
            "",
            "`redqueen COMMAND --help` lists the options of a command, `redqueen --version` prints the version.",
        ]
    )
