"""Lines for the user from inside the engine."""

import sys


def say(line: str) -> None:
    """One line about something slow, or done otherwise than one would expect."""
    print(f"redqueen: {line}", file=sys.stderr, flush=True)


def one_line(error: object) -> str:
    """The first line of a message, for use inside one of ours."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return (line if len(line) <= 200 else line[:197] + "...").rstrip(".:")
