"""The page in a real browser: how fast it opens, what the server takes, and pictures.

python tools/page/look.py RUN...                     seconds to the first view and to a filter, memory
python tools/page/look.py RUN... --shots FOLDER      pictures of the page's top and of the report's members, both
                                                         themes, both widths
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from browser import Watched, chromium, open_page

TIMES = 3
WIDTHS = (1280, 400)
THEMES = ("light", "dark")


@contextmanager
def watching(runs: list[Path]) -> Iterator[tuple[str, int]]:
    """The address of a page, and the process that serves it."""
    command = [sys.executable, "-m", "redqueen", "watch", *map(str, runs)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        if found is None:
            raise SystemExit("the page did not start")
        yield found[0], server.pid
    finally:
        server.terminate()
        server.wait()


def megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


def opened(watched: Watched) -> str:
    """The seconds to words and tables, and to the charts that are in sight."""
    watched.ready()
    watched.until("performance.getEntriesByName('charts').length")
    marks = [f"performance.getEntriesByName('{mark}')[0].startTime" for mark in ("words", "charts")]
    words, charts = (watched.page.evaluate(mark) / 1000 for mark in marks)
    return f"words, tables and lines after {words:.2f} s, charts in sight after {charts:.2f} s"


def measure(runs: list[Path]) -> None:
    with watching(runs) as (url, pid), chromium() as browser:
        for number in range(TIMES):
            watched = open_page(browser, url)
            print(f"{number + 1}: a browser that has never seen it: {opened(watched)}")
            watched.page.reload()
            print(f"   the same browser again: {opened(watched)}")
            points = watched.draw_all().page.evaluate(
                "[...document.querySelectorAll('.plot')].flatMap((plot) => plot.data)"
                ".reduce((sum, trace) => sum + (trace.x ?? []).length, 0)"
            )
            start = time.perf_counter()
            watched.page.select_option("#filters [name=kind]", index=1)
            watched.until(
                "[...document.querySelectorAll('#task-table tbody tr')].every((row) =>"
                " row.children[1].textContent === document.querySelector('#filters [name=kind]').value)"
            )
            print(f"   {points:,} points in all charts; a filter answers in {time.perf_counter() - start:.2f} s")
            print(
                f"   memory of the server at most {megabytes(pid):.0f} MB; complaints: {watched.complaints or 'none'}"
            )
            watched.page.context.close()


def shoot(runs: list[Path], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as where, watching(runs) as (url, _), chromium() as browser:
        report = Path(where) / "report.html"
        command = [sys.executable, "-m", "redqueen", "report", *map(str, runs), "-o", str(report)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for name, address in (("page", url), ("report", report.as_uri())):
            for width in WIDTHS:
                for theme in THEMES:
                    watched = open_page(browser, address, width=width, theme=theme, height=900 if width > 640 else 800)
                    watched.ready()
                    if name == "report":
                        watched.page.evaluate("document.getElementById('members').scrollIntoView()")
                    watched.page.wait_for_timeout(1_000)
                    file = folder / f"{name}-{width}-{theme}.png"
                    watched.page.screenshot(path=file)
                    print(f"{file}: {os.path.getsize(file) / 1000:.0f} kB")
                    watched.page.context.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--shots", type=Path, metavar="FOLDER", help="pictures go here")
    given = parser.parse_args()
    if given.shots is None:
        measure(given.runs)
    else:
        shoot(given.runs, given.shots)


if __name__ == "__main__":
    main()
