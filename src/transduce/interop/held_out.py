"""The text that a run holds out, by which an export is compared with its model."""

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs, read_tagged_pairs
from transduce.data.hold_out import TEST, VALIDATION, part_of
from transduce.data.pair_data import HELD_OUT, PairData
from transduce.interop.parity import Text
from transduce.recipe.recipe import RESOLVED, load_run_recipe
from transduce.tasks.base import pairs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 1000  # lines


def held_out_text(model: Path, most: int = MOST, trust_code: bool = False) -> Text:
    """The first lines of the first test set of the run that `model` lies in, else of its validation set.

    trust_code: let the recipe of that run name code outside Transduce.

    Raises:
        InputError: there is no recipe beside the model; it names no text that is held out; its files are gone.
    """
    recipe = model.with_name(RESOLVED)
    if not recipe.is_file():
        raise InputError(f"{model}: there is no {RESOLVED} beside it that names text that was held out.")
    data = pairs_of(load_run_recipe(recipe, trust_code=trust_code))
    if data is None:
        raise InputError(f"{recipe}: this is not a recipe for translation.")
    name, pairs = _pairs(data, recipe)
    both = list(islice(pairs, most))
    return Text(name, [source for _, source, _ in both], [target for *_, target in both])


def _pairs(data: PairData, recipe: Path) -> "tuple[str, Iterator[tuple[int, str, str]]]":
    root = Path(data.root)
    for name, files in data.test.items():
        return f"data.test.{name}", read_tagged_pairs(files, root)
    if data.validation:
        return "data.validation", read_tagged_pairs(data.validation, root)
    split = data.split()
    for name, part in ((HELD_OUT, TEST), ("validation", VALIDATION)):
        if split and split.count(part):
            corpora = data.corpora()
            parts = zip(corpora, split.parts, strict=True)
            mark = {files: "".join(f"{tag} " for tag in files.tags) for files in corpora}
            return name, (
                (line, mark[files] + source, target)
                for files, own in parts
                for line, source, target in part_of(read_pairs(files, root), own, part)
            )
    raise InputError(f"{recipe}: it names no text that is held out.")
