"""Labelled brackets of parse trees, as EVALB counts them with its parameters COLLINS.prm.

Words with the tags -NONE- , : `` '' . are deleted, and so are phrases without other words, phrases labelled TOP or
nothing, and whatever follows - or = in a label. ADVP and PRT are equal. A phrase of the output is right if the
reference has one with the same label over the same words; each matches once.

A sentence whose words are not those of its reference counts nowhere, as in EVALB, and the note says how many those are.
An output whose words all have the tag XX says no tags: its words then have the reference's.

Source: Sekine and Collins 1997, EVALB; Black et al. 1991.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError
from transduce.core.printable import NAMED, first_of
from transduce.data.structures.trees import EMPTY, EXAMPLE, SHOWN, WORD, ParseTree, parse_tree
from transduce.metrics.score import References, checked_references
from transduce.metrics.tally import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

DELETED = frozenset(("TOP", "", EMPTY, ",", ":", "``", "''", "."))
EQUAL = {"PRT": "ADVP"}
MATCHED, SAID, TRUE, COMPLETE, VALID = range(5)  # the counts of a sentence


def evalb_tally(hypotheses: Sequence[str], references: References, figure: str = "f1") -> Tally:
    """The counts behind labelled "f1", "precision", "recall", or "complete" match, in per cent.

    Args:
        hypotheses: trees in brackets.
        references: the right trees in brackets, one each.

    Raises:
        InputError: a reference that is no tree, or several for one output; no sentences, not equally many.
    """
    import numpy as np

    listed = checked_references(hypotheses, references)
    rows_SN = np.array([counts(*each) for each in zip(hypotheses, _read(listed), strict=True)])
    name, value = FIGURES[figure]
    left_out = len(rows_SN) - int(rows_SN[:, VALID].sum())
    note = (
        f"{left_out} of {len(rows_SN)} sentences left out, whose output is no tree over the reference's words"
        if left_out
        else ""
    )
    return Tally(name, f"nrefs:1|EVALB:COLLINS|case:mixed|figure:{figure}", rows_SN, value, note=note)


def counts(hypothesis: str, reference: ParseTree) -> tuple[int, int, int, int, int]:
    """Brackets matched, in the output and in the reference; whether all match; whether the sentence counts."""
    try:
        output = _in_one(hypothesis)
    except InputError:
        return 0, 0, 0, 0, 0
    true_words, true = _counted(reference, reference.tags)
    words, said = _counted(output, _tags(output, reference))
    if not words or words != true_words:
        return 0, 0, 0, 0, 0
    matched, found, wanted = (said & true).total(), said.total(), true.total()
    return matched, found, wanted, int(matched == found == wanted), 1


def _in_one(line: str) -> ParseTree:
    """The tree of a line, or its trees side by side. Raises InputError for anything else."""
    if not line.lstrip().startswith("("):
        raise InputError("no bracket")
    return parse_tree(f"(TOP {line})")


def _tags(output: ParseTree, reference: ParseTree) -> Sequence[str]:
    """Its own, or those of the reference's words where it has none."""
    if set(output.tags) != {WORD}:
        return output.tags
    tags = [tag for tag in reference.tags if tag != EMPTY]
    return tags if len(tags) == len(output.tags) else output.tags


def _counted(tree: ParseTree, tags: Sequence[str]) -> tuple[list[str], Counter[tuple[str, int, int]]]:
    """The words and the brackets that are not deleted."""
    kept = [tag not in DELETED for tag in tags]
    before = [0]
    for keep in kept:
        before.append(before[-1] + keep)
    words = [word for word, keep in zip(tree.words, kept, strict=True) if keep]
    labelled = ((_label(label), before[start], before[end]) for label, start, end in tree.brackets)
    return words, Counter(each for each in labelled if each[1] < each[2] and each[0] not in DELETED)


def _label(label: str) -> str:
    plain = re.split("[-=]", label, maxsplit=1)[0]
    return EQUAL.get(plain, plain)


def _read(references: Sequence[Sequence[str]]) -> Iterator[ParseTree]:
    if several := [str(line) for line, each in enumerate(references, 1) if len(each) > 1]:
        named = first_of(several, NAMED)
        raise InputError(f"evalb: expected one tree as the reference of each output; got several (line {named}).")
    found, problems = [], []
    for line, (text,) in enumerate(references, 1):
        try:
            found.append(_in_one(text))
        except InputError:
            problems.append(f"evalb: reference {line}: expected a tree such as {EXAMPLE}; got {text[:SHOWN]}")
    if problems:
        raise InputError(problems[:NAMED])
    return iter(found)


def _share(part: float, total: float) -> float:
    return 100 * float(part) / float(total) if total else 0.0


FIGURES: dict[str, tuple[str, "Callable[[NDArray[Any]], float]"]] = {
    "f1": ("labelled F1", lambda sums_N: _share(2 * sums_N[MATCHED], sums_N[SAID] + sums_N[TRUE])),
    "precision": ("labelled precision", lambda sums_N: _share(sums_N[MATCHED], sums_N[SAID])),
    "recall": ("labelled recall", lambda sums_N: _share(sums_N[MATCHED], sums_N[TRUE])),
    "complete": ("complete match", lambda sums_N: _share(sums_N[COMPLETE], sums_N[VALID])),
}
