"""A tagger against sums word by word, and what it promises: padding, batches, pieces, characters, windows."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

import drawn_models
from drawn_models import tagger
from random_models import sentences
from transduce.data.collate import Batch, units_of_each
from transduce.data.columns.words import LONGEST_WORD, Words
from transduce.inference.word_labels import WordLabelPredictor
from transduce.inference.word_windows import windows
from transduce.layers.crf import log_likelihood
from transduce.objectives.crf import CrfLikelihood
from transduce.pipeline.pipeline import Pipeline

TEXTS = [text for text in sentences(40, seed=4) if text][:30]
MODELS: list[dict[str, Any]] = [
    {},
    {"crf": False, "pieces": "mean"},
    {"encoder": "transformer", "heads": 2, "feed_forward": 8, "character_filters": 0},
    {"encoder": "convolution", "positions": "none", "pieces": "mean"},
]


def made(settings: dict[str, Any]) -> Pipeline:
    return tagger(**settings, **_no_hidden(settings))


def _no_hidden(settings: dict[str, Any]) -> dict[str, Any]:
    return {} if settings.get("encoder", "recurrent") == "recurrent" else {"hidden": 256}


def batch_of(pipeline: Pipeline, texts: list[str], seed: int = 1) -> Batch:
    """With random labels."""
    source, random = pipeline.task.columns["source"], np.random.default_rng(seed)
    rows = [np.asarray(ids, np.int32) for ids in source.encode(texts)]
    targets = [random.integers(0, 5, len(text.split(" "))).astype(np.int32) for text in texts]
    labels = pipeline.task.columns["target"].collate(targets)
    return Batch(source.collate(rows), labels, int(units_of_each(labels).sum()))


@pytest.mark.parametrize("settings", MODELS, ids=str)
def test_a_text_is_what_it_is_alone(settings: dict[str, Any]) -> None:
    model = made(settings)
    together: Any = model.predict(TEXTS, batch_size=30)
    for text, each in zip(TEXTS, together, strict=True):
        alone: Any = model.predict(text)
        assert alone.text == each.text
        assert alone.token_log_probabilities == pytest.approx(each.token_log_probabilities, abs=1e-5)
        [scored] = model.score([(text, alone.text)])
        assert scored.token_log_probabilities == pytest.approx(alone.token_log_probabilities, abs=1e-5)
        assert scored.unit == "word"
        assert len(alone.tokens) == len(text.split(" "))


@pytest.mark.parametrize("settings", MODELS, ids=str)
def test_loss_and_likelihood_are_the_same_figure(settings: dict[str, Any]) -> None:
    pipeline = made(settings)
    objective, model, batch = pipeline.task.objective(pipeline.model), pipeline.model.eval(), batch_of(pipeline, TEXTS)
    if settings.get("crf", True):  # all rows that a scheme allows, as no other has a probability
        said: Any = pipeline.predict(TEXTS)
        ids = pipeline.task.columns["target"].encode([each.text for each in said])
        labels = pipeline.task.columns["target"].collate([np.asarray(each, np.int32) for each in ids])
        batch = batch._replace(targets=labels)
    with torch.no_grad():
        loss = float(objective.loss(model, batch, None).reported)
    each_BN = objective.log_probabilities(model, batch)
    assert -float(each_BN.sum()) == pytest.approx(loss, rel=1e-5)
    parts = [batch.rows(slice(0, 7)), batch.rows(slice(7, 30))]
    with torch.no_grad():
        cut = sum(float(objective.loss(model, part, None).reported) for part in parts)
    assert cut == pytest.approx(loss, rel=1e-5)


def test_the_chain_reads_the_emissions_of_words() -> None:
    pipeline = tagger()
    model: Any = pipeline.model
    batch = batch_of(pipeline, TEXTS[:3])
    assert isinstance(pipeline.task.objective(model), CrfLikelihood)
    scores_BNC = model.emissions(batch.inputs)
    found = log_likelihood(scores_BNC, batch.targets.ids.values, batch.targets.ids.lengths, model.chain.chain())
    for row, text in enumerate(TEXTS[:3]):
        count = len(text.split(" "))
        alone = scores_BNC[row : row + 1, :count], batch.targets.ids.values[row : row + 1, :count]
        slow = log_likelihood(*alone, torch.tensor([count]), model.chain.chain())
        torch.testing.assert_close(found[row : row + 1], slow)


def test_words_are_read_from_their_pieces() -> None:
    """Of a word of several pieces: the first, or their mean; an encoder of one layer without neighbours shows which."""
    for pieces in ("first", "mean"):
        pipeline = tagger(encoder="none", positions="none", hidden=256, pieces=pieces, character_filters=0)
        column, model = pipeline.task.columns["source"], pipeline.model
        assert isinstance(column, Words)
        word = max(TEXTS[0].split(" ") + ["badefigoku"], key=len)
        [row] = column.encode([f"ba {word} de"])
        inputs = column.collate([np.asarray(row, np.int32)])
        ids = [each % column.tokenizer.size for each in row[1:-1]]
        assert len(ids) > 1
        vectors = model.source_embedding(torch.tensor([ids]))[0]
        state = vectors[0] if pieces == "first" else vectors.mean(0)
        with torch.no_grad():
            torch.testing.assert_close(model.emissions(inputs)[0, 1], model.output(state))


def test_characters_are_those_of_the_word_whatever_its_pieces() -> None:
    column = tagger().task.columns["source"]
    assert isinstance(column, Words)
    long = "ba" * 20
    inputs = column.collate([np.asarray(row, np.int32) for row in column.encode([f"ba {long}", "de"])])
    names = {place: each for each, place in column._alphabet.items()}
    read = ["".join(names[each] for each in row if each) for row in inputs.characters.values[0].tolist()]
    assert read == ["ba", "ba" * (LONGEST_WORD // 2)]
    assert inputs.words.values[1].tolist()[0] == 0
    assert set(inputs.words.values[1].tolist()[1:]) == {-1}


def test_as_many_labels_as_words_whatever_is_written() -> None:
    model = tagger()
    for text in ("", "   ", "ba", "\u200b ba", "日本語 ☃ \u00a0 x" * 9, "a\u00a0b c", "\ufeff \u200d", "ba  de\tfi"):
        found: Any = model.predict(text)
        words = [each for each in text.replace("\t", " ").split(" ") if each]
        assert [each.word for each in found.words] == words
        assert len(found.tokens) == len(words)
        assert all(text[each.start : each.end] == each.word for each in found.words)
        assert found.to_dict()["text"] == " ".join(found.tokens)


def test_entities_are_the_spans_of_labels() -> None:
    model, seen = tagger(), 0
    for each in model.predict(TEXTS):
        found: Any = each
        for entity in found.entities:
            seen += 1
            places = [place for place, word in enumerate(found.words) if entity.start <= word.start < entity.end]
            assert {found.tokens[place][2:] for place in places} == {entity.kind}
            assert found.tokens[places[0]][0] == "B"
            assert entity.text == found.source[entity.start : entity.end]
            product = np.exp(sum(found.token_log_probabilities[place] for place in places))
            assert entity.probability == pytest.approx(product)
    assert seen > 10


def test_windows_hold_each_word_and_overlap_by_half() -> None:
    random = np.random.default_rng(2)
    for _ in range(50):
        row = random.integers(0, 20, 60).astype(np.int32)
        row[0] = 15
        found = windows(0, row, 10, 12)
        covered = {place for each in found for place in range(each.start, each.end)}
        assert covered == set(range(int((row >= 10).sum())))
        assert all(len(each.row) <= 12 and each.row[0] >= 10 for each in found)
        steps = [(one.start, one.end, other.start) for one, other in pairwise(found)]
        assert all(start + max(1, (end - start) // 2) == after for start, end, after in steps)


def test_a_long_text_has_the_scores_of_the_windows_that_see_most() -> None:
    """With an encoder that sees no neighbours, windows change nothing."""
    pipeline = tagger(encoder="none", positions="none", hidden=256)
    text = " ".join(TEXTS)
    whole: Any = WordLabelPredictor(pipeline.task.columns).predict(pipeline.model, [text])[0]
    cut: Any = WordLabelPredictor(pipeline.task.columns, 16).predict(pipeline.model, [text])[0]
    assert cut.text == whole.text
    assert cut.token_log_probabilities == pytest.approx(whole.token_log_probabilities, abs=1e-5)
    recurrent = tagger()
    found: Any = WordLabelPredictor(recurrent.task.columns, 16).predict(recurrent.model, [text])[0]
    assert len(found.tokens) == len(text.split(" "))


def test_every_parameter_learns() -> None:
    pipeline = drawn_models.tagger()
    batch = batch_of(pipeline, TEXTS)
    said: Any = pipeline.predict(TEXTS)
    ids = pipeline.task.columns["target"].encode([each.text for each in said])
    labels = pipeline.task.columns["target"].collate([np.asarray(each, np.int32) for each in ids])
    model = pipeline.model
    for parameter in model.parameters():
        parameter.requires_grad_()
    loss = pipeline.task.objective(model).loss(model, batch._replace(targets=labels), None)
    loss.minimised.backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in model.parameters())
