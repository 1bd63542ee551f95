"""A saved page whose model runs in it: new texts get the answers that a server's explorer gives, without a network."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Browser, Page

import transduce
from base64_arrays import from_base64
from random_models import language_model, translator
from transduce.attention.interventions import can_change
from transduce.explore.exploration import asked, explore
from transduce.explore.live import in_int8, live
from transduce.explore.offline import offline
from transduce.explore.page_file import page as page_of
from transduce.interpret.attention import looked
from transduce.interpret.importance import importance
from transduce.interpret.layers import attending
from transduce.interpret.steps import steps
from transduce.interpret.why_not import why_not
from transduce.pipeline.pipeline import Pipeline

SIZES = {"d_model": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "tied": "none", "feed_forward": 24}
RNN = {"kind": "rnn", "d_model": 16, "hidden": 16, "tied": "none"}
GOES_ON = {"kind": "rnn_decoder", "d_model": 16, "layers": 2, "tied": False}
STORED, NEW, SEVERAL = "ba de fi go ku", "Du ba, ba ti ne", "Du ti go. Ba ti ne!\nKa du ga"


def as_stored(pipeline: Pipeline) -> Pipeline:
    """With the weights that int8 stands for, which the page has."""
    stored = in_int8(dict(pipeline.model.state_dict()))
    with torch.no_grad():
        for name, weight in pipeline.model.state_dict().items():
            scale = stored.get(f"{name}.scale")
            weight.copy_(stored[name].float() * (1 if scale is None else scale[:, None]))
    return pipeline


MODELS = {
    "words": lambda: translator(model=SIZES, seed=3),
    "pieces": lambda: translator("bpe", model={**SIZES, "positions": "rotary"}, seed=4),
    "biases": lambda: translator(model={**SIZES, "positions": "shaw", "score": "additive"}, seed=5),
    "language model": language_model,
    "samples": lambda: language_model(search={"method": "sample", "seed": 5, "nbest": 3, "max_length_offset": 6}),
    "recurrent": lambda: translator(model=RNN, seed=1),
    "recurrent, pieces": lambda: translator("bpe", model={**RNN, "attention": "luong", "cell": "lstm", "heads": 2}),
    "recurrent language model": lambda: language_model(model={**GOES_ON, "cell": "lstm"}),
    "tapes": lambda: language_model(model={**GOES_ON, "cell": "lstmn"}),
    "in order": lambda: translator(model={**RNN, "score": "location_aware", "cell": "lstmn", "pooling": 2}, seed=2),
    "at once": lambda: translator(model={**SIZES, "kind": "ctc"}, seed=3),
}


@pytest.fixture(scope="module", params=MODELS)
def pipeline(request: pytest.FixtureRequest) -> Pipeline:
    return as_stored(MODELS[request.param]())


@pytest.fixture(scope="module")
def opened(browser: Browser, pipeline: Pipeline, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The saved page of one text, from a file, with the network off."""
    path: Path = tmp_path_factory.mktemp("live") / "saved.html"
    path.write_text(page_of(offline({"m": pipeline}, [STORED])), encoding="utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector('#view[aria-busy="false"]')
    yield page
    context.close()


def close(found: Any, expected: Any, where: str = "") -> None:
    """The same, numbers up to rounding, weights in base64 by their numbers."""
    if isinstance(expected, dict):
        assert {*expected} <= {*found}, where
        for key, value in expected.items():
            if key == "weights" and isinstance(value, str):
                weights = [from_base64(each, expected["shape"]) for each in (found[key], value)]
                np.testing.assert_allclose(*weights, rtol=0, atol=1e-5)
            else:
                close(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), where
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            close(one, other, f"{where}[{place}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=2e-4), where
    else:
        assert found == expected, where


@pytest.mark.parametrize("beam", [None, 4])
def test_a_new_text_gets_the_servers_answer(opened: Page, pipeline: Pipeline, beam: int | None) -> None:
    answer = opened.evaluate("([text, beam]) => Transduce.ask.predict('m', text, beam)", [NEW, beam and str(beam)])
    expected = explore(pipeline, NEW, "m", **({"beam": beam} if beam else {}))
    close(answer, expected)


@pytest.mark.parametrize("sentence", ["", "1", "9"])
def test_one_of_several_sentences_is_looked_at(opened: Page, pipeline: Pipeline, sentence: str) -> None:
    answer = opened.evaluate(
        "([text, sentence]) => Transduce.ask.predict('m', text, '', sentence)", [SEVERAL, sentence]
    )
    expected = explore(pipeline, SEVERAL, "m", sentence=int(sentence or 0))
    assert (expected["whole"] is None) == ("source" not in pipeline.task.columns)
    close(answer, expected)


def test_heads_are_worth_what_python_measures(opened: Page, pipeline: Pipeline) -> None:
    tokens = opened.evaluate("(text) => Transduce.ask.predict('m', text).then((found) => found.nbest[0].tokens)", NEW)
    found = opened.evaluate("([text, tokens]) => Transduce.ask.heads('m', text, tokens)", [NEW, tokens])
    close(found, importance(pipeline.model, pipeline.task, asked(pipeline, NEW, tokens)))


def test_another_output_is_weighed_as_in_python(opened: Page, pipeline: Pipeline) -> None:
    if "source" not in pipeline.task.columns:
        pytest.skip("a language model has no source to cut words from")
    if pipeline.recipe.to_table()["model"]["kind"] == "ctc":
        pytest.skip("a model that writes all tokens at once does not weigh one after the other")
    tokens = opened.evaluate("(text) => Transduce.ask.predict('m', text).then((found) => found.nbest[0].tokens)", NEW)
    other = pipeline.predict(STORED).text
    found = opened.evaluate("(asked) => Transduce.ask.why('m', ...asked)", [NEW, tokens, other])
    own, given = asked(pipeline, NEW, tokens), asked(pipeline, NEW, other)
    close(found, why_not(pipeline.model, pipeline.task, NEW, own, given))


def test_a_notebook_shows_the_words_of_the_page(opened: Page, pipeline: Pipeline) -> None:
    """The same rows, columns and weights, of every head."""
    [prediction] = pipeline.predict([STORED], split="none")
    found = prediction.attention()
    opened.evaluate("(text) => Transduce.go({text})", STORED)
    opened.wait_for_function("(text) => Transduce.shown?.text === text", arg=STORED)
    for layer in found.layers:
        matrix = opened.evaluate(
            """(name) => {
              const layer = Transduce.shown.attention.find((each) => each.name === name);
              const { rows, columns, values } = Transduce.matrix(
                Transduce.shown, { kind: layer.kind, layer, head: 0, over: "layer" }, "words");
              return [rows.map(({ text }) => text), columns.map(({ text }) => text), [...values]];
            }""",
            layer.name,
        )
        rows, columns, weights, _ = found.by_words(layer.name, 0)
        if layer.part.rows == "decoder_input":  # the page calls every start <s>
            rows[0] = columns[0] = "<s>"
        assert matrix[:2] == [rows, columns], layer.name
        np.testing.assert_allclose(np.reshape(matrix[2], weights.shape), weights, atol=1e-5)


def test_the_steps_of_a_query_are_the_servers(opened: Page, pipeline: Pipeline) -> None:
    if not pipeline.recipe.to_table()["model"]["kind"].startswith("transformer"):
        pytest.skip("the page takes apart the attention of Transformers alone")
    given = asked(pipeline, NEW, None)
    output = explore(pipeline, NEW, "m")["nbest"][0]
    attention, _ = looked(pipeline.model, pipeline.task, given, NEW, output["text"])
    for layer in attention.layers:
        for head, query in ((0, 0), (1, layer.weights.shape[1] - 1)):
            found = opened.evaluate(
                "([text, tokens, name, head, query]) => Transduce.ask.steps('m', text, tokens, name, head, query)",
                [NEW, output["tokens"], layer.name, head, query],
            )
            texts = (NEW, output["text"])
            expected = steps(pipeline.model, pipeline.task, given, texts, layer.name, head, query)
            assert {*found} == {*expected}
            close(found, expected, layer.name)


def test_no_steps_of_what_is_not_there(opened: Page, pipeline: Pipeline) -> None:
    if not pipeline.recipe.to_table()["model"]["kind"].startswith("transformer"):
        pytest.skip("the page takes apart the attention of Transformers alone")
    for name, head, said in (
        ("encoder.nothing", 0, "no such attention"),
        ("decoder.blocks.0.self_attention", 7, "head"),
    ):
        told = opened.evaluate(
            "([name, head, text]) => Transduce.ask.steps('m', text, [], name, head, 0).catch((error) => error.message)",
            [name, head, NEW],
        )
        assert said in told


def test_a_text_is_typed_and_drawn(opened: Page, pipeline: Pipeline) -> None:
    opened.fill("#sentence", NEW)
    opened.press("#sentence", "Enter")
    opened.wait_for_function("(text) => Transduce.shown?.text === text", arg=NEW)
    assert opened.is_visible("#view svg") or opened.is_visible("#view .empty")
    expected = explore(pipeline, NEW, "m")
    assert opened.evaluate("Transduce.shown.nbest[0].text") == expected["nbest"][0]["text"]


def test_words_are_cut_from_what_a_word_looks_at(opened: Page, pipeline: Pipeline) -> None:
    """The second word of a text is kept from the first, by a click, in all heads; and back."""
    parts = attending(pipeline.model, pipeline.task)
    kinds = [part.kind for part in parts if can_change(pipeline.model.get_submodule(part.name))]
    if not kinds:
        pytest.skip("nothing in this model can be cut")
    kind = kinds[0]
    opened.evaluate("([text, kind]) => Transduce.go({text, kind, view: 'attention', row: 1})", [STORED, kind])
    opened.click("#cut-0")
    opened.wait_for_selector("#cut-now")
    state = opened.evaluate("Transduce.state().cut")
    places = [tuple(map(int, each.split(".")[1:])) for each in state.split("_")]
    assert places and all(each.startswith(f"{kind}.") for each in state.split("_"))
    names = [part.name for part in parts if part.kind == kind]
    cut = [transduce.Place(name, query=query, key=key) for name in names for query, key in places]
    plain = explore(pipeline, STORED, "m")
    with transduce.capture(pipeline, cut=cut):
        expected = explore(pipeline, STORED, "m")
    assert expected["alternatives"] != plain["alternatives"], "the cut is felt"
    shown = opened.evaluate("Transduce.shown")
    close(
        {key: shown[key] for key in ("nbest", "alternatives", "attention")},
        {key: expected[key] for key in ("nbest", "alternatives", "attention")},
    )
    assert opened.inner_text("#cut-before").endswith(plain["nbest"][0]["text"])
    assert opened.get_attribute("#cut-0", "aria-pressed") == "true"
    opened.click("#cut-none")
    opened.wait_for_selector("#cut-now", state="detached")
    close(opened.evaluate("Transduce.shown.nbest"), plain["nbest"])


def test_what_the_engine_does_not_run_is_left_out() -> None:
    assert live(translator(model={"kind": "convolution", "d_model": 16, "kernel": 3})) is None
    wide = {**SIZES, "feed_forward": 700_000}
    assert live(translator(model=wide)) is None, "more weights than a page holds"


def test_a_model_that_cannot_run_shows_what_was_saved(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "saved.html"
    pointing = translator(model={**SIZES, "tied": "all", "pointer": True})
    path.write_text(page_of(offline({"m": pointing}, [STORED])), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector('#view[aria-busy="false"]')
    assert page.evaluate("Transduce.answers('m')") is False
    assert page.is_disabled("#send")
    assert page.evaluate("Transduce.shown.text") == STORED
    page.close()
