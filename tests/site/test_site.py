"""What all stops have: texts in both languages, a question, links that lead somewhere, nothing hard to reach."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urlsplit

import pytest

from transduce.site.build import PAGE
from transduce.site.stops import FOLDER, LANGUAGES, STOPS, spoken, stops, texts

NAMES = stops()
WIDTHS = (390, 1440)


def test_every_stop_is_there() -> None:
    assert stops() == [name for name in STOPS if name in {path.stem for path in FOLDER.glob("*.js")}]


def each_text(found: Any, path: str = "") -> list[tuple[str, Any]]:
    """Where a text stands, and the text, at any depth."""
    if isinstance(found, str) or (isinstance(found, dict) and set(found) & set(LANGUAGES)):
        return [(path, found)]
    items = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else ()
    return [each for key, value in items for each in each_text(value, f"{path}/{key}")]


@pytest.mark.parametrize("name", ["frame", *NAMES])
def test_both_languages_say_everything(name: str) -> None:
    """Both are there, with the same {names}; only addresses, titles of papers and assets have one."""
    for path, text in each_text(texts(name)):
        if isinstance(text, str):
            assert re.match(r"/(sources|needs)/", path), path
            continue
        assert set(text) == set(LANGUAGES), path
        assert all(text.values()), path
        names = [sorted(re.findall(r"\{\w+\}", each)) for each in text.values()]
        assert names[0] == names[1], path


@pytest.mark.parametrize("name", NAMES)
def test_a_stop_has_a_question_with_wrong_answers(name: str) -> None:
    question = texts(name)["question"]
    assert len(question["answers"]) >= 3
    assert 0 <= question["right"] < len(question["answers"])
    assert all(set(answer) == {"text", "why"} for answer in question["answers"])


@pytest.mark.parametrize("name", NAMES)
def test_what_a_script_says_is_written_and_what_is_written_is_said(name: str) -> None:
    script = (FOLDER / f"{name}.js").read_text(encoding="utf-8")
    written = set(texts(name).get("says", {}))
    said = set(re.findall(rf'"{name}\.([\w.-]+)"', script))
    begun = tuple(re.findall(rf"`{name}\.([\w.-]*)\$", script))
    assert said <= written
    assert all(key in said or (begun and key.startswith(begun)) for key in written)


def test_one_language_of_texts_is_taken_at_any_depth() -> None:
    both = {"a": {"en": "one", "zh": "一"}, "b": [{"en": "two", "zh": "二"}], "c": "paper"}
    assert spoken(both, "zh") == {"a": "一", "b": ["二"], "c": "paper"}


class Links(HTMLParser):
    """Addresses in a page, and the names that one can be led to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.addresses, self.names = list[str](), set[str]()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.addresses += [value for key in ("href", "src") if (value := told.get(key))]
        self.names |= {value for key in ("id", "name") if (value := told.get(key))}


def test_links_lead_somewhere(site: Path) -> None:
    """But into docs/, which are built beside these pages."""
    pages = {path: Links(path) for path in site.rglob("*.html")}
    assert len(pages) == 1 + len(LANGUAGES) * (1 + len(NAMES))
    for path, page in pages.items():
        for address in page.addresses:
            where, name = urldefrag(address)
            if urlsplit(address).scheme or "docs/" in address:
                continue
            target = (path.parent / where).resolve() if where else path
            assert target.is_file(), f"{path}: {address}"
            assert not name or name in pages[target].names, f"{path}: {address}"


def test_the_first_page_is_small(site: Path) -> None:
    """1.5 MB in all, its model included."""
    page = site / "en" / "it.html"
    needed = [page, *((page.parent / each).resolve() for each in Links(page).addresses if "assets" in each)]
    assert sum(path.stat().st_size for path in needed) <= 1_500_000


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_missing_wider_than_the_window_or_hard_to_reach(opened, axe, name, language, width) -> None:
    page = opened(name, language, width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#stop > *").count()
    if LANGUAGES.index(language) != WIDTHS.index(width):  # each language and each width in one of the two themes
        page.click("#theme")
    assert axe(page) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_question_is_checked(opened, name) -> None:
    page = opened(name)
    right = texts(name)["question"]["right"]
    for place in range(len(texts(name)["question"]["answers"])):
        page.check(f"input[name=answer][value='{place}']")
        told = page.locator(".why:visible")
        assert told.count() == 1
        assert told.text_content().startswith("Right." if place == right else "Not quite.")


def test_the_other_language_shows_the_same(opened) -> None:
    page = opened("it")
    page.fill("#typed", "The dog didn't cross the river because it was too deep.")
    page.click("#language")
    page.wait_for_selector("#stop[data-drawn]")
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"
    assert page.input_value("#typed") == "The dog didn't cross the river because it was too deep."


def test_texts_are_json_with_no_key_twice() -> None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        assert len(keys) == len(set(keys)), keys
        return dict(pairs)

    for path in FOLDER.glob("*.json"):
        json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=once)


ASSIGNED = re.compile(r"\b(?:T|Transduce)\.(\w+)\s*(?:\?\?)?=[^=]")


@pytest.mark.parametrize("name", NAMES)
def test_a_page_loads_what_its_script_uses(site: Path, name: str) -> None:
    """Every T.name of a stop's script, and of the parts that it names, is set by a script of the page."""
    page = site / "en" / f"{name}.html"
    loaded = [(page.parent / each).resolve() for each in Links(page).addresses if each.endswith(".js")]
    scripts = {path: path.read_text(encoding="utf-8") for path in loaded}
    known = {each for text in scripts.values() for each in ASSIGNED.findall(text)} | {"recordings"}  # loaded if chosen
    parts = {path.stem for path in (PAGE / "parts").glob("*.js")}
    own = [text for path, text in scripts.items() if path.parent.name == "stops" or path.stem in parts]
    used = {each for text in own for each in re.findall(r"\bT\.(\w+)\b(?!\s*(?:\?\?)?=[^=])", text)}
    assert used - known == set()
