"""Which files of a folder are for training, validation and test: by how their names begin."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, count
from pathlib import Path

from transduce.data.files import PACKERS
from transduce.data.formats import is_table
from transduce.planning.languages import language_of

PARTS = {"validation": ("validation", "valid", "val", "dev"), "test": ("test",), "train": ("train",)}


def part_of(stem: str) -> str:
    """train, validation or test by the beginning of the name; "" = none of them."""
    return next((part for part, names in PARTS.items() if stem.lower().startswith(names)), "")


def stem_of(path: Path) -> str:
    """The name without the language, and without what it is packed with."""
    name = path.name
    for packer in PACKERS:
        name = name.removesuffix(packer)
    return name.rpartition(".")[0]


def usual_validation(stem: str) -> int:
    """The place of its beginning among the names of validations."""
    return next(place for place, name in enumerate(PARTS["validation"]) if stem.lower().startswith(name))


def of_several(folder: Path, chosen: str, *others: str) -> str:
    return (
        f"{folder}: {chosen} is the validation; {' and '.join(others)} {'is' if len(others) == 1 else 'are'} not used. "
        "To take another: --validation FILE."
    )


def by_name(stems: Iterable[str]) -> dict[str, str]:
    """By names for a recipe. Where test.a is beside test_a, which has its name already, it is test_a_2."""
    named = dict[str, str]()
    for plain, stem in sorted(
        ((re.sub(r"\W+", "_", stem), stem) for stem in stems), key=lambda each: each[0] != each[1]
    ):
        further = (f"{plain}_{number}" for number in count(2))
        named[next(name for name in chain([plain], further) if name not in named)] = stem
    return named


def by_language(paths: Sequence[Path]) -> dict[str, dict[str, list[Path]]]:
    """The files whose names, but for their languages, are those of others: by this name, and by language."""
    stems: dict[str, dict[str, list[Path]]] = {}
    for path in paths:
        if (language := language_of(path)) and not path.name.startswith("."):  # ._train.en is of macOS
            stems.setdefault(stem_of(path), {}).setdefault(language, []).append(path)
    return {stem: found for stem, found in stems.items() if len(found) > 1}


def training_tables(paths: Sequence[Path]) -> list[Path]:
    """train.tsv and its like."""
    tables = (path for path in paths if is_table(path) and not path.name.startswith("."))
    return [path for path in tables if part_of(path.name) == "train"]
