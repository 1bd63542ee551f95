"""What models and people write is text, and the page asks nobody but its server; the saved file asks nobody at all."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Route
from visiting import TEXT, VIEWS, Open, Visit, visiting

from random_models import model_file, translator
from served import serving
from text_columns import text_columns
from transduce.core.model_file import save_model_file
from transduce.data.columns.packed import pack
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.explore.offline import offline
from transduce.explore.page_file import page
from transduce.pipeline.pipeline import load

WORDS = (
    "<script>window.hacked=1</script>",
    "<img/src=x/onerror=window.hacked=1>",
    '"><svg/onload=window.hacked=1>',
    "</script><script>window.hacked=1</script>",
    "&lt;b&gt;",
    "javascript:window.hacked=1",
    "{{hacked}}",
    "${hacked}",
)


@pytest.fixture(scope="module")
def hostile_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random translator whose every word is an attack."""
    pipeline = translator()
    size = pipeline.task.tokenizers["target"].size
    attacks = [f"{word}{number}" for number in range(size) for word in WORDS]
    settings = TokenizerConfig(kind="whitespace", vocabulary=size, min_frequency=1)
    tokenizer = train_tokenizer(settings, [" ".join(attacks)])
    assert tokenizer.size == size
    made = model_file(pipeline)
    packed = pack(text_columns(tokenizer, tokenizer))[0]
    path = tmp_path_factory.mktemp("hostile") / "<b>hostile.safetensors"
    save_model_file(path, replace(made, tokenizers=packed))
    return path


def attacked(tab: Visit) -> None:
    """Goes everywhere; nothing of it ran, nothing of it became an element."""
    with tab.refusals():
        for view in VIEWS:
            tab.go(view=view, dropped="1", text2=f"{WORDS[1]}1")
            assert tab.page.evaluate("window.hacked") is None
            assert tab.find("main script, main img, main b, main i").count() == 0
            tab.page.mouse.move(300, 700)
            for figure in tab.find("[data-figure]").all():
                figure.click()
            assert tab.page.evaluate("window.hacked") is None


def test_markup_is_shown_as_text(browser: Browser, hostile_file: Path) -> None:
    text = f"{WORDS[0]}1 {WORDS[1]}2 {WORDS[2]}3"
    with (
        serving([f"<b>hostile={hostile_file}"], page=page()) as server,
        visiting(browser, f"{server.address}/explore") as tab,
    ):
        tab.open(text=text)
        assert tab.find("#sentence").input_value() == text
        assert tab.text(".source") == text
        assert "window.hacked" in tab.text("#output") or "<" in tab.text("#output")
        attacked(tab)


def test_markup_inside_the_saved_file_is_text_too(browser: Browser, hostile_file: Path, tmp_path: Path) -> None:
    text = f"{WORDS[3]}1 {WORDS[0]}2"
    file = tmp_path / "saved.html"
    file.write_text(page(offline({"</script>": load(hostile_file)}, [text])), encoding="utf-8")
    with visiting(browser, file.as_uri()) as tab:
        tab.open()
        assert tab.text(".source") == text
        attacked(tab)


def test_a_hostile_link_is_a_state_like_any_other(visit: Open) -> None:
    attack = '"><img src=x onerror=window.hacked=1>'
    tab = visit(view=attack, lang=attack, theme=attack, layer=attack, head=attack, row=attack, node=attack, kind=attack)
    assert tab.page.evaluate("window.hacked") is None
    with tab.refusals():
        for view in VIEWS:
            tab.go(view=view, query=attack, step=attack, best=attack, position=attack)
            assert tab.find("#view .error").count() == 0, view


def test_the_policy_allows_no_inline_style_or_foreign_script(visit: Open) -> None:
    policy = visit().page.request.get(visit().address).headers["content-security-policy"]
    assert "unsafe" not in policy and "http:" not in policy and "https:" not in policy


@pytest.fixture(scope="module")
def saved_file(trained_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model's page in one file."""
    file = tmp_path_factory.mktemp("saved") / "saved.html"
    data = offline({"digits": load(trained_run)}, [TEXT, "2 7"], trained_run)
    file.write_text(page(data), encoding="utf-8")
    return file


@pytest.fixture
def saved(browser: Browser, saved_file: Path) -> Iterator[Visit]:
    """The one file, opened with the network off."""
    with visiting(browser, saved_file.as_uri(), alone=True) as tab:
        tab.context.set_offline(True)
        tab.context.route(
            "**/*", lambda route: route.continue_() if route.request.url.startswith("file:") else gone(tab, route)
        )
        yield tab


def gone(tab: Visit, route: Route) -> None:
    """Nothing may be asked."""
    tab.problems.append(f"asked {route.request.url}")
    route.abort()


def test_the_saved_file_works_with_the_network_off(saved: Visit, trained_run: Path) -> None:
    saved.open()
    (wanted,) = load(trained_run).predict([TEXT], protect=False)
    assert saved.text("#output") == wanted.text
    for view in VIEWS:
        saved.go(view=view, worth=1)
        assert saved.find("#view .error").count() == 0, view
    files = {url for url in saved.requests if url.startswith("file:")}
    assert {url.split("#")[0] for url in files} == {saved.address}
    assert not [url for url in saved.requests if url.startswith(("http", "ws"))]


def test_the_saved_file_says_what_needs_the_model(saved: Visit) -> None:
    saved.open()
    assert saved.find("#send").is_disabled() and "transduce explore" in saved.text("#composer-hint")
    saved.go(view="steps")
    assert "transduce explore" in saved.text("#view")
    saved.find("#see-example").click()
    saved.drawn()
    assert "112" in saved.find(".picture.steps .number").all_text_contents()


def test_the_saved_file_holds_all_its_sentences(saved: Visit) -> None:
    saved.open()
    saved.find("#example-1").click()
    saved.drawn()
    assert saved.state()["text"] == "2 7" and saved.text(".source") == "2 7"
    saved.go(view="attention", kind="encoder", layer="rollout")
    assert "roll-out" in saved.text('[data-name="attention"] .figure-title')
    saved.go(view="compare", text2=TEXT)
    assert saved.find('[data-name="compare-A"]').count() == 1


def test_the_saved_file_saves_its_figures(saved: Visit) -> None:
    saved.open()
    for kind in ("svg", "png"):
        with saved.page.expect_download() as waiting:
            saved.find('[data-saves="attention"]').click()
            saved.find(f'[data-name="attention"] [data-save="{kind}"]').click()
        assert Path(waiting.value.path()).stat().st_size > 500
