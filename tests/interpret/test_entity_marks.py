"""Labels of words in their text: marks stand where the text given has them, wherever they are shown."""

import copy
import html
import io
import itertools
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

from base64_arrays import from_base64
from drawn_models import TAGS, file_of, tagger
from served import serving
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.data.structures.label_schemes import allowed_transitions, spans_of
from transduce.data.structures.word_units import units_of
from transduce.explore.exploration import asked, explore
from transduce.explore.offline import offline
from transduce.inference.word_labels import Entity, LabelledWord, WordLabelPrediction
from transduce.interpret.entity_marks import EntityMarks
from transduce.interpret.importance import importance
from transduce.pipeline.pipeline import Pipeline

RAW = {
    "punctuation": ("Anna Müller, of O'Neil & Co. (Oslo), left.", "split"),
    "crlf": ("ba de\r\n\r\nfi\tgo  ku\r\n", "word"),
    "wide": ("我们在北京见面，然后去東京。", "character"),
    "emoji": ("ba 👩‍👩‍👧 de 👍🏽 fi", "word"),
    "hebrew": ("שלום עולם, ba (תל אביב).", "split"),
    "arabic": ("وصل محمد إلى القاهرة", "word"),
    "marks": ("e\u0301a n\u0303o 👍!", "split"),
}
TRANSFORMER = {"encoder": "transformer", "heads": 2, "feed_forward": 8, "hidden": 256, "character_filters": 0}


def plain(picture: Any, width: int = 60) -> str:
    file = io.StringIO()
    Console(file=file, width=width, no_color=True, force_terminal=False).print(picture, soft_wrap=True)
    return file.getvalue()[:-1]


def coloured(picture: Any, **settings: Any) -> str:
    file = io.StringIO()
    Console(file=file, width=60, color_system="truecolor", force_terminal=True, **settings).print(picture)
    return file.getvalue()


def labelled(text: str, unit: str, labels: list[str], scheme: str = "bio") -> WordLabelPrediction:
    """A prediction with these labels in turns, its offsets found by searching for each word in what is left."""
    at, words = 0, list[LabelledWord]()
    for word, label in zip(units_of(text, unit), itertools.cycle(labels), strict=False):
        start = text.index(word, at)
        at = start + len(word)
        words.append(LabelledWord(word, label, 0.5, start, at))
    names = tuple(word.label for word in words)
    made = WordLabelPrediction(text, " ".join(names), 0.0, 0.0, names, tuple([0.0] * len(names)), words=tuple(words))
    entities = []
    for first, last, kind in spans_of(names) if scheme != "none" else []:
        start, end = words[first].start, words[last - 1].end
        entities.append(Entity(kind, text[start:end], start, end, 0.5))
    return replace(made, entities=tuple(entities), labels=tuple(sorted({*names, *labels})), scheme=scheme)


@pytest.mark.parametrize(("text", "unit"), RAW.values(), ids=RAW)
def test_marks_have_the_offsets_of_raw_text(text: str, unit: str) -> None:
    prediction = tagger(seed=3, unit=unit).predict(text)
    marks = EntityMarks.of(prediction).marks
    bounds = [(word.start, word.end) for word in prediction.words]
    expected = [
        (span.kind, bounds[span.start][0], bounds[span.end - 1][1], span.start, span.end)
        for span in spans_of(prediction.tokens)
    ]
    assert [(mark.name, mark.start, mark.end, mark.first, mark.last) for mark in marks] == expected
    assert [word.word for word in prediction.words] == units_of(text, unit)
    assert all(text[word.start : word.end] == word.word for word in prediction.words)


@pytest.mark.parametrize("scheme", ["bio", "none"])
@pytest.mark.parametrize(("text", "unit"), RAW.values(), ids=RAW)
def test_what_is_shown_is_the_text_with_labels_in_it(text: str, unit: str, scheme: str) -> None:
    labels = ["B-PER", "I-PER", "O", "B-LOC"] if scheme == "bio" else ["NOUN", "VERB"]
    drawing = EntityMarks.of(labelled(text, unit, labels, scheme))
    assert "".join(part.text for part in drawing.parts) == text
    page = re.sub(r"<(rt|bdi)[^>]*>[^<]*</\1>", "", drawing._repr_html_())
    [shown] = re.findall("<p[^>]*>(.*)</p>", page, re.DOTALL)
    assert html.unescape(re.sub("<[^>]*>", "", shown)) == text
    if scheme == "bio":
        without = plain(drawing)
        for mark in drawing.marks:
            without = without.replace(f" {mark.name}]", "]", 1)
        lost = str.maketrans("", "", "[]\r")
        assert without.translate(lost) == text.replace("\t", "␣").translate(lost)


def test_spans_stand_in_brackets_where_there_is_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    drawing = EntityMarks.of(labelled("Ann Stone met Bo.", "split", ["B-PER", "I-PER", "O", "B-PER", "O"]))
    assert plain(drawing) == "[Ann Stone PER] met [Bo PER]."
    assert "48;2;" in coloured(drawing)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "48;2;" not in coloured(drawing) and "[Ann Stone" in coloured(drawing)


def test_each_label_stands_below_its_word() -> None:
    drawing = EntityMarks.of(labelled("We see 東京 today", "word", ["PRON", "VERB", "PROPN", "ADV"], "none"))
    lines = [
        "We    see   東京   today",
        "PRON  VERB  PROPN  ADV",
    ]
    assert [line.rstrip() for line in plain(drawing).split("\n")] == lines
    narrow = [line.rstrip() for line in plain(drawing, 12).split("\n")]
    assert narrow == ["We    see", "PRON  VERB", "東京   today", "PROPN  ADV"]
    hebrew = EntityMarks.of(labelled("שלום עולם", "word", ["INTJ", "NOUN"], "none"))
    assert plain(hebrew).split("\n") == ["INTJ  שלום", "NOUN  עולם"]


def test_words_of_segmented_text_have_two_colours_in_turns() -> None:
    drawing = EntityMarks.of(labelled("我们爱北京", "character", ["B", "E", "S", "B", "E"], "bmes"))
    assert plain(drawing) == "[我们][爱][北京]"
    assert len({mark.colour for mark in drawing.marks}) == 2
    assert drawing.marks[0].colour == drawing.marks[2].colour


def test_markup_in_texts_and_labels_is_shown_as_text() -> None:
    drawing = EntityMarks.of(labelled("<b>x</b> \x1b[31m y", "word", ["B-<i>"]))
    page = drawing._repr_html_()
    assert "<b>x" not in page and "&lt;b&gt;x&lt;/b&gt;" in page and "<i>" not in page
    assert "\x1b" not in plain(drawing)


def brute_marginals(made: Pipeline, text: str) -> np.ndarray[Any, Any]:
    """(N, C) by the sum over all rows of labels, from the paper's definition."""
    reads, count = made.task.columns["source"], len(TAGS)
    with torch.inference_mode():
        emission_NC = made.model.emissions(reads.collate_texts([np.asarray(reads.encode([text])[0])]))[0].double()
        scores_DD = made.model.chain.scores_DD.double()
    allowed = allowed_transitions(TAGS, "bio")
    found, total = np.zeros(emission_NC.shape), 0.0
    for row in itertools.product(range(count), repeat=len(emission_NC)):
        path = [count, *row, count]
        if not all(allowed[one][other] for one, other in itertools.pairwise(path)):
            continue
        score = sum(float(scores_DD[one, other]) for one, other in itertools.pairwise(path))
        weight = np.exp(score + sum(float(emission_NC[n, label]) for n, label in enumerate(row)))
        total += weight
        found[np.arange(len(row)), row] += weight
    return found / total


def test_the_pages_numbers_are_the_fields_marginals_and_transitions() -> None:
    made = tagger(unit="split")
    found = json.loads(json.dumps(explore(made, "ba (de) fi"), allow_nan=False))["drawing"]
    shape = found["probabilities"]["shape"]
    assert shape == [5, 5]
    expected = brute_marginals(made, "ba (de) fi")
    probability_NC = from_base64(found["probabilities"]["weights"], shape)
    np.testing.assert_allclose(probability_NC, expected, atol=1e-5)
    each = [expected[place, TAGS.index(word["label"])] for place, word in enumerate(found["words"])]
    assert [word["probability"] for word in found["words"]] == pytest.approx(each, abs=1e-5)
    scores_DD = from_base64(found["transitions"]["weights"], [6, 6])
    learnt_DD = made.model.chain.scores_DD.detach().numpy()
    allowed_DD = np.array(allowed_transitions(TAGS, "bio"))
    np.testing.assert_allclose(scores_DD[:5], np.where(allowed_DD, learnt_DD, -np.inf)[:5], atol=1e-6)
    np.testing.assert_allclose(scores_DD[5, :5], np.where(allowed_DD, learnt_DD, -np.inf)[5, :5], atol=1e-6)


def test_without_a_field_there_are_no_transitions() -> None:
    made = tagger(crf=False)
    found = explore(made, "ba de")["drawing"]
    assert found["transitions"] is None
    reads = made.task.columns["source"]
    with torch.inference_mode():
        scores_NC = made.model.emissions(reads.collate_texts([np.asarray(reads.encode(["ba de"])[0])]))[0]
    probability_NC = from_base64(found["probabilities"]["weights"], [2, 5])
    np.testing.assert_allclose(probability_NC, scores_NC.double().softmax(1), atol=1e-6)


@pytest.mark.parametrize(("text", "unit"), [RAW["punctuation"], RAW["emoji"], RAW["hebrew"]])
def test_attention_has_a_word_for_each_label(text: str, unit: str) -> None:
    made = tagger(unit=unit, **TRANSFORMER)
    found = json.loads(json.dumps(explore(made, text), allow_nan=False))
    [layer] = found["attention"]
    tokens, words = found["source"]["tokens"], found["source"]["words"]
    assert layer["kind"] == "encoder" and layer["shape"] == [2, len(tokens), len(tokens)]
    assert [text[word["start"] : word["end"]] for word in words] == units_of(text, unit)
    assert [place for word in words for place in word["tokens"]] == list(range(len(tokens)))
    for word in words:
        of_word = [tokens[place] for place in word["tokens"]]
        assert (of_word[0]["start"], of_word[-1]["end"]) == (word["start"], word["end"])
    assert [each["text"] for each in found["target"]["words"]] == [each["label"] for each in found["drawing"]["words"]]
    assert len(found["alternatives"]) == len(words)


def test_head_importance_is_the_change_of_the_labels_log_probability() -> None:
    made = tagger(**TRANSFORMER)
    given = asked(made, "ba de fi", None)
    found = importance(made.model, made.task, given)
    prediction = made.predict("ba de fi")
    assert found["log_probability"] == pytest.approx(prediction.log_probability, abs=1e-5)
    weight = made.model.encoder.blocks[0].self_attention.output.weight
    with torch.no_grad():
        weight[:, : weight.shape[1] // 2] = 0
    without = made.score("ba de fi", prediction.text).log_probability - prediction.log_probability
    assert found["heads"][0]["change"] == pytest.approx(without, abs=1e-5)
    with pytest.raises(InputError, match="expected 3 labels"):
        asked(made, "ba de fi", ["O"])


def test_a_prediction_travels_without_its_model() -> None:
    prediction = tagger().predict("ba de")
    assert prediction.table is not None and prediction.table().probability_NC.shape == (2, 5)
    copied = copy.copy(prediction)  # as pickle does it, by __getstate__
    assert copied == prediction and copied.table is None
    assert EntityMarks.of(copied).to_dict()["probabilities"] is None
    assert set(prediction.to_dict()) == {"source", "text", "words", "entities", "log_probability"}


def test_the_server_explores_taggers(tmp_path: Any) -> None:
    made = tagger(**TRANSFORMER)
    path = tmp_path / "names.safetensors"
    save_model_file(path, file_of(made))
    text = "ba de, 北京 fi"
    with serving([path]) as server:
        spans = server.post("/v1/predict", texts=[text]).json()["predictions"][0]
        assert [text[each["start"] : each["end"]] for each in spans["words"]] == text.split()
        found = server.post("/v1/explore/predict", text=text)
        assert found.status_code == 200 and found.json()["drawing"]["kind"] == "entity_marks"
        for what, more in (("heads", {}), ("rollout", {}), ("steps", {"name": "encoder.blocks.0.self_attention"})):
            asked_of = {"text": text, **more, **({"query": 0} if more else {})}
            answer = server.post(f"/v1/explore/{what}", **asked_of)
            assert answer.status_code == 200, answer.text
    data = offline({"names": made}, [text])
    assert data["explorations"][0]["drawing"]["words"][2]["text"] == "北京"


def test_a_text_in_windows_is_shown_without_attention() -> None:
    made = tagger(unit="split", positions="learned", max_length=8, **TRANSFORMER)
    text = "ba (de), fi go! ku שלום 北京. " * 6
    found = json.loads(json.dumps(explore(made, text), allow_nan=False))
    prediction = made.predict(text)
    assert found["attention"] == [] and found["nbest"][0]["text"] == prediction.text
    words, shape = found["drawing"]["words"], found["drawing"]["probabilities"]["shape"]
    assert [text[word["start"] : word["end"]] for word in words] == units_of(text, "split")
    assert shape == [len(words), len(TAGS)] and len(found["source"]["words"]) == len(words)
    probability_NC = from_base64(found["drawing"]["probabilities"]["weights"], shape)
    own = [probability_NC[place, TAGS.index(word["label"])] for place, word in enumerate(words)]
    assert own == pytest.approx([word.probability for word in prediction.words], abs=1e-6)
    [kept] = offline({"names": made}, [text])["explorations"]
    assert kept["heads"] is None and kept["drawing"] == found["drawing"]
    with pytest.raises(InputError, match="several windows"):
        prediction.attention()
    with pytest.raises(InputError, match="probabilities of labels"):
        explore(made, text, max_weights=10)
