"""The explorer as people use it, in a real browser with a trained model behind it."""

import base64
import io
import json
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from playwright.sync_api import Browser, expect
from visiting import TEXT, VIEWS, Open, Visit, visiting

from served import Server, serving
from transduce.explore.page_file import page
from transduce.pipeline.pipeline import load

LAYER = "decoder.blocks.0.cross_attention"
SVG = "{http://www.w3.org/2000/svg}"


def exploration(server: Server, **asked: object) -> dict:
    """What the server says of a sentence."""
    answer = server.post("/v1/explore/predict", **{"text": TEXT, "model": "digits", **asked})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_translates_what_is_typed(visit: Open, trained_run: Path) -> None:
    tab = visit()
    tab.find("#sentence").fill("2 7 1")
    tab.find("#send").click()
    (wanted,) = load(trained_run).predict(["2 7 1"], protect=False)
    expect(tab.find("#said")).to_have_text(f"Output: {wanted.text}")
    expect(tab.find("#output")).to_have_text(wanted.text)
    assert tab.state()["text"] == "2 7 1"


def test_nothing_typed_is_met_with_a_hint(visit: Open) -> None:
    tab = visit(text="", model="random")
    assert "Type a sentence" in tab.text("#view")
    assert not [url for url in tab.requests if "predict" in url]


def test_a_head_is_opened_and_its_numbers_are_the_models(visit: Open, explored: Server) -> None:
    tab = visit(unit="tokens")
    tab.find("#tile-cross-decoder-blocks-0-cross-attention-1").click()
    tab.drawn()
    assert tab.text('[data-name="attention"] .figure-title') == "Cross-attention, layer 1, head 2"
    (layer,) = [each for each in exploration(explored)["attention"] if each["name"] == LAYER]
    weights_HTS = np.frombuffer(base64.b64decode(layer["weights"]), "<f4").reshape(layer["shape"])
    picture = tab.find('[data-name="attention"] svg.picture')
    for row, column in [(0, 0), (2, 3), (layer["shape"][1] - 1, layer["shape"][2] - 1)]:
        picture.focus()
        tab.page.keyboard.press("ArrowLeft")  # shows the cell in focus; then to the corner
        for key in ["Home", *["ArrowUp"] * 9, *["ArrowDown"] * row, *["ArrowRight"] * column]:
            tab.page.keyboard.press(key)
        assert f"{weights_HTS[1, row, column]:.3f}" in tab.text(".tip")


def test_colours_go_from_0_to_1_until_they_are_stretched(visit: Open) -> None:
    tab = visit(layer=LAYER, head="mean", unit="tokens")
    shown = """() => {
      const choice = Transduce.chosen(Transduce.shown), cells = [...document.querySelectorAll(
        '[data-name="attention"] .picture > g > rect[rx]')].map(cell => cell.getAttribute("fill"));
      const { values } = Transduce.matrix(Transduce.shown, choice, "tokens");
      const most = Transduce.largest(values);
      return [cells[values.indexOf(most)], Transduce.weightColour(most), Transduce.weightColour(1), most];
    }"""
    cell, fixed, full, most = tab.page.evaluate(shown)
    assert cell == fixed != full
    legend = tab.find('[data-name="attention"] .legend')
    assert legend.inner_text().split() == ["0.000", "1.00"] and tab.find(".stretched").count() == 0
    tab.find("#stretch-attention").click()
    tab.drawn()
    assert tab.page.evaluate(shown)[0] == full
    assert f"{most:.3f}" in tab.text('[data-name="attention"] .stretched') and f"{most:.3f}" in legend.inner_text()
    assert "stretch=1" in tab.page.url


def test_hovering_gives_the_numbers_and_leaving_hides_them(visit: Open, explored: Server) -> None:
    tab = visit(unit="tokens", layer=LAYER, head=0)
    (layer,) = [each for each in exploration(explored)["attention"] if each["name"] == LAYER]
    weights_HTS = np.frombuffer(base64.b64decode(layer["weights"]), "<f4").reshape(layer["shape"])
    tab.find('[data-name="attention"] svg.picture rect[fill]').nth(layer["shape"][2] + 1).hover()
    expect(tab.find(".tip")).to_be_visible()
    assert f"{weights_HTS[0, 1, 1]:.3f}" in tab.text(".tip")
    tab.page.mouse.move(2, 2)
    expect(tab.find(".tip")).to_be_hidden()


def test_pointing_at_an_output_word_shades_what_it_looks_at(visit: Open) -> None:
    tab = visit()
    tab.find("#output .w").first.hover()
    shaded = [word for word in tab.find(".source .w").all() if "rgb" in (word.get_attribute("style") or "")]
    assert shaded


def test_lines_between_words_follow_a_word(visit: Open) -> None:
    tab = visit(show="lines")
    threads = tab.find(".thread")
    assert threads.count() > 5
    tab.find(".lines .rows .word").nth(1).hover()
    lit = [each for each in threads.all() if float(each.get_attribute("stroke-opacity") or 0) > 0]
    assert 0 < len(lit) < threads.count()


def test_a_row_is_marked_and_shown_in_every_head(visit: Open) -> None:
    tab = visit(kind="encoder")
    tab.find('[data-name="attention"] svg.picture').focus()
    tab.page.keyboard.press("ArrowDown")
    tab.page.keyboard.press("Enter")
    tab.drawn()
    assert tab.state()["row"] == "1"
    assert tab.find('[data-name="row"] .names.rows text').all_text_contents() == ["1.1", "1.2"]


def test_means_and_roll_out(visit: Open) -> None:
    tab = visit(kind="encoder", layer="rollout")
    assert tab.text('[data-name="attention"] .figure-title') == "Encoder self-attention, roll-out"
    tab.go(layer="encoder.blocks.0.self_attention", head="mean")
    assert tab.text('[data-name="attention"] .figure-title').endswith("mean of heads")


def number_of(text: str) -> float:
    """A number as the page writes it, in scientific notation too."""
    digits, _, power = text.replace("−", "-").partition(" × 10")
    return float(digits) * 10.0 ** int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")) or 0)


def test_which_heads_matter_is_measured_on_request(visit: Open, explored: Server) -> None:
    tab = visit()
    assert not [url for url in tab.requests if url.endswith("/heads")]
    tab.find("#measure").click()
    tab.page.wait_for_selector('[data-name="heads"]')
    answer = explored.post("/v1/explore/heads", text=TEXT, model="digits").json()
    shown = [number_of(text) for text in tab.find(".bar-number").all_text_contents()]
    assert shown == pytest.approx(sorted(each["change"] for each in answer["heads"]), rel=0.06, abs=1e-12)
    assert "other heads may do the same" in tab.text('[data-name="heads"] .note')


def test_small_changes_are_written_in_scientific_notation(visit: Open) -> None:
    tab = visit()
    told = tab.page.evaluate("[0, -8.97, 0.0123, -3.24e-5, 2.96e-4, 12345].map(Transduce.scientific)")
    assert told == ["0", "−8.97", "0.0123", "−3.2 × 10⁻⁵", "3.0 × 10⁻⁴", "1.2 × 10⁴"]


def test_why_not_another_output(visit: Open, explored: Server) -> None:
    tab = visit(view="probabilities")
    tab.find("#why").fill("five one four one three three")
    tab.find("#why-ask").click()
    tab.page.wait_for_selector('[data-name="why-words"]')
    own = exploration(explored)["nbest"][0]["tokens"]
    asked = {"text": TEXT, "model": "digits", "target": own, "other": "five one four one three three"}
    answer = explored.post("/v1/explore/why", **asked).json()
    numbers = [number_of(text) for text in tab.find('[data-name="why"] .number').all_text_contents()]
    expected = [each["log_probability"] for name in ("own", "other") for each in answer[name]["tokens"]]
    assert numbers == pytest.approx(expected, rel=0.06, abs=1e-12)
    lost = [each["likeliest"]["log_probability"] - each["log_probability"] for each in answer["other"]["tokens"]]
    worst = answer["other"]["tokens"][lost.index(max(lost))]["token"]
    assert tab.text(".worst .piece") == worst and f"“{worst}”" in tab.text("#why-told")
    bars = [number_of(text) for text in tab.find('[data-name="why-words"] .bar-number').all_text_contents()]
    assert bars == pytest.approx([each["other"] - each["own"] for each in answer["words"]], rel=0.06, abs=1e-9)
    tab.find("#sentence").fill("1 2 3")
    tab.find("#send").click()
    tab.drawn()
    assert tab.state()["why"] == "" and tab.find("#why-answer").count() == 0


def test_probabilities_and_other_outputs(visit: Open, explored: Server) -> None:
    tab = visit(view="probabilities")
    found = exploration(explored)
    assert tab.find(".share-token").all_text_contents() == [each["text"] for each in found["target"]["tokens"]]
    assert tab.find(".nbest-text").all_text_contents() == [each["text"] or "(nothing)" for each in found["nbest"]]
    tab.find("#nbest-1").click()
    tab.drawn()
    assert tab.state()["best"] == "1"


def test_the_beam_is_walked_by_keyboard(visit: Open, explored: Server) -> None:
    tab = visit(view="beam")
    steps = exploration(explored)["lattice"]["steps"]
    tab.find('.node[tabindex="0"]').focus()
    tab.page.keyboard.press("Home")
    tab.drawn()
    path: list[str] = []
    for _ in range(3):
        tab.page.keyboard.press("ArrowDown")
        tab.drawn()
        step, place = map(int, tab.state()["node"].split("."))
        path.append(steps[step][place]["text"].removeprefix("▁"))
        assert step + 1 == len(path) and tab.page.evaluate("document.activeElement.dataset.key") == tab.state()["node"]
        assert tab.find(".beam-path .piece").all_text_contents() == path
    tab.page.keyboard.press("ArrowRight")
    tab.drawn()
    assert tab.state()["node"].split(".")[0] == "2"
    tab.page.keyboard.press("ArrowUp")
    tab.drawn()
    step, place = map(int, tab.state()["node"].split("."))
    children = [each for each in steps[step + 1] if each["parent"] == place]
    assert tab.find(".next li").count() == len(children)


def test_a_wider_beam_is_asked_for(visit: Open, explored: Server) -> None:
    tab = visit(view="beam")
    tab.find("#beam-width").select_option("5")
    tab.drawn()
    steps = exploration(explored, beam=5)["lattice"]["steps"]
    ways = finished_ways(steps)
    expect(tab.find('[role="treeitem"]')).to_have_count(len(ways) + 1)
    folded = {
        (step - 1, each["parent"])
        for step, row in enumerate(steps)
        for place, each in enumerate(row)
        if each["kept"] and (step, place) not in ways
    }
    assert tab.find(".node-more").count() == len(folded & {*ways, (-1, -1)})
    box = tab.find('[data-name="beam"] .scroll')
    assert box.evaluate("(box) => box.scrollWidth <= box.clientWidth"), "the tree fits its card"
    best = tab.find(".node.best").all()
    places = [each.evaluate("(node) => node.transform.baseVal[0].matrix.e") for each in best]
    assert len(best) > 2 and set(places) == {0}, "the best output goes straight down"
    tab.find("#dropped").check()
    tab.drawn()
    expect(tab.find('[role="treeitem"]')).to_have_count(sum(map(len, steps)) + 1)


def finished_ways(steps: list) -> set[tuple[int, int]]:
    """Step and place of every candidate on the way to an output that was finished."""
    found = set()
    for step, row in enumerate(steps):
        for place, each in enumerate(row):
            if each["finished"] and each["kept"]:
                at = (step, place)
                while at[1] >= 0:
                    found.add(at)
                    at = (at[0] - 1, steps[at[0]][at[1]]["parent"])
    return found


def test_steps_show_the_models_numbers_and_the_worked_example(visit: Open, explored: Server) -> None:
    tab = visit(view="steps", layer=LAYER, head=1, query=2)
    numbers = explored.post("/v1/explore/steps", text=TEXT, model="digits", name=LAYER, head=1, query=2).json()
    for _ in range(tab.find(".stepper-steps li").count() - 1):
        tab.find("#step-next").click()
        tab.drawn()
    shown = [text.replace("−", "-") for text in tab.find(".picture.steps .number").all_text_contents()]
    for weight in numbers["weights"]:
        assert f"{weight:.3f}" in shown
    assert tab.find("#step-next").is_disabled()
    tab.go(example="1", step=3)
    assert {"112", "96", "14", "12", "0.881", "0.119"} <= set(tab.find(".picture.steps .number").all_text_contents())


def test_masks_name_the_query_and_the_reason(visit: Open, explored: Server) -> None:
    tab = visit(view="masks", query=2)  # opens on the triangle
    assert "Decoder" in tab.text('[data-name="mask"] .figure-title')
    tokens = ["<s>", *(each["text"] for each in exploration(explored)["target"]["tokens"])][:-1]
    lists = tab.find(".aside .pieces")
    assert lists.nth(0).locator(".piece").all_text_contents() == tokens[:3]
    assert lists.nth(1).locator(".piece").all_text_contents() == tokens[3:]
    assert tokens[2] in tab.text(".aside .figure-title") and "padding" in tab.text(".aside")


def test_positions_turn_with_the_slider(visit: Open) -> None:
    tab = visit(view="positions", length=20)
    assert [each.get_attribute("data-name") for each in tab.find("figure").all()] == [
        "positions",
        "clock",
        "position-dots",
    ]
    before = tab.find(".dial-hand").first.get_attribute("x2")
    tab.find("#position").focus()
    tab.page.keyboard.press("ArrowRight")
    tab.drawn()
    assert tab.find(".dial-hand").first.get_attribute("x2") != before
    assert tab.state()["position"] == "1"


def test_a_changed_word_shows_what_moved(visit: Open, explored: Server) -> None:
    tab = visit(view="compare", layer=LAYER, head=0, unit="tokens")
    tab.find("#sentence2").fill("3 1 4 1 6")
    tab.find("#compare").click()
    tab.page.wait_for_selector('[data-name="compare-difference"]')
    assert "5 / 6" in tab.find('[data-name="compare-difference"] .names.columns text').all_text_contents()
    expect(tab.find(".figure mark").first).to_have_text("5")
    tab.find("#model2").select_option("random")
    tab.find("#compare").click()
    expect(tab.find(".pair .language").nth(1)).to_have_text("random")


def test_training_is_followed_while_it_goes_on(browser, trained_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    events = (trained_run / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run / "model.safetensors").write_bytes((trained_run / "model.safetensors").read_bytes())
    (run / "log.jsonl").write_text("".join(events[:3]), encoding="utf-8")
    with serving([run], page=page()) as server, visiting(browser, f"{server.address}/explore") as tab:
        tab.open(view="training")
        update = json.loads(events[2])["update"]
        assert f"update {update}" in tab.text("#training-status")
        with (run / "log.jsonl").open("a", encoding="utf-8") as log:
            log.write("".join(events[3:]))
        (run / "report.json").write_text("{}", encoding="utf-8")
        expect(tab.find("#training-status")).to_contain_text("finished")
        assert tab.find('[data-name="training-loss"]').count() == 1
        samples = [json.loads(line) for line in events if json.loads(line)["event"] == "samples"]
        if samples:
            assert tab.find(".sample-output").first.inner_text() == samples[-1]["samples"][0]["output"]


@pytest.mark.parametrize("model", ["random", "language"])
def test_every_view_of_other_models_is_drawn(visit: Open, model: str) -> None:
    tab = visit(model=model, text="ba de fi")
    with tab.refusals():
        for view in VIEWS:
            tab.go(view=view)
            assert tab.find("#view .error").count() == 0, view
            assert tab.text("#view").strip()


def test_a_link_restores_the_view_in_a_fresh_tab(visit: Open) -> None:
    tab = visit()
    tab.go(view="attention", show="lines", unit="tokens", layer=LAYER, head=1, row=2, lang="zh", theme="dark")
    again = visit()
    again.page.goto("about:blank")
    again.page.goto(tab.page.url)
    again.drawn()
    assert again.state() == tab.state()
    for selector in ('[data-name="attention"] .figure-title', "#output", ".views [aria-current]"):
        assert again.text(selector) == tab.text(selector)
    assert again.find(".lines .word.chosen").count() == 1
    assert again.find("html").get_attribute("data-theme") == "dark"
    assert unquote(tab.page.url).endswith("theme=dark") or "theme=dark" in tab.page.url


def test_back_goes_to_the_view_before(visit: Open) -> None:
    tab = visit()
    tab.find("#tab-masks").click()
    tab.drawn()
    tab.page.go_back()
    tab.page.wait_for_selector('[data-name="attention"]')
    assert tab.find("#tab-attention").get_attribute("aria-current") == "page"


def test_every_figure_is_saved_as_svg_and_png(visit: Open) -> None:
    tab = visit(kind="encoder", row=1, worth=1)
    saved = set()
    for view, more in [
        *((view, {}) for view in VIEWS if view != "compare"),
        ("compare", {"text2": "3 1 4 1 6"}),
        ("attention", {"show": "lines"}),
    ]:
        tab.go(view=view, **more)
        for figure in tab.find("figure").all():
            name = figure.get_attribute("data-name")
            for kind in ("svg", "png"):
                tab.page.wait_for_timeout(150)  # chromium saves ten files of a page a second, and drops the eleventh
                with tab.page.expect_download() as waiting:
                    figure.locator("[data-saves]").click()
                    figure.locator(f'[data-save="{kind}"]').click()
                assert waiting.value.suggested_filename == f"{name}.{kind}"
                content = Path(waiting.value.path()).read_bytes()
                (check_svg if kind == "svg" else check_png)(content)
            saved.add(name)
    assert {
        "attention",
        "overview",
        "row",
        "heads",
        "probabilities",
        "beam",
        "steps",
        "mask",
        "positions",
        "clock",
    } <= saved
    assert {"position-dots", "compare-A", "compare-difference", "compare-moves", "training-loss"} <= saved


def test_a_saved_picture_explains_itself_on_white(visit: Open) -> None:
    """In dark mode, too: title, sentence and output, legend, white ground, and the colours of the light theme."""
    from PIL import Image

    tab = visit(theme="dark", layer=LAYER, head=0)
    saved = {}
    for kind in ("svg", "png"):
        tab.find('[data-saves="attention"]').click()
        with tab.page.expect_download() as waiting:
            tab.find(f'[data-name="attention"] [data-save="{kind}"]').click()
        saved[kind] = Path(waiting.value.path()).read_bytes()
        tab.page.wait_for_selector('html[data-theme="dark"]')
        tab.drawn()
    told = " ".join("".join(node.itertext()) for node in ElementTree.fromstring(saved["svg"]).iter(f"{SVG}text"))
    for part in (tab.text('[data-name="attention"] .figure-title'), TEXT, tab.text("#output"), "0.000", "1.00"):
        assert part in told, part
    image = Image.open(io.BytesIO(saved["png"])).convert("RGB")
    width, height = image.size
    assert {image.getpixel(at) for at in [(2, 2), (width - 3, 2), (2, height - 3), (width - 3, height - 3)]} == {
        (255, 255, 255)
    }
    light = [tuple(each) for each in tab.page.evaluate(LIGHT_COLOURS)]
    assert {colour for _, colour in image.getcolors(10**7) or []} & set(light[200:]), "heavy weights are dark"


LIGHT_COLOURS = "Array.from({length: 256}, (_, i) => Transduce.ink(i / 255).map((each) => Math.round(255 * each)))"


def test_the_page_is_saved_live_and_saves_itself(visit: Open, browser: Browser, tmp_path: Path) -> None:
    tab = visit(model="random", text="ba de fi")
    shown = tab.text("#output")
    file = tmp_path / "one.html"
    for path in (file, tmp_path / "two.html"):
        tab.find("[data-saves]").first.click()
        with tab.page.expect_download() as waiting:
            tab.find('[data-save="page"]').first.click()
        assert waiting.value.suggested_filename == "random.html"
        path.write_bytes(Path(waiting.value.path()).read_bytes())
        tab = stack_of_tabs(browser, path)
        assert tab.text("#output") == shown
        assert tab.page.evaluate("Transduce.answers('random')"), "the model runs in it"
        tab.find("#sentence").fill("go ku")
        tab.find("#send").click()
        tab.page.wait_for_function("Transduce.shown.text === 'go ku'")
        tab.open()
    tab.page.close()
    two = (tmp_path / "two.html").read_text(encoding="utf-8")
    one = file.read_text(encoding="utf-8")
    assert two.count("<script") == one.count("<script") and len(two) < 1.01 * len(one)


def stack_of_tabs(browser: Browser, path: Path) -> Visit:
    """A saved page in a tab of its own, with the network off."""
    return Visit(browser.new_context(offline=True, accept_downloads=True), path.as_uri()).open()


def check_svg(content: bytes) -> None:
    """A file of its own: nothing that needs this page's styles or another file, and something is painted."""
    root = ElementTree.fromstring(content)
    assert root.tag == f"{SVG}svg" and float(root.get("width", "0")) > 40 and float(root.get("height", "0")) > 10
    for node in root.iter():
        assert node.get("class") is None and node.get("style") is None
        assert not (node.get("href") or "").startswith(("http", "//"))
    assert len(list(root.iter())) > 5


def check_png(content: bytes) -> None:
    from PIL import Image

    image = Image.open(io.BytesIO(content)).convert("RGB")
    assert min(image.size) > 40
    assert len(image.getcolors(10**7) or []) > 3  # not a blank sheet


def test_a_text_of_several_sentences_is_translated_whole(sentence_run: Path, browser: Browser) -> None:
    text = "The animal was tired.  The street was wide. Two dogs run."
    outputs = ["Das Tier war müde.", "Das Sträßchen war breit.", "Zwei Hunde laufen."]
    with serving([sentence_run], page=page()) as running, visiting(browser, f"{running.address}/explore") as tab:
        tab.open(text=text)
        expect(tab.find("#whole")).to_have_text(" ".join(outputs))
        expect(tab.find("#output")).to_have_text(outputs[0])
        tab.find("#sentence-1").click()
        expect(tab.find("#output")).to_have_text(outputs[1])
        expect(tab.find("#sentence-1")).to_have_attribute("aria-current", "true")
        tab.find("#sentence").fill("The boat is red.")
        tab.find("#send").click()
        expect(tab.find("#output")).to_have_text("Das Boot ist rot.")
        expect(tab.find("#whole")).to_have_count(0)
        assert tab.state().get("sentence", "") == ""
