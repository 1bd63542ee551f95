"""How a model is trained: one table of settings with their defaults."""

from typing import Literal

from pydantic import Field

from transduce.config import Config


class TrainingConfig(Config):
    """Updates, optimiser, schedule, regularisation, validation and safety.

    Training ends at `updates`, at `minutes` (of training, summed over resumes) or when patience runs out, whichever
    comes first. The learning-rate schedule counts updates, never seconds, so that a run can be repeated exactly.
    """

    updates: int = Field(default=10_000, ge=1)
    minutes: float | None = Field(default=None, gt=0)
    seed: int = Field(default=1, ge=0)

    optimizer: Literal["adamw", "muon"] = "adamw"
    learning_rate: float = Field(default=1e-3, gt=0)
    betas: tuple[float, float] = (0.9, 0.98)
    weight_decay: float = Field(default=0.0, ge=0)
    schedule: Literal["cosine", "inverse_sqrt", "constant"] = "cosine"
    warmup: int = Field(default=400, ge=0, description="updates of linear warm-up")
    accumulate: int = Field(default=1, ge=1, description="batches an update")
    clip: float = Field(default=1.0, ge=0, description="largest gradient norm; 0 = never clip")
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    average: float = Field(
        default=0.999, ge=0, lt=1, description="decay of the moving average of the weights; 0 = none"
    )
    precision: Literal["auto", "fp32", "bf16"] = Field(
        default="auto", description="auto: bf16 where the processor multiplies it in hardware"
    )

    validate_every: int = Field(default=500, ge=1, description="updates between validations")
    best: Literal["loss", "bleu"] = Field(
        default="loss", description="what picks the best checkpoint and feeds patience"
    )
    patience: int | None = Field(
        default=None, ge=1, description="validations without a better one before training ends"
    )
    decode_sentences: int = Field(default=500, ge=0, description="validation sentences translated at each validation")
    samples: int = Field(default=2, ge=0, description="sample translations shown at each validation")

    checkpoint_every: int = Field(default=500, ge=1, description="updates between checkpoints")
    keep: int = Field(default=2, ge=1, description="checkpoints kept besides the best")
    log_every: int = Field(default=50, ge=1)
    tensorboard: bool = False
