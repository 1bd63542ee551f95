"""The settings of a training, with their defaults."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from transduce.core.config import Config
from transduce.data.tags import checked_tag


class TrainingConfig(Config):
    """Updates, optimizer, schedule, regularization, validation and checkpoints.

    Training ends at `updates`, at `minutes` (training time, summed over resumes) or when patience runs out, whichever
    comes first. The learning-rate schedule counts updates, so that a run can be repeated exactly. With `minutes`, a
    decaying schedule ends when the time does. This uses the measured speed, which is recorded in log.jsonl for resumed
    runs.
    """

    updates: int = Field(default=10_000, ge=1)
    """Total number of gradient steps; decaying schedules end here."""
    minutes: float | None = Field(default=None, gt=0)
    """Maximum training time, summed over resumes. Decaying schedules end here if it comes before `updates`."""
    seed: int = Field(default=1, ge=0)
    """Random seed of initialization, dropout and the order of batches."""

    start: str | None = None
    """A model file, run directory or folder of Hugging Face to fine-tune: training starts from its tokenizers and
    weights. A recipe without [model], or with its dropout alone, has the other model's. From a model of another task,
    training takes what reads the text; labels are learnt from the data, and an output for other labels is new."""
    start_tokenizer: Literal["keep", "learn"] = "keep"
    """The tokenizers of a model to fine-tune. keep: the model's own, with a token for each new tag of data.train.
    learn: as [tokenizer] says, from this data; tokens that the model also has, by their text, keep their embeddings."""
    kept: str | None = None
    """A test set of [data] with what the model in `start` could do: validation measures it, too, from before the first
    update. The best weights are those whose mean of both, by `best`, is best; those of `start` are among them. [replay]
    makes such a set."""
    embeddings: Literal["random", "cooccurrence"] = "random"
    """Initial embeddings. cooccurrence: computed from the training pairs, so that words with similar contexts and their
    translations have similar vectors. This reaches the same quality in fewer updates."""
    optimizer: Literal["adamw", "muon", "sgd", "rmsprop"] = "adamw"
    """muon: orthogonalized momentum for hidden matrices, and AdamW for all other parameters. sgd: as LSTM language
    models are often trained, with a large learning_rate and betas = [0, 0]. rmsprop: as models with a memory are."""
    learning_rate: float = Field(default=1e-3, gt=0, le=1e30)
    """Learning rate at the end of the warm-up."""
    betas: tuple[float, float] = (0.9, 0.98)
    """AdamW's coefficients for the running averages of the gradient and its square. Of sgd and rmsprop, the first is
    the momentum, and the second is rmsprop's coefficient for the square."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Decoupled weight decay, for matrices only; sgd and rmsprop add it to the gradient (L2 regularization)."""
    schedule: Literal["cosine", "linear", "inverse_sqrt", "constant"] = "cosine"
    """After the warm-up: cosine or linear decay to 0 at `updates`, decay with 1 / sqrt(update), or constant."""
    warmup: int = Field(default=400, ge=0)
    """Number of updates of linear warm-up."""
    accumulate: int = Field(default=1, ge=1)
    """Number of batches per update (gradient accumulation)."""
    clip: float = Field(default=1.0, ge=0)
    """Maximum gradient norm; 0 = no clipping."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """Probability that label smoothing spreads over the vocabulary; 0 for language models."""
    sampled_words: int | None = Field(default=None, ge=1)
    """Compute the loss over the batch's words and this many sampled others, instead of the whole vocabulary. This takes
    a fraction of the time; the logged training loss is slightly low. Unset: the whole vocabulary."""
    r_drop: float = Field(default=0.0, ge=0)
    """Weight of R-Drop, the divergence of two passes over each batch with different dropout; doubles the work."""
    average: float = Field(default=0.999, ge=0, lt=1)
    """Decay of the moving average of the weights; 0 = none."""
    parallel: Literal["ddp", "fsdp"] = "ddp"
    """What several processes of torchrun share. ddp: the rows of each batch. fsdp: also the model, of which each keeps
    a part of the weights, gradients and optimizer states, for models that are too large for one device."""
    activation_checkpointing: bool = False
    """Keep only the inputs of each block for the backward pass, which computes the rest again: less memory for longer
    updates (about a third). The weights learnt are the same."""
    threads: int | None = Field(default=None, ge=1)
    """Number of processor threads. Setting it makes the result independent of the number of cores."""
    precision: Literal["auto", "fp32", "bf16"] = Field(default="auto")
    """auto: bf16 if the hardware multiplies it faster than fp32, else fp32."""

    validate_every: int = Field(default=500, ge=1)
    """Number of updates between validations."""
    best: str = Field(default="loss")
    """The metric that selects the best checkpoint and ends patience: loss, perplexity, or one of task.metrics."""
    patience: int | None = Field(default=None, ge=1)
    """Stop after this many validations without improvement. Unset: 5, where neither `updates` nor `minutes` is set and
    the default of `updates` is more than 200 epochs of the data; otherwise any number."""
    decode_sentences: int = Field(default=500, ge=0)
    """Number of sentences to translate at each validation."""
    exposure_bias: bool | None = None
    """Also report the error rate of each next token after the reference's tokens (teacher-forced), and how much higher
    that of the outputs is. Unset: for speech recognition. It has no meaning for models that write all words at once. It
    is left out of tests whose search adds CTC or n-grams (`search.ctc_weight`, `search.lm_weight`), as the decoder
    does not write alone there."""
    samples: int = Field(default=2, ge=0)
    """Number of sample translations to show at each validation."""
    examples: int = Field(default=4, ge=0, le=16)
    """Number of short validation sources to store in the model file as examples for the explorer, of speech one
    recording; 0 stores none."""

    checkpoint_every: int = Field(default=500, ge=1)
    """Number of updates between checkpoints."""
    keep: int = Field(default=2, ge=1)
    """Number of checkpoints to keep besides the best."""
    log_every: int = Field(default=50, ge=1)
    """Number of updates between lines of log.jsonl."""
    tensorboard: bool = False
    """Also log to <run>/tensorboard (extra `tensorboard`)."""

    @model_validator(mode="after")
    def _whole_distributions(self) -> "TrainingConfig":
        if self.r_drop and self.sampled_words is not None:
            raise ValueError("r_drop compares whole distributions: leave out either r_drop or sampled_words")
        return self

    @model_validator(mode="after")
    def _one_start(self) -> "TrainingConfig":
        if self.start_tokenizer != "keep" and not self.start:
            raise ValueError("start_tokenizer is about the tokenizer of a model to fine-tune: name it in start")
        if self.kept and not self.start:
            raise ValueError("kept is about what a model to fine-tune could do: name it in start")
        if self.start and self.embeddings != "random":
            raise ValueError("start takes the embeddings of another model: leave out either start or embeddings")
        return self


class Replay(Config):
    """Pairs that the model in `training.start` already translates well, trained on beside new ones, so that it
    forgets less (Robins 1995): those that it learnt from, or ones that it writes itself (Kim and Rush 2016)."""

    pairs: int = Field(default=2000, ge=1)
    """The most pairs to train on."""
    share: float = Field(default=0.5, gt=0, lt=1)
    """Their share of the pairs that an epoch shows."""
    kept: int = Field(default=500, ge=1)
    """The most pairs of the test set `kept`, which are not trained on: see `training.kept`."""
    kind: Literal["auto", "learnt", "generated"] = "auto"
    """learnt: pairs of the files that the model was trained on; its run directory says which, and their fingerprints
    must be the same. generated: sentences of the new sources in which some words are replaced by similar ones, with
    the model's translations. auto: learnt where those files are there."""
    seed: int = Field(default=1, ge=0)
    """Of the choice of pairs and words."""


class Backtranslation(Config):
    """Texts of the target language as training data, with sources that a reverse model writes (Sennrich et al. 2016).

    The reverse model, from target to source, is given, or trained first with this recipe and the changes below.
    """

    text: tuple[str, ...] = Field(min_length=1)
    """Files of texts in the target language, one a line, relative to data.root."""
    model: str | None = None
    """The reverse model: a model file or run directory. Unset: it is trained first, on the same pairs."""
    tag: Annotated[str, AfterValidator(lambda tag: tag and checked_tag(tag))] = "<BT>"
    """A word before each source that the reverse model wrote, which tells it from real ones; "" for no tag, which does
    not go with data.hold_out."""
    weight: float = Field(default=1.0, gt=0)
    """How often an epoch shows each of these pairs; real ones have the weights of data.train."""
    search: dict[str, Any] = Field(default_factory=dict)
    """How the reverse model writes: keys of [search] in place of the recipe's, such as method = "sample"."""
    training: dict[str, Any] = Field(default_factory=dict)
    """Keys of [training] with other values for the reverse model, such as `updates`."""
    reverse_model: dict[str, Any] = Field(default_factory=dict)
    """Keys of [model] with other values for the reverse model."""
    precision: Literal["fp32", "int8"] = "fp32"
    """Precision of the reverse model's translations; int8 is faster, with nearly the same output."""


class Teachers(Config):
    """Teachers: models that are trained first and, as an ensemble, translate the training sources for the student.

    Each is trained with this recipe, except for the settings below. Their translations vary less than human
    translations, which makes them easier to learn (Kim and Rush 2016); those of an ensemble vary even less (Freitag et
    al. 2017).
    """

    seeds: tuple[Annotated[int, Field(ge=0)], ...] = Field(default=(1,), min_length=1)
    """One teacher is trained with each seed."""
    together: int = Field(default=1, ge=1)
    """Number of teachers to train in parallel, each in a process with training.threads threads, or its share of all."""
    references: bool = True
    """Whether the student also learns from the references. Models that write all words at once are better without."""
    training: dict[str, Any] = Field(default_factory=dict)
    """Keys of [training] with other values for the teachers, such as `updates`."""
    model: dict[str, Any] = Field(default_factory=dict)
    """Keys of [model] with other values for the teachers. Without any, the student starts from the first teacher."""
    search: dict[str, Any] = Field(default_factory=dict)
    """Search settings of the teachers: keys of [search]."""
    precision: Literal["fp32", "int8"] = "fp32"
    """Precision of the teachers' translations; int8 is faster, with nearly the same output."""

    @field_validator("seeds")
    @classmethod
    def _differ(cls, seeds: tuple[int, ...]) -> tuple[int, ...]:
        if len({*seeds}) < len(seeds):
            raise ValueError("equal seeds make equal teachers; give each teacher its own seed")
        return seeds
