"""What a validation measures and shows."""

import io
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from random_models import sentences, translator
from scores import bleu
from transduce.data.encoding import open_pairs_store
from transduce.data.filters import FilterConfig
from transduce.data.pairs.pair_files import PairFiles
from transduce.inference.decode import SearchPredictor
from transduce.inference.likelihood import dataset_likelihood
from transduce.recipe.training import TrainingConfig
from transduce.search.settings import Search
from transduce.tasks.protocols import Dataset
from transduce.training.diagnostics import unigram_entropy
from transduce.training.display import Display
from transduce.training.validation import Validator, spread, target_entropy


@given(st.integers(0, 50), st.integers(0, 60))
def test_the_sample_is_spread_evenly(count: int, many: int) -> None:
    texts = [(str(number), "") for number in range(many)]
    chosen = [int(source) for source, _ in spread(texts, count)]
    assert len(chosen) == min(count, many)
    if not chosen:
        return
    gaps = [b - a for a, b in zip(chosen, [*chosen[1:], many], strict=True)]
    assert all(math.floor(many / len(chosen)) <= gap <= math.ceil(many / len(chosen)) for gap in gaps)
    assert chosen[0] == 0


def test_it_measures_what_search_and_scoring_measure_and_touches_nothing(tmp_path: Path) -> None:
    pipeline = translator()
    pairs = [pair for pair in zip(sentences(30), sentences(30, seed=5), strict=True) if all(pair)]
    for side, name in enumerate("ab"):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in pairs))
    both = (pipeline.task.tokenizers["source"], pipeline.task.tokenizers["target"])
    store = open_pairs_store(PairFiles(source="a", target="b"), tmp_path, both, FilterConfig(max_ratio=99), tmp_path)
    shown = io.StringIO()
    validate = Validator(
        pipeline.model,
        pipeline.task,
        Dataset(store, pairs),
        TrainingConfig(decode_sentences=10, samples=2),
        Display(Console(file=shown, width=200)),
        entropy=target_entropy(store, pipeline.task.columns["target"]),
    )
    before, random_state = [weight.clone() for weight in pipeline.model.parameters()], torch.get_rng_state()
    metrics = validate()
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(torch.equal(a, b) for a, b in zip(before, pipeline.model.parameters(), strict=True))
    some = spread(pairs, 10)
    greedy = Search(method="greedy")
    outputs = [
        each.text
        for each in SearchPredictor(pipeline.task).predict(pipeline.model, [source for source, _ in some], greedy)
    ]
    assert metrics["bleu"] == bleu(outputs, [reference for _, reference in some]).value
    assert metrics["loss"] == dataset_likelihood(pipeline.model, pipeline.task, store).loss
    assert metrics["perplexity"] == pytest.approx(math.exp(metrics["loss"]))
    assert shown.getvalue().count("reference") == 2
    assert "Alarm: The validation loss" in shown.getvalue()  # random weights


def test_the_entropy_of_targets_counts_their_ends(tmp_path: Path) -> None:
    pipeline = translator()
    (tmp_path / "a").write_text("ba\nde\n")
    (tmp_path / "b").write_text("fi fi\ngo\n")
    both = (pipeline.task.tokenizers["source"], pipeline.task.tokenizers["target"])
    store = open_pairs_store(PairFiles(source="a", target="b"), tmp_path, both, FilterConfig(), tmp_path)
    assert target_entropy(store, pipeline.task.columns["target"]) == pytest.approx(unigram_entropy([1, 1, 2, 3, 3]))
