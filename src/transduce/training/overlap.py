"""Which pairs of the files for validation and tests are in the training data too: there, memory is what is scored.

The held-out texts are kept in memory, and the training files are read once; what was found is remembered for as long as
the files stay the same. Pairs that `data.hold_out` drew are not looked for, as none of them is trained on.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from transduce.core.cache import kept
from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs
from transduce.data.files import fingerprint
from transduce.data.hold_out import TRAIN, part_of
from transduce.data.pairs.pair_data import PairData
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.pairs.pair_groups import Pairs, same_text
from transduce.data.store import cache_key
from transduce.recipe.recipe import Recipe
from transduce.tasks.base import pairs_of

VERSION = 2  # of what is counted
COUNTED = {"pairs", "pairs_in_training", "sources_in_training"}
Counts = dict[str, int]
Overlap = dict[str, Counts]
"""By name of the set: how many `pairs` it has, `pairs_in_training` and `sources_in_training`."""


def overlap(recipe: Recipe, cache: Path) -> Overlap:
    """How much of each named set is in the training data; nothing for tasks of other data than pairs.

    Raises:
        InputError: what `read_pairs` refuses.
    """
    data = pairs_of(recipe)
    if data is None:
        return {}
    held_out = {name: files for name, files in {"validation": data.validation, **data.test}.items() if files}
    if not held_out:
        return {}
    note = cache / f"{cache_key(_identity(data, held_out))}.json"
    found: Overlap = kept(note, lambda found: _is_of(found, [*held_out]), lambda: _counted(data, held_out))
    return found


def _is_of(found: Any, names: list[str]) -> bool:
    """Whether a note of the cache counts these sets."""
    if not isinstance(found, dict) or [*found] != names:
        return False
    return all(isinstance(each, dict) and {*each} == COUNTED for each in found.values())


def known_overlap(recipe: Recipe, cache: Path) -> Overlap:
    """As `overlap`; nothing where files are gone that nobody needs any more."""
    try:
        return overlap(recipe, cache)
    except InputError:
        return {}


def warnings(found: Overlap) -> Iterator[str]:
    """One sentence for each set that the training data has something of."""
    for name, counts in found.items():
        where = name if name == "validation" else f"test.{name}"
        pairs, sources = counts["pairs_in_training"], counts["sources_in_training"]
        if pairs:
            more = f", and {sources:,} of its sources" if sources > pairs else ""
            yield (
                f"data.{where}: {pairs:,} of its {counts['pairs']:,} pairs are in the training data too{more}; "
                "scores on them say nothing about new texts."
            )
        elif sources:
            yield (
                f"data.{where}: {sources:,} of its {counts['pairs']:,} sources are in the training data too, with "
                "other targets."
            )


def _identity(data: PairData, held_out: Mapping[str, PairFiles]) -> dict[str, Any]:
    """What decides the counts."""
    root = Path(data.root)

    def of(files: PairFiles) -> list[Any]:
        return [[fingerprint(path) for path in files.paths(root)], files.columns, files.read_as, files.to, files.tag]

    drawn = data.hold_out.model_dump() if data.hold_out else None
    named = {name: of(files) for name, files in held_out.items()}
    return {
        "kind": "overlap",
        "version": VERSION,
        "train": [of(each) for each in data.corpora()],
        "drawn": drawn,
        **named,
    }


def _counted(data: PairData, held_out: Mapping[str, PairFiles]) -> Overlap:
    """A source counts where it is translated into the same language; a pair also where it is turned round."""
    root = Path(data.root)
    pairs = {name: [_same(pair) for pair in read_pairs(files, root)] for name, files in held_out.items()}
    languages = {name: files.to for name, files in held_out.items()}
    sources = defaultdict[str | None, set[str]](set)
    for name, some in pairs.items():
        sources[languages[name]].update(source for source, _ in some)
    seen, repeated = _seen(data, sources, {pair for some in pairs.values() for pair in some})
    return {
        name: {
            "pairs": len(some),
            "pairs_in_training": sum(pair in repeated for pair in some if pair[0]),
            "sources_in_training": sum(source in seen[languages[name]] for source, _ in some if source),
        }
        for name, some in pairs.items()
    }


def _seen(
    data: PairData, sources: Mapping[str | None, set[str]], pairs: set[tuple[str, str]]
) -> tuple[Mapping[str | None, set[str]], set[tuple[str, str]]]:
    """Which of these sources, by the language that they are translated into, and of these pairs are trained on."""
    seen, repeated = defaultdict[str | None, set[str]](set), set[tuple[str, str]]()
    every = set().union(*sources.values())
    turned = Pairs(tuple(data.corpora()), Path(data.root), ()).directions > 1
    for files, some in _trained(data):
        known = sources.get(files.to, set())
        for number_and_pair in some:
            source, target = _same(number_and_pair)
            if source in known:
                seen[files.to].add(source)
            if source in every and (source, target) in pairs:
                repeated.add((source, target))
            if turned and target in every and (target, source) in pairs:
                repeated.add((target, source))
    return seen, repeated


def _trained(data: PairData) -> Iterator[tuple[PairFiles, Iterator[tuple[int, str, str]]]]:
    """The training files, each with its pairs that are trained on."""
    split, root = data.split(), Path(data.root)
    for at, files in enumerate(data.corpora()):
        pairs = read_pairs(files, root)
        yield files, part_of(pairs, split.parts[at], TRAIN) if split else pairs


def _same(pair: tuple[int, str, str]) -> tuple[str, str]:
    return same_text(pair[1]), same_text(pair[2])
