"""A pointer in the search of one call, against the steps of torch: what is copied, and how likely it is."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from random_models import model_file, sentences, translator
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.fused.pack import pack_all
from transduce.fused.stack import FusedBeamSearch, FusedBlocks
from transduce.kernels.matmul import can_pack
from transduce.layers.embedding import Embedding
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.pipeline.pipeline import EnsemblePipeline, Pipeline

SIZES = {"d_model": 24, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 24, "tied": "all"}
TEXTS = [*sentences(40, seed=5), "ba ba ba ba du ba", "", "ga", "never ba seen", "ti " * 30]
SEARCHES: list[dict[str, Any]] = [
    {"method": "greedy"},
    {"beam": 5, "nbest": 5},
    {"beam": 4, "nbest": 3, "stopping": "complete"},
    {"beam": 3, "prefix": ["du ba"] * len(TEXTS)},
]


def copier(seed: int = 3, **model: Any) -> Pipeline:
    """A model whose pointer copies much and generates much: both are about as likely."""
    pipeline = translator(seed=seed, model={**SIZES, "pointer": True, **model})
    with torch.no_grad():
        pipeline.model.pointer.query.weight *= 6  # looks at few places
        pipeline.model.pointer.generate.weight *= 3
    return pipeline


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FusedBeamSearch]]:
    """The searches that were one call."""
    made: list[FusedBeamSearch] = []
    whole = FusedBeamSearch.search

    def noted(self: FusedBeamSearch, request: Any) -> Any:
        made.append(self)
        return whole(self, request)

    monkeypatch.setattr(FusedBeamSearch, "search", noted)
    yield made


def step_by_step(pipeline: Pipeline, **search: Any) -> list[Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FusedBlocks, "search", lambda *given: None)
        return flat(pipeline.predict(TEXTS, protect=False, **search))


def flat(found: Any) -> list[Any]:
    return [each for of_text in found for each in (of_text if isinstance(of_text, list) else [of_text])]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("model", [{}, {"norm": "post", "positions": "rotary"}, {"tied": "output"}], ids=str)
def test_one_call_finds_what_steps_find(model: dict[str, Any], calls: list[FusedBeamSearch]) -> None:
    pipeline = copier(**model)
    for search in SEARCHES:
        found = flat(pipeline.predict(TEXTS, protect=False, **search))
        assert calls
        assert all(each.decoders[0][0].pointer is not None for each in calls)
        calls.clear()
        expected = step_by_step(pipeline, **search)
        assert not calls
        assert [each.text for each in found] == [each.text for each in expected]
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.log_probability == pytest.approx(theirs.log_probability, abs=2e-4)
    copied = [each for each in found if set(each.source.split()) & set(each.text.split())]
    assert len(copied) > len(TEXTS) / 2


@pytest.mark.usefixtures("kernels")
def test_an_ensemble_has_pointers_and_models_without(calls: list[FusedBeamSearch]) -> None:
    members = [copier(3), copier(4), translator(seed=5, model=SIZES)]
    for mean in ("probability", "log_probability"):
        together = EnsemblePipeline([Pipeline(model_file(each)) for each in members], mean)
        found = flat(together.predict(TEXTS, protect=False, beam=4, nbest=2))
        assert {tuple(writer.pointer is None for writer, _ in each.decoders) for each in calls} == {
            (False, False, True)
        }
        calls.clear()
        expected = step_by_step(together, beam=4, nbest=2)
        assert [each.text for each in found] == [each.text for each in expected]
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.log_probability == pytest.approx(theirs.log_probability, abs=2e-4)


@pytest.mark.usefixtures("kernels")
def test_in_8_bits_its_query_is_too(calls: list[FusedBeamSearch]) -> None:
    if not can_pack(torch.zeros(1, 1), int8=True):
        pytest.skip("no 8-bit products here")
    pipeline = Pipeline(model_file(copier()), precision="int8")
    found, expected = flat(pipeline.predict(TEXTS, protect=False, beam=3)), step_by_step(pipeline, beam=3)
    assert calls
    same = [ours for ours, theirs in zip(found, expected, strict=True) if ours.text == theirs.text]
    assert len(same) > 0.9 * len(found)


@torch.inference_mode()
def test_other_pointers_and_shortlists_go_step_by_step() -> None:
    def offered(change: Any, ids: torch.Tensor | None = None) -> bool:
        torch.manual_seed(1)
        config = TransformerConfig.model_validate({**SIZES, "pointer": True})
        model = Transformer(config, Specs.of_tokens(31, 31)).eval()
        pack_all(model)
        change(model)
        source_BS = torch.randint(4, 31, (2, 5)) if ids is None else ids
        memory, _ = model.start(Padded(source_BS, torch.tensor([5, 3])), 2)
        return model.fused_search(memory, 9) is not None

    class Mine(nn.Linear):
        pass

    def other(model: Transformer) -> None:
        assert model.pointer is not None
        model.pointer.generate = Mine(48, 1)

    def replaced(model: Transformer) -> None:
        assert model.pointer is not None
        model.pointer.query = nn.Identity()  # type: ignore[assignment]

    def projected(model: Transformer) -> None:
        assert model.pointer is not None
        model.pointer.reader.key = nn.Linear(24, 24)

    def hooked(model: Transformer) -> None:
        assert model.pointer is not None
        model.pointer.reader.register_forward_hook(lambda *given: None)

    def wider(model: Transformer) -> None:
        model.source_embedding = Embedding(40, 24, scaled=True)

    def double(model: Transformer) -> None:
        assert model.pointer is not None
        model.pointer.generate.double()

    far_BS = torch.full((2, 5), 35)
    assert [offered(wider, far_BS), offered(double)] == [False, False]
    assert not offered(lambda model: None, torch.randint(4, 31, (2, 5), dtype=torch.int32))
    offers = offered(lambda model: None)
    assert [offered(each) for each in (other, replaced, projected, hooked)] == [False] * 4
    if not offers:
        pytest.skip("no kernels")


def test_a_shortlist_is_searched_step_by_step(calls: list[FusedBeamSearch]) -> None:
    pipeline = copier()
    size = pipeline.task.tokenizers["target"].size
    lexicon = (
        torch.arange(size, dtype=torch.int32)[:, None].repeat(1, 3),
        torch.arange(4, 12, dtype=torch.int32),
    )
    listed = Pipeline(replace(model_file(pipeline), lexicon=lexicon))
    assert len(listed.predict(TEXTS, protect=False, beam=3, shortlist=3)) == len(TEXTS)
    assert not calls
