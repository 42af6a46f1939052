"""Every stored proof of a .mm file, checked by the proof family's kernel.

python tools/proof/verify.py /usr/share/metamath/databases/set.mm
"""

import argparse
import sys
import time
from pathlib import Path

from against_metamath import text_of

from redqueen.tasks.proof.guest.metamath_kernel.database import read
from redqueen.tasks.proof.guest.metamath_kernel.stored import BadProof, verify


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a .mm file, packed or not")
    database = read(text_of(parser.parse_args().file))
    start, proved, wrong = time.perf_counter(), 0, 0
    for statement in database.assertions:
        if statement.kind != "$p":
            continue
        try:
            verify(database, statement)
            proved += 1
        except BadProof as error:
            wrong += 1
            print(f"{statement.label}: {error}")
    print(f"{proved:,} proofs accepted, {wrong:,} refused, in {time.perf_counter() - start:.1f} s")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
