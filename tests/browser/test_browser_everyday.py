"""What people run into within a minute: the first sentence, a mistake, a phone, a model that searches greedily."""

import base64
import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, expect
from test_browser_access import check
from visiting import TEXT, Open, Visit, visiting

from random_models import SHORT, model_file, translator
from served import Server, serving
from transduce.core.model_file import load_model_file, save_model_file
from transduce.explore.offline import offline
from transduce.explore.page_file import page
from transduce.pipeline.datastores import BuildOptions, build_datastore
from transduce.pipeline.pipeline import load

LAYER = "decoder.blocks.0.cross_attention"
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
LONG = "ba de fi go ku " * 5


@pytest.fixture(scope="module")
def greedy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose recipe searches greedily."""
    path = tmp_path_factory.mktemp("greedy") / "greedy.safetensors"
    save_model_file(path, model_file(translator(search={**SHORT, "method": "greedy"})))
    return path


def tap(tab: Visit, place: Locator, at: tuple[float, float] = (0.5, 0.5)) -> None:
    """A finger on a part of what is there."""
    place.scroll_into_view_if_needed()
    tab.page.wait_for_timeout(100)  # scrolling hides the numbers, also while it comes to rest
    box = place.bounding_box()
    assert box
    tab.page.touchscreen.tap(box["x"] + at[0] * box["width"], box["y"] + at[1] * box["height"])


def test_it_opens_on_a_sentence_of_the_models_own(visit: Open, trained_run: Path) -> None:
    kept = load_model_file(trained_run).provenance["examples"]
    tab = visit(text="")
    assert tab.find("#sentence").input_value() == tab.text(".source") == kept[0]
    assert tab.find(".example").all_text_contents() == kept
    tab.find("#model").select_option("random")
    tab.drawn()
    assert tab.find("#sentence").input_value() == "" and "Type a sentence" in tab.text("#view")
    expect(tab.find("#output")).to_have_count(0)
    assert "Zwei Hunde rennen durch den Schnee." in tab.find(".example").all_text_contents()


def test_it_opens_where_attention_is_best_seen(visit: Open, trained_run: Path) -> None:
    opens = load_model_file(trained_run).provenance["opening"]
    tab = visit(text="", unit="tokens")
    state = tab.state()
    assert (state["layer"], state["head"], state["row"]) == (opens["layer"], str(opens["head"]), str(opens["row"]))
    assert tab.find('[data-name="attention"] .chosen-row').count() == 1 and tab.find('[data-name="row"]').count() == 1
    tab.find("#example-1").click()
    tab.drawn()
    later = tab.state()
    assert later["text"] and [later[each] for each in ("layer", "head", "row")] == [
        state[each] for each in ("layer", "head", "row")
    ]
    tab = visit(text="", head=0, layer=opens["layer"])  # the link says where: no row is added
    assert tab.state()["row"] == ""


def test_words_that_were_never_seen_are_marked(visit: Open) -> None:
    tab = visit(model="random", text="ba zzz fi 李")
    assert tab.find(".w.unknown").all_inner_texts() == ["zzz", "李"] and "zzz, 李" in tab.text("#unknown-words")
    assert tab.find("#unknown-output").count() == 0
    tab.go(text="ba fi")
    assert tab.find(".w.unknown, #unknown-words").count() == 0
    told = """(texts) => Boolean(Transduce.unknownOutput({ target: { tokens: texts.map((text) => ({ text })) } }))"""
    cases = {True: [["<unk>", "</s>"], ["[UNK]"]], False: [["</s>"], [], ["<unk>", "fi", "</s>"]]}
    for expected, outputs in cases.items():
        assert all(tab.page.evaluate(told, output) is expected for output in outputs)


@pytest.mark.parametrize("view", ["attention", "positions"])
def test_beside_an_error_there_is_no_translation_of_something_else(visit: Open, view: str) -> None:
    tab = visit(view=view)
    before = tab.text("#output")
    with tab.refusals():
        tab.find("#sentence").fill("1 2 3 " * 2000)
        tab.find("#send").click()
        tab.page.locator("main [role=alert]").wait_for()
        tab.drawn()
    expect(tab.find("#output")).to_have_count(0)
    assert "shorten it" in tab.text("main [role=alert]")
    tab.go(text=TEXT)
    assert tab.text("#output") == before
    assert tab.find("main [role=alert]").count() == 0


def test_a_translation_that_is_waited_for_greys_the_one_before(visit: Open) -> None:
    tab = visit()
    tab.page.evaluate("() => { Transduce.ask.predict = () => new Promise(() => {}); }")  # for ever
    tab.find("#sentence").fill("2 7 1")
    tab.find("#send").click()
    tab.page.wait_for_selector(".prediction.before")
    tab.page.reload()
    tab.drawn()
    assert tab.find(".prediction.before").count() == 0


def test_a_tap_shows_the_number_of_a_cell_and_a_second_one_its_row(visit: Open, explored: Server) -> None:
    tab = visit(PHONE, unit="tokens", layer=LAYER, head=0)
    answer = explored.post("/v1/explore/predict", text=TEXT, model="digits").json()
    (layer,) = [each for each in answer["attention"] if each["name"] == LAYER]
    weights_HTS = np.frombuffer(base64.b64decode(layer["weights"]), "<f4").reshape(layer["shape"])
    cells = tab.find('[data-name="attention"] svg.picture rect[fill]')
    for row, column in [(1, 1), (2, 0)]:
        tap(tab, cells.nth(row * layer["shape"][2] + column))
        expect(tab.find(".tip")).to_be_visible()
        assert f"{weights_HTS[0, row, column]:.3f}" in tab.text(".tip")
        assert tab.state()["row"] == ""
    tap(tab, cells.nth(2 * layer["shape"][2]))
    expect(tab.find('[data-name="row"]')).to_have_count(1)
    assert tab.state()["row"] == "2"


def test_a_tap_elsewhere_hides_what_a_tap_showed(visit: Open) -> None:
    tab = visit(PHONE)
    tap(tab, tab.find("#output .w").first)
    expect(tab.find(".tip")).to_be_visible()
    assert re.search(r"\d+%", tab.text(".tip"))
    shaded = '.source .w[style*="rgb"]'
    assert tab.find(shaded).count() > 0
    tap(tab, tab.find(".figure-title").first)
    expect(tab.find(".tip")).to_be_hidden()
    assert tab.find(shaded).count() == 0


@pytest.mark.parametrize(
    ("state", "place", "told"),
    [
        ({"show": "lines"}, ".lines .columns .word >> nth=1", r"0?\.\d+"),
        ({"view": "probabilities"}, "svg.shares", r"\d+%"),
        ({"view": "training"}, '[data-name="training-loss"] svg.picture', r"\d+ updates"),
        ({"view": "beam"}, ".node >> nth=1", r"probability \d"),
        ({"view": "steps", "layer": LAYER, "step": 6}, ".steps g:has(> title) >> nth=0", r"\d"),
    ],
)
def test_a_tap_shows_numbers_in_every_picture(visit: Open, state: dict[str, str], place: str, told: str) -> None:
    tab = visit(PHONE, **state)
    tap(tab, tab.find(place), (0.3, 0.3))
    expect(tab.find(".tip")).to_be_visible()
    assert re.search(told, tab.text(".tip"))


def test_a_tap_on_a_mask_gives_the_reason_at_once(visit: Open) -> None:
    tab = visit(PHONE, view="masks", query=0)
    tap(tab, tab.find('[data-name="mask"] svg.picture rect[fill]').last)
    tab.page.wait_for_function("Transduce.state().query !== '0'")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_two_long_sentences_are_compared_on_a_phone(visit: Open, language: str) -> None:
    tab = visit(PHONE, view="compare", model="random", text=LONG, text2=LONG.replace("fi", "mo"), lang=language)
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
    for figure in tab.find("#view .figure, #view select").all():
        box = figure.bounding_box()
        assert box and box["x"] >= 0 and box["x"] + box["width"] <= 390


def test_a_greedy_model_is_searched_with_a_beam_on_request(browser: Browser, greedy: Path) -> None:
    with serving([greedy], page=page()) as server, visiting(browser, f"{server.address}/explore") as tab:
        tab.open(view="beam", text="ba de fi")
        assert tab.find('[role="treeitem"]').count() == 0
        assert "without a beam" in tab.text("#view")
        tab.find("#search-beam").click()
        tab.drawn()
        assert tab.state()["beam"] == "5"
        found = server.post("/v1/explore/predict", text="ba de fi", beam=5).json()
        kept = sum(each["kept"] for step in found["lattice"]["steps"] for each in step)
        expect(tab.find('[role="treeitem"]').first).to_be_visible()
        shown = tab.find('[role="treeitem"]').count()  # the start, the best output, and branches that are not folded
        assert 1 + len(found["target"]["tokens"]) <= shown <= 1 + kept


def test_a_saved_page_says_why_there_is_no_tree(browser: Browser, greedy: Path, tmp_path: Path) -> None:
    file = tmp_path / "saved.html"
    at_once = {"kind": "ctc", "d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "tied": "none"}
    convolution = translator(model={"kind": "convolution", "d_model": 16}, search={"method": "greedy"})
    models = {"convolution": convolution, "greedy": load(greedy), "ctc": translator(model=at_once)}
    file.write_text(page(offline(models, ["ba de fi"])), encoding="utf-8")
    with visiting(browser, file.as_uri()) as tab:
        tab.open(view="beam", text="ba de fi")
        assert "when it was saved" in tab.text("#view") and "transduce explore" in tab.text("#view")
        assert tab.find("#view button, #view select").count() == 0
        tab.go(model="greedy")  # runs in the page
        tab.find("#search-beam").click()
        tab.page.wait_for_selector("#view svg")
        tab.go(model="ctc")  # writes all words at once: there is no beam, and no training was saved
        assert not {"Beam", "Training"} & set(tab.find("#views li").all_inner_texts())


def test_a_wrong_key_is_said_to_be_wrong(browser: Browser, greedy: Path) -> None:
    with (
        serving([greedy], page=page(), api_key="secret") as server,
        visiting(browser, f"{server.address}/explore") as tab,
    ):
        with tab.refusals():
            tab.page.goto(f"{server.address}/explore")
            tab.page.wait_for_selector("#api-key")
            assert tab.find("#key-wrong").count() == 0
            tab.page.fill("#api-key", "guessed")
            tab.page.press("#api-key", "Enter")
            expect(tab.find("#key-wrong")).to_have_text("The server does not accept this key.")
        tab.page.fill("#api-key", "secret")
        tab.page.press("#api-key", "Enter")
        tab.page.wait_for_selector("#sentence")


def test_errors_and_metrics_are_in_the_pages_language(visit: Open, explored: Server) -> None:
    tab = visit(lang="zh")
    with tab.refusals():
        tab.find("#sentence").fill("1 2 3 " * 200)
        tab.find("#send").click()
        tab.page.wait_for_selector("#view .error")
    told = tab.text("#view .error")
    assert "请缩短" in told and "tokens" not in told
    messages = ["the server is busy; try again in 3 s.", "something new"]
    assert tab.page.evaluate("(all) => all.map(Transduce.told)", messages) == [
        "服务器正忙，请在 3 秒后重试。",
        "服务器返回：something new",
    ]
    answer = explored.post("/v1/explore/predict", model="digits", text="1 2 3 " * 200)
    assert "shorten" in answer.json()["error"]
    tab.go(text=TEXT, view="training")
    assert "完全匹配率" in tab.text("#view") or "BLEU" in tab.text("#view")


@pytest.mark.parametrize(
    ("report", "old", "told"), [(True, True, "finished"), (False, True, "stopped"), (False, False, "now at")]
)
def test_a_stopped_run_says_so(browser: Browser, trained_run: Path, tmp_path: Path, report, old, told) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("model.safetensors", "log.jsonl", "recipe.toml", *(["report.json"] if report else [])):
        shutil.copy(trained_run / name, run / name)
    if old:
        os.utime(run / "log.jsonl", (1e9, 1e9))
    with serving([run], page=page()) as server, visiting(browser, f"{server.address}/explore") as tab:
        tab.open(view="training")
        assert told in tab.text("#training-status")


def test_a_curve_of_one_point_is_seen(browser: Browser, trained_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "model.safetensors").write_bytes((trained_run / "model.safetensors").read_bytes())
    lines = (trained_run / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run / "log.jsonl").write_text(next(line for line in lines if json.loads(line)["event"] == "train"), "utf-8")
    (run / "report.json").write_text("{}", encoding="utf-8")
    with serving([run], page=page()) as server, visiting(browser, f"{server.address}/explore") as tab:
        tab.open(view="training")
        for name in ("loss", "learning-rate", "speed"):
            assert tab.find(f'[data-name="training-{name}"] circle.curve-dot:not([visibility])').count() == 1, name


def test_each_token_names_the_pair_of_the_memory_that_it_came_from(browser: Browser, tmp_path: Path) -> None:
    model, store, file = translator(), tmp_path / "memory.datastore", tmp_path / "saved.html"
    pairs = [(1, "ba be bi do", "ka le mo"), (2, "fi go", "mo ka")]
    build_datastore(model, pairs, store, BuildOptions(knn={"k": 1, "weight": 0.9, "temperature": 100.0}))
    file.write_text(page(offline({"m": model}, ["ba be bi do"], datastores={"m": store})), encoding="utf-8")
    origins = model.predict("ba be bi do", datastore=store, origins=True, protect=False).origins
    from_memory = [each for each in origins if each.entries]
    assert from_memory
    with visiting(browser, file.as_uri()) as tab:
        tab.open(view="probabilities", text="ba be bi do")
        rows = tab.find("#origins tbody tr")
        expect(rows).to_have_count(len(origins))
        for origin, row in zip(origins, rows.all(), strict=True):
            said = f"pair {origin.entries[0].pair}," if origin.entries else "—"
            expect(row.locator("td").last).to_contain_text(said)
        check(tab, "memory")
        tab.find("#nbest-1").click()
        expect(tab.find("#origins")).to_have_count(0)
