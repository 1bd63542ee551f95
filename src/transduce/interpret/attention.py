"""The attention weights behind one output: every head of every attention module, with the tokens.

    found = transduce.load("runs/multi30k-en-de").predict(["Two dogs run."])[0].attention()
    found                     # in a notebook: draws itself
    found.plot()              # a matplotlib figure
    found.to_dict()           # the numbers, and where in the texts each token stands

Combining the places of a CTC model into tokens.

The most likely alignment of the output is used (Viterbi: max instead of sum). In it, a token owns the places that
contain it and the blanks after them; the first token also owns the blanks before it. A token receives the sum of the
weights of its places, and attends with their mean, just as words do with sub-words.

Shapes: H heads, T queries, S keys, V vocabulary; of CTC P places, T tokens, U = T + 1 numbers of emitted tokens, B = 1,
Q queries, K keys.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from transduce.attention.capture import capture
from transduce.core.errors import InputError
from transduce.data.columns import Column
from transduce.data.columns.tokens import Tokens
from transduce.data.columns.tree_nodes import TreeNodes
from transduce.data.columns.words import Words
from transduce.data.speech.audio import name_of
from transduce.inference.prediction import Prediction
from transduce.interpret.layers import Attends, Axis, as_shown, attending, one_pass
from transduce.interpret.model_inputs import Given, given_of, next_tokens, start_of
from transduce.interpret.numbers import packed
from transduce.interpret.token_spans import (
    Side,
    Token,
    end_token,
    node_side,
    read_tokens,
    read_whole,
    side,
    timed_side,
    word_side,
    written_side,
)
from transduce.interpret.words import by_words
from transduce.layers.ctc import aligned_tokens
from transduce.models.protocols import Aligns, writes_at_once
from transduce.tasks.base import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console, ConsoleOptions, RenderResult


Weights = NDArray[np.floating[Any]]
Calls = Mapping[str, list[Tensor]]  # each module's name and the weights (B, H, Q, K) of its calls


def by_token(
    next_PV: Tensor, record: Calls, parts: Sequence[Attends], tokens: Sequence[int], blank: int
) -> tuple[Tensor, Calls]:
    """The predictions (T, V) of the most certain place of each token, and the record with tokens instead of places."""
    held_P = held(next_PV, tokens, blank)
    owner_P = held_P.cummax(0).values.clamp(min=0)
    share_TP = (owner_P == torch.arange(len(tokens), device=owner_P.device)[:, None]).to(next_PV.dtype)
    own_PT = next_PV[:, list(tokens)].masked_fill(
        held_P[:, None] != torch.arange(len(tokens), device=held_P.device), -torch.inf
    )
    places = {part.name: part for part in parts}
    merged = {name: [_merged(call, share_TP, places.get(name)) for call in calls] for name, calls in record.items()}
    return next_PV[own_PT.argmax(0)], merged


def _merged(weights_BHQK: Tensor, share_TP: Tensor, part: Attends | None) -> Tensor:
    """Rows averaged, columns summed, where they are places."""
    if part and part.rows == "target":
        weights_BHQK = (share_TP / share_TP.sum(1, keepdim=True)) @ weights_BHQK
    if part and part.columns == "target":
        weights_BHQK = weights_BHQK @ share_TP.mT
    return weights_BHQK


def held(next_PV: Tensor, tokens: Sequence[int], blank: int) -> Tensor:
    """(P,) the token of each place in the most likely alignment of the tokens; -1 = the blank."""
    token_1T, count_1 = torch.tensor([list(tokens)]), torch.tensor([len(next_PV)])
    aligned = aligned_tokens(next_PV.double().cpu()[None], count_1, token_1T, torch.tensor([len(tokens)]), blank)
    held_P = torch.full((len(next_PV),), -1)
    for token, (first, last) in enumerate(zip(aligned.first[0].tolist(), aligned.last[0].tolist(), strict=True)):
        held_P[first : last + 1] = token
    return held_P.to(next_PV.device)


LENGTH_TOKEN = "<length>"  # what a model that writes all words at once reads before the source


@dataclass(frozen=True, eq=False)
class Layer:
    """An attention module, and its weights (H, T, S) in fp32."""

    part: Attends
    weights: Tensor

    @property
    def name(self) -> str:
        return self.part.name

    def to_dict(self, as_lists: bool = True) -> dict[str, Any]:
        """For JSON; the weights as nested lists, or in base64."""
        part = self.part
        weights = (
            {"shape": list(self.weights.shape), "weights": self.weights.tolist()} if as_lists else packed(self.weights)
        )
        known = {"name": part.name, "kind": part.kind, "layer": part.layer, "heads": part.heads}
        return {**known, "rows": part.rows, "columns": part.columns, "causal": part.causal, **weights}


@dataclass(frozen=True, eq=False)
class Attention:
    """The attention weights of one output, computed in one pass over the complete output.

    source: the source as the model read it, including the end token; None for a language model.
    target: the tokens that a decoder predicts, including the end token; without it for models that write all at once.
    start: the start token, which the decoder reads first.
    layers: encoder self-attention, decoder self-attention, cross-attention, then others.
    """

    source: Side | None
    target: Side
    start: str
    layers: tuple[Layer, ...]

    def __repr__(self) -> str:
        read = f"{self.source.text[:40]!r} -> " if self.source else ""
        names = ", ".join(layer.name for layer in self.layers) or "nothing that attends"
        return f"<transduce Attention of {read}{self.target.text[:40]!r}: {names}; drawn in a notebook, or by .plot()>"

    def of(self, kind: str) -> list[Layer]:
        """The layers of one kind: "encoder", "decoder", "cross" or "other"."""
        return [layer for layer in self.layers if layer.part.kind == kind]

    def layer(self, name: str) -> Layer:
        """The layer of the module with this name.

        Raises:
            InputError: there is none.
        """
        found = [layer for layer in self.layers if layer.name == name]
        if not found:
            known = ", ".join(layer.name for layer in self.layers) or "nothing"
            raise InputError(f'there is no attention called "{name[:80]}"; the model has {known}.')
        return found[0]

    def alignment(self) -> NDArray[np.float64] | None:
        """(T, S) the mean of all cross-attention; None if there is none."""
        cross = self.of("cross")
        if not cross:
            return None
        return np.stack([layer.weights.double().mean(0).numpy() for layer in cross]).mean(0)

    def labels(self, axis: Axis, size: int) -> list[str]:
        """The tokens along an axis, or numbers from 1 if it has no tokens."""
        written = [token.text for token in self.target.tokens]
        if axis == "source" and self.source:
            return [token.text for token in self.source.tokens]
        if axis in ("target", "decoder_input"):
            return written if axis == "target" else [self.start, *written[:-1]]
        return [str(place + 1) for place in range(size)]

    def to_dict(self) -> dict[str, Any]:
        """For JSON: tokens with their characters [start, end) of the texts, words, and weights as nested lists."""
        return {**self.sides(), "attention": [layer.to_dict() for layer in self.layers]}

    def sides(self) -> dict[str, Any]:
        return {"source": self.source.to_dict() if self.source else None, "target": self.target.to_dict()}

    def matrix(self, name: str | None = None, head: int | None = None) -> tuple[list[str], list[str], Tensor, str]:
        """Row labels, column labels, weights (T, S) and title, of one head, of a layer's mean, or of a kind's mean.

        `head` counts from 0, as Python does. Titles count layers and heads from 1, as people do.

        Args:
            name: name of a module; None = the mean of all cross-attention, or without any, of the first kind there is.
            head: number of the head, from 0; None = the mean of the layer's heads.

        Raises:
            InputError: there is no such layer or head; the model has no attention.
        """
        if name is None:
            layers = self._first_layers()
            weights_TS = torch.stack([layer.weights.mean(0) for layer in layers if _alike(layer, layers[0])]).mean(0)
            part, title = layers[0].part, f"{layers[0].part.group}, mean of all layers and heads"
        else:
            layer = self.layer(name)
            part = layer.part
            if head is not None and not 0 <= head < part.heads:
                raise InputError(f"{name} has no head {head}; heads are numbered from 0 to {part.heads - 1}.")
            weights_TS = layer.weights.mean(0) if head is None else layer.weights[head]
            title = f"{part.title}, {'mean of heads' if head is None else f'head {head + 1}'}"
        rows, columns = weights_TS.shape
        return self.labels(part.rows, rows), self.labels(part.columns, columns), weights_TS, title

    def by_words(self, name: str | None = None, head: int | None = None) -> tuple[list[str], list[str], Weights, str]:
        """As `matrix`, with the words of the texts for their tokens: what people look at.

        A word receives what its tokens receive, and attends as they do on average (`transduce.interpret.words`). Start
        and end stand for themselves.
        """
        rows, columns, weights_TS, title = self.matrix(name, head)
        part = (self.layer(name) if name else self._first_layers()[0]).part
        weights: Weights = weights_TS.double().numpy()
        if words := self._words(part.rows, len(rows)):
            rows = [text for text, _ in words]
            weights = by_words([places for _, places in words], weights, "queries")
        if words := self._words(part.columns, len(columns)):
            columns = [text for text, _ in words]
            weights = by_words([places for _, places in words], weights)
        return rows, columns, weights, title

    def _words(self, axis: Axis, size: int) -> list[tuple[str, tuple[int, ...]]]:
        """The words along an axis, each with the places of its tokens; none where it has no words for all places."""
        side = {"source": self.source, "target": self.target, "decoder_input": self.target}.get(axis)
        if side is None:
            return []
        words = [(word.text, word.tokens) for word in side.words]
        if axis == "decoder_input":
            words = [(self.start, (0,)), *((text, tuple(place + 1 for place in each)) for text, each in words)]
        within = [(text, tuple(place for place in each if place < size)) for text, each in words]
        kept = [(text, each) for text, each in within if each]
        return kept if sorted(place for _, each in kept for place in each) == [*range(size)] else []

    def _first_layers(self) -> list[Layer]:
        """What `matrix` shows the mean of. Raises InputError where nothing attends."""
        layers = self.of("cross") or self.of("decoder") or self.of("encoder") or list(self.layers)
        if not layers:
            raise InputError("this model has no attention.")
        return layers

    def plot(self, name: str | None = None, head: int | None = None) -> "Figure":
        """A heat map of words with matplotlib. Arguments are those of `matrix`.

        Raises:
            InputError: there is no such layer or head, or no matplotlib.
        """
        from transduce.interpret.figures import attention_figure

        return attention_figure(*self.by_words(name, head))

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from transduce.interpret.terminal import heat_map

        if not self.layers:
            yield "This model has no attention."
            return
        rows, columns, weights, title = self.by_words()
        yield title
        yield heat_map(rows, columns, weights)

    def _repr_html_(self) -> str:
        from transduce.interpret.notebook import Map, Strip, drawn

        if not self.layers:
            return "<p>This model has no attention.</p>"
        strips = [Strip(layer.part.title, layer.weights) for layer in self.layers]
        rows, columns, weights, title = self.by_words()
        return drawn(Map(rows, columns, torch.from_numpy(weights), title), strips)


def attention_of(model: nn.Module, task: Task, prediction: Prediction) -> Attention:
    """The attention weights behind a prediction that was made in one piece.

    Raises:
        InputError: its text was empty.
    """
    return looked(model, task, given_of(task, prediction), *texts_of(task, prediction))[0]


def texts_of(task: Task, prediction: Prediction) -> tuple[str, str]:
    """What the model read and wrote: the source and its output, with placeholders where it has some."""
    if prediction.read is None:
        return prediction.source, prediction.text
    target = task.columns["target"]
    return prediction.read, target.decode(target.ids(prediction.tokens))


def reading_of(model: nn.Module, task: Task, text: str) -> Attention:
    """What a language model attends to while it reads a text, to which it adds nothing.

    Raises:
        InputError: the text is empty or longer than the model reads at once; the model reads a source.
    """
    if "source" in task.columns:
        raise InputError("this model reads a source: ask its predictions for their attention.")
    ids = list(task.columns["target"].encode([text])[0])
    if not ids or not text.strip():
        raise InputError("text: expected a sentence; this one is empty.")
    if len(ids) > task.max_source_length:
        raise InputError(
            f"text: {len(ids)} tokens; the model reads at most {task.max_source_length} at once: shorten it."
        )
    found = looked(model, task, Given(None, ids), "", text)[0]
    tokenizer = task.tokenizers["target"]
    return replace(found, target=side(text, [*read_tokens(tokenizer, text), end_token(tokenizer, text)]))


@torch.inference_mode()
def looked(
    model: nn.Module, task: Task, given: Given, source_text: str, target_text: str, without: Collection[str] = ()
) -> tuple[Attention, Tensor]:
    """The attention weights, and `next_tokens` (T, V), from one pass of the model.

    without: names of modules that are left out.
    """
    with capture(model, without) as record:
        next_TV = next_tokens(model, task, given)
    calls: Calls = record
    if isinstance(model, Aligns):
        next_TV, calls = by_token(next_TV, record, attending(model, task), given.target, start_of(task))
    return read_record(model, task, calls, (source_text, target_text), given), next_TV


def read_record(model: nn.Module, task: Task, record: Calls, texts: tuple[str, str], given: Given) -> Attention:
    """The attention weights in the record of one pass over `given`, whose source and output have these `texts`."""
    parts = [part for part in attending(model, task) if part.name in record]
    before = max((part.before for part in parts), default=0)
    layers = tuple(Layer(part, _weights(record[part.name], part, before)) for part in parts)
    source, target = task.columns.get("source"), task.columns["target"]
    reads = _source_side(source, texts[0], given, layers, before) if source else None
    written = written_side(target, given.target, texts[1], not writes_at_once(model))
    start = target.tokens([start_of(task)])[0] if isinstance(target, Tokens) else ""
    return Attention(reads, written, start, layers)


def _source_side(source: Column, text: str, given: Given, layers: Sequence[Layer], before: int) -> Side:
    if isinstance(source, TreeNodes):
        return node_side(text)
    if isinstance(source, Words):
        return word_side(source, text)
    if not isinstance(source, Tokens):
        widths = [layer.weights.shape[-1] for layer in layers if layer.part.columns == "source"]
        return timed_side(name_of(text), source.tokens(given.source), widths[0] if widths else len(given.source))
    tokens = [Token(LENGTH_TOKEN, 0, 0, LENGTH_TOKEN)] * before
    parts = source.parts(text)
    for number, (start, end) in enumerate(parts, 1):
        for token in read_whole(source, text[start:end], number == 1, number == len(parts)):
            tokens.append(token._replace(start=token.start + start, end=token.end + start))
    return side(text, tokens if given.seen is None else [tokens[place] for place in given.seen])


def _weights(calls: list[Tensor], part: Attends, before: int) -> Tensor:
    """(H, T, S) in fp32; tokens before the source that a part may not see have weight 0."""
    weights_HTS = as_shown(one_pass(calls).float().cpu(), part)
    unseen = before - part.before if part.columns == "source" else 0
    return F.pad(weights_HTS, (unseen, 0)) if unseen else weights_HTS


def _alike(layer: Layer, other: Layer) -> bool:
    return layer.weights.shape[1:] == other.weights.shape[1:]
