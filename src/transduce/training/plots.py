"""What a finished run looks like: `figures/training.png`, and `figures/attention.png` of one held-out sentence.

Shapes: H heads, T target positions, S source positions.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from transduce.attention import capture
from transduce.core.errors import InputError
from transduce.data.collate import padded
from transduce.interpret.drawing import save
from transduce.interpret.figures import attention_figure, training_curves
from transduce.models.protocols import Aligns, Fills
from transduce.runtime.event_log import read_log
from transduce.search.dispatch import quickest, search
from transduce.tasks.protocols import Task, TaskData

Weights = NDArray[np.floating]
SHOWN = range(4, 17)  # words of a sentence that fits a page and is worth looking at


def write_figures(run: Path, model: nn.Module, task: Task, data: TaskData, tell: Callable[[str], None]) -> None:
    """Draw what there is to draw into `run/figures`; what cannot be drawn, matplotlib missing too, is told."""
    try:
        save(training_curves(read_log(run / "log.jsonl")), run / "figures" / "training.png")
        shown = attention_of(model, task, sentence(data)) if sentence(data) else None
        if shown:
            title = "What each word of the output attends to: mean of all layers and heads"
            save(attention_figure(*shown, title), run / "figures" / "attention.png")
    except (InputError, OSError) as error:
        tell(f"Figures left out: {error}")


def sentence(data: TaskData) -> str:
    """The first held-out source of a length that fits a page; empty when there is none."""
    held_out = [data.validation] if data.validation else []
    texts = [source for dataset in [*held_out, *data.tests.values()] for source, _ in dataset.texts]
    return next((text for text in texts if len(text.split()) in SHOWN), next((text for text in texts if text), ""))


@torch.inference_mode()
def attention_of(model: nn.Module, task: Task, text: str) -> tuple[list[str], list[str], Weights] | None:
    """Output tokens (T), source tokens (S) and weights (T, S) of a greedy translation of `text`.

    None for a model whose decoder attends to no source, and for one that aligns, whose places are not its words. Of a
    model that fills, each word sees all the others.
    """
    model.eval()
    device = next(model.parameters()).device
    settings = quickest(model)
    request = task.request(text, settings)
    if request.source is None or isinstance(model, Aligns):
        return None
    source = padded([np.asarray(request.source, np.int32)]).to(device)
    [[found]] = search(model, source, 1, settings, start=task.start, end=task.end, limits=[request.limit])  # type: ignore[arg-type]
    fills = isinstance(model, Fills)
    tokens = list(found.tokens[:-1] if fills else found.tokens)
    read = tokens if fills else [task.start, *tokens[:-1]]
    if not read:
        return None
    target = padded([np.asarray(read, np.int32)]).to(device)
    with capture(model) as record:
        if isinstance(model, Fills):
            model.fill(target, torch.zeros_like(target.mask()), model.remember(source))
        else:
            model(source, target)
    calls = [torch.cat(record[name], dim=2) for name in record.of("cross")]
    if not calls:
        return None
    weights_TS = mean_weights(calls).numpy()
    sides = task.tokenizers["target"].tokens(tokens), task.tokenizers["source"].tokens(request.source)
    return *([token.replace("▁", " ").strip() or "▁" for token in side] for side in sides), weights_TS  # type: ignore[return-value]


def mean_weights(layers: list[Tensor]) -> Tensor:
    """(T, S): the mean over layers, each (1, H, T, S), and their heads."""
    return torch.stack([alpha_BHTS[0].mean(0) for alpha_BHTS in layers]).mean(0).float().cpu()
