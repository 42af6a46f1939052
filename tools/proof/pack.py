"""A .mm file cut after some statement, without comments and blank space, packed.

    python tools/proof/pack.py /usr/share/metamath/databases/set.mm --before ax-gen \\
        > src/redqueen/tasks/proof/propositional.mm.gz

makes the database that comes with the proof family: the propositional part of set.mm, with its stored proofs. Any
other file and label will do for a database of your own, which is named by its path (`--tasks.families proof:FILE`).
"""

import argparse
import gzip
import re
import sys
from pathlib import Path

COMMENT = re.compile(r"\$\(\s.*?(?<=\s)\$\)", re.DOTALL)


def cut(text: str, before: str) -> str:
    """All that stands before the outermost scope with this label in it."""
    words, depth, start = COMMENT.sub(" ", text).split(), 0, 0
    for at, word in enumerate(words):
        if word == "${":
            start = at if depth == 0 else start
            depth += 1
        elif word == "$}":
            depth -= 1
        elif word == before and words[at + 1 : at + 2] in (["$a"], ["$p"]):
            return _lines(words[: start if depth else at])
    raise SystemExit(f"there is no axiom or theorem {before}")


def _lines(words: list[str]) -> str:
    """A statement on each line."""
    return " ".join(words).replace(" $. ", " $.\n").replace(" ${ ", " ${\n").replace(" $} ", " $}\n") + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a .mm file")
    parser.add_argument("--before", required=True, metavar="LABEL", help="the first statement that is left out")
    options = parser.parse_args()
    # No name and no time, so that the same statements are the same file.
    packed = gzip.compress(cut(options.file.read_text("ascii"), options.before).encode("ascii"), mtime=0)
    sys.stdout.buffer.write(packed)


if __name__ == "__main__":
    main()
