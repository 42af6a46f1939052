"""Lines that the engine prints for the user."""

import sys


def say(line: str) -> None:
    print(f"redqueen: {line}", file=sys.stderr, flush=True)


def size_text(count: int) -> str:
    """Bytes in GiB or MiB."""
    return f"{count / (1 << 30):.2f} GiB" if count >= 1 << 30 else f"{count / (1 << 20):.1f} MiB"


def one_line(error: object) -> str:
    """The first line of a message, to quote in one of ours."""
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return (line if len(line) <= 200 else line[:197] + "...").rstrip(".:")
