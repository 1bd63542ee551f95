"""A language model writes in the page: samples and acrostics, shown while they are written, then explored."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Route, expect
from visiting import VIEWS, Visit, visiting

from random_models import language_model, model_file, poet
from served import Server, serving
from transduce.core.model_file import save_model_file
from transduce.explore.page_file import page
from transduce.pipeline.generation import generate
from transduce.pipeline.pipeline import load


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("writers")
    save_model_file(folder / "poet.safetensors", model_file(poet()))
    save_model_file(folder / "words.safetensors", model_file(language_model()))
    return folder


@pytest.fixture(scope="module")
def writing(files: Path) -> Iterator[Server]:
    with serving([files / "poet.safetensors", files / "words.safetensors"], page=page()) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, writing: Server) -> Iterator[Callable[..., Visit]]:
    with ExitStack() as tabs:

        def opened(options: dict[str, Any] | None = None, **state: object) -> Visit:
            tab = tabs.enter_context(visiting(browser, f"{writing.address}/explore", **(options or {})))
            return tab.open(**state)

        yield opened


def test_a_sample_is_the_one_of_generate_and_is_then_explored(visit: Callable[..., Visit], files: Path) -> None:
    tab = visit(model="words")
    tab.find("#writing-how").select_option("sample")
    for name, value in {"temperature": "0.8", "top_k": "9", "top_p": "0.9", "seed": "6", "max_new": "7"}.items():
        tab.find(f"#writing-{name}").fill(value)
    tab.find("#sentence").fill("ba de")
    tab.find("#send").click()
    asked: dict[str, Any] = {"temperature": 0.8, "top_k": 9, "top_p": 0.9, "seed": 6, "max_length_offset": 7}
    [wanted] = generate(load(files / "words.safetensors"), "ba de", **asked)
    expect(tab.find("#output")).to_have_text(wanted.text)
    tab.drawn()
    assert tab.state()["written"] == wanted.text and tab.state()["text"] == "ba de"
    assert tab.find("#sentence").input_value() == "ba de"
    expect(tab.find("#written-seed")).to_contain_text("seed 6")
    for view in VIEWS:
        tab.go(view=view)
        assert tab.find("#view .error").count() == 0, view
    again = visit()
    again.page.goto("about:blank")
    again.page.goto(tab.page.url)
    expect(again.drawn().find("#output")).to_have_text(wanted.text)  # a link holds what was written
    again.find("#writing-how").select_option("")
    again.find("#send").click()
    again.drawn()
    assert again.state()["written"] == again.state()["how"] == ""


def test_a_text_is_shown_while_it_is_written_and_can_be_stopped(visit: Callable[..., Visit]) -> None:
    tab = visit(model="words", text="ba", how="sample")
    before = tab.text("#output")

    def half(route: Route) -> None:
        events = [
            ("token", {"delta": "ba"}),
            ("token", {"delta": " de"}),
            ("error", {"error": "no answer within 60 s."}),
        ]
        body = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events[: 3 if told else 2])
        route.fulfill(status=200, content_type="text/event-stream", body=body)

    told: list[bool] = []
    tab.page.route("**/v1/generate", half)
    tab.find("#send").click()
    expect(tab.find(".writing")).to_have_text("ba de")
    told.append(True)
    tab.find("#send").click()
    expect(tab.find("#writing [role=alert]")).to_have_text("no answer within 60 s.")
    assert tab.text("#output") == before
    tab.page.unroute("**/v1/generate")
    tab.page.route("**/v1/generate", lambda route: None)  # never answered
    tab.find("#send").click()
    tab.find("#stop-writing").click()
    expect(tab.find("#writing")).to_have_text("Stopped.")


def test_an_acrostic_stands_line_by_line_with_its_characters_marked(visit: Callable[..., Visit], files: Path) -> None:
    tab = visit(model="poet")
    tab.find("#writing-how").select_option("acrostic")
    expect(tab.find("#sentence")).to_be_hidden()
    tab.find("#send").click()
    assert "Type the first characters" in tab.text("#writing [role=alert]")
    tab.find("#writing-acrostic").fill("春白夜")
    tab.find("#writing-seed").fill("3")
    tab.find("#writing-max_new").fill("20")
    tab.find("#send").click()
    [wanted] = generate(load(files / "poet.safetensors"), acrostic="春白夜", seed=3, max_length_offset=20)
    expect(tab.find(".verse")).to_have_count(3)
    assert [text.rstrip(" ") for text in tab.find(".verse").all_text_contents()] == wanted.text.split("|")
    assert tab.find(".verse mark").all_text_contents() == list("春白夜")
    tab.drawn()
    with tab.refusals():
        tab.find("#writing-acrostic").fill("春x")
        tab.find("#send").click()
        expect(tab.find("#writing [role=alert]")).to_have_text('acrostic: the model has no token for "x".')


def test_only_a_model_with_line_marks_is_asked_for_acrostics(visit: Callable[..., Visit]) -> None:
    ways = visit(model="words").find("#writing-how option").evaluate_all("(all) => all.map((each) => each.value)")
    assert ways == ["", "sample"]
    ways = visit(model="poet").find("#writing-how option").evaluate_all("(all) => all.map((each) => each.value)")
    assert ways == ["", "sample", "acrostic"]


@pytest.mark.parametrize("how", ["sample", "acrostic"])
def test_everybody_can_use_it(visit: Callable[..., Visit], how: str) -> None:
    for theme, language in (("light", "en"), ("dark", "zh")):
        written = "春眠不觉|白日依山" if how == "acrostic" else "春眠不觉"
        tab = visit(model="poet", how=how, acrostic="春白", written=written, theme=theme, lang=language)
        assert tab.find(".verse mark").count() == (2 if how == "acrostic" else 0)
        found = Axe().run(tab.page).response["violations"]
        assert not found, [(each["id"], each["nodes"][0]["html"][:200]) for each in found]
        assert tab.page.evaluate("[...(Transduce.missing || [])]") == []
    narrow = visit({"viewport": {"width": 320, "height": 800}}, model="poet", how=how, text="春")
    assert narrow.page.evaluate("document.documentElement.scrollWidth") <= 320
