"""Several models as one: the mean of what they say, in search and in scores, whatever they are and read."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import transduce
from forced_decoding import forced
from random_models import language_model, model_file, sentences, translator
from text_columns import text_columns
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.core.padded import Padded
from transduce.evaluation.evaluate import Settings, evaluate_files
from transduce.evaluation.texts import Files
from transduce.layers.fused_search import Mean
from transduce.models.protocols import Tree
from transduce.pipeline.pipeline import EnsemblePipeline, Pipeline
from transduce.search.ensemble import Ensemble

TEXTS = [text for text in sentences(20, seed=8) if text]
means = pytest.mark.parametrize("mean", ["probability", "log_probability"])


def small(seed: int, **changes: Any) -> Pipeline:
    """Another architecture, as far as sizes go, with the same tokenizers."""
    model = {"d_model": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 12, "norm": "post"}
    return translator(seed=seed, model={**model, "tied": "none", "positions": "rotary"}, **changes)


class Mood(nn.Module):
    """A model of another kind: it reads no more of a source than its length, and remembers the last token."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(vocabulary, vocabulary, generator=torch.Generator().manual_seed(5)))

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        assert source is not None
        return self.table[target.values] / source.lengths[:, None, None]

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        assert source is not None
        return {"length": source.lengths}, None

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        return (self.table[token] / memory["length"][:, None]).log_softmax(-1), state


def mixed(*probabilities: list[float], mean: Mean) -> list[float]:
    if mean == "probability":
        return [sum(each) / len(each) for each in zip(*probabilities, strict=True)]
    products = [math.prod(each) ** (1 / len(each)) for each in zip(*probabilities, strict=True)]
    return [product / sum(products) for product in products]


@means
def test_the_mean_of_two_by_hand(mean: Mean) -> None:
    one, other = Mood(5), Mood(5)
    with torch.no_grad():
        other.table.mul_(-1)
    source = Padded(torch.tensor([[2, 3, 4]]), torch.tensor([3]))
    both, token = Ensemble([one, other], mean), torch.tensor([2])
    each = [model.step(token, *model.start(source, 1))[0][0].exp().tolist() for model in (one, other)]
    found, _ = both.step(token, *both.start(source, 1))
    assert found[0].exp().tolist() == pytest.approx(mixed(*each, mean=mean), abs=1e-6)
    assert found.exp().sum().item() == pytest.approx(1)
    at_once = both(source, Padded(token[None], torch.tensor([1])))[0, 0]
    assert at_once.tolist() == pytest.approx(found[0].tolist(), abs=1e-6)


@means
def test_an_ensemble_of_one_thing_twice_is_that_thing(mean: Mean) -> None:
    alone = translator()
    twice = EnsemblePipeline([alone, alone], mean)
    for search in ({"beam": 4, "nbest": 2}, {"method": "greedy"}, {"method": "sample", "seed": 4}):
        assert [each.text for each in twice.predict(TEXTS, **search)] == [
            each.text for each in alone.predict(TEXTS, **search)
        ]
    pairs = list(zip(TEXTS, reversed(TEXTS), strict=True))
    assert [each.log_probability for each in twice.score(pairs)] == pytest.approx(
        [each.log_probability for each in alone.score(pairs)], rel=1e-5
    )


@means
def test_members_that_read_other_tokens_read_them(mean: Mean) -> None:
    """The source tokenizer of the second is by characters; what is said is the mean of what each says alone."""
    words, letters = translator(), small(2)
    characters = translator("character").task.tokenizers["source"]
    letters.task.columns = text_columns(characters, letters.task.tokenizers["target"])
    letters.task.source = characters  # type: ignore[attr-defined]
    letters.model.source_embedding = nn.Embedding(characters.size, 8)  # type: ignore[assignment]
    both = EnsemblePipeline([words, letters], mean)
    pairs = list(zip(TEXTS, reversed(TEXTS), strict=True))
    singles = [member.score(pairs) for member in (words, letters)]
    for place, together in enumerate(both.score(pairs)):
        assert together.pieces == singles[0][place].pieces
        if mean == "probability":
            one, other = (single[place].token_log_probabilities for single in singles)
            expected = [math.log((math.exp(a) + math.exp(b)) / 2) for a, b in zip(one, other, strict=True)]
            assert together.token_log_probabilities == pytest.approx(expected, abs=1e-4)
    found = both.predict(TEXTS, beam=3)
    alone = [both.predict([text], beam=3)[0] for text in TEXTS]
    assert [each.text for each in found] == [each.text for each in alone]
    scored = both.score([(each.source, each.text) for each in found])
    for each, again in zip(found, scored, strict=True):
        values = again.token_log_probabilities[: len(each.token_log_probabilities)]
        assert values == pytest.approx(each.token_log_probabilities, abs=1e-4)
    with pytest.raises(InputError, match="tokenize their sources differently"):
        both.predict(TEXTS, coverage=0.2)


def test_all_that_search_knows_holds_for_an_ensemble() -> None:
    both = EnsemblePipeline([translator(), small(2)])
    kept = {"beam": 4, "nbest": 4, "coverage": 0.3, "no_repeat_ngram": 2, "min_length": 2}
    for each in both.predict(TEXTS, must=["fi"], must_not=["ba"], **kept):
        assert "fi" in each.text.split()
        assert "ba" not in each.text.split()
    whole, single = both.predict(TEXTS, **kept), both.predict(TEXTS, batch_size=1, **kept)
    assert [each.text for each in whole] == [each.text for each in single]


def test_another_architecture_is_a_member_too() -> None:
    first = translator()
    size = first.task.specs.target.size
    both = Ensemble([first.model, Mood(size)])
    source = Padded(torch.tensor([[5, 6, 2], [7, 2, 0]]), torch.tensor([3, 2]))
    found = forced(both, source, [[5, 6, 2], [7, 2]], start=1, end=2)
    target = Padded(torch.tensor([[1, 5, 6], [1, 7, 0]]), torch.tensor([3, 2]))
    with torch.no_grad():
        logits_BTV = both(source, target)
    for row, hypothesis in enumerate(found):
        values = [float(logits_BTV[row, time, token]) for time, token in enumerate(hypothesis.tokens)]
        assert hypothesis.token_log_probabilities == pytest.approx(values, abs=1e-5)


def test_language_models_too() -> None:
    both = EnsemblePipeline([language_model(seed=1), language_model(seed=2)])
    assert both.predict(["ba de"], beam=2)[0].text.startswith("ba de")
    assert both.score([("", "ba de")])[0].tokens == 3


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    for path, member in zip(paths, (translator(), small(2)), strict=True):
        save_model_file(path, model_file(member))
    return paths


def test_files_are_loaded_as_one(files: list[Path], tmp_path: Path) -> None:
    both = transduce.load(files)
    assert isinstance(both, EnsemblePipeline)
    assert not isinstance(transduce.load(files[:1]), EnsemblePipeline)
    expected = EnsemblePipeline([transduce.load(path) for path in files]).predict(TEXTS, beam=2)
    assert [each.text for each in both.predict(TEXTS, beam=2)] == [each.text for each in expected]
    for name in ("source", "reference"):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in TEXTS))
    texts = Files(tmp_path / "source", [tmp_path / "reference"])
    report = evaluate_files({"both": both}, texts, Settings(["bleu"], 8), lambda count: None)
    assert json.loads(json.dumps(report))["scores"]["bleu"]["value"] >= 0
    likelihood = both.score(list(zip(TEXTS, TEXTS, strict=True)))
    total = sum(each.log_probability for each in likelihood)
    assert report["likelihood"]["log_probability"] == pytest.approx(total)


def test_what_does_not_go_together_is_refused(files: list[Path], tmp_path: Path) -> None:
    other = tmp_path / "other.safetensors"
    save_model_file(other, model_file(translator("character")))
    with pytest.raises(InputError, match=r"other\.safetensors: its target tokenizer is not that of .*a\.safetensors"):
        transduce.load([files[0], other])
    with pytest.raises(InputError, match="one reads a source, the other does not"):
        EnsemblePipeline([translator(), language_model()])
    with pytest.raises(InputError, match="expected the path of a model; got none"):
        transduce.load([])
