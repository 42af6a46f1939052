"""What a browser gets: our own page, style and scripts, and the script that plotly's package carries."""

import json
from dataclasses import asdict
from functools import cache
from importlib.resources import files

from redqueen.errors import InputError
from redqueen.population.members import Role
from redqueen.runs.metrics import COMPLEXITY, COMPUTE, MEMBER_COLUMNS, METRICS

PAGE = "page.html"
STYLE = "page.css"
METRICS_SCRIPT = "metrics.js"
SCRIPTS = ("text.js", METRICS_SCRIPT, "charts.js", "views.js", "tasks.js", "page.js")
"""In the order in which they are run; that of the metrics is written when it is asked for."""
PLOTLY = "plotly.js"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Plotly writes styles of its own, and makes pictures of its charts."""


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
        f"RQ.METRICS = {json.dumps(known)};\nRQ.COMPLEXITY = [{complexity}];\nRQ.COMPUTE = [{compute}];\n"
        f"RQ.MEMBER_COLUMNS = {{{columns}}};\n"
    )


@cache
def plotly_script() -> bytes:
    try:
        folder = files("plotly.package_data")
    except ModuleNotFoundError:
        raise InputError("plotly, which draws the page, is not installed", "run `pip install redqueen[page]`") from None
    return (folder / "plotly.min.js").read_bytes()


def page(head: str = "", scripts: str = "") -> str:
    """The page; by itself it asks for its style and scripts, a report brings them along."""
    text = asset(PAGE)
    if not head:
        ahead = f'<link rel="preload" href="{PLOTLY}" as="script">'
        head = f'<link rel="stylesheet" href="{STYLE}">\n{ahead}'
        scripts = "\n".join(f'<script defer src="{name}"></script>' for name in SCRIPTS)
    return text.replace("<!-- head -->", head).replace("<!-- scripts -->", scripts)
