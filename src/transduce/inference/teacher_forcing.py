"""What a model gets wrong where the tokens before are the reference's, beside what it gets wrong by itself.

Shapes: B batch, T target positions, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.core.padded import Padded
from transduce.data.columns.tokens import Tokens
from transduce.inference.generates import Generates
from transduce.inference.inputs import sources
from transduce.inference.prediction import Prediction
from transduce.metrics.exposure import Exposure
from transduce.models.protocols import writes_at_once
from transduce.search.settings import Search


def reports_exposure(task: Any, model: Any, setting: bool | None, search: Search | None) -> TypeGuard[Generates]:
    """Whether the exposure bias of outputs that `search` found is reported: by the recipe or else the task.

    The model must have next tokens, and search must go by them alone. Outputs that CTC helped to find say nothing about
    a decoder by itself.
    """
    wanted = task.exposure_bias if setting is None else setting
    if not wanted or writes_at_once(model) or (search and (search.ctc_weight or search.lm_weight)):
        return False
    return isinstance(task, Generates) and "source" in task.columns


def exposure(
    model: Any,
    task: Generates,
    pairs: Sequence[tuple[str, str]],
    predictions: Sequence[Prediction],
    batch_size: int = 64,
) -> Exposure:
    """The errors of predictions, and those that the model makes after true prefixes.

    Args:
        pairs: sources and references.
        predictions: what search found for each. Recordings that are heard in parts are left out.
    """
    tokenizer, target = task.tokenizers["target"], task.columns["target"]
    whole = [place for place, each in enumerate(predictions) if len(each.segments) < 2]
    pairs, predictions = [pairs[place] for place in whole], [predictions[place] for place in whole]
    begins = len(getattr(target, "opening", ()))
    encoded = [list(ids) for ids in target.encode([reference for _, reference in pairs])]
    forced = teacher_forced_errors(model, task, [source for source, _ in pairs], encoded, batch_size)
    forced = [errors[begins:] for errors in forced]
    outputs, wanted = [each.tokens[begins:] for each in predictions], [tokenizer.tokens(ids) for ids in encoded]
    return Exposure.of_outputs(forced, outputs, wanted, unit_of([each for _, each in pairs], encoded))


def unit_of(references: Sequence[str], encoded: Sequence[Sequence[int]]) -> str:
    """What a token is, in a word."""
    spelled = all(len(ids) == len(text.strip()) for ids, text in zip(encoded, references, strict=True))
    return "character" if spelled else "token"


@torch.inference_mode()
def teacher_forced_errors(
    model: Any, task: Generates, texts: Sequence[str], references: Sequence[Sequence[int]], batch_size: int = 64
) -> list[NDArray[np.int64]]:
    """For each text, 1 at each token of its reference, and at the end, that is not the likeliest there; else 0.

    What search never chooses is never the likeliest. A text without a token has all its reference wrong.
    """
    source, target = task.columns["source"], task.columns["target"]
    read = [source.closed(ids) for ids in source.encode(texts)]
    wanted = [target.closed(ids) for ids in references]
    never = target.unwritten if isinstance(target, Tokens) else []
    found = [np.ones(len(ids), np.int64) for ids in wanted]
    order = sorted((place for place, ids in enumerate(read) if len(ids)), key=lambda place: -len(read[place]))
    model.eval()
    device = next(model.parameters()).device
    for first in range(0, len(order), batch_size):
        places = order[first : first + batch_size]
        written = target.collate_texts([np.asarray(references[place], np.int32) for place in places]).to(device)
        before = Padded(written.values[:, :-1], written.lengths - 1)
        logits_BTV: Tensor = model(sources([[read[place] for place in places]], device), before)
        said_BT = logits_BTV.index_fill(2, torch.tensor(never, device=device), -torch.inf).argmax(-1)
        wrong_BT = (said_BT != written.values[:, 1:]).long().cpu().numpy()
        for row, place in enumerate(places):
            found[place] = wrong_BT[row, : len(wanted[place])]
    return found
