"""What must be the same on all machines, or else results would hang on where they are made."""

import hashlib
import platform
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path

from redqueen import __version__
from redqueen.errors import InputError
from redqueen.verifier import Checker


def versions() -> dict[str, str]:
    """Of workers with an engine."""
    return {
        "python": platform.python_version(),
        "redqueen": __version__,
        "torch": version("torch").partition("+")[0],
        "transformers": version("transformers"),
    }


def verifier_versions() -> dict[str, str]:
    """Of verifiers: what programs can notice."""
    return {
        "python": platform.python_version(),
        "redqueen": __version__,
        "numpy": _installed("numpy"),
        "libc": " ".join(platform.libc_ver()),
        "processor": platform.machine(),
    }


def checker_versions(checker: Checker) -> dict[str, str]:
    """What its verdicts follow from: its own files and the packages that it imports."""
    files = {name: _digest(Path(name)) for name in (checker.file, checker.data) if name}
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


def _digest(file: Path) -> str:
    """The first digits of a file's SHA-256."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12] if file.is_file() else "none"
