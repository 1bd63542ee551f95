"""The interactive pages, built with the demo's own model, opened as files in a browser without a network."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect
from rich.console import Console

from headless import headless
from shared_folders import made_once
from transduce.site.build import build
from transduce.site.demo_model import demo_model

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

PATIENCE = 60_000  # milliseconds: a busy machine is no bug
OPTIONS = {"preload": False, "rules": {"label-content-name-mismatch": {"enabled": True}}}  # a file may read no file
expect.set_options(timeout=PATIENCE)

Open = Callable[..., Page]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The model takes minutes to train."""
    for item in items:
        needed = {"site", "run", "stored"} & set(getattr(item, "fixturenames", ()))
        if item.path.parent == Path(__file__).parent and needed:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the demo. TRANSDUCE_DEMO_RUN names one that is there, which spares its training."""
    if known := os.environ.get("TRANSDUCE_DEMO_RUN"):
        return Path(known)
    quiet = Console(quiet=True)
    return made_once(tmp_path_factory, "demo", lambda folder: demo_model(folder / "run", [], quiet)) / "run"


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, run: Path) -> Path:
    """The folder with the pages; nobody may write into it."""
    from transduce.pipeline.pipeline import load

    return made_once(tmp_path_factory, "site", lambda folder: build(folder, load(run)))


@pytest.fixture(scope="session")
def stored(run: Path) -> "Pipeline":
    """The model with the weights that the pages have: each matrix in 8 bits."""
    import torch

    from transduce.explore.live import in_int8
    from transduce.pipeline.pipeline import load

    pipeline = load(run)
    kept = in_int8(dict(pipeline.model.state_dict()))
    with torch.no_grad():
        for name, weight in pipeline.model.state_dict().items():
            scale = kept.get(f"{name}.scale")
            weight.copy_(kept[name].float() * (1 if scale is None else scale[:, None]))
    return pipeline


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with headless() as started:
        yield started


@pytest.fixture
def opened(browser: Browser, site: Path) -> Iterator[Open]:
    """opened(name, language="en", width=1440, link="", still=True): the page of a stop, drawn.

    At the end nothing may have gone wrong in it: no error, no request to any host, no text missing.
    """
    contexts, problems = [], []

    def open_(name: str, language: str = "en", width: int = 1440, link: str = "", still: bool = True) -> Page:
        motion = "reduce" if still else "no-preference"
        context = browser.new_context(viewport={"width": width, "height": 900}, reduced_motion=motion, offline=True)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"script: {error}"))
        page.on("console", lambda told: told.type in ("error", "warning") and problems.append(told.text))
        page.on("request", lambda sent: sent.url.startswith(("file:", "data:", "blob:")) or problems.append(sent.url))
        page.goto(f"{(site / language / f'{name}.html').as_uri()}{link}")
        page.wait_for_selector("#stop[data-drawn]")
        return page

    yield open_
    for context in contexts:
        for page in context.pages:
            problems += page.evaluate("[...(window.Transduce?.missing ?? [])]")
        context.close()
    assert problems == []


@pytest.fixture(scope="session")
def axe() -> Callable[[Page], list[str]]:
    """axe(page): what axe-core finds in it."""
    rules = Axe()

    def found(page: Page) -> list[str]:
        return [
            f"{each['id']}: {each['nodes'][0]['html']}"
            for each in rules.run(page, options=OPTIONS).response["violations"]
        ]

    return found
