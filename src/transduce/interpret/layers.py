"""Finding a model's attention modules and what they attend to, for any architecture.

Each module declares what it attends to (`transduce.attention.capture`). An artificial source of 3 tokens, or 24 frames,
and an output of 5 are passed through the model once, to find the modules, their numbers of heads, and whether their
rows and columns are tokens. A module that declares nothing, or whose rows or columns are not tokens, is "other".
"""

from typing import Literal, NamedTuple
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.attention.capture import Declared, capture
from transduce.attention.pooling import AttentionPooling
from transduce.interpret.model_inputs import Given, next_tokens, positions, without_words
from transduce.models.protocols import writes_at_once
from transduce.tasks.base import Task

Kind = Literal["encoder", "decoder", "cross", "other"]
Axis = Literal["source", "target", "decoder_input", "other"]

KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross", "other")
NAMES: dict[Kind, str] = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
    "other": "Other attention",
}  # as people read them, on the page too
POOLING = "Attention pooling"  # cross-attention of no decoder: of a label
TARGET = 5

_known: WeakKeyDictionary[nn.Module, list["Attends"]] = WeakKeyDictionary()


class Attends(NamedTuple):
    """An attention module of a model.

    name: name of the module.
    kind: "encoder", "decoder", "cross" or "other".
    layer: its number among the modules of its kind, from 0.
    heads: H.
    rows, columns: the axes of its queries and keys. "decoder_input" is what a decoder reads: the start token, then the
        output. "target" is what is predicted there.
    before: the number of extra tokens that the model puts before the source, as rows and as columns.
    tape: whether its keys are states: the initial one, then those after each earlier position.
    pools: whether it reads the source for a label, and not for each word of an output.
    """

    name: str
    kind: Kind
    layer: int
    heads: int
    rows: Axis
    columns: Axis
    before: int = 0
    tape: bool = False
    pools: bool = False

    @property
    def group(self) -> str:
        """What its kind is called."""
        return POOLING if self.pools else NAMES[self.kind]

    @property
    def title(self) -> str:
        """The title for people, which counts layers from 1."""
        return f"{self.group}, layer {self.layer + 1}"

    @property
    def causal(self) -> bool:
        """Whether a query attends only to itself and to earlier positions."""
        return self.columns == "decoder_input"


def attending(model: nn.Module, task: Task) -> list[Attends]:
    """All attention modules of a model: encoder self-attention, decoder self-attention, cross-attention, others.

    None of a model of graphs, as what attends along edges has no rows and columns, nor of one of vectors: the heads of
    a memory have a picture of their own.
    """
    if without_words(task):
        return []
    if model not in _known:
        _known[model] = _asked(model, task)
    return _known[model]


@torch.inference_mode()
def _asked(model: nn.Module, task: Task) -> list[Attends]:
    source = task.columns.get("source")
    probe = Given(source and source.probe, [0] * TARGET)
    reads = positions(model, probe)
    with capture(model) as record:
        written = len(next_tokens(model, task, probe))
    at_once = writes_at_once(model)
    found = [
        _attends(name, one_pass(calls), record.roles[name], written, at_once, reads) for name, calls in record.items()
    ]
    pooling = {name for name, _ in record.items() if isinstance(model.get_submodule(name), AttentionPooling)}
    found = [each._replace(pools=each.kind == "cross" and each.name in pooling) for each in found]
    numbered = []
    for kind in KINDS:
        numbered += [each._replace(layer=place) for place, each in enumerate(e for e in found if e.kind == kind)]
    return numbered


def _attends(
    name: str, weights_HTS: Tensor, declared: Declared, target_length: int, at_once: bool, source_length: int
) -> Attends:
    heads, rows, columns = weights_HTS.shape
    if declared in (("self", "encoder"), ("edge", "encoder")) and rows == columns and columns - source_length in (0, 1):
        return Attends(name, "encoder", 0, heads, "source", "source", columns - source_length)
    if declared == ("self", "decoder") and rows == columns == target_length:
        axis: Axis = "target" if at_once else "decoder_input"
        return Attends(name, "decoder", 0, heads, axis, axis)
    if declared == ("tape", "decoder") and rows == columns == target_length:
        return Attends(name, "decoder", 0, heads, "decoder_input", "decoder_input", tape=True)
    if declared.role == "cross" and (rows, columns) == (target_length, source_length):
        return Attends(name, "cross", 0, heads, "target", "source")
    if declared.role == "cross" and (target_length, heads, columns) == (1, 1, source_length):
        return Attends(name, "cross", 0, rows, "target", "source")  # several queries for one output
    source = declared.side == "encoder" and columns == source_length
    return Attends(name, "other", 0, heads, "other", "source" if source else "other")


def one_pass(calls: list[Tensor]) -> Tensor:
    """(H, T, S) weights of one sentence from a record, in which a module may have been called once per query.

    If the number of keys grew from call to call, keys that were not there yet get weight 0.
    """
    widest = max(call.shape[-1] for call in calls)
    return torch.cat([F.pad(call[0], (0, widest - call.shape[-1])) for call in calls], 1)


def as_shown(weights_HTS: Tensor, part: Attends) -> Tensor:
    """(H, T, S) by the axes of `part`.

    Several queries for one output are its heads. A state on a tape counts for the token that it was left by, and the
    initial state, in front of all tokens, for the start token.
    """
    if part.tape:
        initial_HT1, after_HTS = weights_HTS[..., :1], F.pad(weights_HTS[..., 1:], (0, 1))
        return torch.cat((initial_HT1 + after_HTS[..., :1], after_HTS[..., 1:]), -1)
    return weights_HTS if len(weights_HTS) == part.heads else weights_HTS.transpose(0, 1)
