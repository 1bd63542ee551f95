"""The weights that a training starts from: drawn, or another model's; and embeddings that are counted."""

from collections.abc import Callable

import torch
from torch import nn

from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile, lasting_tensors, load_model_file
from transduce.data.columns.packed import pack
from transduce.data.lexicon import ITERATIONS, read_links
from transduce.data.word_vectors import WordVectors, mixed, word_vectors
from transduce.layers.embedding import Embedding
from transduce.layers.recomputation import Recomputable
from transduce.pipeline.outline import load_weights, make_model
from transduce.recipe.recipe import Recipe
from transduce.runtime.devices import resolve_device
from transduce.tasks.base import Task, pairs_of
from transduce.tasks.protocols import TaskData
from transduce.training.average import MovingAverage
from transduce.training.checkpoint import TrainingState
from transduce.training.display import Display
from transduce.training.fine_tuning import HEADS, READS, start_weights
from transduce.training.loop import derived_seed
from transduce.training.optimizer import Optimizers
from transduce.training.progress import Progress

FREE = ("dropout", "inner_dropout", "max_length", "ctc_weight")  # keys of [model] that change no weight's shape
SIDES = {"source_embedding": "source", "target_embedding": "target", "output": "target"}


def new_training(recipe: Recipe, task: Task, tell: Callable[[str], None] = lambda line: None) -> TrainingState:
    """A model at its random start, which depends on the seed alone, or with the weights of the one to start from.

    tell: told which weights of another kind of model are taken.

    Raises:
        InputError: the model cannot be trained for this task, or has no blocks to recompute; the one to start from is
            of other sizes, or of another kind that has no weight in common.
    """
    start = load_model_file(recipe.training.start, trust_code=None) if recipe.training.start else None
    torch.manual_seed(derived_seed(recipe.training.seed, 0))
    model = make_model(recipe, task, start is not None and _shares_embeddings(start, task)).to(device())
    if recipe.training.activation_checkpointing:
        recompute_blocks(model)
    objective = task.objective(model, recipe.training)
    if start:
        _begin_as(start, model, recipe, task, tell)
    average = MovingAverage(model, recipe.training.average)
    return TrainingState(model, objective, Optimizers(model, recipe.training), average, Progress())


def _shares_embeddings(start: ModelFile, task: Task) -> bool:
    """Whether it reads and writes with one embedding for two tokenizers, as models of others may, and keeps both."""
    return pack(task.columns)[0] == start.tokenizers and "source_embedding.weight" not in start.weights


def device() -> torch.device:
    """What "auto" means here: see `transduce.runtime.devices`."""
    return resolve_device()


def check_embeddings(recipe: Recipe) -> None:
    """Raises InputError where training.embeddings cannot be had from this data."""
    if recipe.training.embeddings != "random" and pairs_of(recipe) is None:
        raise InputError(
            f'{recipe.name}: training.embeddings = "{recipe.training.embeddings}" is counted from pairs of texts, '
            'which this data does not have; use "random".'
        )


def count_embeddings(trained: TrainingState, recipe: Recipe, task: Task, data: TaskData, display: Display) -> None:
    """Word vectors of the training pairs in the place of a new model's embeddings.

    Raises:
        InputError: the model has no embeddings that are called as everyone's.
    """
    embeddings = _embeddings(trained.model)
    pairs = read_links([store for store, _ in data.corpora])
    (source, target), width = task.specs.sizes, embeddings["output"].weight.shape[1]
    assert source is not None  # which `check_embeddings` has seen to
    with display.count(f"counting word vectors, {recipe.name}", (1 + ITERATIONS) * len(pairs)) as advance:
        begin_with(embeddings, *word_vectors(pairs, (source, target), width, advance))
    weights = lasting_tensors(trained.model)
    trained.average.restore({name: weights[name] for name in trained.average.tensors()})


@torch.no_grad()
def begin_with(embeddings: dict[str, Embedding], source: WordVectors, target: WordVectors) -> None:
    """Embeddings, named as a model's attributes, begin as word vectors, made as long as they were on average.

    One that serves both sides begins as `mixed` of them. A word that is nowhere keeps what was drawn for it.
    """
    sides = {"source": source, "target": target}
    for weight in {each.weight for each in embeddings.values()}:
        serves = {SIDES[name] for name, each in embeddings.items() if each.weight is weight}
        rows = mixed(sides[side] for side in sorted(serves)).to(weight)
        weight.copy_(torch.where(rows.any(1, keepdim=True), rows * weight.norm(dim=1).mean(), weight))


def _embeddings(model: nn.Module) -> dict[str, Embedding]:
    """By the names of `SIDES`; a model that aligns has no target_embedding."""
    found = {name: each for name in SIDES if isinstance(each := getattr(model, name, None), Embedding)}
    if not {"source_embedding", "output"} <= found.keys():
        raise InputError(
            f"training.embeddings: {type(model).__name__} lacks a `source_embedding` and an `output` of the class "
            "transduce.layers.embedding.Embedding to initialize: leave the key out."
        )
    return found


def _begin_as(
    other: ModelFile, model: torch.nn.Module, recipe: Recipe, task: Task, tell: Callable[[str], None]
) -> None:
    """All weights of a model of the same kind and outputs; else those of the same name and shape."""
    weights = start_weights(other, model, task, tell)
    kinds = [config["model"].get("kind") for config in (other.config, recipe.to_table())]
    same_output = pack({"target": task.columns["target"]})[1]["target"] == other.columns["target"]
    if kinds[0] == kinds[1] and (same_output or task.columns["target"].is_text):
        try:
            load_weights(model, weights)
        except InputError as error:
            raise InputError(_sizes_apart(other, recipe) or error.problems) from error
        return
    for name in ("embedding.weight", "target_embedding.weight"):  # of a model that reads with what it writes with
        if name in weights:
            weights = {"source_embedding.weight": weights[name], **weights}
    own, start = lasting_tensors(model), recipe.training.start
    taken = {
        name: each
        for name, each in weights.items()
        if name in own and each.shape == own[name].shape and (same_output or not name.startswith(HEADS))
    }
    if not taken:
        raise InputError(f"training.start: {start} is another kind of model and shares no weight with this one.")
    if any(name in weights and name not in taken and name.startswith(READS) for name in own):
        raise InputError(_sizes_apart(other, recipe))
    new = ", ".join(dict.fromkeys(name.partition(".")[0] for name in own if name not in taken))
    tell(f"training.start: {len(taken)} of {len(own)} tensors are those of {start}; new: {new or 'none'}.")
    load_weights(model, {**own, **taken})


def _sizes_apart(other: ModelFile, recipe: Recipe) -> str:
    """Which keys of [model] would have to be as in the model to start from; "" = it is not that."""
    theirs, ours = other.config["model"], recipe.to_table()["model"]
    apart = [key for key in theirs if key in ours and theirs[key] != ours[key] and key not in FREE]
    if not apart:
        return ""
    listed = ", ".join(f"{key} = {theirs[key]!r} (here {ours[key]!r})" for key in apart)
    start = recipe.training.start
    return f"training.start: {start} is a model of another shape. Expected in [model] what it has: {listed}."


def recompute_blocks(model: nn.Module) -> None:
    """Let every block of the model keep its inputs alone in training, see `transduce.layers.recomputation`.

    Raises:
        InputError: the model has no blocks that can.
    """
    blocks = [each for each in model.modules() if isinstance(each, Recomputable)]
    if not blocks:
        raise InputError(
            f"training.activation_checkpointing: {type(model).__name__} has no blocks whose activations could be "
            "computed again, as Transformers, convolutions and their kin have: leave the key out."
        )
    for each in blocks:
        each.recomputes = True
