"""What must be the same on all machines, or else results would hang on where they are made."""

import hashlib
import platform
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

import redqueen
from redqueen import __version__
from redqueen.errors import InputError
from redqueen.verifier import Checker


def versions(quantise: str = "none") -> dict[str, str]:
    """Of workers with an engine whose base is stored like this."""
    return {
        "python": platform.python_version(),
        "redqueen": our_version(),
        "torch": version("torch").partition("+")[0],
        "transformers": version("transformers"),
        **({} if quantise == "none" else {"bitsandbytes": _installed("bitsandbytes")}),
    }


@cache
def our_version() -> str:
    """With what the package's files say: a clone that was not pulled has the same number."""
    return f"{__version__} ({_digest(sorted(Path(redqueen.__file__).parent.rglob('*.py')))})"


def verifier_versions() -> dict[str, str]:
    """Of verifiers: what programs can notice."""
    return {
        "python": platform.python_version(),
        "redqueen": our_version(),
        "numpy": _installed("numpy"),
        "libc": " ".join(platform.libc_ver()),
        "processor": platform.machine(),
    }


def checker_versions(checker: Checker) -> dict[str, str]:
    """What its verdicts follow from: its own files and the packages that it imports."""
    files = {checker.file: _digest(_beside(Path(checker.file)))}
    if checker.data:
        files[checker.data] = _digest([Path(checker.data)])
    tops = {name.partition(".")[0] for name in checker.imports} - sys.stdlib_module_names
    known = packages_distributions() if tops else {}
    return files | {name: version(name) for top in sorted(tops) for name in sorted(set(known.get(top, ())))}


def refuse_versions(driver: Mapping[str, str], worker: Mapping[str, str]) -> None:
    for name, here in driver.items():
        if worker.get(name) != here:
            raise InputError(
                f"{platform.node()} has {name} {worker.get(name)}, and the race is started with {here}",
                "install the same versions on all machines of the cluster",
            )


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def _beside(file: Path) -> list[Path]:
    """A file of Python, and all that it may import from beside it."""
    packages = [package.parent for package in sorted(file.parent.glob("*/__init__.py"))]
    inside = [each for folder in packages for each in sorted(folder.rglob("*.py"))]
    return [file, *sorted(file.parent.glob("*.py")), *inside]


def _digest(files: Sequence[Path]) -> str:
    """The first digits of a SHA-256 over them."""
    if not files or not files[0].is_file():
        return "none"
    found = hashlib.sha256()
    for file in files:
        found.update(f"{file.name}\0".encode())
        found.update(file.read_bytes())
    return found.hexdigest()[:12]
