"""A browser without a window, and a blank page with some of the explorer's scripts."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

import transduce

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SCRIPTS = Path(transduce.__file__).parent / "explore" / "page"


def chromium(playwright: Playwright, names: Sequence[str] = NAMES) -> str:
    """The browser's path; without one the test is skipped, or fails where TRANSDUCE_BROWSER=required."""
    own = playwright.chromium.executable_path
    asked = os.environ.get("TRANSDUCE_CHROMIUM")
    found = asked or next(filter(None, map(shutil.which, names)), None) or (own if Path(own).exists() else None)
    if found:
        return found
    told = "no chromium: apt-get install chromium, or set TRANSDUCE_CHROMIUM to a browser's path"
    if os.environ.get("TRANSDUCE_BROWSER") == "required":
        pytest.fail(told)
    pytest.skip(told)


@contextmanager
def headless() -> Iterator[Browser]:
    """Chromium. While Playwright is there, nobody else can run an event loop."""
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-dev-shm-usage"]  # as in containers: root, little shared memory
        started = playwright.chromium.launch(executable_path=chromium(playwright), args=flags)
        yield started
        started.close()


@contextmanager
def blank_page(*scripts: str) -> Iterator[Page]:
    """A page that holds nothing but these scripts, by their names in the page's folder."""
    with headless() as browser:
        page = browser.new_page()
        for name in scripts:
            page.add_script_tag(content=(SCRIPTS / name).read_text(encoding="utf-8"))
        yield page
