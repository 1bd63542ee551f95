"""The page at "/" in a real browser: what is typed is translated as the server translates it."""

import json
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Route, expect
from test_browser_access import FOCUSED, check
from visiting import Visit, visiting

from random_models import model_file, translator
from served import Gate, Server, serving
from transduce.core.model_file import save_model_file
from transduce.pipeline.datastores import BuildOptions, build_datastore
from transduce.pipeline.pipeline import load
from transduce.serve.served_model import ModelUse

Open = Callable[..., Visit]
TWO = "ba be bi. Ka le mo."
KEY = "open sesame"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two random translators: from German to English, and back."""
    folder = tmp_path_factory.mktemp("pairs")
    for seed, source, target in [(3, "de", "en"), (5, "en", "de")]:
        task = {"kind": "translation", "source": source, "target": target}
        save_model_file(folder / f"{source}.safetensors", model_file(translator(seed=seed, task=task)))
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def server(models: list[Path]) -> Iterator[Server]:
    """A server of both."""
    with serving(models, page="<!doctype html><title>explorer</title>", characters=5000) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, server: Server) -> Iterator[Open]:
    """Opens the page at a state: visit(lang="zh"). Whatever goes wrong on it fails the test."""
    with ExitStack() as tabs:

        def opened(options: dict[str, Any] | None = None, **state: object) -> Visit:
            tab = tabs.enter_context(visiting(browser, f"{server.address}/", **(options or {})))
            return at(tab, **state)

        yield opened


def at(tab: Visit, **state: object) -> Visit:
    tab.page.goto(f"{tab.address}#{'&'.join(f'{name}={value}' for name, value in state.items())}")
    return tab


def translated(server: Server, text: str, source: str = "de", target: str = "en") -> str:
    """As the server says it without the page."""
    found: str = server.post("/translate", q=text, source=source, target=target).json()["translatedText"]
    return found


def reply(answer: dict[str, Any] | None, route: Route) -> None:
    """In the server's place; None: nobody is there."""
    if answer is None:
        route.abort()
    else:
        route.fulfill(**answer)


def shows(tab: Visit, text: str) -> None:
    """Waits until the output is this, white space included."""
    tab.page.wait_for_function("(text) => document.getElementById('output').textContent === text", arg=text)


def test_two_sentences_in_two_out_as_one_types(visit: Open, server: Server) -> None:
    tab = visit(**{"from": "de"})
    first, second = (translated(server, each) for each in ("ba be bi.", "Ka le mo."))
    assert first and second and first != second
    tab.find("#text").press_sequentially(TWO, delay=5)
    shows(tab, f"{first} {second}")
    expect(tab.find("#output")).to_have_attribute("aria-busy", "false")
    expect(tab.find("#output")).to_have_attribute("lang", "en")
    expect(tab.find("#status")).to_have_text("")
    asked = [each for each in tab.requests if each.endswith("/translate")]
    assert 1 <= len(asked) < len(TWO) / 2, "it waits until one pauses"
    expect(tab.find("#counter")).to_have_text("19 of 5,000 characters")


def test_languages_are_named_and_swapped_with_the_texts(visit: Open, server: Server) -> None:
    tab = visit()
    assert tab.find("#from option").all_inner_texts() == ["German", "English"]
    assert tab.find("#to option").all_inner_texts() == ["English"]
    tab.find("#text").fill(TWO)
    english = translated(server, TWO)
    shows(tab, english)
    tab.find("#swap").click()
    expect(tab.find("#text")).to_have_value(english)
    assert (tab.find("#from").input_value(), tab.find("#to").input_value()) == ("en", "de")
    shows(tab, translated(server, english, "en", "de"))
    assert "from=en&to=de" in tab.page.url
    tab.find("#from").select_option("de")
    shows(tab, translated(server, english))


def test_copy_and_clear(browser: Browser, server: Server) -> None:
    options = {"permissions": ["clipboard-read", "clipboard-write"]}
    with visiting(browser, f"{server.address}/", alone=True, **options) as tab:
        at(tab)
        expect(tab.find("#copy")).to_be_disabled()
        expect(tab.find("#clear")).to_be_disabled()
        tab.find("#text").fill(TWO)
        shows(tab, translated(server, TWO))
        tab.find("#copy").click()
        expect(tab.find("#status")).to_have_text("Copied.")
        assert tab.page.evaluate("navigator.clipboard.readText()") == translated(server, TWO)
        tab.page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")  # as by http from afar
        tab.find("#programs summary").click()
        tab.find("#copy-curl").click()
        expect(tab.find("#status")).to_have_text("Copied.")
        tab.find("#clear").click()
        shows(tab, "")
        expect(tab.find("#text")).to_have_value("")
        expect(tab.find("#text")).to_be_focused()
        tab.page.keyboard.press("Control+v")
        expect(tab.find("#text")).to_have_value(re.compile(rf"^curl '{server.address}/translate' "))


def test_the_command_is_the_very_request(visit: Open, server: Server) -> None:
    tab = visit()
    text = "ba 'be' \"bi\" $HOME `ls` \\n!\nKa le <b>mo</b> 中文."
    tab.find("#text").fill(text)
    shows(tab, translated(server, text))
    curl, url, option, header, data, body = shlex.split(tab.find("#curl").text_content() or "")
    assert [curl, option, data] == ["curl", "-H", "-d"]
    kind, value = header.split(": ")
    answer = httpx.post(url, content=body.encode(), headers={kind: value})
    assert json.loads(body) == {"q": text, "source": "de", "target": "en"}
    assert answer.json()["translatedText"] == tab.find("#output").text_content()


def test_a_long_text_comes_part_by_part_and_is_the_whole(visit: Open, server: Server) -> None:
    lines = [f"ba be bi {'go ' * (number % 7)}mo. Ka le." if number % 5 else "  " for number in range(150)]
    text = "\n".join(lines)
    assert 3000 < len(text) < 5000
    tab = visit()
    tab.find("#text").fill(text)
    shows(tab, translated(server, text))
    asked = [each for each in tab.requests if each.endswith("/translate")]
    assert len(asked) == 1 + len(text) // 1500
    tab.find("#text").fill(f"{text} fi")
    shows(tab, translated(server, f"{text} fi"))
    again = [each for each in tab.requests if each.endswith("/translate")]
    assert len(again) == len(asked) + 1, "only the end is asked for"


def test_a_text_over_the_limit_is_not_sent(visit: Open) -> None:
    tab = visit()
    tab.find("#text").fill("🙂" * 5001)  # each is one character, as the server counts
    expect(tab.find("#status")).to_contain_text("the server takes 5,000 characters at once")
    expect(tab.find("#counter")).to_have_text("5,001 of 5,000 characters")
    tab.page.wait_for_timeout(500)
    assert not [each for each in tab.requests if each.endswith("/translate")]


def test_loading_is_said_and_an_older_text_is_given_up(browser: Browser, models: list[Path]) -> None:
    with serving(models[:1]) as running, visiting(browser, f"{running.address}/") as tab:
        gate = Gate(running.service.batches.run)
        running.service.batches.run = gate
        at(tab)
        tab.find("#text").fill("ba be")
        expect(tab.find("#status")).to_have_text("Loading …")
        assert gate.reached.wait(60)
        tab.find("#text").fill("ka le mo")
        expect(tab.find("#output")).to_have_attribute("aria-busy", "true")
        gate.open()
        shows(tab, translated(running, "ka le mo"))
        tab.find("#text").fill("ka le")
        expect(tab.find("#swap")).to_be_disabled()  # nobody translates back
        shows(tab, translated(running, "ka le"))


def test_pairs_of_the_memory_stand_below_the_translation(browser: Browser, models: list[Path], tmp_path: Path) -> None:
    pytest.importorskip("rapidfuzz")
    store, pairs = tmp_path / "memory.datastore", [(1, "ba be bi do", "first"), (2, "ka <b>le</b> mo", "second")]
    build_datastore(load(models[0]), pairs, store, BuildOptions(knn={"k": 1, "weight": 0.5, "temperature": 1.0}))
    use = ModelUse(datastores=(str(store),))
    with serving(models[:1], use=use) as running, visiting(browser, f"{running.address}/") as tab:
        at(tab)
        expect(tab.find("#memory")).to_be_hidden()
        tab.find("#text").fill("ba be bi da")
        expect(tab.find("#memory-list li")).to_have_text(["90 % ba be bi do first"])
        tab.find("#text").fill("ka <b>le</b> mo")
        expect(tab.find("#memory-list li")).to_have_text(["100 % ka <b>le</b> mo second"])
        check(tab, "matches")
        tab.find("#clear").click()
        expect(tab.find("#memory")).to_be_hidden()


def test_errors_are_said_in_words_and_can_be_tried_again(visit: Open, server: Server) -> None:
    tab = visit()
    answers = [
        ({"status": 429, "headers": {"retry-after": "7"}, "json": {"error": "full"}}, "busy. Try again in 7 seconds"),
        ({"status": 503, "json": {"error": "late"}}, "did not answer in time"),
        ({"status": 500, "body": "<html>"}, "failed on this text"),
        ({"status": 400, "json": {"error": "no such language"}}, "refused this: no such language"),
        (None, "cannot be reached"),
    ]
    for number, (answer, said) in enumerate(answers):
        tab.page.route("**/translate", partial(reply, answer))
        with tab.refusals():
            tab.find("#text").fill("ba " * (number + 1))
            expect(tab.find("#status")).to_contain_text(said)
        shows(tab, "")
        tab.page.unroute("**/translate")
    tab.find("#again").click()
    shows(tab, translated(server, "ba " * len(answers)))
    expect(tab.find("#again")).to_be_hidden()


def test_what_to_check_is_said_and_the_glossary_is_sent(visit: Open) -> None:
    tab = visit()
    asked: list[dict[str, Any]] = []

    def answer(route: Route) -> None:
        asked.append(route.request.post_data_json)
        warnings = ['"12" is not in the output.', 'the output repeats "ba" 3 times.', "something new."]
        route.fulfill(json={"translatedText": "ba ba ba", "confidence": 0.614, "warnings": warnings})

    tab.page.route("**/translate", answer)
    expect(tab.find("#checks")).to_be_hidden()
    tab.find("#glossary summary").click()
    tab.find("#terms").fill("ba = fi go\nno translation\n ka= la ")
    tab.find("#text").fill("ba 12")
    shows(tab, "ba ba ba")
    assert asked[-1]["glossary"] == {"ba": "fi go", "ka": "la"}
    assert '"glossary":{"ba":"fi go","ka":"la"}' in (tab.find("#curl").text_content() or "")
    expect(tab.find("#confidence")).to_have_text("About 61 % of these words are right, as the model expects.")
    told = [
        "“12” is in the text and not in the translation.",
        "The translation repeats “ba” 3 times.",
        "something new.",
    ]
    assert tab.find("#warnings li").all_inner_texts() == told
    check(tab, "with warnings")
    tab.find("#language").click()
    assert tab.find("#warnings li").all_inner_texts()[0] == "原文中的“12”没有出现在译文中。"
    tab.find("#clear").click()
    expect(tab.find("#checks")).to_be_hidden()


def test_the_key_is_asked_for_and_sent(browser: Browser, models: list[Path]) -> None:
    with serving(models, api_key=KEY) as running, visiting(browser, f"{running.address}/") as tab:
        at(tab)
        tab.find("#text").fill(TWO)
        expect(tab.find("#status")).to_contain_text("wants an API key")
        with tab.refusals():
            tab.find("#key").fill("open barley")
            expect(tab.find("#status")).to_contain_text("does not accept this API key")
        tab.find("#key").fill("sésame 芝麻")
        expect(tab.find("#status")).to_contain_text("does not accept this API key")
        tab.find("#key").fill(KEY)
        headers = {"x-api-key": KEY}
        asked = {"q": TWO, "source": "de", "target": "en"}
        answer = httpx.post(f"{running.address}/translate", json=asked, headers=headers)
        shows(tab, answer.json()["translatedText"])
        assert '-H "x-api-key: $TRANSDUCE_API_KEY"' in (tab.find("#curl").text_content() or "")
        assert KEY not in tab.page.content() and KEY not in tab.page.url
        check(tab, "with a key")


def test_chinese_by_the_browser_or_by_the_button(visit: Open) -> None:
    tab = visit({"locale": "zh-CN"})
    assert tab.text("h1") == "翻译"
    assert tab.find("#from option").all_inner_texts() == ["德语", "英语"]
    assert tab.page.evaluate("document.documentElement.lang") == "zh-Hans"
    tab.find("#language").click()
    assert tab.text("h1") == "Translate"
    tab.close()
    tab = visit()
    tab.find("#text").fill("x" * 5001)
    tab.find("#language").click()
    expect(tab.find("#status")).to_have_text("文本过长：服务器一次最多接受 5,000 个字符。")
    expect(tab.find("#counter")).to_have_text("5,001 / 5,000 个字符")


def test_both_languages_have_the_same_texts_and_all_are_used(visit: Open) -> None:
    tab = visit()
    keys = tab.page.evaluate("Object.values(Transduce.texts).map((each) => Object.keys(each))")
    values = tab.page.evaluate(
        "Object.values(Transduce.texts).map((each) => Object.values(each).map((text) => text.match(/{\\w+}/g)))"
    )
    assert keys[0] == keys[1]
    assert [sorted(each or []) for each in values[0]] == [sorted(each or []) for each in values[1]]
    page = tab.page.content()
    assert not [each for each in keys[0] if page.count(f'"{each}"') < 3], "two languages and a use"


@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("zh", "dark")])
@pytest.mark.parametrize("width", [390, 1300])
def test_axe_finds_nothing(visit: Open, server: Server, language: str, theme: str, width: int) -> None:
    tab = visit({"viewport": {"width": width, "height": 800}}, lang=language, theme=theme)
    check(tab, f"empty {language} {theme} {width}")
    tab.find("#text").fill(f"{TWO}\n" * 30)
    shows(tab, translated(server, f"{TWO}\n" * 30))
    tab.find("#programs summary").click()
    check(tab, f"{language} {theme} {width}")
    assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out"


def test_every_control_is_reached_by_tab_and_shows_its_focus(visit: Open, server: Server) -> None:
    tab = visit()
    tab.find("#text").fill(TWO)
    shows(tab, translated(server, TWO))
    wanted = {"text", "from", "to", "swap", "clear", "copy", "theme", "language"}
    tab.page.evaluate("document.activeElement.blur()")
    reached = set()
    for _ in range(20):
        tab.page.keyboard.press("Tab")
        focused = tab.page.evaluate(FOCUSED)
        if focused:
            assert focused[0], focused[1]
            reached.add(tab.page.evaluate("document.activeElement.id"))
    assert wanted <= reached


def test_the_theme_is_the_systems_until_it_is_chosen(visit: Open) -> None:
    tab = visit({"color_scheme": "dark"})
    assert tab.page.evaluate("document.documentElement.dataset.theme") == "dark"
    tab.find("#theme").click()
    assert tab.page.evaluate("document.documentElement.dataset.theme") == "light"
    assert "theme=light" in tab.page.url


def test_links_lead_to_the_explorer_and_the_api(visit: Open, server: Server) -> None:
    tab = visit()
    links = tab.page.evaluate("[...document.querySelectorAll('nav a')].map((each) => each.href)")
    assert links == [f"{server.address}/explore", f"{server.address}/docs"]
    assert tab.page.evaluate("fetch('favicon.ico').then((answer) => answer.ok)")


def alternatives(server: Server, text: str, word: str, start: int, **more: Any) -> list[dict[str, Any]]:
    """As the server says them without the page."""
    asked = {"q": text, "source": "de", "target": "en", "start": start, "end": start + len(word), **more}
    found: list[dict[str, Any]] = server.post("/v1/alternatives", **asked).json()["alternatives"]
    return found


def test_a_click_on_a_word_lists_others_and_a_choice_is_searched_on_from(visit: Open, server: Server) -> None:
    tab = visit()
    lines = ["😀 Ka le mo. ba be bi.", "", "Ka le mo."]
    tab.find("#text").fill("\n".join(lines))
    first, last = translated(server, lines[0]), translated(server, lines[2])
    shows(tab, f"{first}\n\n{last}")
    words = tab.find("#output .word")
    word = words.nth(1).inner_text()
    start = len(first.split()[0]) + 1
    assert first[start:].startswith(word)
    found = alternatives(server, lines[0], word, start)
    words.nth(1).click()
    offers = tab.find("#alternatives-list button")
    expect(offers).to_have_text([each["word"] for each in found])
    expect(tab.find("#alternatives-title")).to_have_text(f"Instead of “{word}”")
    links = server.post(
        "/v1/alternatives", q=lines[0], source="de", target="en", start=start, end=start + len(word)
    ).json()["links"]
    marked = [lines[0][each["start"] : each["end"]] for each in links]
    assert tab.find("#source-line mark").all_inner_texts() == marked
    expect(offers.first).to_be_focused()
    check(tab, "other words")
    offers.nth(1).click()
    shows(tab, f"{found[1]['translatedText']}\n\n{last}")
    expect(tab.find("#alternatives")).to_be_hidden()
    again = found[1]["translatedText"].split()[2]
    start = len(" ".join(found[1]["translatedText"].split()[:2])) + 1
    expected = alternatives(server, lines[0], again, start, outputs=found[1]["outputs"])
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("Enter")
    expect(offers).to_have_text([each["word"] for each in expected])
    tab.page.keyboard.press("Escape")
    expect(tab.find("#alternatives")).to_be_hidden()
    assert tab.page.evaluate("document.activeElement.textContent") == again
    tab.find("#text").fill("ba")
    shows(tab, translated(server, "ba"))
    expect(tab.find("#alternatives")).to_be_hidden()


def test_loading_and_refusals_of_other_words_are_said(visit: Open, server: Server) -> None:
    tab = visit(lang="zh", theme="dark")
    tab.find("#text").fill(TWO)
    shows(tab, translated(server, TWO))
    waiting: list[Route] = []
    tab.page.route("**/v1/alternatives", lambda route: waiting.append(route))  # noqa: PLW0108
    tab.find("#output .word").first.click()
    expect(tab.find("#alternatives-status")).to_have_text("正在加载可查看模型内部的组件…")
    check(tab, "loading")
    with tab.refusals():
        waiting[0].fulfill(status=429, headers={"retry-after": "7"}, json={"error": "full"})
        expect(tab.find("#alternatives-status")).to_have_text("服务器繁忙，请在 7 秒后重试。")
    tab.page.unroute("**/v1/alternatives")
    tab.find("#alternatives-close").click()
    tab.page.keyboard.press("Enter")
    expect(tab.find("#alternatives-status")).to_have_text("请选择一个词，译文将从该词起重新生成。")


def test_with_the_kernels_alone_words_are_text(browser: Browser, models: list[Path]) -> None:
    with (
        serving(models, use=ModelUse(engine="kernels")) as running,
        visiting(browser, f"{running.address}/") as tab,
    ):
        at(tab)
        tab.find("#text").fill(TWO)
        shows(tab, translated(running, TWO))
        assert tab.find("#output .word").count() == 0


def test_a_file_is_translated_and_saved_under_its_language(visit: Open, server: Server, tmp_path: Path) -> None:
    tab = visit()
    film = "1\n00:00:01,000 --> 00:00:02,000\nba be\n"
    lines = translated(server, "ba be")
    for name, text, expected in [("信.txt", TWO, translated(server, TWO)), ("film.srt", film, None)]:
        (tmp_path / name).write_text(text, encoding="utf-8")
        with tab.page.expect_download() as saved:
            tab.find("#file").set_input_files(tmp_path / name)
        stem, ending = name.split(".")
        assert saved.value.suggested_filename == f"{stem}.en.{ending}"
        found = Path(saved.value.path()).read_text(encoding="utf-8")
        assert found == (expected or film.replace("ba be", lines))
        expect(tab.find("#file-status")).to_have_text("Translated and saved as")
        expect(tab.find("#download")).to_have_text(f"{stem}.en.{ending}")
        check(tab, name)
    with tab.page.expect_download() as again:
        tab.find("#download").click()
    assert again.value.suggested_filename == "film.en.srt"
    with tab.page.expect_file_chooser():
        tab.find("#choose").click()


DROPPED = """([name, text]) => {
  const held = new DataTransfer();
  held.items.add(new File([text], name));
  const place = document.getElementById("text");
  for (const kind of ["dragover", "drop"])
    place.dispatchEvent(new DragEvent(kind, { dataTransfer: held, bubbles: true, cancelable: true }));
}"""


def test_files_are_dropped_and_wrong_ones_are_said_in_the_pages_language(visit: Open, server: Server) -> None:
    tab = visit(**{"from": "en"})
    with tab.page.expect_download() as saved:
        tab.page.evaluate(DROPPED, ["page.html", "<p>ba <b>be</b>"])
    assert saved.value.suggested_filename == "page.de.html"
    asked = {"q": "<p>ba <b>be</b>", "source": "en", "target": "de", "format": "html"}
    expected = server.post("/translate", **asked).json()["translatedText"]
    assert Path(saved.value.path()).read_text(encoding="utf-8") == expected
    told = tab.find("#file-status")
    tab.page.evaluate(DROPPED, ["a.pdf", "x"])
    expect(told).to_contain_text("a.pdf is of a format that cannot be read. Choose one of .txt .md ")
    expect(tab.find("#download")).to_be_hidden()
    tab.page.evaluate(DROPPED, ["a.txt", "x" * 10_000_001])
    expect(told).to_contain_text("a.txt is too large: the server takes files of up to 10,000,000 bytes")
    with tab.refusals():
        tab.page.evaluate(DROPPED, ["a.txt", "x" * 5001])
        expect(told).to_contain_text("refused this: 5,001 characters; 5,000 at most")
    tab.find("#language").click()
    expect(told).to_contain_text("服务器拒绝了请求：")
    expect(tab.find("#choose")).to_contain_text("翻译文件（Word、PowerPoint、Excel、")


def test_old_links_of_the_explorer_lead_to_where_it_is(visit: Open, server: Server) -> None:
    tab = visit(view="beam", text="ba%20be", lang="zh")
    expect(tab.page).to_have_title("explorer")
    assert tab.page.url == f"{server.address}/explore#view=beam&text=ba%20be&lang=zh"
    tab.close()
    tab = visit(**{"from": "en", "lang": "en"})
    tab.page.evaluate("location.hash = 'text'")  # as the link that skips to the text
    tab.page.wait_for_timeout(200)
    assert tab.text("h1") == "Translate"
    tab.page.evaluate("location.hash = 'layer=mean'")
    expect(tab.page).to_have_title("explorer")


def test_where_no_explorer_is_old_links_say_so(browser: Browser, models: list[Path]) -> None:
    with serving(models) as running, visiting(browser, f"{running.address}/") as tab:
        at(tab, view="beam", text="ba")
        expect(tab.find("#status")).to_contain_text("link of the explorer, which this server does not show")
        tab.find("#text").fill(TWO)
        shows(tab, translated(running, TWO))


def test_what_a_model_writes_is_shown_as_text(visit: Open) -> None:
    tab = visit()
    hostile = "<img src=x onerror=alert(1)>"
    tab.page.route("**/translate", lambda route: route.fulfill(json={"translatedText": hostile}))
    tab.find("#text").fill("ba")
    shows(tab, hostile)
    assert tab.find("#output :not(.word)").count() == 0
