"""The model that a page of the site runs, in torch: its matrices hold what their 8 bits stand for."""

from pathlib import Path

import torch
from torch import Tensor

from transduce.core.model_file import lasting_tensors
from transduce.core.padded import Padded
from transduce.explore.live import in_int8
from transduce.pipeline.pipeline import Pipeline, load


def in_eight_bits(run: Path) -> Pipeline:
    """The model of a run, its matrices rounded as a page stores them."""
    pipeline = load(run)
    own = lasting_tensors(pipeline.model)
    stored = in_int8(own)
    for name, weight in own.items():
        if f"{name}.scale" in stored:
            weight.data.copy_(stored[name].float() * stored[f"{name}.scale"][:, None])
    return pipeline


def log_probabilities(pipeline: Pipeline, source: str, written: str) -> Tensor:
    """(T, V): log p of all tokens behind the start, and behind each token of `written`."""
    reads, writes = pipeline.task.columns["source"], pipeline.task.columns["target"]
    read = [*reads.encode([source])[0], reads.tokenizer.end]  # type: ignore[attr-defined]
    given = [writes.start, *writes.encode([written])[0]]  # type: ignore[attr-defined]
    return said_by(pipeline, read, given)


def said_by(pipeline: Pipeline, read: list[int], given: list[int]) -> Tensor:
    """The same of ids, with the marks around them."""
    with torch.inference_mode():
        logits = pipeline.model(*(Padded(torch.tensor([ids]), torch.tensor([len(ids)])) for ids in (read, given)))
    return logits.log_softmax(-1)[0]
