"""Training from another model: its tokenizers or new ones, and its embeddings for all tokens that both have."""

from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256

import torch
from torch import Tensor, nn

from transduce.core.atomic import write_text
from transduce.core.cache import cache_folder
from transduce.core.model_file import ModelFile, lasting_tensors
from transduce.data.augmentation import NOT_AUGMENTED
from transduce.data.columns import Columns
from transduce.data.columns.packed import tokenizers_of, unpack
from transduce.data.columns.tokens import Tokens
from transduce.data.placeholders import with_placeholders
from transduce.data.tags import with_tags
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig
from transduce.layers.embedding import Embedding
from transduce.recipe.recipe import Recipe
from transduce.tasks.base import Task

SIDES = {"target_embedding": "target", "source_embedding": "source", "output": "target", "embedding": "target"}
"""Attributes of models that have a vector for each token, and of which side."""


LearnColumns = Callable[[TokenizerConfig], Columns]
HEADS = ("output.", "pooler.", "chain.")  # of models that label: weights that belong to one set of labels
READS = ("source_embedding.", "encoder.", "token_types.", "widen.")  # of models that read a text


def columns_of_start(start: ModelFile, recipe: Recipe, learn_columns: LearnColumns) -> Columns:
    """The columns of a training that starts from a model.

    Of a model for the same task that writes text they are the model's, with a token for each tag of the recipe's files
    that has none, and those of data.placeholders and data.terms. In all others what is read is cut by the model's
    tokenizer, and what is answered, such as labels, is learnt from the recipe's data; a model's own labels stay where
    the data has no others.

    Args:
        learn_columns: gives those of this recipe, for `training.start_tokenizer = "learn"`.
    """
    if recipe.training.start_tokenizer == "learn":
        return learn_columns(recipe.tokenizer)
    known = unpack(start.tokenizers, start.columns)
    same = start.config["task"].get("kind", "translation") == recipe.task.kind  # type: ignore[attr-defined]
    target = known.get("target")
    if target is None or (same and (target.is_text or not isinstance(known.get("source"), Tokens))):
        return _with_new_tokens(known, recipe)
    return _reading_as(known, recipe, learn_columns, same)


def _reading_as(known: Columns, recipe: Recipe, learn_columns: LearnColumns, same: bool) -> Columns:
    reads = known.get("source", known["target"])
    if not isinstance(reads, Tokens):
        return learn_columns(recipe.tokenizer)
    text = reads.tokenizer.to_json()
    file = cache_folder() / "tokenizers" / f"{sha256(text.encode()).hexdigest()[:16]}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, text)
    columns = dict(learn_columns(TokenizerConfig(file=str(file.absolute()))))
    side = "source" if "source" in columns else "target"
    own = columns[side]
    if "source" in known and isinstance(own, Tokens):
        columns[side] = _framed_as(own, reads)
    if same and known["target"].covers(columns["target"]):
        columns["target"] = known["target"]
    return columns


def _framed_as(own: Tokens, reads: Tokens) -> Tokens:
    """With the tokens of `reads` around a text; its end token, too, where `own` has none."""
    end = tuple(own.tokenizer.tokens([own.end])) if reads.ends and not (own.ends or own.stream) else ()
    return replace(own, before=reads.before, between=reads.between, after=reads.after or end)


def _with_new_tokens(known: Columns, recipe: Recipe) -> Columns:
    columns = dict(known)
    tags = [tag for files in getattr(recipe.data, "train", ()) or () for tag in getattr(files, "tags", ())]
    augmented = getattr(recipe.data, "augmented", NOT_AUGMENTED)
    source, target = columns.get("source"), columns.get("target")
    if not isinstance(source, Tokens) or not (tags or augmented):
        return columns
    joint = isinstance(target, Tokens) and target.tokenizer.equals(source.tokenizer)
    tokenizer = with_placeholders(with_tags(source.tokenizer, tags), augmented.source_names)
    columns["source"] = _with(source, tokenizer)
    if isinstance(target, Tokens):
        own = tokenizer if joint else with_placeholders(target.tokenizer, augmented.target_names)
        columns["target"] = _with(target, own)
    return columns


def _with(column: Tokens, tokenizer: Tokenizer) -> Tokens:
    return replace(column, tokenizer=tokenizer)


def start_weights(start: ModelFile, model: nn.Module, task: Task, tell: Callable[[str], None]) -> dict[str, Tensor]:
    """The weights of a model to start from, its embeddings in the order of the new tokenizers' tokens.

    A token that the other model has, by its text, keeps its vectors; the others keep what `model` was drawn with. How
    many are kept is told. With equal tokenizers these are the other model's weights as they are.
    """
    before, now = tokenizers_of(unpack(start.tokenizers, start.columns)), task.tokenizers
    changed = [side for side in now if side in before and not _equal(before[side], now[side])]
    if not changed:
        return start.weights
    weights, own = dict(start.weights), lasting_tensors(model)
    rows = {side: _shared(before[side], now[side]) for side in changed}
    for name, side in SIDES.items():
        key = f"{name}.weight"
        if side not in now or key not in own or not isinstance(getattr(model, name, None), Embedding):
            continue
        table = _table(start.weights, name, before[side].size, own[key].shape[1]) if side in before else None
        if table is None:
            weights.pop(key, None)  # of another size: it stays as it was drawn
            weights[key] = own[key].detach().clone()
        elif side in changed:
            new_ids, old_ids = rows[side]
            weights[key] = own[key].detach().clone()
            weights[key][new_ids] = table[old_ids].to(weights[key])
        else:
            weights[key] = table
    for name in SIDES:
        if f"{name}.weight" not in own:  # now tied to another
            weights.pop(f"{name}.weight", None)
    kept = " and ".join(f"{len(rows[side][0]):,} of {now[side].size:,} {side} tokens" for side in changed)
    tell(f"training.start: {kept} keep their embeddings; those of the others are new.")
    return weights


def _equal(one: Tokenizer, other: Tokenizer) -> bool:
    return one.special == other.special and one.to_json() == other.to_json()


def _shared(before: Tokenizer, now: Tokenizer) -> tuple[Tensor, Tensor]:
    """The ids of the tokens that both have, in the new vocabulary and in the old one."""
    old = _ids(before)
    pairs = [(index, old[token]) for token, index in _ids(now).items() if token in old]
    new_ids, old_ids = zip(*pairs, strict=True)  # the end token is always shared
    return torch.tensor(new_ids), torch.tensor(old_ids)


def _ids(tokenizer: Tokenizer) -> dict[str, int]:
    """Each token by its text, special ones by what they are for."""
    special = tokenizer.special
    found = {f"text {token}": index for index, token in enumerate(tokenizer.tokens(range(tokenizer.size)))}
    found = {token: index for token, index in found.items() if index not in special.values()}
    return found | {f"special {role}": index for role, index in special.items()}


def _table(weights: dict[str, Tensor], name: str, size: int, width: int) -> Tensor | None:
    """The vectors that the other model has for these tokens: of the same name, or of another to which it was tied."""
    side = SIDES[name]
    names = [name, *(each for each in SIDES if SIDES[each] == side), *SIDES]
    found = (weights.get(f"{each}.weight") for each in names)
    return next((table for table in found if table is not None and tuple(table.shape) == (size, width)), None)
