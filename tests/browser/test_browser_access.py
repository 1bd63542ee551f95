"""Everybody can use the page: axe-core finds nothing, keys reach every control, it is narrow where it must be."""

import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from visiting import VIEWS, Open, Visit

PAGE = Path(__file__).parents[2] / "src" / "transduce" / "explore" / "page"
RULES = {"rules": {"label-content-name-mismatch": {"enabled": True}}}
MORE = {"compare": {"text2": "3 1 4 1 6"}, "attention": {"row": 1, "worth": 1}}


def check(tab: Visit, where: str) -> None:
    """axe-core's own rules, best practices included, and one that axe-core counts as experimental."""
    found = Axe().run(tab.page, options=RULES).response["violations"]
    told = [
        f"{where}: {each['id']}: {each['help']}: {[node['html'][:200] for node in each['nodes'][:3]]}" for each in found
    ]
    assert not told, "\n".join(told)


@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("zh", "dark")])
def test_axe_finds_nothing(visit: Open, language: str, theme: str) -> None:
    tab = visit(theme=theme, lang=language)
    for view in VIEWS:
        tab.go(view=view, **MORE.get(view, {}))
        check(tab, f"{view} {theme} {language}")
    tab.go(view="attention", show="lines")
    check(tab, f"lines {theme} {language}")
    tab.find("#help").click()
    check(tab, f"help {theme} {language}")


def test_axe_finds_nothing_where_pictures_scroll(visit: Open) -> None:
    tab = visit({"viewport": {"width": 390, "height": 800}})
    for view in VIEWS:
        tab.go(view=view, step=9, **MORE.get(view, {}))
        check(tab, f"{view} at 390 pixels")


def test_axe_finds_nothing_in_tables_and_in_an_empty_page(visit: Open) -> None:
    tab = visit(text="", model="random")
    check(tab, "empty")
    tab = visit(view="attention")
    tab.find('[data-figure="attention"]').click()
    check(tab, "table")


# What has the focus, and whether one sees that: an outline, or a thick frame around a part of a picture.
FOCUSED = """() => {
  const here = document.activeElement;
  if (here === document.body) return null;
  const look = getComputedStyle(here);
  const outlined = look.outlineStyle !== "none" && parseFloat(look.outlineWidth) > 0;
  const frames = [...here.querySelectorAll(".tile-frame, .node-back, .catch")];
  const framed = frames.some((frame) => parseFloat(getComputedStyle(frame).strokeWidth) >= 2);
  return [outlined || framed, here.outerHTML.slice(0, 120)];
}"""


def test_every_control_is_reached_by_tab_and_shows_its_focus(visit: Open) -> None:
    for view in VIEWS:
        tab = visit(view=view, **MORE.get(view, {}))
        wanted = tab.page.evaluate(
            """() => [...document.querySelectorAll("button, a[href], input, select, textarea, [tabindex='0']")]
              .filter((each) => !each.disabled && each.tabIndex >= 0 && each.getClientRects().length).length"""
        )
        tab.page.evaluate("document.activeElement.blur()")
        reached, unseen = 0, []
        for _ in range(wanted + 1):
            tab.page.keyboard.press("Tab")
            told = tab.page.evaluate(FOCUSED)
            if told is None:
                break
            reached += 1
            if not told[0]:
                unseen.append(told[1])
        assert reached == wanted, view
        assert not unseen, (view, unseen)
        tab.close()


def test_keys_change_what_is_shown(visit: Open) -> None:
    tab = visit()
    press = tab.page.keyboard.press
    for key, name, value in [
        ("l", "show", "lines"),
        ("m", "show", "matrix"),
        ("w", "unit", "tokens"),
        ("d", "theme", "dark"),
    ]:
        press(key)
        tab.drawn()
        assert tab.state()[name] == value
    press("h")
    tab.drawn()
    first = tab.state()["head"]
    press("H")
    press("3")
    tab.drawn()
    assert first == "0" and tab.state()["view"] == "beam" and tab.state()["head"] == "mean"
    press("/")
    assert tab.page.evaluate("document.activeElement.id") == "sentence"


def test_help_lists_the_keys_and_escape_closes_it(visit: Open) -> None:
    tab = visit()
    tab.page.keyboard.press("?")
    expect(tab.find("dialog[open]")).to_be_visible()
    assert tab.find("dialog kbd").count() >= 12
    tab.page.keyboard.press("Escape")
    expect(tab.find("dialog")).to_have_count(0)


def test_arrow_keys_choose_heads_in_the_overview(visit: Open) -> None:
    tab = visit(layer="decoder.blocks.0.cross_attention", head=0)
    tab.find('.tile[tabindex="0"]').focus()
    tab.page.keyboard.press("ArrowRight")
    tab.drawn()
    assert tab.state()["head"] == "1"
    assert tab.page.evaluate("document.activeElement.getAttribute('aria-checked')") == "true"


def test_a_row_walked_to_is_announced(visit: Open) -> None:
    tab = visit()
    tab.find('[data-name="attention"] svg.picture').focus()
    tab.page.keyboard.press("ArrowRight")
    expect(tab.find("body > .unseen[role=status]")).to_contain_text("→")


@pytest.mark.parametrize("width", [400, 390, 320])
def test_a_narrow_page_does_not_scroll_sideways(visit: Open, width: int) -> None:
    tab = visit({"viewport": {"width": width, "height": 800}})
    for language in ("en", "zh"):
        for view in VIEWS:
            tab.go(view=view, lang=language, **MORE.get(view, {}))
            assert tab.page.evaluate("document.documentElement.scrollWidth") <= width, view


def test_chinese_says_everything(visit: Open) -> None:
    tab = visit(lang="zh")
    for view in VIEWS:
        tab.go(view=view, **MORE.get(view, {}))
        assert "⟨" not in tab.text("body")
    tab.find("#help").click()
    assert tab.page.evaluate("[...(Transduce.missing || [])]") == []
    assert tab.find("html").get_attribute("lang") == "zh-Hans"
    assert tab.text("#tab-attention") == "注意力"


def test_both_languages_have_the_same_texts(visit: Open) -> None:
    texts = visit().page.evaluate("Transduce.texts")
    assert texts["en"].keys() == texts["zh"].keys()
    for key, text in texts["en"].items():
        assert names(text) == names(texts["zh"][key]), key
        assert texts["zh"][key].strip() and text.strip(), key


def names(text: str) -> set[str]:
    """The {names} in a text."""
    return {part.split("}")[0] for part in text.split("{")[1:]}


def test_texts_are_used_and_uses_have_texts() -> None:
    """A key named outright in a script is in the table, and no text of the table is left over."""
    scripts = "\n".join(
        path.read_text(encoding="utf-8") for path in PAGE.glob("*.js") if not path.name.startswith("text_")
    )
    texts = "\n".join(path.read_text(encoding="utf-8") for path in PAGE.glob("text_*en.js"))
    keys = set(re.findall(r'^\s*"?([\w.-]+)"?:', texts, re.M))
    outright = set(re.findall(r'T\.say\("([\w.-]+)"', scripts))
    assert outright <= keys, outright - keys
    begun = set(re.findall(r"`([\w.]+\.)\$\{", scripts))
    left = {key for key in keys if f'"{key}"' not in scripts and not any(key.startswith(prefix) for prefix in begun)}
    assert not left, left


def test_the_language_is_the_browsers_unless_the_link_says(visit: Open) -> None:
    assert visit({"locale": "zh-CN"}).find("html").get_attribute("lang") == "zh-Hans"
    tab = visit({"locale": "zh-CN"}, lang="en")
    assert tab.find("html").get_attribute("lang") == "en"
    tab.find("#language").click()
    tab.drawn()
    assert tab.find("html").get_attribute("lang") == "zh-Hans" and "lang=zh" in tab.page.url


def test_colours_follow_the_system_until_somebody_chooses(visit: Open) -> None:
    tab = visit({"color_scheme": "dark"})
    assert tab.find("html").get_attribute("data-theme") == "dark"
    tab.page.emulate_media(color_scheme="light")
    tab.page.wait_for_selector('html[data-theme="light"]')
    tab.find("#theme").click()
    tab.drawn()
    assert tab.find("html").get_attribute("data-theme") == "dark" and "theme=dark" in tab.page.url


def test_nothing_moves_for_those_who_asked_for_that(visit: Open) -> None:
    tab = visit()
    assert tab.page.evaluate("getComputedStyle(document.querySelector('.w')).transitionDuration") == "0s"


def test_tables_hold_the_numbers_of_the_picture(visit: Open) -> None:
    tab = visit(unit="tokens", layer="decoder.blocks.0.cross_attention", head=0)
    tab.find('[data-figure="attention"]').click()
    rows = tab.find('[data-name="attention"] tbody tr').all()
    cells = [[float(text) for text in row.locator("td").all_inner_texts()] for row in rows]
    assert cells and all(abs(sum(row) - 1) < 0.02 for row in cells)
