"""Which pairs `transduce doctor` examines: those that `transduce train` would learn from."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.core.errors import InputError

if TYPE_CHECKING:
    from transduce.data.pair_data import PairData
    from transduce.doctor import ScannedFile
    from transduce.planning.inputs import Named
    from transduce.recipe.recipe import Recipe

Sides = tuple["ScannedFile", "ScannedFile"]


@dataclass(frozen=True)
class ExaminedPairs:
    """One training corpus. tests: the held-out sets by name, validation too. notes: what to tell, in sentences."""

    sides: Sides
    tests: dict[str, Sides] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def is_data(path: Path, separator: str | None = None) -> bool:
    """Whether pairs lie at a path, where a recipe may be named too; separator: as of `looks_like_data`."""
    from transduce.planning.inputs import is_data, looks_like_data

    return is_data(path) or looks_like_data(path, separator)


def of_named(named: "Named") -> ExaminedPairs:
    """What is named on the command line. Raises InputError for files that are missing, or not of two sides."""
    from transduce.doctor.pair_files import sides_of
    from transduce.planning.inputs import named_inputs, pair_files

    inputs = named_inputs(named)
    validation = {"validation": inputs.validation} if inputs.validation else {}
    held_out = validation | {f"test {name}": files for name, files in inputs.tests.items()}
    tests: dict[str, Sides] = {name: sides_of(pair_files(files), Path()) for name, files in held_out.items()}
    return ExaminedPairs(sides_of(pair_files(inputs.train), Path()), tests, inputs.notes)


def of_data(data: "PairData") -> list[ExaminedPairs]:
    """What a recipe names. Raises InputError for patterns that no files match."""
    from transduce.doctor.pair_files import sides_of

    root = Path(data.root)
    validation = {"validation": data.validation} if data.validation else {}
    held_out = validation | {f"test {name}": files for name, files in data.test.items()}
    tests: dict[str, Sides] = {name: sides_of(files, root) for name, files in held_out.items()}
    return [ExaminedPairs(sides_of(files, root), tests) for files in data.corpora()]


def files_of(corpora: list[ExaminedPairs]) -> Iterator[Path]:
    """All files of the corpora and of their own tests."""
    for each in corpora:
        yield from (side.path for sides in (each.sides, *each.tests.values()) for side in sides)


def recipe_at(path: Path, trust_code: bool = False) -> "Recipe":
    """A recipe, or that of a run directory. Raises InputError for anything else."""
    from transduce.recipe.recipe import RESOLVED, load_recipe, load_run_recipe

    if path.is_dir():
        if not (path / RESOLVED).exists():
            raise InputError(f"{path}: holds neither a recipe.toml nor files such as train.en and train.sw.")
        return load_run_recipe(path / RESOLVED, trust_code=trust_code)
    if path.is_file() and path.suffix != ".toml":
        raise InputError(f"{path}: expected a recipe (.toml), a run directory or pairs. {ADVICE}")
    return load_recipe(path, trust_code=trust_code)


ADVICE = "For files of text give --source and --target, --tsv or --text."
