"""The pictures of tasks: their numbers are the weights captured and the logits softmaxed, wherever they are shown."""

import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import Tensor

from base64_arrays import from_base64
from drawn_models import (
    CHINESE,
    CONTEXT,
    QUESTION,
    STORY,
    TREE,
    answerer,
    classifier,
    listener,
    parser,
    reader,
    tree_labeller,
)
from pipelines import TEXT, pipeline
from transduce.attention.capture import Record, capture
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.explore.exploration import asked, explore
from transduce.explore.offline import offline
from transduce.interpret.answer_span import AnswerSpan
from transduce.interpret.attention import reading_of
from transduce.interpret.drawing import save
from transduce.interpret.drawings import drawing_name, drawn
from transduce.interpret.hop_shading import HopShading
from transduce.interpret.importance import importance
from transduce.interpret.look_back import LookBack
from transduce.interpret.shaded_text import parts
from transduce.interpret.word_shading import WordShading
from transduce.pipeline.pipeline import Pipeline

SENTENCE = "ba de fi, go ku"
ASKED = f"{QUESTION}\t{CONTEXT}"


def plain(picture: Any, width: int = 80) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width, no_color=True, force_terminal=False).print(picture)
    return [line.rstrip() for line in file.getvalue().split("\n")[:-1]]


def coloured(picture: Any) -> str:
    file = io.StringIO()
    Console(file=file, width=80, color_system="truecolor", force_terminal=True).print(picture)
    return file.getvalue()


@contextmanager
def recorded(made: Pipeline) -> Iterator[Record]:
    with torch.inference_mode(), capture(made.model) as record:
        yield record


# ---- words of a classifier ---------------------------------------------------------------------------------------


def pooled(made: Pipeline, text: str) -> tuple[Tensor, Tensor]:
    """The weights (R, S) of its pooling, and its logits (C,)."""
    source = made.task.columns["source"]
    ids = torch.tensor([source.closed(source.encode([text])[0])])
    with recorded(made) as record:
        logits_BC = made.model.classify(Padded(ids, torch.tensor([ids.shape[1]])))
    [weights_B1RS] = record["pool"]
    return weights_B1RS[0, 0], logits_BC[0]


@pytest.mark.parametrize("hops", [1, 3])
def test_shaded_words_have_the_weights_of_the_pooling(hops: int) -> None:
    made = classifier(hops=hops)
    found = json.loads(json.dumps(explore(made, SENTENCE)))["drawing"]
    weights_RS, logits_C = pooled(made, SENTENCE)
    assert found["kind"] == "word_shading"
    words = [SENTENCE[each["start"] : each["end"]] for each in found["words"]]
    assert words == [each["text"] for each in found["words"]] == ["ba", "de", "fi,", "go", "ku"]
    np.testing.assert_allclose(found["hops"], weights_RS[:, :5], atol=1e-6)  # a token a word; the end token has none
    np.testing.assert_allclose(found["mean"], weights_RS[:, :5].mean(0), atol=1e-6)
    assert sum(found["mean"]) == pytest.approx(1, abs=1e-5)
    names = made.task.columns["target"].tokens(range(3))
    expected = dict(zip(names, logits_C.softmax(-1).tolist(), strict=True))
    assert found["probabilities"] == pytest.approx(expected, abs=1e-6)
    assert list(found["probabilities"].values()) == sorted(found["probabilities"].values(), reverse=True)


def test_hops_are_heads_of_one_attention() -> None:
    made = classifier(hops=3)
    attention = made.predict(SENTENCE).attention()
    [layer] = attention.of("cross")
    weights_RS, _ = pooled(made, SENTENCE)
    assert (layer.part.rows, layer.part.columns, layer.part.heads) == ("target", "source", 3)
    torch.testing.assert_close(layer.weights[:, 0], weights_RS.clone(), atol=1e-6, rtol=0)


def test_a_word_of_several_tokens_has_the_sum_of_their_weights() -> None:
    made = classifier("character", hops=2)
    shading = WordShading.of(made.predict("bade fi"))
    weights_RS, _ = pooled(made, "bade fi")
    assert [word.text for word in shading.words] == ["bade", "fi"]
    assert sum(len(word.tokens) for word in shading.words) > 2
    for place, word in enumerate(shading.words):
        np.testing.assert_allclose(shading.hops[:, place], weights_RS[:, list(word.tokens)].sum(1), atol=1e-6)


def test_chinese_stays_without_spaces() -> None:
    made = classifier("character")
    shading = WordShading.of(made.predict(CHINESE))
    assert [word.text for word in shading.words] == list(CHINESE)
    line = plain(shading)[-1]
    assert re.sub("[░▒▓█]", "", line) == CHINESE
    assert re.sub("<[^>]*>", "", shading._repr_html_()).strip().endswith(CHINESE)


def test_the_terminal_shades_words_and_draws_a_bar_for_each_label() -> None:
    words = WordShading.of(classifier().predict("ba de")).words
    shading = WordShading("ba de", words, np.array([[1.0, 0.5], [0.0, 1.0]]), {"bad": 0.75, "good": 0.25})
    assert plain(shading) == [
        "bad  0.75 " + "█" * 24,
        "good 0.25 " + "█" * 8,
        "mean   ba▓ de█",
        "hop 1  ba█ de▒",
        "hop 2  ba de█",
    ]
    assert "48;2;" in coloured(shading)


def test_a_notebook_shows_words_and_labels_without_markup_of_theirs() -> None:
    html = classifier().predict("ba <script>alert(1)</script> de")._repr_html_()
    assert html is not None and "<script>" not in html and "&lt;script&gt;" in html
    assert all(label in html for label in ("bad", "good", "so-so"))
    assert classifier().predict("")._repr_html_() is None


@pytest.mark.parametrize("pooling", ["mean", "max", "last"])
def test_a_model_that_pools_without_attention_shows_its_labels_alone(pooling: str) -> None:
    made = classifier(pooling=pooling)
    found = explore(made, SENTENCE)["drawing"]
    assert found["hops"] == [] and len(found["probabilities"]) == 3
    assert "no attention over the words" in plain(WordShading.of(made.predict(SENTENCE)))[-1]
    assert SENTENCE in made.predict(SENTENCE)._repr_html_()


def test_what_stands_between_words_is_kept() -> None:
    words = WordShading.of(classifier().predict(" ba \t de ")).words
    assert "".join(part.text for part in parts(" ba \t de ", words)) == " ba \t de "


# ---- answers -----------------------------------------------------------------------------------------------------


def slowly(made: Pipeline, text: str, first: int, last: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of the tokens [first, last) of a text: the softmaxed logits (2, S + 1), and the flow's weights (N, N)."""
    column = made.task.columns["source"]
    question, context = text.split("\t")
    ids, asked_ids = column.tokenizer.encode([context])[0], column.tokenizer.encode([question])[0]
    passage = column.collate([np.asarray(column.row(asked_ids, ids[first:last]), np.int32)])
    with recorded(made) as record:
        start_1S, end_1S = made.model.point(passage)
    return start_1S[0].softmax(-1), end_1S[0].softmax(-1), record["flow"][0][0, 0]


@pytest.mark.parametrize("kind", ["bidaf", "qanet"])
def test_an_answers_numbers_are_softmaxed_logits_and_captured_weights(kind: str) -> None:
    made = answerer(kind, window=30, stride=15)
    prediction: Any = made.predict(ASKED)
    found = json.loads(json.dumps(explore(made, ASKED)))["drawing"]
    words = CONTEXT.split()
    start_S, end_S, flow_NN = slowly(made, ASKED, 0, len(words))
    assert [each["text"] for each in found["words"]] == words
    assert [each["text"] for each in found["question"]] == QUESTION.split()
    np.testing.assert_allclose(found["start"], start_S[:-1], atol=1e-6)
    np.testing.assert_allclose(found["end"], end_S[:-1], atol=1e-6)
    assert found["no_answer"] == pytest.approx(float(start_S[-1] * end_S[-1]), abs=1e-6)
    first, last = found["answer"]
    assert ASKED[first:last] == prediction.text
    asks, reads = (from_base64(found[key]["weights"], found[key]["shape"]) for key in ("asks", "reads"))
    begin = len(QUESTION.split()) + 1  # behind the question's end token
    np.testing.assert_allclose(asks, flow_NN[: begin - 1, begin:-1], atol=1e-6)
    np.testing.assert_allclose(reads, flow_NN[begin:-1, : begin - 1], atol=1e-6)
    assert (found["window"], found["windows"]) == (1, 1)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_the_window_that_is_shown_is_the_answers(seed: int) -> None:
    made = answerer(seed=seed)
    words = CONTEXT.split()
    found = explore(made, ASKED)
    drawing, prediction = found["drawing"], made.predict(ASKED)
    ends = [(first, min(first + 8, len(words))) for first in range(0, len(words) - 4, 4)]
    assert drawing["windows"] == len(ends) > 2
    first, last = ends[drawing["window"] - 1]
    assert [each["text"] for each in drawing["words"]] == words[first:last]
    start_S, end_S, _ = slowly(made, ASKED, first, last)
    np.testing.assert_allclose(drawing["start"], start_S[:-1], atol=1e-6)
    best = float(start_S[int(prediction.tokens[0]) - first] * end_S[int(prediction.tokens[1]) - first])
    assert np.exp(prediction.log_probability) == pytest.approx(best, abs=1e-6)
    for other in ends:  # no window holds a likelier span
        one_S, two_S, _ = slowly(made, ASKED, *other)
        spans = [one_S[i] * two_S[j] for i in range(len(one_S) - 1) for j in range(i, min(i + 3, len(two_S) - 1))]
        assert best >= float(max(spans)) - 1e-6
    assert found["source"]["text"] == ASKED
    given = asked(made, ASKED, list(prediction.tokens))
    assert given.target == [int(each) - first for each in prediction.tokens]
    assert importance(made.model, made.task, given)["log_probability"] == pytest.approx(np.log(best), abs=1e-4)


def test_another_target_than_the_answer_needs_a_single_window() -> None:
    with pytest.raises(InputError, match="several windows"):
        asked(answerer(), ASKED, ["11", "11"])
    assert asked(answerer(window=30, stride=15), ASKED, ["11", "11"]).target == [11, 11]


def test_a_long_question_is_shown_as_far_as_it_was_read() -> None:
    made = answerer(longest_question=2, window=30, stride=15)
    found = explore(made, f"ba de fi go ?\t{CONTEXT}")["drawing"]
    assert [each["text"] for each in found["question"]] == ["ba", "de"]


def test_no_answer_is_drawn_as_none() -> None:
    made = answerer(no_answer=True, no_answer_margin=-100.0)
    prediction = made.predict(ASKED)
    span = AnswerSpan.of(prediction)
    assert prediction.text == "" and span.to_dict()["answer"] is None and not span.answer_words
    assert plain(span)[1].startswith("no answer: ")
    assert "no answer" in str(prediction._repr_html_())


def test_the_terminal_marks_the_answer_and_its_ends() -> None:
    made = answerer(window=30, stride=15)
    prediction = made.predict(ASKED)
    lines = plain(AnswerSpan.of(prediction), 200)
    assert lines[0] == QUESTION and lines[1].startswith(prediction.text)
    [text] = [line for line in lines if "[" in line]
    assert f"[{prediction.text}]" in text and text.replace("[", "").replace("]", "") == CONTEXT
    assert all(len(line) <= 40 for line in plain(AnswerSpan.of(prediction), 40))


# ---- looking back ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [{}, {"kind": "transformer_decoder", "heads": 2, "cell": None}])
def test_each_line_has_the_weights_of_reading_that_word(model: dict[str, Any]) -> None:
    made = reader(**model) if not model else pipeline("transformer_decoder")
    back = made.look_back(TEXT)
    assert [word.text for word in back.words] == TEXT.split()
    ids = [made.task.start, *made.task.tokenizers["target"].encode([TEXT])[0]]
    with recorded(made) as record:
        _, state = made.model.start(None, 1)
        for token in ids:
            _, state = made.model.step(torch.tensor([token]), None, state)
    expected = np.zeros((len(ids), len(ids)))
    for calls in record.values():
        for row, call in enumerate(calls):
            seen = call[0, :, 0].mean(0).numpy()
            if len(model):
                expected[row, : len(seen)] += seen / len(record)
            else:  # a tape: the initial state and the start token's are both the start
                expected[row, 0] += seen[:2].sum() / len(record)
                expected[row, 1 : len(seen) - 1] += seen[2:] / len(record)
    np.testing.assert_allclose(back.weights, expected[1:], atol=1e-5)
    np.testing.assert_allclose(back.weights.sum(1), 1, atol=1e-5)


def test_a_lstmns_states_are_decoder_self_attention_on_the_page() -> None:
    made = reader()
    found = explore(made, TEXT)
    assert [(each["kind"], each["rows"], each["causal"]) for each in found["attention"]] == [
        ("decoder", "decoder_input", True)
    ] * 2
    assert found["drawing"] == {"kind": "look_back", "prompt": len(TEXT.split())}
    assert drawing_name(made.model, made.task) == "look_back"
    assert drawing_name(reader(cell="lstm").model, reader(cell="lstm").task) == ""
    assert explore(reader(cell="lstm"), TEXT)["drawing"] is None
    assert explore(pipeline("transformer"), TEXT)["drawing"] is None


def test_the_words_before_are_shaded_and_the_word_itself_stands_out() -> None:
    words = reader().look_back("ba de fi").words
    weights = np.array([[1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.75, 0.0, 0.25, 0]])
    back = LookBack("ba de fi", words, weights, "<s>", "a title")
    assert plain(back) == ["<s>█ [ba] de fi", "<s>█ ba█ [de] fi", "<s>█ ba de▒ [fi]"]
    html = back._repr_html_()
    assert html.count("<li") == 3 and "fi → de: 0.250" in html
    assert "de → fi" not in html  # nothing is told of what comes later


def test_one_head_and_what_has_none() -> None:
    made = reader()
    one, weights_TT = (
        made.look_back(TEXT, "stack.cells.1", 0),
        reading_of(made.model, made.task, TEXT).layers[1].weights[0],
    )
    np.testing.assert_allclose(one.weights[:, 1:], weights_TT[1:, 1:], atol=1e-6)
    with pytest.raises(InputError, match="no head 7"):
        made.look_back(TEXT, "stack.cells.1", 7)
    with pytest.raises(InputError, match="does not attend to the words before"):
        reader(cell="lstm").look_back(TEXT)
    with pytest.raises(InputError, match="reads a source"):
        pipeline("transformer").look_back(TEXT)
    with pytest.raises(InputError, match="empty"):
        reader().look_back(" ")


def test_a_word_that_is_unknown_is_shown_as_it_was_written() -> None:
    back = reader().look_back("ba Zoo fi")
    assert plain(back)[-1].replace("█", "").replace("▓", "").replace("▒", "").endswith("ba Zoo [fi]")


def test_a_figure_has_a_line_for_each_word(tmp_path: Any) -> None:
    pytest.importorskip("matplotlib")
    figure = reader().look_back("ba de fi").plot()
    written = [text.get_text() for text in figure.axes[0].texts]
    assert written.count("ba") == written.count("fi") == 3
    assert save(figure, tmp_path / "back.svg").read_bytes().startswith(b"<?xml")


# ---- trees, and all of them --------------------------------------------------------------------------------------


def test_a_tree_goes_to_the_page_with_its_places() -> None:
    made = parser()
    found = json.loads(json.dumps(explore(made, TEXT)))["drawing"]
    assert found["kind"] == "tree_drawing"
    assert [each["text"] for each in found["nodes"] if each["is_word"]] == TEXT.split()
    assert found["text"] == made.predict(TEXT).text
    assert [each["above"] for each in found["nodes"]].count(-1) == 1


@pytest.mark.parametrize(
    "made", [classifier(hops=2), answerer(), parser(), tree_labeller(), reader()], ids=lambda made: made.recipe.name
)
def test_the_offline_file_has_the_picture(made: Pipeline) -> None:
    text = {"answer_span": ASKED, "labelled_tree_drawing": TREE}.get(made.task.drawing, TEXT)
    found = json.loads(json.dumps(offline({"one": made}, [text]), allow_nan=False))
    kind = drawing_name(made.model, made.task)
    assert found["models"][0]["shows"]["drawing"] == kind == found["explorations"][0]["drawing"]["kind"]
    assert drawn(made.model, made.task, made.predict(text)) is not None


# ---- hops over the sentences of a story --------------------------------------------------------------------------


def test_hops_have_the_weights_of_the_memory(tmp_path: Path) -> None:
    made = listener()
    found = json.loads(json.dumps(explore(made, STORY)))["drawing"]
    assert found["kind"] == "hop_shading"
    assert (found["sentences"], found["question"], found["facts"]) == (
        ["ba de fi", "go ku", "fi go ba"],
        "where ba?",
        [1],
    )
    source = made.task.columns["source"]
    with recorded(made) as record:
        logits_BC = made.model.classify(source.collate([np.asarray(ids) for ids in source.encode([STORY])]))
    hops_KM = torch.stack([record[f"hops.{k}"][0][0, 0, 0] for k in range(2)])
    np.testing.assert_allclose(found["hops"], hops_KM, atol=1e-6)
    np.testing.assert_allclose(found["empty"], 1 - hops_KM.sum(1), atol=1e-6)
    names = made.task.columns["target"].tokens(range(3))
    expected = dict(zip(names, logits_BC[0].softmax(-1).tolist(), strict=True))
    assert found["probabilities"] == pytest.approx(expected, abs=1e-6)
    picture = made.predict(STORY)
    shown = HopShading.of(picture)
    lines = plain(shown)
    assert lines[-1] == "* supporting facts"
    assert [line[14:] for line in lines[-5:-2]] == ["  ba de fi", "* go ku", "  fi go ba"]
    html = shown._repr_html_()
    assert html.count("<tr") == 5
    assert f"{found['hops'][1][2]:.2f}" in html
    save(shown.plot(), tmp_path / "hops.svg")
    assert "go ku *" in (tmp_path / "hops.svg").read_text()


def test_a_story_in_json_has_the_same_picture() -> None:
    made = listener()
    text = json.dumps({"story": ["ba de fi.", "go ku.", "fi go ba."], "question": "where ba?", "facts": [2]})
    assert explore(made, text)["drawing"] == explore(made, STORY)["drawing"]
    with pytest.raises(InputError, match="a story in JSON has no words"):
        made.task.columns["source"].parts(text)


def test_an_ensemble_has_no_hops() -> None:
    shown = HopShading.of(replace(listener().predict(STORY), attend=None))
    assert shown.hops.shape == (0, 3)
    assert "single models" in "".join(plain(shown))
