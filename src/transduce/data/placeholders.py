"""Placeholders: tokens that a model copies from its source to its output, and marks around terms that it is to use.

    ⟦1⟧ costs ⟦2⟧.                     what a model reads of "A4 costs 12.50."
    a ⟦term⟧ street ⟦as⟧ avenue ⟦end⟧   a source whose word "street" is to be translated by "avenue"

A model learns both from training pairs that are changed so (`transduce.data.augmentation`). Terms are annotated as in
Dinu et al. 2019, "Training Neural Machine Translation to Apply Terminology Constraints" (append). Nothing here imports
torch.
"""

import re
from collections.abc import Iterable, Sequence

from transduce.data.protected import protected
from transduce.data.tokenizers.text_ids import Tokenizer

COUNT = 9  # placeholders that a model has
NAMES = tuple(f"⟦{number}⟧" for number in range(1, COUNT + 1))
TERM, AS, TERM_END = TERM_MARKS = ("⟦term⟧", "⟦as⟧", "⟦end⟧")
NAME = re.compile("⟦([1-9])⟧")
RESERVED = frozenset((*NAMES, *TERM_MARKS, *(f" {name}" for name in (*NAMES, *TERM_MARKS))))


def with_placeholders(tokenizer: Tokenizer, names: Sequence[str]) -> Tokenizer:
    """The tokenizer with each of `names` as a token; of pieces of words, as one with and one without a space before."""
    spaced = tokenizer.spaces_pieces
    return tokenizer.with_added(each for name in names for each in ((f" {name}", name) if spaced else (name,)))


def has_placeholders(tokenizer: Tokenizer | None) -> bool:
    """Whether it has all of `NAMES`."""
    return tokenizer is not None and set(NAMES) <= set(tokenizer.added)


def has_terms(tokenizer: Tokenizer | None) -> bool:
    """Whether it has the marks around terms."""
    return tokenizer is not None and set(TERM_MARKS) <= set(tokenizer.added)


def replaced(text: str, changes: Iterable[tuple[int, int, str]]) -> str:
    """The text with something else in place of each part [start, end); none overlap."""
    found, done = [], 0
    for start, end, written in sorted(changes):
        found += [text[done:start], written]
        done = end
    return "".join([*found, text[done:]])


def shared_parts(source: str, target: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The parts that stand in both texts exactly alike: [start, end) of each in the source, and in the target."""
    in_source, in_target, taken = list[tuple[int, int]](), list[tuple[int, int]](), set[int]()
    of_target = [(target[part.start : part.end], part) for part in protected(target)]
    for part in protected(source):
        text = source[part.start : part.end]
        place = next((n for n, (other, _) in enumerate(of_target) if other == text and n not in taken), None)
        if place is not None and len(in_source) < COUNT:
            taken.add(place)
            in_source.append((part.start, part.end))
            in_target.append((of_target[place][1].start, of_target[place][1].end))
    return in_source, in_target
