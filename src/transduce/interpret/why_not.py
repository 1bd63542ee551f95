"""Why a model writes one output and not another: where the other loses log p, and which source words move it.

For an output y, log p(y_t | y_1 .. y_t-1, x) token by token. For each word w of the source, what a cut changes:

    change of log p(y) = log p(y | nothing attends to w) - log p(y)

Nothing attends to w: its tokens are masked inside the softmax of all attention to the source, in the encoder and in the
decoder (`transduce.attention.interventions`). What a recurrent encoder carries past w is not cut.

Shapes: T target positions, V vocabulary.
"""

from collections.abc import Callable
from typing import Any

from torch import nn

from transduce.attention.capture import capture
from transduce.attention.interventions import Place, can_change
from transduce.core.errors import InputError
from transduce.data.columns.tokens import Tokens
from transduce.interpret.attention import looked
from transduce.interpret.layers import attending
from transduce.interpret.model_inputs import Given, next_tokens
from transduce.interpret.token_spans import Word, shown_tokens
from transduce.models.protocols import Steps
from transduce.tasks.base import Task

Outputs = dict[str, Given]


def why_not(
    model: nn.Module, task: Task, text: str, own: Given, other: Given, check: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    """log p of two outputs of one source, token by token, and its change without each source word, in nats.

    Args:
        model: writes one token after the other.
        task: its task, which has a source.
        text: the source.
        own: the source and the output of the model.
        other: the same source and the other output.
        check: called before each pass; an exception that it raises ends the computation.

    Raises:
        InputError: the model does not write one token after the other, or reads no source.
    """
    target = task.columns["target"]
    if not isinstance(model, Steps) or not isinstance(target, Tokens) or "source" not in task.columns:
        raise InputError("only a model that reads a source and writes one token after the other weighs outputs so.")
    outputs = {"own": own, "other": other}
    whole = {name: _told(model, task, target, given) for name, given in outputs.items()}
    return {**whole, "words": _without_words(model, task, target, text, outputs, check)}


def _told(model: nn.Module, task: Task, target: Tokens, given: Given) -> dict[str, Any]:
    """The tokens of an output and its end, each with its log p and the likeliest token there."""
    next_TV = next_tokens(model, task, given)
    first, ids = len(target.opening), [*given.target, target.tokenizer.end]
    values, places = next_TV.max(1)
    shown = zip(
        shown_tokens(target.tokenizer, ids),
        next_TV.gather(1, next_TV.new_tensor(ids).long()[:, None])[:, 0].tolist(),
        shown_tokens(target.tokenizer, places.tolist()),
        values.tolist(),
        strict=True,
    )
    tokens = [
        {"token": token, "log_probability": value, "likeliest": {"token": best, "log_probability": most}}
        for token, value, best, most in shown
    ][first:]
    return {"tokens": tokens, "log_probability": sum(each["log_probability"] for each in tokens)}


def _without_words(
    model: nn.Module, task: Task, target: Tokens, text: str, outputs: Outputs, check: Callable[[], None]
) -> list[dict[str, Any]]:
    """The change of log p of each output without each word of the source; nothing where attention cannot be cut."""
    parts = [part for part in attending(model, task) if part.columns == "source"]
    if not parts or not all(can_change(model.get_submodule(part.name)) for part in parts):
        return []
    seen, _ = looked(model, task, outputs["own"], text, "")
    words: list[Word] = [word for word in (seen.source.words if seen.source else ()) if word.end > word.start]
    found = []
    whole = {name: _sum(model, task, target, given) for name, given in outputs.items()}
    for word in words:
        check()
        cut = [Place(part.name, key=token) for part in parts for token in word.tokens]
        with capture(model, cut=cut):
            changes = {name: _sum(model, task, target, given) - whole[name] for name, given in outputs.items()}
        found.append({"word": word.text, "start": word.start, "end": word.end, **changes})
    return found


def _sum(model: nn.Module, task: Task, target: Tokens, given: Given) -> float:
    return float(_told(model, task, target, given)["log_probability"])
