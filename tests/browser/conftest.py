"""The tests here share a browser, and a server with real models."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from visiting import TEXT, Open, Visit, visiting

from headless import headless
from random_models import language_model, model_file, translator
from served import Server, serving
from shared_folders import trained_once
from tiny_recipe import TINY_RECIPE
from transduce.core.model_file import save_model_file
from transduce.explore.page_file import page

HERE = Path(__file__).parent
QUICK = {
    "test_axe_finds_nothing[en-light]",
    "test_texts_are_used_and_uses_have_texts",
    *(
        f"test_a_model_opens_on_its_own_picture[{model}]"
        for model in ("classifier", "parser", "machine", "graphs", "tagger")
    ),
    "test_translates_what_is_typed",
    "test_two_sentences_in_two_out_as_one_types",
    "test_the_engine_is_the_model[pre]",
    "test_a_recurrent_model_is_the_model[bahdanau]",
    "test_a_ctc_model_is_the_model[two places-None-0]",
    "test_a_new_text_gets_the_servers_answer[words-None]",
    "test_a_head_is_opened_and_its_numbers_are_the_models",
    "test_every_view_of_other_models_is_drawn[random]",
    "test_markup_is_shown_as_text",
    "test_the_policy_allows_no_inline_style_or_foreign_script",
    "test_the_saved_file_works_with_the_network_off",
    "test_cells_have_the_scales_colours_in_both_themes",
    "test_floats_are_read_as_they_were_written",
    "test_words_receive_and_attend_as_in_python",
    "test_words_are_those_that_python_finds",
    "test_a_file_is_heard_and_drawn_with_the_models_numbers",
    "test_a_sample_is_the_one_of_generate_and_is_then_explored",
}
"""With their parameters, or for all of them: one or two of each page, and what compares numbers; the rest are slow."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what is not quick."""
    for item in items:
        quick = item.name in QUICK or getattr(item, "originalname", "") in QUICK
        if item.path.parent == HERE and not quick:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window. For one file: while Playwright is there, nobody else can run an event loop."""
    with headless() as started:
        yield started


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


@pytest.fixture(scope="module")
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
            tab = tabs.enter_context(visiting(browser, f"{explored.address}/explore", **(options or {})))
            return tab.open(**{"text": TEXT, **state})

        yield opened
