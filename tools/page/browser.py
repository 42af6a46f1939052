"""The Chromium of this machine, and a page in it that tells what it complains of and whom it asks."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, Page, sync_playwright

PATIENCE_MS = 300_000
"""For anything that is waited for: of a machine that may have other things to do."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def executable() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    path = executable()
    if path is None:
        raise SystemExit(f"there is no Chromium here ({', '.join(NAMES)}); install one (Debian: apt install chromium)")
    # Its own sandbox needs a user that is not root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=arguments, timeout=PATIENCE_MS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Watched:
    """A page, and what happened to it."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """Addresses, but for those that hold their data themselves."""

    def until(self, expression: str) -> None:
        """Asked again and again from outside: within the page its own policy forbids to evaluate a text."""
        end = time.monotonic() + PATIENCE_MS / 1000
        while not self.page.evaluate(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"{expression} did not come true in {PATIENCE_MS // 1000} s")
            self.page.wait_for_timeout(20)

    def ready(self) -> "Watched":
        """When everything has been read and the charts in sight are drawn."""
        self.page.wait_for_selector("html[data-ready]")
        self.until(
            "(() => { const seen = [...document.querySelectorAll('.plot')]"
            ".filter((plot) => plot.getBoundingClientRect().top < innerHeight);"
            " return seen.length && seen.every((plot) => plot.data); })()"
        )
        return self

    def draw_all(self) -> "Watched":
        """Also the charts that are out of sight."""
        self.page.evaluate("RQ.redraw(true)")
        self.until("[...document.querySelectorAll('.plot')].every((plot) => plot.data)")
        return self


def open_page(browser: Browser, url: str, *, width: int = 1280, height: int = 900, theme: str = "light") -> Watched:
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if theme == "dark" else "light"
    )
    context.set_default_timeout(PATIENCE_MS)
    watched = Watched(context.new_page())
    watched.page.on("console", lambda said: watched.complaints.append(f"{said.type}: {said.text}"))
    watched.page.on("pageerror", lambda error: watched.complaints.append(str(error)))
    watched.page.on("request", lambda request: watched.asked.append(request.url))
    watched.page.goto(url)
    return watched
