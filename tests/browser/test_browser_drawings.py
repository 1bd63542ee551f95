"""What each task draws, in a real browser: the numbers of the server, keys, both themes, and the offline file."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, expect
from visiting import Open, Visit, visiting

from base64_arrays import from_base64
from drawn_models import (
    CONTEXT,
    GRAPH,
    QUESTION,
    STORY,
    TREE,
    VECTORS,
    answerer,
    classifier,
    file_of,
    graphs,
    listener,
    machine,
    nodes,
    parser,
    reader,
    tagger,
    tree_labeller,
)
from served import Server, serving
from transduce.core.model_file import save_model_file
from transduce.explore.offline import offline
from transduce.explore.page_file import page

WORDS = "ba de fi go ku"
NAMED = "ba de, 电影 👍🏽 fi"
HEBREW = "שלום ba עולם"
TEXTS = {
    "classifier": WORDS,
    "answerer": f"{QUESTION}\t{CONTEXT}",
    "parser": WORDS,
    "labeller": TREE,
    "reader": WORDS,
    "machine": VECTORS,
    "nodes": "7",
    "graphs": GRAPH,
    "listener": STORY,
    "tagger": NAMED,
    "hebrew": HEBREW,
}
FIRST = {
    "classifier": "Words",
    "answerer": "Answer",
    "parser": "Tree",
    "labeller": "Labelled tree",
    "reader": "Looking back",
    "machine": "Memory",
    "nodes": "Graph",
    "graphs": "Graph",
    "listener": "Hops",
    "tagger": "Labels",
    "hebrew": "Labels",
}
FIGURES = {
    "classifier": ["shading", "labels"],
    "answerer": ["answer", "asked", "answering"],
    "parser": ["tree"],
    "labeller": ["tree"],
    "reader": ["look-back"],
    "listener": ["hops", "labels"],
    "tagger": ["entities", "transitions", "labels"],
    "hebrew": ["entities", "labels"],
    "machine": ["over-time", "contents"],
    "nodes": ["neighborhood", "labels"],
    "graphs": ["neighborhood", "labels"],
}
MADE = {
    "classifier": lambda: classifier(hops=2),
    "answerer": answerer,
    "parser": parser,
    "labeller": tree_labeller,
    "reader": reader,
    "machine": machine,
    "nodes": nodes,
    "graphs": graphs,
    "listener": listener,
    "tagger": lambda: tagger(encoder="transformer", heads=2, feed_forward=8, hidden=256),
    "hebrew": lambda: tagger(crf=False),
}

OFFERED = {
    "classifier": ["Words", "Attention", "Compare"],
    "answerer": ["Answer", "Attention", "Masks", "Compare"],
    "parser": ["Tree", "Attention", "Probabilities", "Beam", "Step by step", "Masks", "Compare"],
    "labeller": ["Labelled tree", "Attention", "Step by step", "Masks", "Compare"],
    "reader": ["Looking back", "Attention", "Probabilities", "Beam", "Masks", "Compare"],
    "listener": ["Hops"],
    "tagger": ["Labels", "Attention", "Step by step", "Masks", "Positions", "Compare"],
    "hebrew": ["Labels"],
    "machine": ["Memory"],
    "nodes": ["Graph"],
    "graphs": ["Graph"],
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The explorer of a random model of each task that draws."""
    folder = tmp_path_factory.mktemp("drawn")
    for name, make in MADE.items():
        save_model_file(folder / f"{name}.safetensors", file_of(make()))
    with serving([folder / f"{name}.safetensors" for name in MADE], page=page()) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, drawn: Server) -> Iterator[Open]:
    """Opens the page at a model: visit("parser")."""
    with ExitStack() as tabs:

        def opened(model: str, options: dict[str, Any] | None = None, **state: object) -> Visit:
            tab = tabs.enter_context(visiting(browser, f"{drawn.address}/explore", **(options or {})))
            return tab.open(**{"model": model, "text": TEXTS[model], **state})

        yield opened


def drawing(server: Server, model: str) -> dict[str, Any]:
    """What the server says of the model's picture."""
    answer = server.post("/v1/explore/predict", text=TEXTS[model], model=model)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["drawing"]
    return found


def table(tab: Visit, name: str) -> list[list[str]]:
    """The rows of a figure's table."""
    tab.find(f'[data-figure="{name}"]').click()
    rows = [row.locator("th, td").all_inner_texts() for row in tab.find(f'[data-name="{name}"] tbody tr').all()]
    tab.find(f'[data-figure="{name}"]').click()
    return rows


def number(text: str) -> float:
    """As the page writes it, with a sign that is no hyphen."""
    return float(text.replace("\N{MINUS SIGN}", "-"))


@pytest.mark.parametrize("model", MADE)
def test_a_model_opens_on_its_own_picture(visit: Open, model: str) -> None:
    tab = visit(model)
    assert tab.text("#views [aria-current]") == FIRST[model]
    assert [each.get_attribute("data-name") for each in tab.find("#view figure").all()] == FIGURES[model]
    tab.page.keyboard.press("2")
    tab.drawn()
    assert tab.text("#views [aria-current]") == OFFERED[model][:2][-1]
    tab.page.keyboard.press("1")
    tab.drawn()
    assert tab.text("#views [aria-current]") == FIRST[model]


@pytest.mark.parametrize("model", MADE)
def test_only_views_with_something_to_show_are_offered(visit: Open, model: str) -> None:
    tab = visit(model)
    assert tab.find("#views li").all_inner_texts() == OFFERED[model]
    for view in tab.page.evaluate("Transduce.viewsOf(Transduce.model)"):
        tab.go(view=view)
        assert tab.find("#view figure, #view .offer, #view form").count() and not tab.find("#view .error").count(), view
    tab.go(view="training")  # of no run: the first view stands in
    assert tab.text("#views [aria-current]") == FIRST[model]


def test_titles_say_what_the_axes_are(visit: Open) -> None:
    tab = visit("classifier", view="attention")
    assert tab.text('[data-name="attention"] .figure-title').startswith("Attention pooling")
    assert "Cross-attention" not in tab.text("body")
    tab = visit("labeller", lang="zh")
    assert tab.text('[data-name="tree"] .figure-title') == "文本各部分的标签" and "句法" not in tab.text("body")


@pytest.mark.parametrize(("language", "theme"), [("en", "light"), ("zh", "dark")])
def test_axe_finds_nothing_and_every_text_is_there(visit: Open, language: str, theme: str) -> None:
    tab = visit("classifier")
    for model in MADE:
        tab.open(model=model, text=TEXTS[model], theme=theme, lang=language)
        told = [f"{each['id']}: {each['help']}" for each in Axe().run(tab.page).response["violations"]]
        assert not told, (model, told)
        assert "⟨" not in tab.text("body")


@pytest.mark.parametrize("width", [400, 320])
def test_a_narrow_page_does_not_scroll_sideways(visit: Open, width: int) -> None:
    tab = visit("classifier", {"viewport": {"width": width, "height": 800}})
    for model in MADE:
        tab.open(model=model, text=TEXTS[model])
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width, model


@pytest.mark.parametrize("model", MADE)
def test_every_picture_takes_the_focus_and_tells_where_the_keys_are(visit: Open, model: str) -> None:
    tab = visit(model)
    for picture in tab.find("#view svg[role=application]").all():
        assert picture.get_attribute("aria-label") and picture.get_attribute("aria-roledescription")
        picture.focus()
        tab.page.keyboard.press("End")
        last = tab.text(".tip")
        tab.page.keyboard.press("Home")
        assert tab.text(".tip") != last
        expect(tab.find("body > .unseen[role=status]")).to_contain_text(tab.text(".tip-head"))
        tab.page.keyboard.press("Escape")
        expect(tab.find(".tip")).to_be_hidden()


def test_shaded_words_have_the_servers_weights(visit: Open, drawn: Server) -> None:
    tab, found = visit("classifier"), drawing(drawn, "classifier")
    assert tab.find(".word-flow .flow-text").all_text_contents() == WORDS.split()
    rows = table(tab, "shading")
    columns = [found["mean"], *found["hops"]]
    for row, word, *weights in zip(rows, WORDS.split(), *columns, strict=True):
        assert row == [word, *(f"{weight:.3f}" for weight in weights)]
    assert [row[0] for row in table(tab, "labels")] == list(found["probabilities"])
    bars = tab.find(".label-bar").all()
    widths = [float(bar.get_attribute("width") or 0) for bar in bars]
    shares = list(found["probabilities"].values())
    assert widths[0] / widths[1] == pytest.approx(shares[0] / shares[1], rel=0.02)
    tab.find("#hop").select_option("1")
    tab.drawn()
    assert tab.text('[data-name="shading"] .figure-title').endswith("hop 2")
    darkest = max(range(5), key=found["hops"][1].__getitem__)
    picture = tab.find('[data-name="shading"] svg.picture')
    picture.focus()
    tab.page.keyboard.press("Home")
    for _ in range(darkest):
        tab.page.keyboard.press("ArrowRight")
    assert tab.text(".tip").split("\n") == [WORDS.split()[darkest], f"weight {found['hops'][1][darkest]:.3f}"]


def test_an_answer_stands_in_its_text_with_bars(visit: Open, drawn: Server) -> None:
    tab, found = visit("answerer"), drawing(drawn, "answerer")
    text = TEXTS["answerer"]
    inside = [each["text"] for each in found["words"] if found["answer"][0] <= each["start"] < found["answer"][1]]
    assert tab.find('[data-name="answer"] .flow-text.strong').all_text_contents() == inside
    assert text[slice(*found["answer"])] == tab.text("#output")
    rows = table(tab, "answer")
    for row, word, start, end in zip(rows, found["words"], found["start"], found["end"], strict=True):
        assert row == [word["text"], f"{start:.3f}", f"{end:.3f}"]
    assert f"{found['windows']} windows; this is window {found['window']}" in tab.text('[data-name="answer"] .caption')
    for name, key, chooser, shown in [("answering", "reads", "answering-word", 3), ("asked", "asks", "asked-word", 1)]:
        tab.find(f"#{chooser}").select_option(str(shown))
        tab.drawn()
        weights = from_base64(found[key]["weights"], found[key]["shape"])[shown]
        assert [row[1] for row in table(tab, name)] == [f"{weight:.3f}" for weight in weights]
    word = found["words"][3]["text"]
    assert tab.text('[data-name="answering"] .figure-title') == f"What “{word}” of the text looks at"


def test_a_tree_is_walked_by_keys(visit: Open, drawn: Server) -> None:
    tab, found = visit("parser"), drawing(drawn, "parser")
    nodes = found["nodes"]
    assert tab.find(".tree text").all_text_contents() == [each["text"] for each in nodes]
    assert tab.find(".tree polyline").count() == len(nodes) - 1
    tab.focus("svg.tree")
    tab.page.keyboard.press("Home")
    assert tab.text(".tip").split("\n") == [nodes[0]["text"], WORDS]
    assert tab.find(".tree .covered").all_text_contents() == WORDS.split()
    tab.page.keyboard.press("ArrowDown")
    first = next(each for each in nodes if each["above"] == 0)
    assert tab.text(".tip-head") == first["text"]
    tab.page.keyboard.press("ArrowUp")
    assert tab.text(".tip-head") == nodes[0]["text"]


def test_a_labelled_tree_is_coloured_and_tells_its_labels(visit: Open, drawn: Server) -> None:
    tab, nodes = visit("labeller"), drawing(drawn, "labeller")["nodes"]
    assert tab.text("#output") == nodes[0]["text"]
    assert tab.text(".echo .source") == "ba de fi go"
    assert tab.find(".tree text").all_text_contents() == [each["text"] for each in nodes]
    grounds = tab.find(".tree rect[rx]").all()
    assert [each.get_attribute("fill") for each in grounds if each.get_attribute("rx") == "5"] == [
        each["colour"] for each in nodes
    ]
    tab.focus("svg.tree")
    tab.page.keyboard.press("Home")
    assert tab.text(".tip").split("\n") == [nodes[0]["text"], f"{nodes[0]['tag']}: ba de fi go"]


def test_looking_back_has_a_line_for_each_word(visit: Open, drawn: Server) -> None:
    tab = visit("reader")
    assert tab.find(".back-word.now").all_text_contents() == WORDS.split()
    assert tab.find(".back-word.later").count() == 10
    rows = table(tab, "look-back")
    assert [len([cell for cell in row[1:] if cell]) for row in rows] == [2, 3, 4, 5, 6]
    for row in rows:
        assert sum(float(cell) for cell in row[1:] if cell) == pytest.approx(1, abs=0.01)
    tab.find("#choice-Text-all").click()
    tab.drawn()
    whole = drawn.post("/v1/explore/predict", text=WORDS, model="reader").json()["target"]["text"].split()
    assert tab.find(".back-word.now").all_text_contents() == whole
    tab.go(layer="stack.cells.1", upto="")
    assert table(tab, "look-back") != rows


def test_each_hop_has_the_servers_weights_of_each_sentence(visit: Open, drawn: Server) -> None:
    tab, found = visit("listener"), drawing(drawn, "listener")
    assert tab.find("#views li").all_inner_texts() == ["Hops"]
    assert tab.find(".hop-sentence").all_text_contents()[:3] == ["ba de fi", "go ku *", "fi go ba"]
    assert tab.text('[data-name="hops"] .figure-title') == "where ba?"
    rows = table(tab, "hops")
    assert len(rows) == 4  # the last one is of empty slots
    columns = [[*hop, empty] for hop, empty in zip(found["hops"], found["empty"], strict=True)]
    for row, *weights in zip(rows, *columns, strict=True):
        assert row[1:3] == [f"{weight:.3f}" for weight in weights]
    assert [row[3] for row in rows] == ["", "*", "", ""]
    tab.focus("svg.hops")
    tab.page.keyboard.press("Home")
    assert tab.text(".tip").split("\n")[:2] == ["ba de fi", f"hop 1: {found['hops'][0][0]:.3f}"]
    assert [row[0] for row in table(tab, "labels")] == list(found["probabilities"])


def test_memory_plays_and_shows_the_servers_numbers(visit: Open, drawn: Server) -> None:
    tab, found = visit("machine", {"reduced_motion": "no-preference"}), drawing(drawn, "machine")
    assert tab.find("#views li").all_inner_texts() == ["Memory"]
    panels = {each["title"]: from_base64(each["weights"], each["shape"]) for each in found["panels"]}
    names = tab.find('[data-name="over-time"] .memory-name').all_text_contents()
    assert len(names) == len(panels) and names[0] == "Inputs" and names[-1] == "Where it reads, head 2"
    rows = table(tab, "over-time")
    numbers = [[number(cell) for cell in row[1:]] for row in rows]
    expected = [[value for panel in panels.values() for value in panel[:, step]] for step in range(5)]
    for row, values in zip(numbers, expected, strict=True):
        assert row == pytest.approx(values, abs=0.006)
    memory = from_base64(found["memory"]["weights"], found["memory"]["shape"])
    for step in (4, 1):
        tab.find("#memory-step").fill(str(step))
        assert tab.text("#memory-now") == f"step {step + 1} of 5"
        held = [[number(cell) for cell in row[5:]] for row in table(tab, "contents")]
        assert np.allclose(held, memory[step], atol=0.006)
    tab.find("#memory-play").click()  # on from where it is, to the end
    expect(tab.find("#memory-now")).to_have_text("step 5 of 5")
    expect(tab.find("#memory-play")).to_have_text("Play")


def test_memory_moves_by_itself_for_nobody_who_wants_it_still(visit: Open) -> None:
    tab = visit("machine", {"reduced_motion": "reduce"})
    for step in (1, 2):
        tab.find("#memory-play").click()
        assert tab.text("#memory-now") == f"step {step} of 5"


def test_lines_of_a_graph_are_as_wide_as_the_servers_weights(visit: Open, drawn: Server) -> None:
    tab, found = visit("nodes"), drawing(drawn, "nodes")
    assert len(found["nodes"]) == 40 and found["nodes"][found["centre"]] == 7
    caption = tab.text('[data-name="neighborhood"] .caption')
    assert f"{found['left_out']} more are left out" in caption
    likeliest = max(found["probabilities"], key=found["probabilities"].__getitem__)
    assert likeliest != "0" and f"says {likeliest} of" in caption and tab.text("#output") == likeliest
    assert table(tab, "labels")[0][0] == likeliest
    ends = list(zip(found["target"], found["source"], strict=True))
    for layer, head in [("", ""), ("0", "1")]:
        tab.go(layer=layer or "mean", head=head or "mean")
        packed = found["layers"][int(layer) if layer else -1]
        weights = from_base64(packed["weights"], packed["shape"])
        weights = weights[:, int(head)] if head else weights.mean(1)
        lines = tab.find(".neighborhood .edge, .neighborhood .own").all()
        widths = [float(line.get_attribute("stroke-width") or "") for line in lines]
        assert widths == pytest.approx([9 * weight for weight in weights], abs=0.01)
        shown = {(row[0], row[1]): number(row[2]) for row in table(tab, "neighborhood")}
        for (target, source), weight in zip(ends, weights, strict=True):
            names = str(found["nodes"][target]), str(found["nodes"][source])
            assert shown[names] == pytest.approx(weight, abs=0.006)


def test_a_graph_is_walked_from_node_to_node(visit: Open, drawn: Server) -> None:
    tab, found = visit("nodes"), drawing(drawn, "nodes")
    picture = tab.find("svg.neighborhood")
    picture.focus()
    tab.page.keyboard.press("Home")
    assert tab.text(".tip-head") == "node 7"
    assert tab.find(".neighborhood .now").count() == found["target"].count(found["centre"])
    tab.page.keyboard.press("End")
    other = found["nodes"][-1]
    assert tab.text(".tip-head") == f"node {other}"
    tab.page.keyboard.press("Enter")
    tab.drawn()
    assert tab.find("#sentence").input_value() == str(other)
    assert tab.text('[data-name="neighborhood"] .figure-title') == f"Around node {other}"


def test_a_whole_graph_shows_what_each_node_counts(visit: Open, drawn: Server) -> None:
    tab, found = visit("graphs"), drawing(drawn, "graphs")
    assert (found["centre"], found["nodes"]) == (-1, [0, 1, 2, 3, 4])
    assert sum(found["shares"]) == pytest.approx(1, abs=1e-4)
    tab.focus("svg.neighborhood")
    tab.page.keyboard.press("End")
    assert tab.text(".tip").split("\n")[0] == "node 4"
    assert f"counts {found['shares'][4]:.3f} for the graph" in tab.text(".tip")
    assert "reads itself 1.00" in tab.text(".tip")


def test_models_of_other_tasks_have_no_such_view(visit: Open) -> None:
    tab = visit("parser")
    tab.find("#model").select_option("classifier")
    tab.drawn()
    assert tab.text("#views li") == "Words"


@pytest.mark.parametrize("model", MADE)
def test_the_saved_file_has_the_picture_too(browser: Browser, model: str, tmp_path: Path) -> None:
    data = json.loads(json.dumps(offline({model: MADE[model]()}, [TEXTS[model]])))
    file = tmp_path / "saved.html"
    file.write_text(page(data), encoding="utf-8")
    with visiting(browser, file.as_uri()) as tab:
        tab.open()
        assert [each.get_attribute("data-name") for each in tab.find("#view figure").all()] == FIGURES[model]


@pytest.mark.parametrize("model", MADE)
def test_pictures_are_saved_as_svg(visit: Open, model: str) -> None:
    tab = visit(model)
    for name in FIGURES[model]:
        with tab.page.expect_download() as download:
            tab.find(f'[data-saves="{name}"]').click()
            tab.find(f'[data-name="{name}"] [data-save="svg"]').click()
        assert Path(download.value.path()).read_text(encoding="utf-8").startswith("<?xml")


def test_a_taggers_marks_and_probabilities_are_the_servers(visit: Open, drawn: Server) -> None:
    tab, found = visit("tagger"), drawing(drawn, "tagger")
    probability_NC = from_base64(found["probabilities"]["weights"], found["probabilities"]["shape"])
    rows = table(tab, "entities")
    for row, word in zip(rows, found["words"], strict=True):
        assert row[:2] == [word["text"], word["label"]]
        assert NAMED[int(row[3]) : int(row[4])] == word["text"]
    colours = {tuple(int(mark["colour"][at : at + 2], 16) for at in (1, 3, 5)) for mark in found["marks"]}
    shown = [each.get_attribute("fill") for each in tab.find('[data-name="entities"] .word-back').all()]
    assert {*shown} == {f"rgb({','.join(map(str, colour))})" for colour in colours}
    last = len(found["words"]) - 1
    tab.open(model="tagger", text=NAMED, row=last)
    bars = dict(map(tuple, table(tab, "labels")))
    assert bars.keys() == {*found["labels"]}
    likeliest = found["labels"][int(probability_NC[last].argmax())]
    assert next(iter(bars)) == likeliest and found["words"][last]["text"] in tab.text('[data-name="labels"] h2')
    scores = from_base64(found["transitions"]["weights"], found["transitions"]["shape"])
    shown_rows = table(tab, "transitions")
    assert [row[0] for row in shown_rows] == [*found["labels"], "(start)"]
    for row, values in zip(shown_rows, scores, strict=True):
        for cell, value in zip(row[1:], values.tolist(), strict=True):
            assert cell == "not allowed" if np.isinf(value) else number(cell) == pytest.approx(value, abs=6e-4)


def test_words_of_a_text_from_right_to_left_stand_in_that_order(visit: Open) -> None:
    tab = visit("hebrew")
    places = [each.bounding_box() for each in tab.find('[data-name="entities"] .flow-text').all()]
    assert len(places) == 3 and all(places)
    lefts = [box["x"] for box in places if box]
    assert lefts == sorted(lefts, reverse=True)
