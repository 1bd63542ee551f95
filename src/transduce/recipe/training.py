"""How a model is trained: one table of settings with their defaults."""

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from transduce.core.config import Config


class TrainingConfig(Config):
    """Updates, optimiser, schedule, regularisation, validation and safety.

    Training ends at `updates`, at `minutes` (of training, summed over resumes) or when patience runs out, whichever
    comes first. The learning-rate schedule counts updates, so that a run can be repeated exactly; under `minutes` one
    that falls to 0 ends with them, by the speed measured, which is noted in log.jsonl for a resumed run.
    """

    updates: int = Field(default=10_000, ge=1)
    """Gradient steps in all; schedules that fall to 0 end here."""
    minutes: float | None = Field(default=None, gt=0)
    """Stop after so much training time, summed over resumes; schedules that fall to 0 end here, if it is sooner."""
    seed: int = Field(default=1, ge=0)
    """Decides the start, the dropout and the order of batches."""

    start: str | None = None
    """A model file or run directory whose tokenizers and weights training starts from: fine-tuning. Of another kind of
    model it takes the weights that have the same names and shapes."""
    embeddings: Literal["random", "cooccurrence"] = "random"
    """What they begin as. cooccurrence: vectors counted from the training pairs, in which words that stand among the
    same words are near, and so is what translates them: as good a model after fewer updates."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """muon: orthogonalised momentum for the hidden matrices, AdamW for the rest."""
    learning_rate: float = Field(default=1e-3, gt=0, le=1e30)
    """At the end of the warm-up."""
    betas: tuple[float, float] = (0.9, 0.98)
    """AdamW's decays."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled; matrices only."""
    schedule: Literal["cosine", "linear", "inverse_sqrt", "constant"] = "cosine"
    """After the warm-up: down to 0 at `updates`, by half a cosine or straight; by the root of the update; or not."""
    warmup: int = Field(default=400, ge=0)
    """Updates of linear warm-up."""
    accumulate: int = Field(default=1, ge=1)
    """Batches an update."""
    clip: float = Field(default=1.0, ge=0)
    """Largest gradient norm; 0 = never clip."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Share of the target's probability that is spread over the vocabulary; 0 for language models."""
    sampled_words: int | None = Field(default=None, ge=1)
    """The loss is over the words of a batch and so many others, drawn for each batch, instead of the vocabulary; its
    products take a fraction of the time, and the logged training loss is a little low. Unset: over all."""
    r_drop: float = Field(default=0.0, ge=0)
    """Weight of R-Drop: each batch passes twice and the two predictions are pulled together; doubles the work."""
    average: float = Field(default=0.999, ge=0, lt=1)
    """Decay of the moving average of the weights; 0 = none."""
    threads: int | None = Field(default=None, ge=1)
    """Processor threads; a number makes the result independent of how many cores a machine has."""
    precision: Literal["auto", "fp32", "bf16"] = Field(default="auto")
    """auto: bf16 where the hardware multiplies it faster than fp32."""

    validate_every: int = Field(default=500, ge=1)
    """Updates between validations."""
    best: str = Field(default="loss")
    """What picks the best checkpoint and feeds patience: loss, perplexity, or one of task.metrics."""
    patience: int | None = Field(default=None, ge=1)
    """Validations without a better one before training ends."""
    decode_sentences: int = Field(default=500, ge=0)
    """Validation sentences translated at each validation."""
    samples: int = Field(default=2, ge=0)
    """Sample translations shown at each validation."""
    examples: int = Field(default=4, ge=0, le=16)
    """Short validation sources kept in the model file, for the explorer to open on; 0 keeps none."""

    checkpoint_every: int = Field(default=500, ge=1)
    """Updates between checkpoints."""
    keep: int = Field(default=2, ge=1)
    """Checkpoints kept besides the best."""
    log_every: int = Field(default=50, ge=1)
    """Updates between lines of log.jsonl."""
    tensorboard: bool = False
    """Log to <run>/tensorboard too (extra `tensorboard`)."""

    @model_validator(mode="after")
    def _whole_distributions(self) -> "TrainingConfig":
        if self.r_drop and self.sampled_words is not None:
            raise ValueError("r_drop compares whole distributions: leave out either r_drop or sampled_words")
        return self

    @model_validator(mode="after")
    def _one_start(self) -> "TrainingConfig":
        if self.start and self.embeddings != "random":
            raise ValueError("start takes the embeddings of another model: leave out either start or embeddings")
        return self


class Teachers(Config):
    """Models that are trained first and translate the training sources for the student, as one ensemble.

    Each is trained by this recipe but for what is said here; the student learns from what they write, which varies less
    than what people write (Kim and Rush 2016), and so do several models less than one (Freitag et al. 2017).
    """

    seeds: tuple[Annotated[int, Field(ge=0)], ...] = Field(default=(1,), min_length=1)
    """A teacher for each, of that training.seed."""
    together: int = Field(default=1, ge=1)
    """How many are trained at once, each in a process of its own that uses training.threads, or its share of them."""
    references: bool = True
    """The student reads the references, too; a model that writes all words at once is better without."""
    training: dict[str, Any] = Field(default_factory=dict)
    """Keys of [training] that are otherwise for the teachers, as `updates`."""
    model: dict[str, Any] = Field(default_factory=dict)
    """Keys of [model] that are; without any the student begins with the weights of the first teacher."""
    search: dict[str, Any] = Field(default_factory=dict)
    """How they translate: keys of [search], with its defaults."""
    precision: Literal["fp32", "int8"] = "fp32"
    """Of matrix products while they translate; int8 is faster, and nearly the same."""

    @field_validator("seeds")
    @classmethod
    def _differ(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len({*seeds}) < len(seeds):
            raise ValueError("equal seeds make equal teachers; give each teacher its own seed")
        return seeds
