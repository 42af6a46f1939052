"""Where a proof family's lemmas come from: the database that comes with the package, or a .mm file of the user's."""

import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from redqueen.errors import InputError
from redqueen.tasks.proof.guest.metamath_kernel import library as kernel
from redqueen.tasks.proof.guest.metamath_kernel.database import BadDatabase
from redqueen.verifier import Checker, Limits

PACKED = Path(__file__).with_name("propositional.mm.gz")
LIMITS = Limits(cpu_s=2.0)
"""Of a process. What a text may cost is counted in looks at nodes, so that it never comes to this."""
_GUEST = Path(__file__).parent / "guest" / "redqueen_proof.py"


@dataclass(frozen=True)
class Source:
    """A database, and who checks proofs by it."""

    path: Path = PACKED

    @property
    def is_packed(self) -> bool:
        return self.path == PACKED

    @property
    def checker(self) -> Checker:
        return Checker(str(_GUEST), data="" if self.is_packed else str(self.path))

    @property
    def exams(self) -> dict[str, Path]:
        """The package's own, or a .jsonl file beside the user's database that is called as it is: `ql.mm`, `ql.jsonl`,
        and the exam `ql`."""
        if self.is_packed:
            return {"proofs": Path(__file__).with_name("proofs.jsonl")}
        name = self.path.name.partition(".")[0]
        beside = self.path.with_name(f"{name}.jsonl")
        return {name: beside} if beside.is_file() else {}

    @property
    def library(self) -> kernel.Library:
        """Its lemmas, read in this process: the file is the user's own, no model's."""
        return _loaded(self.path)


PACKAGE = Source()
"""The database that comes with the package."""


@cache
def _loaded(path: Path) -> kernel.Library:
    try:
        return kernel.load(path)
    except OSError as error:
        what = f"{path}: {error.strerror or error}"
        raise InputError(what, "give the path of a Metamath database (.mm)") from error
    except (BadDatabase, kernel.Unusable, UnicodeDecodeError, zlib.error, RecursionError) as error:
        what = f"{path} is no Metamath database that proofs can be taken from: {error}"
        raise InputError(what, "give a .mm file as docs/families.md says, Proofs") from error
