"""`redqueen report`: the page of some runs as one file, with everything that it shows.

It asks nobody for anything: style, scripts and figures are in it, and its policy forbids every request. A run has more
tasks than can be mailed, so a report brings a choice of them, the same one whenever it is made, and says so.
"""

import base64
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from redqueen.analysis.browse import Whole
from redqueen.errors import InputError
from redqueen.runs.store import Store
from redqueen.ui.page import views
from redqueen.ui.page.assets import SCRIPTS, STYLE, asset, page

TASK_BYTES = 1_500_000
"""Of tasks with their attempts, for all runs together."""
REJECTION_BYTES = 200_000
PASSED_OVER = 20
LONGEST_TEXT = 20_000
"""Characters of one text: the page shows no more unless it is asked to."""


def report(folders: Sequence[Path]) -> str:
    """The whole file."""
    runs = [_run(folder, len(folders)) for folder in folders]
    for folder, run in zip(folders, runs, strict=True):
        if run["view"]["step"] == 0:
            raise InputError(f"{folder} has no step yet", "wait for its first one, or leave it out")
    chosen = "; ".join(
        f"{len(run['tasks']):,} of {run['view']['counts']['tasks']:,} tasks and {len(run['rejections']):,} of "
        f"{run['view']['counts']['rejections']:,} rejections of {run['view']['name']}"
        for run in runs
    )
    embedded = {
        "names": views.names_of(folders),
        "runs": runs,
        "arms": views.arms_view(folders) if len(folders) > 1 else [],
        "left_out": f"This file has {chosen}, taken from all steps, hard ones first; the folder of the run has all.",
    }
    # Within a script no text may end it: every < is written otherwise, which JSON reads as the same.
    data = json.dumps(embedded, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    scripts = [asset(name) for name in SCRIPTS]
    policy = _policy(scripts, asset(STYLE))
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{asset(STYLE)}</style>'
    tags = [
        f'<script type="application/json" id="embedded">{data}</script>',
        *(f"<script>{script}</script>" for script in scripts),
    ]
    return page(head, "\n".join(tags))


def _run(folder: Path, runs: int) -> dict[str, Any]:
    view = views.run_view(folder)
    with Store.read(folder) as store:
        tasks = _within(_tasks(store), TASK_BYTES // runs)
        rejections = _within(_rejections(store, view["reasons"]), REJECTION_BYTES // runs)
    order = {"key": lambda entry: (entry["row"]["step"], entry["row"]["place"]), "reverse": True}
    return {
        "view": view,
        "about": views.about_view(folder),
        "tasks": sorted(tasks, **order),
        "rejections": sorted(rejections, **order),
    }


def _tasks(store: Store) -> Iterator[Whole]:
    """Of every kind at every step the hardest that somebody solved, the newest first; then the next ones."""
    groups: dict[tuple[int, str], list[tuple[bool, float, int]]] = defaultdict(list)
    for step, place, kind, solved, attempts, counts in store.outline():
        groups[step, kind].append((not (counts and solved), solved / attempts if attempts else 0.0, place))
    ranked = sorted(
        ((number, -step, kind, place) for (step, kind), group in groups.items()
         for number, (_, _, place) in enumerate(sorted(group))),
    )  # fmt: skip
    for _, step, _, place in ranked:
        row = store.task(-step, place)
        assert row is not None  # one transaction wrote both
        yield Whole(row, store.attempts(row.step, row.place))


def _rejections(store: Store, reasons: Iterable[str]) -> Iterator[Whole]:
    """The newest for every reason in turn."""
    for reason in reasons:
        for row in store.rejections(reason=reason, newest_first=True, limit=40):
            yield Whole(row)


def _within(candidates: Iterable[Whole], most_bytes: int) -> list[dict[str, Any]]:
    """As many as there is room for; long ones that do not fit are passed over, up to a few."""
    kept: list[dict[str, Any]] = []
    used, passed = 0, 0
    for whole in candidates:
        one = {"row": views.row_view(whole.row), "whole": _cut(whole.as_json())}
        size = len(json.dumps(one))
        if used + size > most_bytes:
            passed += 1
            if passed == PASSED_OVER:
                break
            continue
        used += size
        kept.append(one)
    return kept


def _cut(value: Any) -> Any:
    """No text longer than the page shows, which says how long it was."""
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return f"{value[:LONGEST_TEXT]}\n... {len(value) - LONGEST_TEXT:,} more characters in the run"
    if isinstance(value, dict):
        return {key: _cut(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(part) for part in value]
    return value


def _policy(scripts: Sequence[str], style: str) -> str:
    """Only these scripts and this style, by their hashes, and no request at all."""
    allowed = " ".join(map(_hash, scripts))
    return f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; img-src data:"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
