"""What is minimised: teacher forcing by hand, and R-Drop from two passes made by hand."""

import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError
from torch import Tensor

from random_models import translator
from text_columns import loss_of
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.data.columns import Specs
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.recipe.training import TrainingConfig


def model_and_batch(dropout: float) -> tuple[Transformer, Batch]:
    torch.manual_seed(3)
    config = TransformerConfig(
        d_model=16, heads=2, feed_forward=16, encoder_layers=1, decoder_layers=1, dropout=dropout
    )
    source = Padded(torch.randint(4, 20, (3, 5)), torch.tensor([5, 3, 4]))
    target = Padded(torch.randint(4, 20, (3, 6)), torch.tensor([6, 2, 4]))
    return Transformer(config, Specs.of_tokens(20, 20)), Batch(source, target, 9)


def by_hand(logits_BTV: Tensor, target: Padded, smoothing: float) -> Tensor:
    """Sentence by sentence, position by position."""
    total = torch.zeros(())
    for row, length in enumerate(target.lengths.tolist()):
        for place in range(length - 1):
            right = target.values[row, place + 1]
            total = total + F.cross_entropy(logits_BTV[row, place], right, label_smoothing=smoothing)
    return total


def test_teacher_forcing_sums_over_real_positions() -> None:
    model, batch = model_and_batch(0.0)
    loss, cross_entropy = loss_of(model, batch, TrainingConfig(label_smoothing=0.1))
    logits_BTV = model(batch.inputs, batch.targets)
    torch.testing.assert_close(loss, by_hand(logits_BTV, batch.targets, 0.1))
    assert cross_entropy == loss


def test_without_dropout_r_drop_changes_nothing() -> None:
    model, batch = model_and_batch(0.0)
    plain, _ = loss_of(model, batch, TrainingConfig(label_smoothing=0.1))
    twice, cross_entropy = loss_of(model, batch, TrainingConfig(label_smoothing=0.1, r_drop=5.0))
    torch.testing.assert_close(twice, plain)
    torch.testing.assert_close(cross_entropy, plain)


def test_r_drop_adds_the_divergence_of_two_dropouts() -> None:
    model, batch = model_and_batch(0.3)
    assert batch.inputs
    torch.manual_seed(8)
    loss, cross_entropy = loss_of(model, batch, TrainingConfig(label_smoothing=0.1, r_drop=5.0))
    doubled = [Padded(torch.cat((each.values,) * 2), each.lengths.repeat(2)) for each in (batch.inputs, batch.targets)]
    torch.manual_seed(8)
    logits_BTV = model(doubled[0], Padded(doubled[1].values[:, :-1], doubled[1].lengths - 1))
    one, other = logits_BTV.chunk(2)
    mean = (by_hand(one, batch.targets, 0.1) + by_hand(other, batch.targets, 0.1)) / 2
    apart = torch.zeros(())
    for row, length in enumerate(batch.targets.lengths.tolist()):
        p, q = one[row, : length - 1].log_softmax(-1), other[row, : length - 1].log_softmax(-1)
        apart = apart + ((p.exp() - q.exp()) * (p - q)).sum()
    torch.testing.assert_close(cross_entropy, mean)
    torch.testing.assert_close(loss, mean + 5.0 / 4 * apart)


def test_a_sample_that_holds_every_word_changes_nothing() -> None:
    model, batch = model_and_batch(0.0)
    plain, _ = loss_of(model, batch, TrainingConfig())
    whole, cross_entropy = loss_of(model, batch, TrainingConfig(sampled_words=20))
    fewer, _ = loss_of(model, batch, TrainingConfig(sampled_words=2))
    torch.testing.assert_close(whole, plain)
    torch.testing.assert_close(cross_entropy, plain)
    assert abs(fewer.item() - plain.item()) > 1e-3


@pytest.mark.parametrize("table", [{"pointer": True}, {"kind": "rnn"}, {"kind": "non_autoregressive"}], ids=str)
def test_words_are_sampled_of_a_product_alone(table: dict[str, object]) -> None:
    _, batch = model_and_batch(0.0)
    with pytest.raises(InputError, match=r"training\.sampled_words: .* predict.* the next token"):
        loss_of(translator(model=table).model, batch, TrainingConfig(sampled_words=5))


def test_r_drop_compares_all_words() -> None:
    with pytest.raises(ValidationError, match="leave out either r_drop or sampled_words"):
        TrainingConfig(sampled_words=5, r_drop=5.0)


class Louder(Transformer):
    """With a way of its own from hidden states to logits."""

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        return 2 * super().forward(source, target)


def test_a_forward_of_ones_own_is_what_is_trained() -> None:
    model, batch = model_and_batch(0.0)
    plain, _ = loss_of(model, batch, TrainingConfig(label_smoothing=0.1))
    model.__class__ = Louder
    louder, _ = loss_of(model, batch, TrainingConfig(label_smoothing=0.1))
    torch.testing.assert_close(louder, by_hand(model(batch.inputs, batch.targets), batch.targets, 0.1))
    assert abs(louder.item() - plain.item()) > 0.1


def test_who_looks_at_the_logits_is_shown_them() -> None:
    model, batch = model_and_batch(0.0)
    seen: list[Tensor] = []
    plain, _ = loss_of(model, batch, TrainingConfig(label_smoothing=0.1))
    model.register_forward_hook(lambda module, given, logits_BTV: seen.append(logits_BTV))
    looked_at, _ = loss_of(model, batch, TrainingConfig(label_smoothing=0.1))
    assert len(seen) == 1
    torch.testing.assert_close(looked_at, plain)
