"""Where a benchmark's rows come from: a folder of the user's, the cache, or the model hub.

A folder has NAME/test.jsonl.gz (or test.jsonl) for each benchmark, or for several that share their rows. Rows from the
hub are converted to the same form and cached. The results name every file by its checksum, with a note where it is not
the file of our own figures.
"""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from redqueen.engine.disk_cache import cache, writing
from redqueen.engine.messages import one_line, say
from redqueen.errors import InputError
from redqueen.evals.protocol import Hub, Item, Published, Row, SaysHow
from redqueen.runs.atomic import put_in_place

FOLDER = "REDQUEEN_BENCH"
"""The environment variable that names a folder of benchmarks."""
FILE = "test.jsonl.gz"
_CONVERTED = "refs/convert/parquet"
"""The revision in which the hub has every data set as parquet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedBenchmark:
    benchmark: Published
    items: tuple[Item, ...]
    origin: str
    """The file."""
    sha256: str
    notes: tuple[str, ...]
    beside_sha256: str | None = None
    """Of the second file, where the benchmark has one."""

    @property
    def name(self) -> str:
        return self.benchmark.name

    @property
    def graded(self) -> str:
        benchmark = self.benchmark
        return benchmark.graded_of(self.items) if isinstance(benchmark, SaysHow) else benchmark.graded

    def first(self, count: int) -> "LoadedBenchmark":
        """A slice for a quick look: always the same tasks, drawn from the whole benchmark."""
        if count >= len(self.items):
            return self
        by_hash = sorted(self.items, key=lambda item: hashlib.sha256(item.id.encode()).digest())
        kept = {item.id for item in by_hash[:count]}
        note = f"{self.benchmark.title}: {count} of {len(self.items):,} tasks"
        items = tuple(item for item in self.items if item.id in kept)
        return replace(self, items=items, notes=(*self.notes, note))


def at_hand(benchmark: Published, folder: Path | None = None) -> bool:
    """Whether `find` would find it without a download."""
    return _file((folder or _named() or cache() / "bench") / (benchmark.folder or benchmark.name)) is not None


def _named() -> Path | None:
    """The folder that the environment names."""
    return Path(os.environ[FOLDER]) if os.environ.get(FOLDER) else None


def find(benchmark: Published, folder: Path | None = None, option: str = "--data") -> LoadedBenchmark:
    """The tasks of a benchmark, from this folder, the environment's, the cache or the hub. `option` names the folder in
    messages."""
    folder = folder or _named()
    place = benchmark.folder or benchmark.name
    if folder is None:
        cached = cache() / "bench"
        path = _file(cached / place) or _pull(benchmark, cached / place, option)
    else:
        path = _file(folder / place)
        if path is None:
            mend = f"put it there, name another folder with {option}, or leave {option} and {FOLDER} out to download it"
            raise InputError(f"{folder / place} has no {FILE}", mend)
    rows = _read(path)
    second = None if benchmark.beside is None else path.parent / benchmark.beside
    if second is not None and not second.is_file():
        second = None
    mend = "download it again, or name another folder"
    try:
        items = benchmark.load(rows, [] if second is None else _read(second))
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else one_line(error)
        raise InputError(f"{path} does not hold {benchmark.title}: {why}", mend) from None
    if len({item.id for item in items}) < len(items):
        raise InputError(f"{path} names a task twice", mend)
    if not items:
        raise InputError(f"{path} holds no tasks of {benchmark.title}", mend)
    digest, notes = _sha256(path), ()
    if len(rows) not in (benchmark.rows, benchmark.hub and benchmark.hub.rows):
        notes = (f"{benchmark.title}: {len(rows):,} rows, and the benchmark has {benchmark.rows:,}",)
    elif not digest.startswith(benchmark.sha256):
        notes = (f"{benchmark.title}: another file than that of our own figures (sha256 {digest[:16]})",)
    return LoadedBenchmark(
        benchmark=benchmark,
        items=tuple(items),
        origin=str(path),
        sha256=digest,
        notes=notes,
        beside_sha256=None if second is None else _sha256(second),
    )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _file(folder: Path) -> Path | None:
    return next((path for name in (FILE, FILE.removesuffix(".gz")) if (path := folder / name).is_file()), None)


def _read(path: Path) -> list[Row]:
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or one_line(error)}", "download it again") from None
    except (EOFError, zlib.error, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a whole file of JSON lines: {one_line(error)}", "download it again") from None
    if not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} has a line that is not a JSON object", "download it again")
    return rows


# The hub


def _pull(benchmark: Published, folder: Path, option: str) -> Path:
    if benchmark.hub is None:
        raise InputError(f"{benchmark.title} is on no hub", f"name the folder that it is in with {option} or {FOLDER}")
    target = folder / FILE
    say(f"downloading {benchmark.title} from the model hub ({benchmark.hub.repository})")
    downloads = [(benchmark.hub, target)]
    if benchmark.hub_beside is not None and benchmark.beside is not None:
        downloads.append((benchmark.hub_beside, Path(os.path.normpath(target.parent / benchmark.beside))))
    mend = f"it may have changed: get the benchmark elsewhere and name its folder with {option}"
    with writing(folder.parent):
        for hub, path in reversed(downloads):  # the benchmark itself comes last: when it is there, all is
            rows = _from_hub(hub, benchmark.title, option)
            if len(rows) != hub.rows:
                what = f"{hub.repository} has {len(rows):,} rows on the hub, and {benchmark.title} has {hub.rows:,}"
                raise InputError(what, mend)
            try:
                ours = [benchmark.from_hub(row, number) for number, row in enumerate(rows)]
            except (KeyError, ValueError, TypeError, IndexError) as error:
                what = f"{hub.repository} has unexpected fields on the hub ({one_line(error)})"
                raise InputError(what, mend) from None
            path.parent.mkdir(parents=True, exist_ok=True)
            with put_in_place(path) as aside:
                aside.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in ours).encode(), mtime=0))
    return target


def _from_hub(hub: Hub, title: str, option: str) -> list[dict[str, Any]]:
    from huggingface_hub import HfApi, hf_hub_download

    try:
        # First this, which fails at once: a download would try for minutes.
        HfApi().dataset_info(hub.repository, timeout=5)
        revision = None if hub.files else _CONVERTED
        names = hub.files or tuple(
            name
            for name in HfApi().list_repo_files(hub.repository, repo_type="dataset", revision=_CONVERTED)
            if name.startswith(f"{hub.config}/{hub.split}/")
        )
        paths = [Path(hf_hub_download(hub.repository, name, repo_type="dataset", revision=revision)) for name in names]
    except Exception as error:  # whichever its HTTP library raises
        raise InputError(
            f"{title} is not here, and cannot be downloaded from the model hub ({one_line(error)})",
            f"check that the hub can be reached, or put {FILE} into a folder and name it with {option} or {FOLDER} "
            "(docs/evaluation.md has the layout)",
        ) from None
    return [row for path in paths for row in _hub_rows(path)]


def _hub_rows(path: Path) -> Sequence[dict[str, Any]]:
    if path.suffix != ".parquet":
        return [dict(row) for row in _read(path)]
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError("the hub's files need pyarrow", "run `pip install 'redqueen[evals]'`") from None
    return pyarrow.parquet.read_table(path).to_pylist()
