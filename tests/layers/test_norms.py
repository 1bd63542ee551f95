"""Norms: over which axes, against torch's, and what batch norm promises of padding."""

from pathlib import Path
from typing import get_args

import pytest
import torch
from torch import Tensor, nn

from transduce.core.model_file import ModelFile, lasting_tensors, load_model_file, save_model_file
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.norms import BatchNorm, LayerNorm, NoNorm, NormKind, RMSNorm, make_norm
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.pipeline.outline import load_weights
from transduce.training.average import MovingAverage

pytestmark = pytest.mark.usefixtures("either_way")

KINDS: list[NormKind] = list(get_args(NormKind))
REAL_BT = torch.arange(5) < torch.tensor([[5], [2], [4]])


def random_norm(kind: NormKind, width: int = 6) -> LayerNorm | RMSNorm | BatchNorm:
    torch.manual_seed(0)
    norm = make_norm(kind, width)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    return norm


def random_states() -> Tensor:
    return torch.randn(3, 5, 6) * 3 + torch.arange(6.0)


# ---- axes ----------------------------------------------------------------------------------------------------


def test_layer_norm_is_over_the_features_of_each_position() -> None:
    x_BTD = LayerNorm(6)(random_states())
    torch.testing.assert_close(x_BTD.mean(-1), torch.zeros(3, 5), rtol=0, atol=1e-6)
    torch.testing.assert_close(x_BTD.var(-1, correction=0), torch.ones(3, 5), rtol=0, atol=1e-4)
    assert x_BTD.mean((0, 1)).abs().max() > 0.3  # and not over those of a feature


def test_rms_norm_is_over_the_features_of_each_position_and_keeps_their_mean() -> None:
    x_BTD = RMSNorm(6)(random_states())
    torch.testing.assert_close(x_BTD.square().mean(-1), torch.ones(3, 5), rtol=0, atol=1e-4)
    assert x_BTD.mean(-1).abs().max() > 0.3


def test_batch_norm_is_over_all_positions_of_the_batch_feature_by_feature() -> None:
    x_BTD = BatchNorm(6)(random_states())
    torch.testing.assert_close(x_BTD.mean((0, 1)), torch.zeros(6), rtol=0, atol=1e-6)
    torch.testing.assert_close(x_BTD.var((0, 1), correction=0), torch.ones(6), rtol=0, atol=1e-4)
    assert x_BTD.mean(-1).abs().max() > 0.3


@pytest.mark.parametrize("kind", KINDS)
def test_whose_statistics_a_position_depends_on(kind: NormKind) -> None:
    norm, x_BTD = random_norm(kind), random_states()
    others_BTD = torch.where(torch.arange(15).view(3, 5, 1) == 7, x_BTD, random_states())
    same = torch.allclose(norm(x_BTD)[1, 2], norm(others_BTD)[1, 2])
    assert same == (kind != "batch")
    norm.eval()
    assert torch.equal(norm(x_BTD)[1, 2], norm(others_BTD)[1, 2])


# ---- against slow sums and torch -----------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e-3])  # of which epsilon is nothing, and nearly all
def test_one_number_at_a_time(scale: float) -> None:
    x_BTD = scale * random_states()
    for kind in KINDS:
        norm = random_norm(kind)
        for b, t, d in ((0, 0, 0), (2, 4, 5), (1, 3, 2)):
            over = x_BTD[:, :, d].flatten().tolist() if kind == "batch" else x_BTD[b, t].tolist()
            mean = 0.0 if kind == "rms" else sum(over) / len(over)
            variance = sum((value - mean) ** 2 for value in over) / len(over)
            expected = (x_BTD[b, t, d].item() - mean) / (variance + 1e-5) ** 0.5 * norm.weight[d].item()
            expected += 0.0 if isinstance(norm, RMSNorm) else norm.bias[d].item()
            assert norm(x_BTD)[b, t, d].item() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_torchs_forwards_backwards_and_in_prediction(kind: NormKind) -> None:
    norm = random_norm(kind)
    theirs = {"layer": nn.LayerNorm(6), "rms": nn.RMSNorm(6, eps=1e-5), "batch": nn.BatchNorm1d(6)}[kind]
    with torch.no_grad():
        for mine, other in zip(norm.parameters(), theirs.parameters(), strict=True):
            other.copy_(mine)
    for _ in range(3):  # of batch norm, running statistics too
        x_BTD = random_states()
        output, expected = norm(x_BTD), theirs(x_BTD.flatten(0, 1)).view(3, 5, 6)
        torch.testing.assert_close(output, expected, rtol=1e-5, atol=1e-5)
        for leaf in (output, expected):
            (leaf * torch.arange(6)).square().sum().backward()
    for mine, other in zip(norm.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, other.grad, rtol=1e-5, atol=1e-3)
    norm.eval(), theirs.eval()
    torch.testing.assert_close(norm(x_BTD), theirs(x_BTD.flatten(0, 1)).view(3, 5, 6), rtol=1e-5, atol=1e-5)
    if isinstance(norm, BatchNorm):
        torch.testing.assert_close(norm.mean_D, theirs.running_mean)
        torch.testing.assert_close(norm.variance_D, theirs.running_var)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_right(kind: NormKind) -> None:
    norm, x_BTD = random_norm(kind).double(), random_states().double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: norm(x, REAL_BT)[REAL_BT], (x_BTD,))


def test_no_norm_is_the_input_itself() -> None:
    x_BTD = random_states()
    assert NoNorm()(x_BTD, REAL_BT) is x_BTD


# ---- batch norm and padding ----------------------------------------------------------------------------------


def test_statistics_are_those_of_the_real_positions() -> None:
    norm, without = random_norm("batch"), random_norm("batch")
    x_BTD = random_states()
    real_ND = x_BTD[REAL_BT]
    torch.testing.assert_close(norm(x_BTD, REAL_BT)[REAL_BT], without(real_ND[None])[0])
    assert isinstance(norm, BatchNorm)
    assert isinstance(without, BatchNorm)
    torch.testing.assert_close(norm.mean_D, without.mean_D)
    torch.testing.assert_close(norm.variance_D, without.variance_D)
    assert not torch.allclose(random_norm("batch")(x_BTD)[REAL_BT], norm(x_BTD, REAL_BT)[REAL_BT])  # the leak


def test_one_position_is_no_accident() -> None:
    norm = BatchNorm(2)
    assert norm(torch.randn(1, 1, 2)).isfinite().all()
    assert norm.variance_D.isfinite().all()


def batch_normed() -> Transformer:
    torch.manual_seed(0)
    sizes = {"d_model": 8, "heads": 2, "feed_forward": 12, "encoder_layers": 1, "decoder_layers": 1}
    config = {**sizes, "dropout": 0.0, "norm_kind": "batch"}
    return Transformer(TransformerConfig.model_validate(config), Specs.of_tokens(11, 13))


def test_a_transformer_in_training_does_not_see_padding_and_does_see_the_future() -> None:
    source = Padded(torch.randint(11, (3, 5)), torch.tensor([5, 2, 4]))
    target = Padded(torch.randint(13, (3, 4)), torch.tensor([4, 1, 3]))
    other_source, other_target = (
        Padded(torch.where(each.mask(), each.values, (each.values + 1) % 11), each.lengths) for each in (source, target)
    )
    first, second = batch_normed()(source, target), batch_normed()(other_source, other_target)
    assert torch.equal(first[target.mask()], second[target.mask()])
    longer = Padded(target.values.clone(), target.lengths)
    longer.values[0, 3] = (longer.values[0, 3] + 1) % 13
    assert not torch.allclose(batch_normed()(source, longer)[:, :1], first[:, :1])  # as its docstring says
    model = batch_normed()
    model(source, target)
    model.eval()
    torch.testing.assert_close(model(source, longer)[:, :3], model(source, target)[:, :3])


def test_running_statistics_are_saved_loaded_and_averaged(tmp_path: Path) -> None:
    model = batch_normed()
    average = MovingAverage(model, 0.5)
    source = Padded(torch.randint(11, (3, 5)), torch.tensor([5, 2, 4]))
    target = Padded(torch.randint(13, (3, 4)), torch.tensor([4, 1, 3]))
    name = "encoder.blocks.0.self_residual.norm.mean_D"
    start_D = lasting_tensors(model)[name].clone()
    model(source, target)
    average.update(100)
    moved_D = lasting_tensors(model)[name].clone()
    assert not torch.equal(moved_D, start_D)
    torch.testing.assert_close(average.tensors()[name], (moved_D + start_D) / 2)
    with average.swapped_in():
        torch.testing.assert_close(lasting_tensors(model)[name], (moved_D + start_D) / 2)
    weights = {each: tensor.detach() for each, tensor in lasting_tensors(model).items()}
    save_model_file(tmp_path / "model.safetensors", ModelFile(weights, {}, {}, {}, {}))
    other = batch_normed()
    load_weights(other, load_model_file(tmp_path / "model.safetensors").weights)
    assert torch.equal(other.eval()(source, target), model.eval()(source, target))


def test_what_lasts_is_what_a_model_file_held_before() -> None:
    # Parameters once each, and no table that can be made again.
    config = TransformerConfig(d_model=8, heads=2, feed_forward=12, encoder_layers=2, decoder_layers=1, positions="t5")
    for norm in ("layer", "rms"):
        model = Transformer(config.model_copy(update={"norm_kind": norm}), Specs.of_tokens(11, 11))
        assert list(lasting_tensors(model)) == [name for name, _ in model.named_parameters()]
