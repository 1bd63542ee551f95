"""Likelihoods, compared with torch's own cross-entropy and with forced decoding step by step."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from forced_decoding import forced
from random_models import language_model, sentences, translator
from transduce.core.padded import Padded
from transduce.data.collate import padded
from transduce.data.corpus import TextFile
from transduce.data.encoding import open_pairs_store, open_text_store
from transduce.data.filters import FilterConfig
from transduce.data.pairs.pair_files import PairFiles
from transduce.inference.decode import SearchPredictor
from transduce.inference.likelihood import Likelihood, dataset_likelihood
from transduce.pipeline.pipeline import Pipeline
from transduce.search.settings import Search


def pairs(count: int) -> list[tuple[str, str]]:
    return list(zip(sentences(count, seed=1), sentences(count, seed=2), strict=True))


def cross_entropy(pipeline: Pipeline, source: str, target: str) -> float:
    """-log p of one pair, alone and without padding, by torch."""
    tokenizer, task = pipeline.task.tokenizers["target"], pipeline.task
    ids = [task.start, *tokenizer.encode([target])[0], task.end]
    row = torch.tensor([ids])
    read = None
    if "source" in task.tokenizers:
        source_ids = [*task.tokenizers["source"].encode([source])[0], task.end]
        read = Padded(torch.tensor([source_ids]), torch.tensor([len(source_ids)]))
    with torch.no_grad():
        logits_BTV = pipeline.model(read, Padded(row[:, :-1], torch.tensor([len(ids) - 1])))
    return float(F.cross_entropy(logits_BTV[0], row[0, 1:], reduction="sum"))


def test_scores_of_pairs_are_torchs_cross_entropy_in_any_batch() -> None:
    pipeline = translator()
    given = pairs(60)
    found = pipeline.score(given, batch_size=17)
    for (source, target), likelihood in zip(given, found, strict=True):
        assert -likelihood.log_probability == pytest.approx(cross_entropy(pipeline, source, target), abs=1e-4)
        assert likelihood.tokens == len(target.split()) + 1
    alone = pipeline.score(given, batch_size=1)
    assert [each.log_probability for each in alone] == pytest.approx(
        [each.log_probability for each in found], rel=1e-6, abs=1e-5
    )


def test_scores_of_pairs_are_those_of_forced_decoding() -> None:
    pipeline = translator()
    given = pairs(30)
    task, tokenizer = pipeline.task, pipeline.task.tokenizers["target"]
    sources = [np.array([*ids, task.end]) for ids in tokenizer.encode([source for source, _ in given])]
    targets = [[*ids, task.end] for ids in tokenizer.encode([target for _, target in given])]
    stepped = forced(pipeline.model, padded(sources), targets, start=task.start, end=task.end)  # type: ignore[arg-type]
    found = pipeline.score(given)
    for likelihood, hypothesis in zip(found, stepped, strict=True):
        assert likelihood.log_probability == pytest.approx(hypothesis.log_probability, abs=1e-4)


def test_a_language_model_scores_lines_alone() -> None:
    pipeline = language_model()
    texts = sentences(20)
    found = pipeline.score([("", text) for text in texts], batch_size=7)
    for text, likelihood in zip(texts, found, strict=True):
        assert -likelihood.log_probability == pytest.approx(cross_entropy(pipeline, "", text), abs=1e-4)


def test_the_likelihood_of_a_store_is_that_of_its_pairs(tmp_path: Path) -> None:
    pipeline = translator()
    given = [pair for pair in pairs(80) if all(pair)]
    for side, name in enumerate(("a", "b")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in given))
    both = (pipeline.task.tokenizers["source"], pipeline.task.tokenizers["target"])
    store = open_pairs_store(PairFiles(source="a", target="b"), tmp_path, both, FilterConfig(max_ratio=99), tmp_path)
    total = dataset_likelihood(pipeline.model, pipeline.task, store)
    each = pipeline.score(given)
    assert total.tokens == sum(one.tokens for one in each)
    assert total.log_probability == pytest.approx(sum(one.log_probability for one in each), rel=1e-6, abs=1e-5)


def test_a_text_that_fits_one_row_has_the_likelihood_of_its_tokens(tmp_path: Path) -> None:
    pipeline = language_model()
    (tmp_path / "a").write_text("ba de fi\ngo ku\n")
    store = open_text_store(TextFile(text="a"), tmp_path, pipeline.task.tokenizers["target"], 24, tmp_path)
    total = dataset_likelihood(pipeline.model, pipeline.task, store)
    end = pipeline.task.end
    one, two = pipeline.task.tokenizers["target"].encode(["ba de fi", "go ku"])
    row = torch.tensor([[end, *one, end, *two, end]])
    with torch.no_grad():
        logits_BTV = pipeline.model(None, Padded(row[:, :-1], torch.tensor([row.shape[1] - 1])))
    assert total.tokens == 7
    assert -total.log_probability == pytest.approx(float(F.cross_entropy(logits_BTV[0], row[0, 1:], reduction="sum")))


def test_figures_of_a_likelihood() -> None:
    likelihood = Likelihood(-6.0, 3)
    assert likelihood.loss == 2.0
    assert likelihood.perplexity == pytest.approx(math.e**2)
    assert likelihood.to_dict()["signature"] == "base:e|unit:token|ends:counted"
    assert math.isnan(Likelihood(0.0, 0).loss)


def test_progress_is_told_and_lines_seed_samples() -> None:
    pipeline = translator()
    told: list[int] = []
    settings = Search(method="sample")
    texts = [text for text in sentences(20) if text]
    found = SearchPredictor(pipeline.task).predict(pipeline.model, texts, settings, batch_size=8, advance=told.append)
    assert sum(told) == len(texts)
    part = pipeline.predict(texts[5:9], split="none", first=5, **settings.model_dump())
    assert [each.text for each in part] == [each.text for each in found[5:9]]


def test_a_decoder_of_random_weights_never_says_a_special_token() -> None:
    pipeline = translator(seed=7)
    tokenizer = pipeline.task.tokenizers["target"]
    silent = set(tokenizer.tokens([tokenizer.pad, tokenizer.start, tokenizer.end, tokenizer.unknown]))
    for method in ("greedy", "beam", "sample"):
        for prediction in pipeline.predict(sentences(50), method=method):
            assert silent.isdisjoint(prediction.tokens)
