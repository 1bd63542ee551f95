"""Files of labelled texts, or of labelled pairs of texts: tables of any format, or bracketed trees.

Instead of a file there may be generated texts.

A pair is one text to all who pass it on: both texts with a tab between, and no other tab.

Rows of glyphs with a question that takes attention: what people are asked to look for, as texts with labels.

- black_cards: R7 B3 R1 R9 B8 R3. What do the black cards add up to? There are always two: 11.
- find_eight: S 3 8 0 B 6. At which place does the 8 stand, among glyphs that look like it? 3.

Rows have 6 to 12 glyphs. A row is a function of (name, seed, its number); nothing is stored.
"""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self, get_args

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.core.printable import NAMED
from transduce.core.registry import check
from transduce.data.formats import Format, format_name, format_of
from transduce.data.generated import drawn, generator
from transduce.data.pairs.pair_files import tsv_options
from transduce.data.remote import located
from transduce.data.structures.labelled_trees import EXAMPLE, read_labelled_trees

Name = Literal["black_cards", "find_eight"]
NAMES: tuple[str, ...] = get_args(Name)
SHORTEST, LONGEST = 6, 12
BLACK, RED, HIGHEST = "B", "R", 9
BLACK_CARDS = 2  # always as many: from weights that add up to 1 a mean can be read, and no sum of who knows how many
WANTED, ALIKE = "8", ("3", "6", "9", "0", "B", "S")


def glyph_row(name: Name, seed: int, number: int) -> tuple[str, str]:
    """The text and the label of the row of this number."""
    random = generator(zlib.crc32(name.encode()), seed, number)
    length = drawn(SHORTEST, LONGEST, random)
    if name == "find_eight":
        glyphs = [ALIKE[drawn(0, len(ALIKE) - 1, random)] for _ in range(length)]
        place = drawn(0, length - 1, random)
        glyphs[place] = WANTED
        return " ".join(glyphs), str(place + 1)
    values = [drawn(1, HIGHEST, random) for _ in range(length)]
    black = _places(length, random)
    cards = [f"{BLACK if place in black else RED}{value}" for place, value in enumerate(values)]
    return " ".join(cards), str(sum(values[place] for place in black))


def counts(name: Name, glyph: str) -> bool:
    """Whether the answer depends on this glyph: a black card, or the 8."""
    return glyph == WANTED if name == "find_eight" else glyph.startswith(BLACK)


def _places(length: int, random: np.random.Generator) -> set[int]:
    """Different ones, of the black cards."""
    found: set[int] = set()
    while len(found) < BLACK_CARDS:
        found.add(drawn(0, length - 1, random))
    return found


SEPARATOR = "\t"
Example = tuple[int, str, str]  # line number from 1, text, label


class LabelledFile(Config):
    """Texts with their labels, one of a row: tables, or bracketed trees; or generated ones."""

    file: str = ""
    """A table: .csv, .jsonl, .json, .parquet, .xlsx; anything else is tab-separated. Compressed or not. Required,
    unless the examples are generated."""
    format: Annotated[str, AfterValidator(lambda name: check("data.formats", name))] | None = None
    """Of the file, as in "csv". Unset: what its suffix says. Your own: `my_file:MyFormat`."""
    text: int | str | tuple[int | str, ...] = 0
    """Column of the text: its number from 0, or its name in a header or in objects. A list of two: pairs of texts."""
    label: int | str = 1
    """Column of the label."""
    trees: bool = False
    """Each line is a tree, (3 (2 The) (4 best)): its words are the text, the number at its root is the label."""
    phrases: bool = False
    """With trees: each different phrase is an example as well, labelled by its own node."""
    weight: float = Field(default=1.0, gt=0)
    """How often an epoch shows each example."""
    generated: Name | None = None
    """Instead of a file, rows of glyphs made from random numbers: black_cards, whose label is the sum of the two black
    cards of R7 B3 R1 B8, or find_eight, whose label is the place of the 8 in S 3 8 0 B."""
    examples: int | None = Field(default=None, ge=1)
    """Number of generated examples; required with them."""
    seed: int | None = Field(default=None, ge=0)
    """Of generated examples; required with them. Training, validation and tests need different ones."""

    @model_validator(mode="after")
    def _read_or_generated(self) -> Self:
        if bool(self.file) == bool(self.generated):
            came = "both" if self.file else "neither"
            raise ValueError(f'expected file = "..." or generated = "..."; got {came}')
        read = ("format", "text", "label", "trees", "phrases") if self.generated else ("examples", "seed")
        if unread := [key for key in read if getattr(self, key) != type(self).model_fields[key].default]:
            of = "generated examples" if self.generated else "a file"
            raise ValueError(f"{', '.join(unread)}: not read with {of}. Leave it out")
        if self.generated and None in (self.examples, self.seed):
            raise ValueError(
                f'generated = "{self.generated}" needs examples and seed, such as examples = 1000, seed = 1'
            )
        return self

    @model_validator(mode="after")
    def _phrases_are_of_trees(self) -> Self:
        if self.phrases and not self.trees:
            raise ValueError("phrases = true needs trees = true")
        return self

    @model_validator(mode="after")
    def _one_text_or_two(self) -> Self:
        if len(self.texts) not in (1, 2):
            raise ValueError(f"text: expected one column or two; got {len(self.texts)}")
        if self.trees and self.pair:
            raise ValueError("trees = true: a tree is one text, and text names two columns")
        if wrong := [each for each in (*self.texts, self.label) if isinstance(each, int) and each < 0]:
            raise ValueError(f"columns are counted from 0; got {wrong[0]}")
        return self

    @property
    def texts(self) -> tuple[int | str, ...]:
        """The columns of the texts: one, or those of a pair."""
        return self.text if isinstance(self.text, tuple) else (self.text,)

    @property
    def format_name(self) -> str:
        """The name of the file's format."""
        return self.format or format_name(Path(self.file))

    @property
    def reader(self) -> Format:
        """What reads the columns of the file. Raises InputError for a class that is not allowed."""
        return format_of(Path(self.file), self.format)

    @property
    def pair(self) -> bool:
        """Whether each example is a pair of texts."""
        return len(self.texts) == 2

    @property
    def name(self) -> str:
        """The file's, or of what is generated."""
        return self.generated or self.file

    def paths(self, root: Path) -> list[Path]:
        """The file itself, relative ones from `root`; none for generated examples."""
        return [] if self.generated else [located(root, self.file)]

    def evaluate_options(self, root: Path) -> list[str]:
        """The file as options of `transduce evaluate`; none for generated examples."""
        if self.generated:
            return []
        path = str(located(root, self.file))
        if self.trees or self.format_name != "tsv":
            return ["--source", path]
        return tsv_options(path, self.texts, self.label)


class LabelledFiles(NamedTuple):
    """The files of labelled texts that a recipe names.

    files: by role: "train", "train 2", "validation", "test NAME". root: where their relative paths begin.
    labels: what the files' labels are called; None = as they stand.
    """

    files: Mapping[str, LabelledFile]
    root: Path
    labels: Mapping[str, str] | None = None


def joined(texts: Sequence[str]) -> str:
    """One text as it is; two as a pair."""
    return texts[0] if len(texts) == 1 else SEPARATOR.join(each.replace(SEPARATOR, " ") for each in texts)


def pair_of(text: str) -> tuple[str, str]:
    """The two texts of a pair; both are empty where there is nothing.

    Raises:
        InputError: there is one, or one of them is empty, or there are more.
    """
    if not text.strip():
        return "", ""
    texts = text.split(SEPARATOR)
    if len(texts) != 2 or not all(each.strip() for each in texts):
        found = sum(bool(each.strip()) for each in texts)
        raise InputError(f'expected two texts with a tab between; got {found}: "{text[:60]}"')
    return texts[0], texts[1]


def check_pairs(path: Path, examples: Iterable[Example]) -> None:
    """Raises InputError for examples of a file that are no pairs, naming their lines."""
    problems = []
    for line, text, _ in examples:
        try:
            pair_of(text)
        except InputError as error:
            problems += [f"{path}, line {line}: {problem}" for problem in error.problems]
    if problems:
        more = [f"{path}: {len(problems) - NAMED:,} more lines like these."] if len(problems) > NAMED else []
        raise InputError([*problems[:NAMED], *more])


def read_labelled(file: LabelledFile, root: Path, labels: Mapping[str, str] | None = None) -> Iterator[Example]:
    """(line number from 1, text, label) of each example.

    Args:
        labels: what the file's labels are called; examples of any other are left out.

    Raises:
        InputError: a missing file, text that is not UTF-8; lines without the columns, or that are no trees.
    """
    path = located(root, file.file)
    read = _generated if file.generated else _trees if file.trees else _rows
    for line, text, label in read(path, file):
        name = label if labels is None else labels.get(label)
        if name is not None:
            yield line, text, name


def _generated(path: Path, file: LabelledFile) -> Iterator[Example]:
    assert file.generated is not None and file.examples is not None and file.seed is not None
    return ((row + 1, *glyph_row(file.generated, file.seed, row)) for row in range(file.examples))


def has_labels(file: LabelledFile, root: Path) -> bool:
    """Whether a table with named columns has that of the labels at all."""
    path, format = located(root, file.file), file.reader
    columns = format.columns(path)
    return not columns or format.place(path, format.asked(file.label, "label"), columns) is not None


def _rows(path: Path, file: LabelledFile) -> Iterator[Example]:
    format = file.reader
    if not format.counted and file.pair and (counted := [each for each in file.texts if isinstance(each, int)]):
        raise InputError(f"{path}: expected the names of both texts, as objects have no columns; got {counted}.")
    keys = [*(format.asked(key, "text") for key in file.texts), format.asked(file.label, "label")]
    for number, (*texts, label) in format.rows(path, keys):
        yield number, joined(texts), label.strip() if format.counted else label


def _trees(path: Path, file: LabelledFile) -> Iterator[Example]:
    """The whole tree of each line first, then with `phrases` each phrase that no line before had."""
    seen: set[tuple[str, str]] = set()
    for number, tree in read_labelled_trees(path):
        if tree.label is None:
            raise InputError(f"{path}, line {number}: expected a label at the root, as in {EXAMPLE}; got {tree}"[:200])
        texts = [" ".join(text.split()) for text in tree.texts()]
        yield number, texts[-1], tree.label
        for node in zip(texts[:-1], tree.labels[:-1], strict=True) if file.phrases else ():
            if node[1] is not None and node not in seen:
                seen.add((node[0], node[1]))
                yield number, node[0], node[1]
