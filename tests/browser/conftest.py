"""The tests here share a browser, and a server with real models."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright
from visiting import TEXT, Open, Visit, chromium, visiting

from random_models import language_model, model_file, translator
from served import Server, serving
from shared_folders import trained_once
from tiny_recipe import TINY_RECIPE
from transduce.core.model_file import save_model_file
from transduce.explore.page_file import page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window. For one file: while Playwright is there, nobody else can run an event loop."""
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-dev-shm-usage"]  # as in containers: root, little shared memory
        started = playwright.chromium.launch(executable_path=chromium(playwright), args=flags)
        yield started
        started.close()


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory, tiny_corpus: Path) -> Path:
    """A run of the tiny recipe that went on for long enough to say something; nobody may write into it."""
    text = TINY_RECIPE.replace("[data]", f'[data]\nroot = "{tiny_corpus}"').replace(
        "beam = 3", "beam = 3\nmin_length = 3"
    )
    for before, after in [("updates = 24", "updates = 100"), ("validate_every = 6", "validate_every = 50")]:
        text = text.replace(before, after)
    return trained_once(tmp_path_factory, "explored", text)


@pytest.fixture(scope="session")
def other_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with random models: a translator, and one that only goes on."""
    folder = tmp_path_factory.mktemp("other")
    save_model_file(
        folder / "random.safetensors",
        model_file(translator(task={"kind": "translation", "source": "de", "target": "en"})),
    )
    save_model_file(folder / "language.safetensors", model_file(language_model()))
    return folder


@pytest.fixture(scope="session")
def explored(trained_run: Path, other_models: Path) -> Iterator[Server]:
    """The explorer of a trained model and of others."""
    models = [f"digits={trained_run}", other_models / "random.safetensors", other_models / "language.safetensors"]
    with serving(models, page=page()) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, explored: Server) -> Iterator[Open]:
    """Opens the page at a state: visit(view="beam"). Whatever goes wrong on it fails the test."""
    with ExitStack() as tabs:

        def opened(options: dict[str, Any] | None = None, **state: object) -> Visit:
            tab = tabs.enter_context(visiting(browser, f"{explored.address}/", **(options or {})))
            return tab.open(**{"text": TEXT, **state})

        yield opened
