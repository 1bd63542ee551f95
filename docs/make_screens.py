"""Takes the pictures of the explorer in docs/images, from the demo's model, in a browser without a window.

    transduce demo                                   # trains runs/demo
    python docs/make_screens.py runs/demo            # writes docs/images/explorer-*.png
    python docs/make_screens.py runs/demo --words runs/sst2

Needs Playwright (pip install playwright) and a Chromium: its own, one on the path, or TRANSDUCE_CHROMIUM. Each picture
says which state of the page it is of; a picture that cannot be taken, or a page with an error, ends the script.
"""

import argparse
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from playwright.sync_api import Browser, sync_playwright

FOLDER = Path(__file__).parent / "images"
TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."
REVIEW = "a gorgeous , witty , seductive movie ."
STARTED = 120.0  # seconds that a server may take to load a model
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


class Screen(NamedTuple):
    """A picture: its file, the state of the page, the size of the window; of which part, "" for all of it."""

    name: str
    state: dict[str, Any]
    width: int = 1200
    height: int = 1000
    part: str = ""
    scale: float = 1.4


# Without a text the page opens where attention is best seen: on what "it" looks at.
SCREENS = (
    Screen("explorer-attention", {}, height=1180),
    Screen("explorer-beam", {"view": "beam", "beam": 5, "text": TIRED}, height=1130),
    Screen("explorer-steps", {"view": "steps", "step": 6, "query": 9, "theme": "dark"}, height=1050),
    Screen("explorer-chinese", {"show": "lines", "lang": "zh"}, height=900),
    Screen("explorer-narrow", {}, width=390, height=1250, scale=2),
    Screen("explorer-compare", {"view": "compare", "text2": WIDE}, height=1900),
)
WORDS = Screen("explorer-words", {"text": REVIEW}, part="#view .split")


def main() -> None:
    """Takes them all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="the demo's run directory")
    parser.add_argument("--words", help="a sentiment model with attention pooling, for explorer-words.png")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the pictures go")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    with browser() as opened:
        take(opened, asked.run, SCREENS, asked.folder)
        if asked.words:
            take(opened, asked.words, (WORDS,), asked.folder)


def take(opened: Browser, run: str, screens: tuple[Screen, ...], folder: Path) -> None:
    """Pictures of one model's explorer."""
    with explorer(run) as address:
        for screen in screens:
            size = {"width": screen.width, "height": screen.height}
            page = opened.new_page(
                viewport=size, device_scale_factor=screen.scale, locale="en-US", reduced_motion="reduce"
            )
            wrong = list[str]()
            page.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
            page.goto(f"{address}#{urlencode(screen.state)}")
            page.wait_for_selector('#view[aria-busy="false"]')
            page.locator("#view figure").first.wait_for()
            page.wait_for_timeout(300)  # what scrolls comes to rest
            if wrong or page.locator("#view .error").count():
                raise SystemExit(f"{screen.name}: {wrong or page.inner_text('#view .error')}")
            path = folder / f"{screen.name}.png"
            (page.locator(screen.part) if screen.part else page).screenshot(path=path)
            print(f"written: {path}")
            page.close()


@contextmanager
def explorer(run: str) -> Iterator[str]:
    """The address of the explorer of a model, served by a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "transduce", "explore", run, "--port", str(port), "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/explore"
    try:
        wait_for(address, server)
        yield address
    finally:
        server.terminate()
        server.wait()


def wait_for(address: str, server: "subprocess.Popen[bytes]") -> None:
    """Until the page is there. Ends the script where it does not come."""
    begun = time.monotonic()
    while time.monotonic() - begun < STARTED and server.poll() is None:
        try:
            urlopen(address).close()
            return
        except (URLError, OSError):
            time.sleep(0.2)
    raise SystemExit(f"{address}: no answer")


@contextmanager
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    with sync_playwright() as playwright:
        found = os.environ.get("TRANSDUCE_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield started
        started.close()


if __name__ == "__main__":
    main()
