"""Converted models beside the originals."""

from pathlib import Path
from typing import Any

import torch

from random_models import sentences
from transduce.core.model_file import save_model_file
from transduce.core.padded import Padded
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.pipeline.pipeline import Pipeline, load

SHORT = {"max_length_factor": 0.5, "max_length_offset": 4, "min_length": 0, "at_limit": "stop"}


def converted(folder: Path, **languages: str) -> Pipeline:
    """The model in `folder`, through a file, with short outputs: a random model writes as much as it may."""
    return converted_file(folder, **languages)


def converted_file(theirs: Path, short: bool = True, **languages: str) -> Pipeline:
    """The same of a folder or a file. short: False = it is searched as its settings say."""
    path = (theirs if theirs.is_dir() else theirs.parent) / "ours.safetensors"
    save_model_file(path, read_foreign(theirs, Languages(**languages), "ours").file)
    pipeline = load(path, device="cpu")
    if not short:
        return pipeline
    search = pipeline.recipe.search.model_copy(update=SHORT)
    pipeline.recipe = pipeline.recipe.model_copy(update={"search": search})
    return pipeline


def logits_of_both(model: Any, pipeline: Pipeline, seed: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    """Theirs and ours (T, V) of random sources and targets, with all that stands before and behind them."""
    columns: Any = pipeline.task.columns
    source, target = columns["source"], columns["target"]
    theirs, ours = [], []
    for one, other in zip(source.encode(sentences(8, seed)), target.encode(sentences(8, seed + 1)), strict=True):
        rows = [source.closed(one), [target.start, *target.opening, *other]]
        with torch.inference_mode():
            read, written = (torch.tensor([ids]) for ids in rows)
            theirs += [model(input_ids=read, decoder_input_ids=written).logits[0]]
            ours += [pipeline.model(*(Padded(torch.tensor([ids]), torch.tensor([len(ids)])) for ids in rows))[0]]
    return torch.cat(theirs), torch.cat(ours)
