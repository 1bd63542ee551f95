"""Whether a converted encoder says the same as transformers does of the folder that it came from.

Shapes: B lines, C labels, H numbers of a vector, S positions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.core.padded import Padded
from transduce.data.columns.text_pair import TextPair
from transduce.data.columns.words import Words
from transduce.interop.parity import Text
from transduce.layers.text_encoder import pooled

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

CLOSE = 1e-4  # a difference of probabilities, or of numbers of vectors, that rounding explains


@dataclass(frozen=True)
class EncoderParity:
    """What a comparison found.

    tokens: lines that both cut alike. labels: of these the ones for which both say the same; None = there are none.
    difference: the largest of a probability, or of a number of a vector, on these lines.
    """

    text: str
    lines: int
    left_out: int
    tokens: int
    labels: int | None
    difference: float

    @property
    def holds(self) -> bool:
        """Whether all lines are cut alike, all labels are equal, and the numbers are but for rounding."""
        return self.tokens == self.lines and self.labels in (None, self.lines) and self.difference <= CLOSE

    @property
    def failure(self) -> str:
        """What to tell where it does not hold."""
        return "the converted model does not say what the original says."

    def report(self) -> list[str]:
        left_out = f"; {self.left_out:,} empty or too long and left out" if self.left_out else ""
        labels = [] if self.labels is None else [f"  equal labels     {self.labels:,} of {self.lines:,}"]
        what = "number of a vector" if self.labels is None else "probability"
        return [
            f"transformers and Transduce on {self.lines:,} lines of {self.text}, fp32{left_out}:",
            f"  equal tokens     {self.tokens:,} of {self.lines:,}",
            *labels,
            f"  largest difference of a {what}: {self.difference:.2g}",
        ]


class Compared(NamedTuple):
    """How the models of one kind of task are compared.

    auto: the class of transformers. ours: the numbers of our model, from its inputs. theirs: the same from the output
    of theirs, our inputs and our settings. parts: a line as arguments of their tokenizer.
    """

    auto: str
    ours: Callable[[Any, Any], Tensor]
    theirs: Callable[[Any, Any, Any], Tensor]
    parts: Callable[["Pipeline", str], dict[str, Any]]
    has_labels: bool = True


def _vector(found: Any, inputs: Padded, config: Any) -> Tensor:
    vector_1H = pooled(Padded(found.last_hidden_state, inputs.lengths), config.pooling)
    return F.normalize(vector_1H, dim=-1) if config.normalize else vector_1H


def _spans(found: Any, inputs: Any, config: Any) -> Tensor:
    """(2, S): those of the text, and behind them that of the first token, which says that there is no answer."""
    asked = int(inputs.question.lengths[0])
    both_2N = torch.cat((found.start_logits, found.end_logits))
    return torch.cat((both_2N[:, asked:-1], both_2N[:, :1]), 1).softmax(-1)


def _text(pipeline: "Pipeline", line: str) -> dict[str, Any]:
    return {"text": line}


def _texts(pipeline: "Pipeline", line: str) -> dict[str, Any]:
    """One text, or a pair with a tab between."""
    pair = isinstance(pipeline.task.columns["source"], TextPair)
    return _question(pipeline, line) if pair else _text(pipeline, line)


def _words(pipeline: "Pipeline", line: str) -> dict[str, Any]:
    column = pipeline.task.columns["source"]
    assert isinstance(column, Words)
    if column.spaced:  # words are read as they stand in the text
        return _text(pipeline, line)
    bounds = column.bounds(line)
    return {"text": [line[start:end] for start, end in bounds], "is_split_into_words": True}


def _question(pipeline: "Pipeline", line: str) -> dict[str, Any]:
    question, _, context = line.partition("\t")
    return {"text": question, "text_pair": context}


KINDS = {
    "classification": Compared(
        "AutoModelForSequenceClassification",
        lambda model, inputs: model.classify(inputs).softmax(-1),
        lambda found, inputs, config: found.logits.softmax(-1),
        _texts,
    ),
    "text_encoding": Compared("AutoModel", lambda model, inputs: model.embed_text(inputs), _vector, _text, False),
    "masked_language_modelling": Compared(
        "AutoModelForMaskedLM",
        lambda model, inputs: model.predict_masked(inputs.pieces, inputs.pieces.mask()).softmax(-1),
        lambda found, inputs, config: found.logits[0].softmax(-1),
        _text,
    ),
    "tagging": Compared(
        "AutoModelForTokenClassification",
        lambda model, inputs: model.classify(inputs)[0].softmax(-1),
        lambda found, inputs, config: found.logits[0, inputs.firsts.values[0]].softmax(-1),
        _words,
    ),
    "extractive_qa": Compared(
        "AutoModelForQuestionAnswering",
        lambda model, inputs: torch.cat(model.point(inputs)).softmax(-1),
        _spans,
        _question,
    ),
}
"""By the kind of task. A line for `extractive_qa` is a question and a text with a tab between."""


@torch.inference_mode()
def compare_encoder(pipeline: "Pipeline", folder: Path, text: Text) -> EncoderParity:
    """Ours and theirs, which reads with its own tokenizer, on the lines of `text`, each by itself.

    Raises:
        InputError: transformers is not installed; no line can be compared.
    """
    transformers = library("transformers", "comparing with transformers", "huggingface")
    how = KINDS[pipeline.recipe.task.kind]  # type: ignore[attr-defined]
    column, most = pipeline.task.columns["source"], pipeline.task.max_source_length
    encoded: Any = zip(text.lines, column.encode(text.lines), strict=True)
    rows = [(line, ids) for line, ids in encoded if 0 < len(ids) <= most]
    if not rows:
        raise InputError(f"{text.name}: none of its {len(text.lines):,} lines can be compared: empty, or too long.")
    model = getattr(transformers, how.auto).from_pretrained(str(folder), dtype=torch.float32).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
    alike, equal, difference = 0, 0, 0.0
    for line, ids in rows:
        read = tokenizer(**how.parts(pipeline, line), return_tensors="pt")
        if read["input_ids"][0].tolist() != _ids(column, ids):
            continue
        inputs = column.collate_texts([np.asarray(ids, np.int32)])
        known = ("input_ids", "attention_mask", "token_type_ids")
        theirs = how.theirs(model(**{key: read[key] for key in known if key in read}), inputs, pipeline.recipe.model)
        ours = how.ours(pipeline.model, inputs)
        alike, difference = alike + 1, max(difference, float((ours - theirs).abs().max()))
        equal += bool((ours.argmax(-1) == theirs.argmax(-1)).all())
    labels = equal if how.has_labels else None
    return EncoderParity(text.name, len(rows), len(text.lines) - len(rows), alike, labels, difference)


def _ids(column: Any, row: list[int]) -> list[int]:
    """With what stands before and behind it; a word's first piece is stored as its id and the vocabulary's size."""
    size = column.spec.size
    return [each % size for each in column.closed(row)]
