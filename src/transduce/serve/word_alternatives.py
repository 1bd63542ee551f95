"""Other words in the place of one of an output, computed with torch in the thread with the model.

The candidates are what the beam finds behind the output up to this word, and the tokens that are likeliest there. Each
of these is forced, and the search goes on from it.

Shapes: T target positions, S source positions, V vocabulary, W words of the source.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from transduce.core.errors import InputError
from transduce.data.columns.tokens import Tokens
from transduce.explore.exploration import asked
from transduce.inference.prediction import Prediction
from transduce.inference.sentences import Span
from transduce.interpret.attention import Attention, looked
from transduce.interpret.links import overlap
from transduce.interpret.words import parts_in, words_in
from transduce.pipeline.pipeline import Pipeline


class Alternative(NamedTuple):
    """Another word, the output that it leads to, and the score of that."""

    word: str
    output: str
    score: float


class Alternatives(NamedTuple):
    """start, end: the characters of the output that are replaced. links: words of the source, with their weights."""

    start: int
    end: int
    links: list[tuple[Span, float]]
    alternatives: list[Alternative]


def word_alternatives(
    pipeline: Pipeline, source: str, output: str, word: Span, most: int, max_weights: int
) -> Alternatives:
    """Other words in the place of one.

    Args:
        source: a text that the model reads in one piece.
        output: a translation of it; the model's own, or another.
        word: characters [start, end) of the output.
        most: so many are looked for.
        max_weights: maximum number of attention weights.

    Raises:
        InputError: the model writes no text word by word; no word is there; see `transduce.explore.exploration.asked`.
    """
    target = pipeline.task.columns["target"]
    if not isinstance(target, Tokens) or "source" not in pipeline.task.columns or not pipeline.searches:
        raise InputError("alternatives: expected a model that translates word by word.")
    given = asked(pipeline, source, output, max_weights)
    attention, next_TV = looked(pipeline.model, pipeline.task, given, source, output)
    tokens = [token for token in attention.target.tokens if token.start < token.end]
    first = next((place for place, token in enumerate(attention.target.tokens) if token.end > word[0]), None)
    if first is None or not tokens or word[0] >= tokens[-1].end:
        raise InputError(f"start: {word[0]}: no word of the output is there.")
    at = attention.target.tokens[first].start
    barred = {*target.unwritten, target.end, given.target[first]}
    likely = [token for token in next_TV[first].argsort(descending=True).tolist() if token not in barred][:most]
    prefixes = list(_prefixes(target, given.target[:first], likely, output[:at]))
    found = _searched(pipeline, source, [output[:at].rstrip(), *prefixes])
    own = output[: max(word[1], at + 1)]
    return Alternatives(at, len(own), _links(attention, source, word), _listed(found, at, own, most))


def _prefixes(target: Tokens, before: Sequence[int], likely: Sequence[int], begun: str) -> Iterator[str]:
    """The output up to the word, with each token in its place; but for what cannot be read again as it is written."""
    for token in likely:
        text = target.decode([*before, token])
        if (
            text.startswith(begun)
            and len(text) > len(begun)
            and target.tokenizer.unknown not in target.encode([text])[0]
        ):
            yield text


def _searched(pipeline: Pipeline, source: str, prefixes: Sequence[str]) -> list[tuple[str, Prediction]]:
    """What the search finds behind each prefix; behind the first one all that the beam keeps."""
    settings = pipeline.recipe.search
    width = settings.beam if settings.method == "beam" else 1
    each = pipeline.predict([source] * len(prefixes), prefix=prefixes, split="none", long="refuse", nbest=width)
    kept = [(prefixes[0], found) for found in each[0].alternatives or each[:1]]
    return [*kept, *zip(prefixes[1:], each[1:], strict=True)]


def _listed(found: Sequence[tuple[str, Prediction]], at: int, own: str, most: int) -> list[Alternative]:
    """Each word once, with its best output, the best first. own: the output up to the end of the word that is there."""
    begun, words = own[:at], dict[str, Alternative]()
    for prefix, each in sorted(found, key=lambda pair: -pair[1].score):
        if not each.text.startswith(begun) or len(each.text) == at or _is_same(each.text, own):
            continue
        word = _word(each.text, at, len(prefix))
        words.setdefault(word, Alternative(word, each.text, each.score))
    return list(words.values())[:most]


def _is_same(text: str, own: str) -> bool:
    """Whether a text has the same word in this place."""
    return text.startswith(own) and any(start <= len(own) == end for start, end in words_in(text))


def _word(text: str, at: int, least: int) -> str:
    """The word of a text that begins at a character; more than one, where `least` is behind the first one's end."""
    ends = [end for _, end in words_in(text) if end > at]
    return text[at : next((end for end in ends if end >= least), len(text))].strip()


def _links(attention: Attention, source: str, word: Span) -> list[tuple[Span, float]]:
    """The words of the source that the word's tokens attended to, each with its share; those with little are left out.

    Empty for a model without cross-attention.
    """
    alignment_TS = attention.alignment()
    words = parts_in(source)
    if alignment_TS is None or attention.source is None or not words:
        return []
    rows = [
        place for place, token in enumerate(attention.target.tokens) if token.start < word[1] and token.end > word[0]
    ]
    reads = [(token.start, token.end) for token in attention.source.tokens]
    weight_W = overlap(words, reads) @ alignment_TS[rows].mean(0)
    least = weight_W.max() / 2
    return [(span, float(weight)) for span, weight in zip(words, weight_W, strict=True) if weight >= least > 0]
