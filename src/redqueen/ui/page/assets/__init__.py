"""What a browser gets: our own page, style and scripts, and the script that plotly's package carries."""

from functools import cache
from importlib.resources import files

from redqueen.errors import InputError

PAGE = "page.html"
STYLE = "page.css"
SCRIPTS = ("text.js", "charts.js", "views.js", "tasks.js", "page.js")
"""In the order in which they are run."""
PLOTLY = "plotly.js"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Plotly writes styles of its own, and makes pictures of its charts."""


def asset(name: str) -> str:
    return (files(__name__) / name).read_text(encoding="utf-8")


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
