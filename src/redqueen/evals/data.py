"""Where a benchmark's rows come from: a folder of the user's, the cache, or the model hub.

A folder has NAME/test.jsonl.gz (or test.jsonl) for each benchmark. What the hub gives is turned into the same form and
kept in the cache. Every file is named by its checksum in the results, and one that is not what our own figures were
made with says so.
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
"""The environment's name for a folder of benchmarks."""
FILE = "test.jsonl.gz"
_CONVERTED = "refs/convert/parquet"
"""Where the hub keeps every data set in one format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A benchmark with its tasks."""

    benchmark: Published
    items: tuple[Item, ...]
    origin: str
    """The file."""
    sha256: str
    notes: tuple[str, ...]
    beside_sha256: str | None = None
    """Of the further file; None where there is none."""

    @property
    def graded(self) -> str:
        """How, in a few words."""
        benchmark = self.benchmark
        return benchmark.graded_of(self.items) if isinstance(benchmark, SaysHow) else benchmark.graded

    def first(self, count: int) -> "Loaded":
        """A slice for a quick look: always the same tasks, from all over the benchmark."""
        if count >= len(self.items):
            return self
        by_hash = sorted(self.items, key=lambda item: hashlib.sha256(item.id.encode()).digest())
        kept = {item.id for item in by_hash[:count]}
        note = f"{self.benchmark.title}: {count} of {len(self.items):,} tasks"
        items = tuple(item for item in self.items if item.id in kept)
        return replace(self, items=items, notes=(*self.notes, note))


def find(benchmark: Published, folder: Path | None = None, option: str = "--data") -> Loaded:
    """The tasks of a benchmark, from this folder, or else from wherever they are; the folder is named by `option`."""
    if folder is None and os.environ.get(FOLDER):
        folder = Path(os.environ[FOLDER])
    if folder is not None:
        path = _file(folder / benchmark.name)
        if path is None:
            there = folder / benchmark.name
            mend = f"put it there, name another folder with {option}, or leave {option} and {FOLDER} out for the hub's"
            raise InputError(f"{there} has no {FILE}", mend)
    else:
        kept = cache() / "bench"
        path = _file(kept / benchmark.name)
        if path is None:
            path = _pull(benchmark, kept, option)
    rows = _read(path)
    further = None if benchmark.beside is None else path.parent / benchmark.beside
    if further is not None and not further.is_file():
        further = None
    beside = [] if further is None else _read(further)
    try:
        items = benchmark.load(rows, beside)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        why = f"it lacks {error}" if isinstance(error, KeyError) else one_line(error)
        raise InputError(
            f"{path} does not hold {benchmark.title}: {why}", "get it anew, or name another folder"
        ) from None
    if len({item.id for item in items}) < len(items):
        raise InputError(f"{path} names a task twice", "get it anew, or name another folder")
    if not items:
        raise InputError(f"{path} holds no tasks of {benchmark.title}", "get it anew, or name another folder")
    digest = _sha256(path)
    notes = _notes(benchmark, len(rows), digest)
    return Loaded(
        benchmark=benchmark,
        items=tuple(items),
        origin=str(path),
        sha256=digest,
        notes=notes,
        beside_sha256=None if further is None else _sha256(further),
    )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _notes(benchmark: Published, rows: int, digest: str) -> tuple[str, ...]:
    if rows not in (benchmark.rows, benchmark.hub.rows):
        return (f"{benchmark.title}: {rows:,} rows, and the benchmark has {benchmark.rows:,}",)
    if not digest.startswith(benchmark.sha256):
        return (f"{benchmark.title}: another file than our own figures are of (sha256 {digest[:16]})",)
    return ()


def _file(folder: Path) -> Path | None:
    return next((path for name in (FILE, FILE.removesuffix(".gz")) if (path := folder / name).is_file()), None)


def _read(path: Path) -> list[Row]:
    """The rows of a .jsonl file, packed or not."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
        rows = [json.loads(line) for line in text.split("\n") if line.strip()]
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or one_line(error)}", "get it anew") from None
    except (EOFError, zlib.error, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is no whole file of JSON lines: {one_line(error)}", "get it anew") from None
    if not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} has a line that is no JSON object", "get it anew")
    return rows


# The hub


def _pull(benchmark: Published, kept: Path, option: str) -> Path:
    """Fetch a benchmark from the hub into the cache."""
    target = kept / benchmark.name / FILE
    say(f"downloading {benchmark.title} from the model hub ({benchmark.hub.repository})")
    wanted = [(benchmark.hub, target)]
    if benchmark.hub_beside is not None and benchmark.beside is not None:
        wanted.append((benchmark.hub_beside, Path(os.path.normpath(target.parent / benchmark.beside))))
    with writing(kept):
        for hub, path in reversed(wanted):  # the benchmark itself comes last: when it is there, all is
            rows = _from_hub(hub, benchmark.title, option)
            if len(rows) != hub.rows:
                raise InputError(
                    f"{hub.repository} has {len(rows):,} rows on the hub, and {benchmark.title} has {hub.rows:,}",
                    f"it may have changed: get the benchmark elsewhere and name its folder with {option}",
                )
            try:
                ours = [benchmark.from_hub(row, number) for number, row in enumerate(rows)]
            except (KeyError, ValueError, TypeError, IndexError) as error:
                what = f"{hub.repository} has other fields on the hub than are known here ({one_line(error)})"
                raise InputError(what, f"get the benchmark elsewhere and name its folder with {option}") from None
            path.parent.mkdir(parents=True, exist_ok=True)
            packed = gzip.compress("".join(json.dumps(row) + "\n" for row in ours).encode(), mtime=0)
            with put_in_place(path) as aside:
                aside.write_bytes(packed)
    return target


def _from_hub(hub: Hub, title: str, option: str) -> list[dict[str, Any]]:
    from huggingface_hub import HfApi, hf_hub_download

    mend = (
        f"see that the hub can be reached, or put {FILE} into a folder and name it with {option} or {FOLDER} "
        "(docs/evaluation.md has the layout)"
    )
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
        what = f"{title} is not here, and the model hub does not give it ({one_line(error)})"
        raise InputError(what, mend) from None
    return [row for path in paths for row in _rows_of(path)]


def _rows_of(path: Path) -> Sequence[dict[str, Any]]:
    if path.suffix != ".parquet":
        return [dict(row) for row in _read(path)]
    try:
        import pyarrow.parquet
    except ImportError:
        raise InputError("the hub's files need pyarrow", "run `pip install 'redqueen[evals]'`") from None
    return pyarrow.parquet.read_table(path).to_pylist()
