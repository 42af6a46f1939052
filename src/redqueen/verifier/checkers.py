"""Checkers: our own modules, or a user's, that read what models write. They are loaded once in zygotes of their own.

Code that judges text may trip over it: a parser that overflows, an expression that is evaluated, a search without end.
So the code is trusted and the text is not, and the two meet in a guest, under its limits.
"""

import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from redqueen.errors import InputError

GUEST = Path(__file__).parent / "guest"
_GUESTS_OWN = frozenset({"program", "__main__", *(path.stem for path in GUEST.glob("*.py"))})


@dataclass(frozen=True, slots=True)
class Checker:
    """A file of functions that are called with untrusted text.

    It is loaded once per zygote, with all rights of the user and before the zygote isolates itself. Its functions then
    run in forked guests: they get plain values, return plain values, and cannot read a file or import anything that was
    not loaded by then. They should return the same for the same text.
    """

    file: str
    """The absolute path of a .py file, whose stem is the module's name. It may import the standard library and files
    beside it."""
    imports: tuple[str, ...] = ()
    """Modules that are loaded before it: installed packages, which it would not find otherwise, with all that these
    import in turn, and what its functions import only when they are called."""
    data: str = ""
    """The absolute path of a file that it reads while it is loaded, as `sys.argv[1]`; by default none."""

    def __post_init__(self) -> None:
        if not isinstance(self.file, str) or not isinstance(self.imports, tuple):
            raise TypeError("a checker is the path of a file, as text, and a tuple of the modules that it imports")
        path = Path(self.file)
        if not path.is_absolute() or path.suffix != ".py":
            raise InputError(f"a checker cannot be {self.file}", "give the absolute path of a .py file")
        if self.data and not Path(self.data).is_absolute():
            raise InputError(f"the checker {self.file} cannot read {self.data}", "give the absolute path of the file")
        if not path.stem.isascii() or not path.stem.isidentifier():
            raise InputError(
                f"the checker {self.file} has a name that cannot be imported",
                "name it with letters, digits and underscores",
            )
        if any(not all(part.isidentifier() for part in name.split(".")) for name in self.imports):
            raise ValueError(f"the checker {self.file} imports what is no module: {', '.join(self.imports)}")
        for owner, names in (
            ("the verifier's guests", _GUESTS_OWN),
            ("Python", sys.stdlib_module_names),
            ("the packages that it imports", set(map(_top, self.imports))),
        ):
            if path.stem in names:
                what = f"the checker {self.file} is called as a module of {owner} is"
                raise InputError(what, "give the file another name")

    @property
    def module(self) -> str:
        return Path(self.file).stem


def _top(name: str) -> str:
    return name.partition(".")[0]


MATH_VERIFY = Checker(
    str(GUEST / "maths" / "redqueen_maths.py"),
    (
        "_strptime", "hashlib", "json", "queue", "statistics", "encodings.ascii", "encodings.cp1252",
        "encodings.hex_codec", "encodings.latin_1", "encodings.rot_13", "encodings.shift_jis",
        "encodings.unicode_escape", "encodings.utf_16", "encodings.utf_16_be", "encodings.utf_16_le",
        "encodings.utf_32", "encodings.utf_32_be", "encodings.utf_32_le", "encodings.utf_8_sig",
        "math_verify", "latex2sympy2_extended", "antlr4", "sympy", "mpmath",
    ),
)  # fmt: skip
"""Whether two answers in mathematics are equal. With what sympy imports by itself it has all that programs may import:
text that sympy evaluates may name any of it."""


def absent(checker: Checker) -> list[str]:
    """The packages that it imports and this Python does not have."""
    return [name for name in dict.fromkeys(map(_top, checker.imports)) if not _is_there(name)]


def require(checker: Checker) -> None:
    """Refuse a checker that cannot be loaded for want of a file or a package, before a zygote is started for it."""
    if not Path(checker.file).is_file():
        raise InputError(f"there is no checker {checker.file}", "a checker is a .py file that stays where it is")
    if checker.data and not Path(checker.data).is_file():
        what = f"there is no file {checker.data}, which the checker {checker.file} reads"
        raise InputError(what, "give the path of a file that stays where it is")
    if names := absent(checker):
        if checker == MATH_VERIFY:
            what = "math-verify, which grades mathematics, is not installed"
            raise InputError(what, "run `pip install 'redqueen[evals]'`")
        what = f"the checker {checker.file} imports {', '.join(names)}, which this Python does not have"
        raise InputError(what, f"install it for {sys.executable}")


def broken(checker: Checker, why: str) -> InputError:
    """For a file that could not be loaded."""
    return InputError(
        f"the checker {checker.file} cannot be loaded: {why}",
        "mend the file; it finds the standard library, what lies beside it, and the packages in its `Checker.imports`",
    )


def folders(checker: Checker) -> list[str]:
    """What its zygotes have on the import path while they load it, besides the standard library."""
    found = [folder(name) for name in map(_top, checker.imports) if name not in sys.stdlib_module_names]
    return list(dict.fromkeys([*filter(None, found), str(Path(checker.file).parent)]))


def folder(name: str) -> str | None:
    """Where a top-level module would be imported from, without importing it here."""
    try:
        return _folder(name)
    except ModuleNotFoundError:
        return None


@cache  # where it was found; an exception is not kept, so that what is installed later is found then
def _folder(name: str) -> str:
    try:
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module without a spec, as scripts are
        spec = None
    if spec is not None and spec.submodule_search_locations:
        return str(Path(spec.submodule_search_locations[0]).parent)
    if spec is None or not spec.has_location or spec.origin is None:
        raise ModuleNotFoundError(name)
    return str(Path(spec.origin).parent)


def _is_there(name: str) -> bool:
    return name in sys.stdlib_module_names or folder(name) is not None
