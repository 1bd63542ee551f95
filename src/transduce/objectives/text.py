"""The objective for a model that writes text, by how it writes."""

from typing import Protocol

from torch import nn

from transduce.core.errors import InputError
from transduce.models.protocols import Aligns, Classifies, Fills, PredictsJointly, writes_at_once
from transduce.objectives.ctc import CtcLoss, JointCtcLoss
from transduce.objectives.masked_lm import MaskedLm
from transduce.objectives.next_token import NextToken
from transduce.objectives.protocols import Objective

PLAIN = (0.0, 0.0, None)  # no regularisation


class LossConfig(Protocol):
    """The settings of [training] that a loss reads."""

    @property
    def label_smoothing(self) -> float: ...
    @property
    def r_drop(self) -> float: ...
    @property
    def sampled_words(self) -> int | None: ...


def text_objective(model: nn.Module, config: LossConfig | None = None) -> Objective:
    """Whole targets where a model aligns, hidden words where it fills, else the next token; both with joint CTC.

    Raises:
        InputError: a model that writes no text; R-Drop, or sampled words, of a model that has no next token, or that
            has one and aligns as well.
    """
    smoothing, r_drop, sampled = (config.label_smoothing, config.r_drop, config.sampled_words) if config else PLAIN
    if writes_at_once(model):
        problems = ["training.r_drop: only a model that predicts the next token can be trained with it."]
        problems += ["training.sampled_words: only a model that predicts the next token can be trained with it."]
        if found := [each for each, key in zip(problems, (r_drop, sampled), strict=True) if key]:
            raise InputError(found)
    if isinstance(model, Classifies):
        raise InputError(f"[model] kind: {type(model).__name__} gives labels, and this task wants text.")
    if isinstance(model, Aligns):
        return CtcLoss(smoothing)
    if isinstance(model, Fills):
        return MaskedLm(smoothing)
    if isinstance(model, PredictsJointly) and model.ctc_weight:
        problems = ["training.r_drop: cannot be used with model.ctc_weight: leave out one of them."]
        problems += ["training.sampled_words: cannot be used with model.ctc_weight: leave out one of them."]
        if found := [each for each, key in zip(problems, (r_drop, sampled), strict=True) if key]:
            raise InputError(found)
        return JointCtcLoss(model.ctc_weight, smoothing)
    return NextToken(smoothing, r_drop, sampled)
