"""What is the convolutional model's own, beside the contracts that all models keep."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from transduce.attention.capture import capture
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.cross_entropy import smoothed_cross_entropy
from transduce.layers.embedding import Embedding
from transduce.models import convolution
from transduce.models.convolution import Convolution, ConvolutionConfig
from transduce.search.dispatch import search
from transduce.search.request import Request
from transduce.search.settings import Search

START, END, IDS = 0, 1, 12
UPDATES = 300


def model(**settings: Any) -> Convolution:
    torch.manual_seed(0)
    table = {"d_model": 8, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0, **settings}
    return Convolution(ConvolutionConfig.model_validate(table), Specs.of_tokens(IDS, IDS)).eval()


def padded(*rows: list[int]) -> Padded:
    longest = max(map(len, rows))
    return Padded(
        torch.tensor([row + [END] * (longest - len(row)) for row in rows]), torch.tensor([len(row) for row in rows])
    )


SOURCE, TARGET = padded([5, 3, 2, 7], [4, 9]), padded([0, 5, 6, 7, 8, 9, 10, 11], [0, 4, 6, 8])


def test_every_decoder_block_hands_its_weights_to_a_capture() -> None:
    tiny = model()
    with capture(tiny) as record:
        tiny(SOURCE, TARGET)
    assert list(record) == ["decoder.0.reader", "decoder.1.reader"]
    for (alpha_BHTS,) in record.values():
        assert alpha_BHTS.shape == (2, 1, 8, 4)
        torch.testing.assert_close(alpha_BHTS.sum(-1), torch.ones(2, 1, 8))
        assert (alpha_BHTS[1, :, :, 2:] == 0).all()


def test_a_pointer_is_captured_too() -> None:
    tiny = model(pointer=True)
    with capture(tiny) as record:
        tiny(SOURCE, TARGET)
    assert record["pointer.reader"][0].shape == (2, 1, 8, 4)


def test_the_decoder_sees_as_far_back_as_its_windows_reach_and_no_further() -> None:
    tiny, reach = model(kernel=3, decoder_layers=2), 4
    embedded = []

    def cut(module: object, args: object, output: Tensor) -> Tensor:
        embedded.append(output.detach().requires_grad_())
        return embedded[-1]

    hooks = [each.register_forward_hook(cut) for each in tiny.modules() if isinstance(each, Embedding)]
    logits_BTV = tiny(SOURCE, TARGET)
    (target_BTD,) = [each for each in embedded if each.shape[1] == 8]
    (gradient_BTD,) = torch.autograd.grad(logits_BTV[:, 7].square().sum(), target_BTD)
    seen_BT = gradient_BTD.abs().sum(-1) > 0
    assert seen_BT.tolist() == [[place >= 7 - reach for place in range(8)]] * 2
    for hook in hooks:
        hook.remove()


def test_the_state_does_not_grow() -> None:
    tiny = model(kernel=5)
    memory, state = tiny.start(SOURCE, 2)
    for position in range(7):
        assert state.position.tolist() == [position] * 2
        assert [block.inputs.shape for block in state.blocks] == [(2, 4, 8)] * 2
        _, state = tiny.step(torch.tensor([3, 4]), memory, state)


def test_the_encoders_gradient_is_scaled_by_how_often_it_is_attended_to(monkeypatch: pytest.MonkeyPatch) -> None:
    def gradients() -> tuple[Tensor, Tensor]:
        tiny = model(decoder_layers=3, tied="none")
        tiny(SOURCE, TARGET).square().sum().backward()
        encoder, embedding = tiny.encoder[0].convolution.both.direction_OI.grad, tiny.target_embedding.weight.grad
        assert encoder is not None
        assert embedding is not None
        return encoder, embedding

    scaled, embedding = gradients()
    monkeypatch.setattr(convolution, "scale_gradient", lambda x, scale: x)
    unscaled, same_embedding = gradients()
    torch.testing.assert_close(scaled, unscaled / 6)
    assert torch.equal(embedding, same_embedding)


def test_settings_that_do_not_fit_are_refused() -> None:
    wrong = {
        "kernel must be odd": {"kernel": 4},
        "multiple of heads": {"heads": 3},
        'Did you mean "additive"': {"score": "aditive"},
        'Did you mean "softmax"': {"normalizer": "sotfmax"},
        "even d_model": {"positions": "sinusoidal", "d_model": 9},
    }
    for message, settings in wrong.items():
        with pytest.raises(ValidationError, match=message):
            ConvolutionConfig.model_validate({"d_model": 8, **settings})


def test_learned_positions_end() -> None:
    tiny = model(max_length=6)
    with pytest.raises(InputError, match="6 tokens, but got 8"):
        tiny(SOURCE, TARGET)


def copying(rows: int) -> tuple[Padded, Padded, Tensor]:
    """Sources of 2 to 6 words, targets to be fed, and the words wanted after each (-1 behind the end)."""
    length_B = torch.randint(2, 7, (rows,))
    place_S = torch.arange(6)
    words_BS = torch.randint(2, IDS, (rows, 6)).masked_fill(place_S >= length_B[:, None], END)
    wanted_BT = torch.cat((words_BS, torch.full((rows, 1), END)), 1)
    wanted_BT = wanted_BT.masked_fill(torch.arange(7) > length_B[:, None], -1)
    fed_BT = torch.cat((torch.full((rows, 1), START), words_BS), 1)
    return Padded(words_BS, length_B), Padded(fed_BT, length_B + 1), wanted_BT


@pytest.mark.slow
def test_it_learns_to_copy() -> None:
    torch.manual_seed(0)
    table = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.0}
    learner = Convolution(ConvolutionConfig.model_validate(table), Specs.of_tokens(IDS, IDS))
    optimizer = torch.optim.AdamW(learner.parameters(), lr=1e-2, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, UPDATES)
    for _ in range(UPDATES):
        source, fed, wanted_BT = copying(64)
        loss = smoothed_cross_entropy(learner(source, fed).flatten(0, 1), wanted_BT.flatten())
        optimizer.zero_grad()
        (loss / fed.lengths.sum()).backward()
        optimizer.step()
        schedule.step()
    source, _, _ = copying(100)
    words = [row[:length] for row, length in zip(source.values.tolist(), source.lengths.tolist(), strict=True)]
    settings = Search(method="greedy")
    found = search(learner.eval(), source, [Request(10)] * 100, settings, start=START, end=END)
    right = sum(list(best.tokens) == [*row, END] for (best,), row in zip(found, words, strict=True))
    assert right >= 95, f"{right} of 100 sources were copied"
