"""Prompts that are read in one pass: bit for bit what search finds that reads them token by token."""

from typing import Any

import pytest
import torch

from transduce.core.errors import InputError
from transduce.data.columns import Specs
from transduce.fused import stack as fused_stack
from transduce.fused.pack import pack_all
from transduce.layers.embedding import Embedding
from transduce.models.transformer_decoder import TransformerDecoder, TransformerDecoderConfig
from transduce.search.dispatch import search
from transduce.search.request import Request
from transduce.search.settings import Search

START, END, WORDS = 0, 1, 31
LLAMA = {"key_value_heads": 1, "head_width": 10, "norm_kind": "rms", "positions": "rotary", "activation": "swiglu"}
TABLES: list[dict[str, Any]] = [{}, {"norm": "post", "positions": "learned"}, LLAMA, {**LLAMA, "query_key_norm": True}]
PROMPTS = [[5, 9, 2, 2, 30, 7, 11], [4, 3, 8], [29, 6, 17, 12, 3, 9, 9, 14, 22, 5, 8, 2, 3, 4]]
SEARCHES = [
    Search(method="greedy", beam=1),
    Search(beam=3, nbest=3),
    Search(beam=4, groups=2, diversity=0.5, nbest=2),
    Search(method="sample", beam=1, nbest=3, seed=5),
]


def model_of(**table: Any) -> TransformerDecoder:
    torch.manual_seed(1)
    sizes = {"d_model": 24, "heads": 3, "feed_forward": 40, "layers": 3, "tied": False}
    config = TransformerDecoderConfig.model_validate({**sizes, **table})
    model = TransformerDecoder(config, Specs.of_tokens(None, WORDS)).eval()
    for weight in model.parameters():
        if weight.ndim == 1:
            torch.nn.init.normal_(weight, 0.5, 0.5)
    pack_all(model)
    return model


def found_by(model: TransformerDecoder, settings: Search, prompts: list[list[int]], **more: Any) -> list[Any]:
    requests = [Request(len(each) + 9, prefix=each, line=line) for line, each in enumerate(prompts)]
    found = search(model, None, requests, settings, start=START, end=END, **more)
    return [[(each.tokens, each.token_log_probabilities, each.score) for each in row] for row in found]


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the passes over prompts, and whether there are any is up to the kernels."""
    seen: list[tuple[int, ...]] = []
    whole = fused_stack.OneToken.prefill

    def noted(self: Any, x_BTD: torch.Tensor, past: Any) -> Any:
        seen.append(tuple(x_BTD.shape))
        return whole(self, x_BTD, past)

    monkeypatch.setattr(fused_stack.OneToken, "prefill", noted)
    return seen


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.parametrize("piece", [2, 512])
def test_every_search_finds_the_same_bits_as_step_by_step(
    table: dict[str, Any], piece: int, passes: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fused_stack, "PIECE", piece)
    model = model_of(**table)
    for settings in SEARCHES:
        found = found_by(model, settings, PROMPTS)
        assert passes.pop() == (3, 3, 24)  # as many tokens as all prompts have
        alone = [found_by(model, settings, [prompt])[0] for prompt in PROMPTS[2:]]
        assert passes.pop() == (1, 14, 24)
        with monkeypatch.context() as patch:
            patch.setattr(TransformerDecoder, "prefill", lambda self, token, following: None)
            assert found_by(model, settings, PROMPTS) == found
            assert [found_by(model, settings, [prompt])[0] for prompt in PROMPTS[2:]] == alone
        assert passes == []


@torch.inference_mode()
def test_it_says_what_the_whole_pass_says() -> None:
    """Against the model's own forward pass, in torch."""
    model = model_of(**LLAMA)
    prompt = torch.tensor([PROMPTS[2]])
    token = torch.cat((torch.tensor([[START]]), prompt[:, :-1]), 1)
    prefix = model.prefill(token, prompt)
    if prefix is None:
        pytest.skip("no kernels")
    hidden_BTD, _ = model.decoder.extend_causally(model.embedding(token), None)
    expected_BTV = model.output.logits(hidden_BTD).log_softmax(-1)
    torch.testing.assert_close(prefix.following_BT, expected_BTV.gather(2, prompt[..., None])[..., 0])
    assert (prefix.words, prefix.state[0].length) == (WORDS, 14)


def test_a_model_that_is_changed_or_looked_into_goes_step_by_step(passes: list[tuple[int, ...]]) -> None:
    from transduce.attention import capture

    class Primed(TransformerDecoder):
        def start(self, source: Any, rows: int) -> Any:
            return super().start(source, rows)

    class Mine(TransformerDecoder):
        def step(self, token_B: torch.Tensor, memory: None, state: Any) -> Any:
            return super().step(token_B, memory, state)

    model = model_of()
    with capture(model) as record:
        found_by(model, SEARCHES[0], PROMPTS)
    assert len(record["decoder.blocks.0.self_attention"]) > 3
    model.__class__ = Mine
    found_by(model, SEARCHES[0], PROMPTS)
    assert passes == []
    hooked, unpacked, patched = model_of(), model_of(), model_of()
    calls: list[int] = []
    hooked.decoder.norm.register_forward_hook(lambda *given: calls.append(1))
    unpacked.output = Embedding(WORDS, 24)
    patched.decoder.extend_causally = patched.decoder.extend_causally
    primed = model_of()
    primed.__class__ = Primed
    for each in (hooked, unpacked, patched, primed):
        found_by(each, SEARCHES[0], PROMPTS)
    assert passes == []
    assert len(calls) > 14
    with pytest.raises(InputError, match="prefix token 31 is outside"):
        found_by(model_of(), SEARCHES[0], [[3, 31, 4]])
