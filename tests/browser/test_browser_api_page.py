"""The forms of the page at "/docs" in a real browser: each sends its request and shows the answer."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from test_browser_access import check
from visiting import visiting

from served import Server, serving, write_model


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving([write_model(tmp_path_factory.mktemp("docs") / "one.safetensors", seed=5)], api_key="k") as running:
        yield running


def test_forms_send_what_they_hold_and_show_the_answer(browser: Browser, server: Server, tmp_path: Path) -> None:
    with visiting(browser, f"{server.address}/docs") as tab:
        tab.page.goto(tab.address)
        check(tab, "docs")
        form = tab.find('form[data-path="translate"]')
        tab.find(
            "summary",
        ).get_by_text("Try /translate with one", exact=True).click()
        with tab.refusals():
            form.locator("button").click()
            expect(form.locator("output")).to_contain_text("Invalid API key")
        tab.find("#key").fill("k")
        form.locator("textarea").fill(json.dumps({"q": "ba be", "source": "de", "target": "en"}))
        form.locator("button").click()
        asked = {"q": "ba be", "source": "de", "target": "en", "api_key": "k"}
        expect(form.locator("output")).to_have_text(f"200\n{server.post('/translate', **asked).text}")
        tab.find("summary").get_by_text("Try /ready", exact=True).click()
        form = tab.find('form[data-path="ready"]')
        form.locator("button").click()
        expect(form.locator("output")).to_contain_text('"ready":true')
        tab.find("summary").get_by_text("Try /translate_file with one", exact=True).click()
        form = tab.find('form[data-path="translate_file"]')
        (tmp_path / "a.txt").write_text("ba be")
        form.locator("input").set_input_files(tmp_path / "a.txt")
        form.locator("button").click()
        expect(form.locator("output")).to_contain_text("translatedFileUrl")
        check(tab, "answers")
