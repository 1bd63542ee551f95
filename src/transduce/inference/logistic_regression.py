"""Multinomial logistic regression on dense features, whose regularisation validation data choose.

    p(c | x) ~ exp(b_c + sum_f x_f W_fc),   minimise  mean_i -log p(y_i | x_i) + strength / 2 |W|^2

The loss is convex: there is one solution and no seed.

Shapes: B examples, F features, C labels.
"""

from typing import NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor

STRENGTHS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)  # of which validation chooses
USUAL = 1e-4  # without validation
STEPS, TOLERANCE = 200, 1e-7  # of L-BFGS, at most; where the gradient is this small, it ends

Examples = tuple[Tensor, Tensor]  # features (B, F), labels (B,) from 0


class LogisticRegression(NamedTuple):
    """weight_FC, bias_C: W and b, which were found with `strength`."""

    weight_FC: Tensor
    bias_C: Tensor
    strength: float

    @classmethod
    def fit(cls, examples: Examples, classes: int, strength: float) -> Self:
        """The minimum, found by L-BFGS in double precision."""
        x_BF, label_B = examples[0].double(), examples[1]
        weight_FC = x_BF.new_zeros(x_BF.shape[1], classes).requires_grad_()
        bias_C = x_BF.new_zeros(classes).requires_grad_()
        given = {"max_iter": STEPS, "tolerance_grad": TOLERANCE, "line_search_fn": "strong_wolfe"}
        optimizer = torch.optim.LBFGS([weight_FC, bias_C], **given)  # type: ignore[arg-type]

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(x_BF @ weight_FC + bias_C, label_B) + strength / 2 * weight_FC.square().sum()
            loss.backward()  # type: ignore[no-untyped-call]
            return loss

        with torch.enable_grad():
            optimizer.step(closure)  # type: ignore[no-untyped-call]
        return cls(weight_FC.detach().float(), bias_C.detach().float(), strength)

    @classmethod
    def chosen(cls, examples: Examples, validation: Examples | None, classes: int) -> Self:
        """The one of `STRENGTHS` with the greatest accuracy on validation data, of equal ones the weakest."""
        if validation is None:
            return cls.fit(examples, classes, USUAL)
        x_BF, label_B = validation
        models = [cls.fit(examples, classes, strength) for strength in STRENGTHS]
        return max(models, key=lambda each: int((each.predict(x_BF) == label_B).sum()))

    def predict(self, x_BF: Tensor) -> Tensor:
        """The likeliest label (B,)."""
        return (x_BF @ self.weight_FC + self.bias_C).argmax(1)
