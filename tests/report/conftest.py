"""Runs to look at, and a real browser to look with."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import PATIENCE_MS, chromium, executable
from playwright.sync_api import Browser, expect
from synthetic import PROGRAMS, make

STEPS, MEMBERS, TASKS = 12, 8, 300
HOW = {"bands": [], "form": "long", "attempts": 8, "k": 8, "temperature": 0.8, "max_tokens": 9}
"""An exam was held."""
HOSTILE = (
    *PROGRAMS,
    "def f(x):\n    return '</script><script>window.hacked = 1</script><img src=x onerror=\"window.hacked = 2\">'",
    "def f(x):\n    return '\x1b[2J\x1b]0;owned\x07 \u202egnorw yaw eht\u202c \x00 <!-- <script> {{7*7}}'",
    f"def f(x):\n    return {'9' * 1_000_000}",
)


@pytest.fixture(scope="package")
def recorded(tmp_path_factory) -> Path:
    """A run with one step still to come."""
    folder = tmp_path_factory.mktemp("page") / "recorded"
    make(folder, steps=STEPS, members=MEMBERS, tasks=TASKS, wanted=STEPS + 1)
    return folder


@pytest.fixture(scope="package")
def hostile(tmp_path_factory) -> Path:
    """A run whose programs were written to break what shows them."""
    folder = tmp_path_factory.mktemp("page") / "hostile"
    make(folder, steps=3, members=4, tasks=60, programs=HOSTILE)
    return folder


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if executable() is None:
        why = "there is no Chromium here; `make test` as root of a Debian installs one"
        if os.environ.get("REDQUEEN_BROWSER") == "required":
            pytest.fail(why)
        pytest.skip(why)
    expect.set_options(timeout=PATIENCE_MS)
    with chromium() as found:
        yield found
