"""Corpora to examine, as they are named: the two sides of each, and those of its held-out sets."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from transduce.data.pairs.inputs import Named, named_inputs, pair_files
from transduce.data.pairs.pair_data import PairData
from transduce.data.pairs.pair_files import PairFiles
from transduce.doctor.examine import sides_of
from transduce.doctor.lines import ScannedFile

Sides = tuple[ScannedFile, ScannedFile]


@dataclass(frozen=True)
class ExaminedPairs:
    """One training corpus. tests: the held-out sets by name, validation too. notes: what to tell, in sentences."""

    sides: Sides
    tests: dict[str, Sides] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def files(self) -> Iterator[Path]:
        """All files, those of its tests too."""
        for sides in (self.sides, *self.tests.values()):
            yield from (side.path for side in sides)


def of_named(named: Named) -> ExaminedPairs:
    """What is named on the command line. Raises InputError for files that are missing, or not of two sides."""
    inputs = named_inputs(named)
    tests = {name: pair_files(files) for name, files in inputs.tests.items()}
    validation = pair_files(inputs.validation) if inputs.validation else None
    return ExaminedPairs(sides_of(pair_files(inputs.train), Path()), _held_out(validation, tests, Path()), inputs.notes)


def of_data(data: PairData) -> list[ExaminedPairs]:
    """What a recipe names. Raises InputError for patterns that no files match."""
    root = Path(data.root)
    tests = _held_out(data.validation, data.test, root)
    return [ExaminedPairs(sides_of(files, root), tests) for files in data.corpora()]


def _held_out(validation: PairFiles | None, tests: Mapping[str, PairFiles], root: Path) -> dict[str, Sides]:
    named = {"validation": validation} if validation else {}
    named |= {f"test {name}": files for name, files in tests.items()}
    return {name: sides_of(files, root) for name, files in named.items()}
