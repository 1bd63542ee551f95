"""Phrase-structure trees as binary ones, as a chart holds them, and back.

    (S (NP DT NN) (VP VBD) .)      as (S NP ( VP .)): of three parts and more, all but the first are in a phrase
                                   without a label, and so on to the right
    (S (VP (VP VB) (NP NN)))       as (S VP ((VP VB) (NP NN))): phrases of the same words are one, whose label is the
                                   chain of theirs

Each tree under one root is exactly one binary tree: one whose phrases without a label are second parts, or words. A
tree over N words has 2 N - 1 nodes. (Collapsed chains: Stern et al. 2017, section 2; binarised to the right.)
"""

from collections.abc import Iterable, Sequence

from transduce.core.errors import InputError
from transduce.data.structures.trees import Bracket, ParseTree

NO_PHRASE = ""  # the label of a node that is no phrase
CHAIN = " "  # stands in no label


def binarised(tree: ParseTree) -> list[Bracket]:
    """The nodes of the binary tree, each behind its parts; a label is the chain of a node's labels, the highest first.

    Raises:
        InputError: the tree has no root over all its words.
    """
    if not tree.is_rooted:
        raise InputError(f"expected a tree with one phrase over all its words; got {str(tree)[:60]}")
    chains: dict[tuple[int, int], str] = {}
    for label, start, end in tree.brackets:
        chains[start, end] = f"{chains[start, end]}{CHAIN}{label}" if (start, end) in chains else label
    phrases = iter([Bracket(label, *span) for span, label in chains.items() if span[1] - span[0] > 1])
    following, found = next(phrases, None), list[Bracket]()
    opened: list[tuple[Bracket, list[int]]] = []  # phrases with the places at which their parts begin
    for place in range(len(tree.words)):
        while following is not None and following.start == place:
            for _, parts in opened[-1:]:
                parts.append(place)
            opened.append((following, []))
            following = next(phrases, None)
        for _, parts in opened[-1:]:
            parts.append(place)
        found.append(Bracket(chains.get((place, place + 1), NO_PHRASE), place, place + 1))
        while opened and opened[-1][0].end == place + 1:
            phrase, parts = opened.pop()
            found += [Bracket(NO_PHRASE, start, phrase.end) for start in reversed(parts[1:-1])]
            found.append(phrase)
    return found


def unbinarised(words: Sequence[str], tags: Sequence[str], nodes: Iterable[Bracket]) -> ParseTree:
    """The tree of a binary one, whose nodes may come in any order."""
    phrases = sorted((each for each in nodes if each.label != NO_PHRASE), key=lambda each: (each.start, -each.end))
    brackets = (Bracket(name, start, end) for label, start, end in phrases for name in label.split(CHAIN))
    return ParseTree(tuple(words), tuple(tags), tuple(brackets))
