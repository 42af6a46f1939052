"""What a browser gets: a page, its style and its scripts, all of them our own."""

import json
import re
from dataclasses import asdict
from importlib.resources import files

from redqueen.population.members import Role
from redqueen.runs.metrics import COMPLEXITY, COMPUTE, MEMBER_COLUMNS, METRICS

PAGE = "page.html"
STYLE = "page.css"
METRICS_SCRIPT = "metrics.js"
SCRIPTS = (
    "text.js", METRICS_SCRIPT, "plot.js", "charts.js", "lineage.js", "views.js", "arms.js", "tasks.js", "address.js",
    "page.js",
)  # fmt: skip
"""In the order in which they are run; that of the metrics is written when it is asked for."""
GLOSSARY = "glossary.md"
"""That of the documents: the page explains its words as they do."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""The one picture is the empty icon of the tab."""
_WORD = re.compile(r"^- \*\*(?P<word>[^*]+)\*\*: (?P<text>.+(?:\n  .+)*)", re.MULTILINE)


def asset(name: str) -> str:
    return _metrics_script() if name == METRICS_SCRIPT else (files(__name__) / name).read_text(encoding="utf-8")


def _metrics_script() -> str:
    """`RQ.METRICS.solve_rate.title` and so on, as `runs/metrics.py` has them."""
    known = {
        name: asdict(metric) | {"role_titles": {role: metric.title_of(role) for role in Role}}
        for name, metric in METRICS.items()
    }
    complexity, compute = (
        ", ".join(f"RQ.METRICS.{metric.name}" for metric in group) for group in (COMPLEXITY, COMPUTE)
    )
    columns = ", ".join(f"{head}: RQ.METRICS.{metric.name}" for head, metric in MEMBER_COLUMNS.items())
    return (
        f"RQ.WORDS = {json.dumps(words())};\nRQ.METRICS = {json.dumps(known)};\n"
        f"RQ.COMPLEXITY = [{complexity}];\nRQ.COMPUTE = [{compute}];\nRQ.MEMBER_COLUMNS = {{{columns}}};\n"
    )


def words() -> dict[str, str]:
    """What the glossary says of each word, as plain text."""
    found = _WORD.finditer(asset(GLOSSARY))
    return {each["word"]: re.sub(r"[*`]", "", " ".join(each["text"].split())) for each in found}


def page(head: str = "", scripts: str = "") -> str:
    """The page; by itself it asks for its style and scripts, a report brings them along."""
    text = asset(PAGE)
    if not head:
        head = f'<link rel="stylesheet" href="{STYLE}">'
        scripts = "\n".join(f'<script defer src="{name}"></script>' for name in SCRIPTS)
    return text.replace("<!-- head -->", head).replace("<!-- scripts -->", scripts)
