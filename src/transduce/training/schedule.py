"""The learning rate as a function of the update: pure, so that a resumed run needs nothing remembered."""

import math

from transduce.recipe.training import TrainingConfig

ENDING = ("cosine", "linear")  # schedules that are at 0 at `config.updates`, and under minutes at their end


def learning_rate(config: TrainingConfig, update: int) -> float:
    """The rate of update number `update`, counted from 1: linear warm-up, then the schedule's decay.

    cosine        half a cosine from the peak down to 0 at `config.updates` (Loshchilov & Hutter 2017)
    linear        straight from the peak down to 0 there (Bergsma et al. 2025, "Straight to Zero")
    inverse_sqrt  peak * sqrt(warmup / update) (Vaswani et al. 2017, equation 3, with its peak given directly)
    constant      the peak
    """
    return config.learning_rate * warmed(config, update) * _decay(config, update)


def warmed(config: TrainingConfig, update: int) -> float:
    """The share of the peak that the warm-up has reached."""
    return min(1.0, update / config.warmup) if config.warmup else 1.0


def decayed(config: TrainingConfig, done: float) -> float:
    """What is left of the peak in a schedule that ends, of which the share `done` is done."""
    return 1 - done if config.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * done))


def _decay(config: TrainingConfig, update: int) -> float:
    if update <= config.warmup or config.schedule == "constant":
        return 1.0
    if config.schedule == "inverse_sqrt":
        return math.sqrt(max(config.warmup, 1) / update)
    return decayed(config, min(1.0, (update - config.warmup) / max(1, config.updates - config.warmup)))
