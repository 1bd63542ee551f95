"""Whether a converted encoder says the same as transformers does of the folder that it came from.

Shapes: B lines, C labels, H numbers of a vector, S positions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.data.columns.label import Label
from transduce.interop.parity import Text

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

BATCH = 16
CLOSE = 1e-4  # a difference of probabilities, or of numbers of vectors, that rounding explains


@dataclass(frozen=True)
class EncoderParity:
    """What a comparison found. apart: the largest difference of a probability or of a number; labels: equal ones."""

    text: str
    lines: int
    left_out: int
    apart: float
    labels: int | None

    @property
    def holds(self) -> bool:
        """Whether the numbers are equal but for rounding, and all labels are."""
        return self.apart <= CLOSE and self.labels in (None, self.lines)

    @property
    def differing(self) -> str:
        """What to tell where it does not hold."""
        return f"the converted model and the original are {self.apart:.2g} apart."

    def report(self) -> list[str]:
        left_out = f"; {self.left_out:,} empty or too long and left out" if self.left_out else ""
        told = [f"transformers and Transduce on {self.lines:,} lines of {self.text}, fp32{left_out}:"]
        if self.labels is not None:
            told += [f"  equal labels     {self.labels:,} of {self.lines:,}"]
        what = "numbers of vectors" if self.labels is None else "probabilities"
        return [*told, f"  largest difference of {what}: {self.apart:.2g}"]


@torch.inference_mode()
def compare_encoder(pipeline: "Pipeline", folder: Path, text: Text) -> EncoderParity:
    """Ours and theirs, which reads with its own tokenizer, on the lines of `text`.

    Raises:
        InputError: transformers is not installed; no line can be compared.
    """
    transformers = library("transformers", "comparing with transformers", "huggingface")
    read = pipeline.task.tokenizers["source"].encode(text.lines)
    most = pipeline.task.max_source_length
    kept = [line for line, ids in zip(text.lines, read, strict=True) if 0 < len(ids) <= most]
    if not kept:
        raise InputError(f"{text.name}: none of its {len(text.lines):,} lines can be compared: empty, or too long.")
    classifies = isinstance(pipeline.task.columns["target"], Label)
    auto = transformers.AutoModelForSequenceClassification if classifies else transformers.AutoModel
    model = auto.from_pretrained(str(folder), dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    theirs = torch.cat(list(_theirs(model, tokenizer, kept, pipeline)))
    ours = _ours(pipeline, kept)
    labels = int((theirs.argmax(1) == ours.argmax(1)).sum()) if classifies else None
    return EncoderParity(text.name, len(kept), len(text.lines) - len(kept), float((theirs - ours).abs().max()), labels)


def _theirs(model: Any, tokenizer: Any, lines: Sequence[str], pipeline: "Pipeline") -> Iterator[Tensor]:
    """(B, C) probabilities, or (B, H), batch by batch."""
    for first in range(0, len(lines), BATCH):
        read = tokenizer(list(lines[first : first + BATCH]), padding=True, return_tensors="pt")
        found = model(**{key: read[key] for key in read if key in ("input_ids", "attention_mask", "token_type_ids")})
        if hasattr(found, "logits"):
            yield found.logits.softmax(-1)
        else:
            yield _pooled(found.last_hidden_state, read["attention_mask"], pipeline.recipe.model)


def _pooled(states_BSH: Tensor, real_BS: Tensor, config: Any) -> Tensor:
    real_BS1 = real_BS[..., None].bool()
    pooled = {
        "first": lambda: states_BSH[:, 0],
        "mean": lambda: (states_BSH * real_BS1).sum(1) / real_BS1.sum(1),
        "max": lambda: states_BSH.masked_fill(~real_BS1, -torch.inf).amax(1),
    }
    found_BH: Tensor = pooled[config.pooling]()
    return F.normalize(found_BH, dim=-1) if config.normalize else found_BH


def _ours(pipeline: "Pipeline", lines: Sequence[str]) -> Tensor:
    target = pipeline.task.columns["target"]
    found: Any = pipeline.predict(list(lines), batch_size=BATCH)
    if isinstance(target, Label):
        return torch.tensor([[each.probabilities[name] for name in target.labels] for each in found])
    return torch.tensor([each.vector for each in found])
