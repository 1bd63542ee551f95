"""The optimisers: AdamW (Loshchilov & Hutter 2019), Muon for the hidden matrices (Jordan et al. 2024), SGD, RMSProp."""

from typing import Any

import torch
from torch import Tensor, nn

from transduce.layers.recurrent import Cell
from transduce.recipe.training import TrainingConfig
from transduce.training.precision import resolve_precision

MOMENTUM = 0.95
# Amsel et al. 2025, "The Polar Express": the quintics that, one after the other, bring singular values of 0.001 .. 1
# nearest to 1, however many of them are applied. Each takes x / 1.01, as what rounding lifts above the greatest value
# would be thrown far off.
QUINTICS = tuple(
    (a / 1.01, b / 1.01**3, c / 1.01**5)
    for a, b, c in (
        (8.28721201814563, -23.595886519098837, 17.300387312530933),
        (4.107059111542203, -2.9478499167379106, 0.5448431082926601),
        (3.9486908534822946, -2.908902115962949, 0.5518191394370137),
        (3.3184196573706015, -2.488488024314874, 0.51004894012372),
        (2.300652019954817, -1.6689039845747493, 0.4188073119525673),
    )
)
ITERATIONS = 3  # enough for Transformers and convolutions, which learn nothing more from five (docs/speed.md)
RECURRENT_ITERATIONS = 5  # recurrent models do, and hardly take longer for it: their time goes into the steps
FASTEST = {"bf16": torch.bfloat16, "fp32": torch.float32}


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal, for matrices (Jordan et al. 2024).

    The update is scaled by 0.2 sqrt(max(rows, columns)), which gives it AdamW's typical size, so that one learning
    rate serves both (Liu et al. 2025, "Muon is Scalable for LLM Training", equation 4). Weight decay is decoupled.
    """

    def __init__(
        self,
        parameters: list[nn.Parameter],
        learning_rate: float,
        weight_decay: float,
        iterations: int = ITERATIONS,
    ) -> None:
        super().__init__(parameters, {"lr": learning_rate, "weight_decay": weight_decay})
        self.iterations = iterations

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One update of every matrix that has a gradient."""
        for group in self.param_groups:
            alike: dict[torch.Size, list[Tensor]] = {}
            for weight in group["params"]:
                if weight.grad is not None:
                    alike.setdefault(weight.shape, []).append(weight)
            for weights in alike.values():
                self._update(weights, group["lr"], group["weight_decay"])

    def _update(self, weights: list[Tensor], rate: float, decay: float) -> None:
        """Of W weights of one shape."""
        gradients: list[Tensor] = [weight.grad for weight in weights]  # type: ignore[misc]
        momenta = [self.state[weight].setdefault("momentum", torch.zeros_like(weight)) for weight in weights]
        torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
        ahead_WRC = torch.stack(torch._foreach_lerp(gradients, momenta, MOMENTUM))
        directions_WRC = orthogonalised(ahead_WRC, self.iterations)
        torch._foreach_mul_(weights, 1 - rate * decay)
        directions = list(directions_WRC.to(weights[0].dtype).unbind())
        torch._foreach_add_(weights, directions, alpha=-rate * 0.2 * max(weights[0].shape) ** 0.5)


def orthogonalised(matrix_WRC: Tensor, iterations: int = ITERATIONS, dtype: torch.dtype | None = None) -> Tensor:
    """(W, R, C): each of W matrices with its singular values near 1: 0.18 .. 1.9 after three iterations,
    0.86 .. 1.13 after five, but those that were nearly 0.

    Args:
        dtype: of the products; by default the faster of bf16, which is precise enough, and fp32.
    """
    tall = matrix_WRC.shape[1] > matrix_WRC.shape[2]
    dtype = dtype or FASTEST[resolve_precision("auto", matrix_WRC.device)]
    x_WRC = (matrix_WRC.mT if tall else matrix_WRC).to(dtype)
    x_WRC = x_WRC / (torch.linalg.matrix_norm(x_WRC, keepdim=True) * 1.01 + 1e-7)
    by_gram = x_WRC.shape[1] < x_WRC.shape[2] and x_WRC.dtype is torch.float32
    x_WRC = (_iterated_by_gram if by_gram else _iterated)(x_WRC, QUINTICS[:iterations])
    return x_WRC.mT if tall else x_WRC


Quintics = tuple[tuple[float, float, float], ...]


def _iterated(x_WRC: Tensor, quintics: Quintics) -> Tensor:
    """X <- a X + (b G + c G^2) X, G = X X^T, once for each (a, b, c)."""
    for a, b, c in quintics:
        gram_WRR = x_WRC @ x_WRC.mT
        x_WRC = torch.baddbmm(x_WRC, torch.baddbmm(gram_WRR, gram_WRR, gram_WRR, beta=b, alpha=c), x_WRC, beta=a)
    return x_WRC


def _iterated_by_gram(x_WRC: Tensor, quintics: Quintics) -> Tensor:
    """The same with fewer products where C > R: all factors follow from the first G, and X is multiplied once ("Gram
    Newton-Schulz", Dao AI Lab 2026). In bf16 what a small G is rounded by would throw it far off.

        F = a + b G + c G^2,   G <- F G F
    """
    gram_WRR = x_WRC @ x_WRC.mT
    factor_WRR = whole_WRR = _factor(gram_WRR, *quintics[0])
    for each in quintics[1:]:
        gram_WRR = factor_WRR @ gram_WRR @ factor_WRR
        factor_WRR = _factor(gram_WRR, *each)
        whole_WRR = factor_WRR @ whole_WRR
    return whole_WRR @ x_WRC


def _factor(gram_WRR: Tensor, a: float, b: float, c: float) -> Tensor:
    factor_WRR = torch.baddbmm(gram_WRR, gram_WRR, gram_WRR, beta=b, alpha=c)
    factor_WRR.diagonal(dim1=1, dim2=2).add_(a)
    return factor_WRR


class Optimizers:
    """One optimiser or two behind one face: one for everything, or Muon for hidden matrices and AdamW for the rest.

    Embeddings, output layers, norms, biases and positions are never Muon's: their rows are looked up, not multiplied.
    """

    def __init__(self, model: nn.Module, config: TrainingConfig) -> None:
        named = [(name, weight) for name, weight in model.named_parameters() if weight.requires_grad]
        self._names: dict[Tensor, str] = {weight: name for name, weight in named}
        hidden = [weight for name, weight in named if config.optimizer == "muon" and _is_hidden_matrix(name, weight)]
        taken = set(hidden)
        rest = [weight for _, weight in named if weight not in taken]
        decayed = [weight for weight in rest if weight.ndim >= 2]
        plain = [weight for weight in rest if weight.ndim < 2]
        groups = [
            {"params": decayed, "weight_decay": config.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ]
        self._parts: list[torch.optim.Optimizer] = [_of_all(groups, config)]
        if hidden:
            recurrent = any(isinstance(module, Cell) for module in model.modules())
            iterations = RECURRENT_ITERATIONS if recurrent else ITERATIONS
            self._parts.append(Muon(hidden, config.learning_rate, config.weight_decay, iterations))

    def step(self, rate: float) -> None:
        """Update every weight at learning rate `rate`, then forget the gradients."""
        for part in self._parts:
            for group in part.param_groups:
                group["lr"] = rate
            part.step()
            part.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """All that the optimisers remember, by parameter and slot: `encoder.norm.weight/exp_avg`."""
        return {
            f"{self._names[weight]}/{slot}": value
            for part in self._parts
            for weight, slots in part.state.items()
            for slot, value in slots.items()
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        weights = {name: weight for weight, name in self._names.items()}
        owner = {weight: part for part in self._parts for group in part.param_groups for weight in group["params"]}
        for key, value in tensors.items():
            name, _, slot = key.rpartition("/")
            weight = weights[name]
            owner[weight].state[weight][slot] = value.to(weight.device, copy=True)


def _of_all(groups: list[dict[str, Any]], config: TrainingConfig) -> torch.optim.Optimizer:
    """The optimiser of everything but Muon's matrices."""
    rate, (momentum, squares) = config.learning_rate, config.betas
    if config.optimizer == "sgd":
        return torch.optim.SGD(groups, lr=rate, momentum=momentum)
    if config.optimizer == "rmsprop":
        return torch.optim.RMSprop(groups, lr=rate, momentum=momentum, alpha=squares)
    return torch.optim.AdamW(groups, lr=rate, betas=config.betas, fused=True)


def _is_hidden_matrix(name: str, weight: Tensor) -> bool:
    return weight.ndim == 2 and "embedding" not in name and "positions" not in name and not name.startswith("output.")
