"""The Transformer as a whole learns the task that everybody tries first: to copy."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from transduce.attention.positions import tensor2tensor
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.cross_entropy import smoothed_cross_entropy
from transduce.models.ssru_transformer import SsruTransformer
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.search.dispatch import search
from transduce.search.request import Request
from transduce.search.settings import Search

SYMBOLS, START, END = 10, 10, 11


def sequences(rows: int, length: int, seed: int) -> Padded:
    generator = torch.Generator().manual_seed(seed)
    return Padded(torch.randint(SYMBOLS, (rows, length), generator=generator), torch.full((rows,), length))


def learned(updates: int) -> Transformer:
    """As the Annotated Transformer does it, in small: post-norm, two blocks, sequences of ten."""
    torch.manual_seed(0)
    sizes = {"d_model": 32, "heads": 4, "feed_forward": 64, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    model = Transformer(TransformerConfig(**sizes, norm="post"), Specs.of_tokens(SYMBOLS + 2, SYMBOLS + 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda update: min(1.0, update / 50) * (1 - update / updates))
    for update in range(updates):
        source = sequences(40, 10, update)
        ends_B1 = torch.full((40, 1), END)
        read_BT = torch.cat((torch.full((40, 1), START), source.values), 1)
        logits_BTV = model(source, Padded(read_BT, source.lengths + 1))
        next_BT = torch.cat((source.values, ends_B1), 1)
        smoothed_cross_entropy(logits_BTV.flatten(0, 1), next_BT.flatten()).div(next_BT.numel()).backward()
        optimizer.step()
        warm.step()
        optimizer.zero_grad()
    return model.eval()


def right(model: Transformer, length: int) -> float:
    """The share of 50 unseen sequences that greedy search copies without an error."""
    source = sequences(50, length, 10_000)
    limits = [length + 2] * 50
    found = search(model, source, [Request(limit) for limit in limits], Search(method="greedy"), start=START, end=END)
    return (
        sum([*row, END] == list(best.tokens) for row, (best,) in zip(source.values.tolist(), found, strict=True)) / 50
    )


def test_it_learns_to_copy_and_only_at_lengths_it_has_seen() -> None:
    model = learned(300)
    assert right(model, 10) == 1.0
    assert right(model, 20) < 0.1


@pytest.mark.parametrize("kind", [Transformer, SsruTransformer])
@torch.inference_mode()
def test_steps_of_a_decoder_that_looks_around_its_own_place(kind: type[Any]) -> None:
    """Each token looks at the source near its own place, whether it comes alone or with all others."""
    torch.manual_seed(0)
    sizes = {"d_model": 12, "heads": 3, "feed_forward": 16, "encoder_layers": 1, "decoder_layers": 1}
    config = kind.Config.model_validate({**sizes, "normalizer": "local_monotonic", "positions": "none"})
    model = kind(config, Specs.of_tokens(20, 20)).eval()
    source, target_1T = Padded(torch.randint(20, (1, 40)), torch.tensor([40])), torch.randint(20, (1, 30))
    whole_1TV = model(source, Padded(target_1T, torch.tensor([30]))).log_softmax(-1)
    memory, state = model.start(source, 1)
    for place in range(30):
        step_1V, state = model.step(target_1T[:, place], memory, state)
        torch.testing.assert_close(step_1V, whole_1TV[:, place], rtol=1e-4, atol=1e-4)


def test_the_encoder_can_have_positions_of_its_own() -> None:
    sizes = {"d_model": 8, "heads": 2, "positions": "learned", "max_length": 5}
    config = Transformer.Config.model_validate({**sizes, "encoder_max_length": 7})
    model = Transformer(config, Specs.of_tokens(9, 9))
    assert [len(each.positions.weight_TD) for each in (model.encoder, model.decoder)] == [7, 5]
    apart = Transformer(config.model_copy(update={"encoder_positions": "tensor2tensor"}), Specs.of_tokens(9, 9))
    assert torch.equal(apart.encoder.positions(torch.zeros(1, 3, 8))[0], tensor2tensor(3, 8))
    assert len(apart.decoder.positions.weight_TD) == 5
    for wrong, said in (("rotatory", 'Did you mean "rotary"'), ("rotary", "even width per head")):
        with pytest.raises(ValidationError, match=said):
            Transformer.Config.model_validate({**sizes, "d_model": 6, "encoder_positions": wrong})
