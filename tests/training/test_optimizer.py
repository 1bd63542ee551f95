"""AdamW against torch's and against its paper; Muon against the singular value decomposition."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transduce.data.columns import Specs
from transduce.models.rnn_decoder import RnnDecoder, RnnDecoderConfig
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.models.transformer_decoder import TransformerDecoder, TransformerDecoderConfig
from transduce.recipe.training import TrainingConfig
from transduce.training import optimizer
from transduce.training.optimizer import Muon, Optimizers, orthogonalised

RATES = [1e-3, 3e-3, 2e-3, 5e-4, 1e-3, 1e-2]


def toy() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.LayerNorm(5), nn.Linear(5, 2))


def backward(model: nn.Module, update: int) -> None:
    """Gradients of a loss that differs from update to update."""
    torch.manual_seed(100 + update)
    model(torch.randn(4, 3)).square().sum().backward()


def settings(**changed: Any) -> TrainingConfig:
    return TrainingConfig.model_validate({"weight_decay": 0.1, "betas": (0.9, 0.95), **changed})


def test_adamw_equals_torchs_with_decay_on_matrices_alone() -> None:
    ours, theirs = toy(), toy()
    optimizers = Optimizers(ours, settings())
    groups = [
        {"params": [p for p in theirs.parameters() if p.ndim == 2], "weight_decay": 0.1},
        {"params": [p for p in theirs.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    reference = torch.optim.AdamW(groups, betas=(0.9, 0.95), foreach=False)
    for update, rate in enumerate(RATES):
        backward(ours, update)
        optimizers.step(rate)
        reference.zero_grad()
        backward(theirs, update)
        for group in reference.param_groups:
            group["lr"] = rate
        reference.step()
        for mine, torchs in zip(ours.parameters(), theirs.parameters(), strict=True):
            torch.testing.assert_close(mine, torchs, rtol=1e-6, atol=1e-7)
            assert mine.grad is None  # forgotten, not added to


def test_adamw_equals_the_papers_loop() -> None:
    model = nn.Linear(1, 1, bias=False)
    optimizers = Optimizers(model, settings())
    weight, first, second = model.weight.item(), 0.0, 0.0
    for update, rate in enumerate(RATES, 1):
        gradient = math.sin(update) * weight
        model.weight.grad = torch.tensor([[gradient]])
        optimizers.step(rate)
        first, second = 0.9 * first + 0.1 * gradient, 0.95 * second + 0.05 * gradient**2
        step = (first / (1 - 0.9**update)) / (math.sqrt(second / (1 - 0.95**update)) + 1e-8)
        weight -= rate * step + rate * 0.1 * weight
        assert model.weight.item() == pytest.approx(weight, rel=1e-5)


def lifted(x: float, iterations: int) -> float:
    """What the paper's first polynomials make of one singular value (Amsel et al. 2025, appendix)."""
    x /= 1.01
    for a, b, c in (
        (8.2872120, 23.5958865, 17.3003873),
        (4.1070591, 2.9478499, 0.5448431),
        (3.948691, 2.908902, 0.551819),
        (3.3184197, 2.488488, 0.5100489),
        (2.300652, 1.668904, 0.4188073),
    )[:iterations]:
        y = x / 1.01
        x = a * y - b * y**3 + c * y**5
    return x


# bf16 rounds to 1 in 256, and the first polynomial takes small values times 8: what is left of it is within 0.2 of 1.
PRECISION = {torch.float32: 0.01, torch.bfloat16: 0.2}
WITHIN = {3: (0.18, 1.9), 5: (0.86, 1.13)}


@pytest.mark.parametrize("iterations", [3, 5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(64, 32), (32, 64), (48, 48), (128, 8), (1, 9), (9, 1), (1, 1)])
def test_orthogonalised_pulls_singular_values_to_1_and_keeps_their_vectors(
    shape: tuple[int, int], dtype: torch.dtype, iterations: int
) -> None:
    torch.manual_seed(sum(shape))
    matrix = torch.randn(shape)
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    made = orthogonalised(matrix[None], iterations, dtype)[0].float()
    assert made.shape == shape
    # In the basis of the matrix's own singular vectors: nearly diagonal, and no sign has turned.
    inside, rounding = left.T @ made @ right.T, PRECISION[dtype]
    strong = values > 0.003 * values.norm()  # what was nearly 0 is not lifted as far
    least, most = WITHIN[iterations]
    assert inside.diagonal()[strong].min() > least - rounding
    assert inside.diagonal().max() < most + rounding
    by_hand = [lifted(value / values.norm().item(), iterations) for value in values.tolist()]
    torch.testing.assert_close(inside.diagonal(), torch.tensor(by_hand), rtol=0, atol=rounding)
    assert (inside - inside.diagonal().diag()).abs().max() < 0.05 + rounding / 4


def test_recurrent_models_take_five_iterations_and_others_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer, "FASTEST", {"bf16": torch.float32, "fp32": torch.float32})
    torch.manual_seed(0)
    for model, iterations in (
        (RnnDecoder(RnnDecoderConfig(d_model=8), Specs.of_tokens(None, 13)), 5),
        (transformer(), 3),
    ):
        before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
        optimizers = stepped(model, "muon")
        for key, momentum in optimizers.tensors().items():
            name, _, slot = key.rpartition("/")
            if slot == "momentum":
                weight = dict(model.named_parameters())[name]
                ahead = momentum  # of a first update, which is in the direction of its gradient alone
                direction = orthogonalised(ahead[None], iterations)[0].float()
                moved = before[name] * (1 - 1e-4) - 1e-3 * 0.2 * math.sqrt(max(weight.shape)) * direction
                torch.testing.assert_close(weight.detach(), moved, rtol=0, atol=1e-6)


def test_orthogonalised_ignores_the_gradients_size() -> None:
    torch.manual_seed(0)
    matrix = torch.randn(16, 24)
    for factor in (1e-4, 1e4):
        torch.testing.assert_close(
            orthogonalised(matrix[None] * factor), orthogonalised(matrix[None]), rtol=0, atol=0.05
        )
    assert (orthogonalised(torch.zeros(1, 4, 6)) == 0).all()


def test_muon_is_momentum_looking_ahead_then_orthogonal_then_scaled() -> None:
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(8, 20))
    muon = Muon([weight], learning_rate=0.02, weight_decay=0.1)
    by_hand, momentum = weight.detach().clone(), torch.zeros(8, 20)
    for _ in range(4):
        weight.grad = torch.randn(8, 20)
        muon.step()
        momentum = 0.95 * momentum + 0.05 * weight.grad
        ahead = 0.95 * momentum + 0.05 * weight.grad
        direction = orthogonalised(ahead[None])[0].float()
        by_hand = by_hand * (1 - 0.02 * 0.1) - 0.02 * 0.2 * math.sqrt(20) * direction
        torch.testing.assert_close(weight.detach(), by_hand, rtol=1e-3, atol=1e-4)


def test_muon_moves_as_far_as_adamw_does() -> None:
    # 0.2 a weight, root mean square, times the rate: so that one rate serves both (Liu et al. 2025).
    torch.manual_seed(0)
    for shape in ((64, 64), (32, 96), (96, 32)):
        weight = nn.Parameter(torch.zeros(shape))
        weight.grad = torch.randn(shape)
        Muon([weight], learning_rate=1.0, weight_decay=0.0).step()
        assert weight.square().mean().sqrt().item() == pytest.approx(0.2, rel=0.3)


STACK = {"d_model": 8, "heads": 2, "feed_forward": 12, "positions": "learned", "max_length": 9}


def transformer(**changed: Any) -> nn.Module:
    table = {**STACK, "encoder_layers": 1, "decoder_layers": 1, **changed}
    return Transformer(TransformerConfig.model_validate(table), Specs.of_tokens(11, 13))


def decoder(**changed: Any) -> nn.Module:
    return TransformerDecoder(
        TransformerDecoderConfig.model_validate({**STACK, "layers": 1, **changed}), Specs.of_tokens(None, 13)
    )


def stepped(model: nn.Module, optimizer: str) -> Optimizers:
    optimizers = Optimizers(model, settings(optimizer=optimizer))
    for parameter in model.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimizers.step(1e-3)
    return optimizers


SELF = {"query", "key_value", "output"}
ENCODER = {f"self_attention.{name}" for name in SELF} | {"feed_forward.inner", "feed_forward.outer"}
DECODER = ENCODER | {f"cross_attention.{name}" for name in SELF}


@pytest.mark.parametrize(
    ("model", "blocks"),
    [
        (transformer, {"encoder": ENCODER, "decoder": DECODER}),
        (lambda: transformer(tied="none"), {"encoder": ENCODER, "decoder": DECODER}),
        (decoder, {"decoder": ENCODER}),
        (lambda: decoder(tied=False, norm="post"), {"decoder": ENCODER}),
        (lambda: decoder(positions="t5", norm_kind="batch"), {"decoder": ENCODER}),
        (lambda: decoder(positions="shaw", activation="swiglu"), {"decoder": ENCODER | {"feed_forward.linear"}}),
    ],
)
def test_muon_takes_hidden_matrices_and_nothing_else(
    model: Callable[[], nn.Module], blocks: dict[str, set[str]]
) -> None:
    built = model()
    remembered = stepped(built, "muon").tensors()
    muons = {key.removesuffix("/momentum") for key in remembered if key.endswith("/momentum")}
    adams = {key.removesuffix("/exp_avg") for key in remembered if key.endswith("/exp_avg")}
    assert muons == {f"{side}.blocks.0.{name}.weight" for side, names in blocks.items() for name in names}
    assert muons | adams == {name for name, _ in built.named_parameters()}
    assert not muons & adams


def test_adamw_takes_everything_when_it_is_asked_for() -> None:
    assert not [key for key in stepped(transformer(), "adamw").tensors() if key.endswith("/momentum")]


@pytest.mark.parametrize("optimizer", ["sgd", "rmsprop"])
def test_sgd_and_rmsprop_are_their_equations(optimizer: str) -> None:
    """Qian 1999, equation 2; Graves 2013 (1308.0850), equations 38 to 45 without the mean, as torch has it."""
    momentum, squares = 0.8, 0.95
    model = toy().double()
    optimizers = Optimizers(model, settings(optimizer=optimizer, betas=(momentum, squares), weight_decay=0.01))
    names = [name for name, _ in model.named_parameters()]
    weights = {name: value.detach().clone() for name, value in model.named_parameters()}
    velocity = {name: torch.zeros_like(value) for name, value in weights.items()}
    square = {name: torch.zeros_like(value) for name, value in weights.items()}
    for number in range(4):
        torch.manual_seed(number)
        for name, parameter in model.named_parameters():
            parameter.grad = torch.randn_like(parameter)
            gradient = parameter.grad + 0.01 * weights[name] * (parameter.ndim > 1)
            if optimizer == "rmsprop":
                square[name] = squares * square[name] + (1 - squares) * gradient**2
                gradient = gradient / (square[name].sqrt() + 1e-8)
            velocity[name] = momentum * velocity[name] + gradient
            weights[name] = weights[name] - RATES[number] * velocity[name]
        optimizers.step(RATES[number])
    for name in names:
        torch.testing.assert_close(model.get_parameter(name), weights[name])


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "sgd", "rmsprop"])
def test_a_restored_optimizer_goes_on_bit_for_bit(optimizer: str) -> None:
    def update(model: nn.Module, optimizers: Optimizers, number: int) -> None:
        torch.manual_seed(number)
        for parameter in model.parameters():
            parameter.grad = torch.randn_like(parameter)
        optimizers.step(RATES[number])

    torch.manual_seed(0)
    model = decoder()
    optimizers = Optimizers(model, settings(optimizer=optimizer))
    for number in range(3):
        update(model, optimizers, number)
    remembered = {key: tensor.clone() for key, tensor in optimizers.tensors().items()}
    resumed = decoder()
    resumed.load_state_dict(model.state_dict())
    resumed_optimizers = Optimizers(resumed, settings(optimizer=optimizer))
    resumed_optimizers.restore(remembered)
    for number in range(3, 6):
        update(model, optimizers, number)
        update(resumed, resumed_optimizers, number)
    pairs: list[tuple[Tensor, Tensor]] = list(zip(model.parameters(), resumed.parameters(), strict=True))
    assert all(torch.equal(one, other) for one, other in pairs)
    after, resumed_after = optimizers.tensors(), resumed_optimizers.tensors()
    assert after.keys() == resumed_after.keys()
    assert all(torch.equal(after[key], resumed_after[key]) for key in after)
    assert not all(torch.equal(after[key], remembered[key]) for key in after)  # restore copied, it did not borrow


def test_frozen_weights_are_left_alone() -> None:
    model = toy()
    model[0].weight.requires_grad_(False)
    before = model[0].weight.clone()
    optimizers = Optimizers(model, settings(optimizer="muon"))
    backward(model, 0)
    optimizers.step(0.1)
    assert torch.equal(model[0].weight, before)
    assert not [key for key in optimizers.tensors() if key.startswith("0.weight")]
