"""Text files -> examples -> stores of token ids. What is wrong with a file is said before tokenising it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

from pydantic import Field

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.augmentation import NOT_AUGMENTED, Augmented
from transduce.data.files import count_lines, fingerprint, read_lines, text_lines
from transduce.data.filters import Dropped
from transduce.data.formats import Key
from transduce.data.formats.tsv import Tsv
from transduce.data.pairs.pair_files import FILES, PairFiles
from transduce.data.placeholders import with_placeholders
from transduce.data.remote import located
from transduce.data.source_columns import separator_of
from transduce.data.store import Store
from transduce.data.tags import with_tags
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer

LINES_NAMED = 10
ReadPairs = Callable[[PairFiles, Path], Iterator[tuple[int, str, str]]]


@dataclass(frozen=True)
class TsvColumn:
    """One column of a tab-separated file, where a file with a text a line may be named.

    number: from 0, or its name. more: further columns, which belong to the same text with a tab between.
    """

    path: Path
    number: Key
    more: tuple[Key, ...] = ()

    def __str__(self) -> str:
        return f"{self.path}, column {' and '.join(map(str, (self.number, *self.more)))}"

    def lines(self) -> Iterator[str]:
        """Its text, row by row. Raises InputError as `Tsv.rows`."""
        return ("\t".join(cells) for _, cells in Tsv().rows(self.path, (self.number, *self.more)))


def lines_of(file: Path | TsvColumn) -> list[str]:
    """A text a line. Raises InputError as `read_lines` and `TsvColumn.lines`."""
    return list(file.lines() if isinstance(file, TsvColumn) else text_lines(file))


class TextFile(Config):
    """Text for language modelling."""

    text: str
    """The file."""
    unit: Literal["line", "stream"] = "line"
    """line: each line is a sentence ending with </s>. stream: running text; newlines are characters of it."""
    column: int | None = Field(default=None, ge=0)
    """Only this column of a tab-separated file, counted from 0."""
    part: tuple[float, float] = (0.0, 1.0)
    """From where to where, as shares of the file's characters; a line belongs where its first character stands."""
    weight: float = Field(default=1.0, gt=0)
    """How often an epoch shows each row."""

    def paths(self, root: Path) -> list[Path]:
        """The file itself, relative ones from `root`."""
        return [located(root, self.text)]

    @property
    def names(self) -> dict[str, str]:
        return {"text": self.text}

    def evaluate_options(self, root: Path) -> list[str]:
        """The file as options of `transduce evaluate`, which reads whole ones; none for a part."""
        if self.part != (0.0, 1.0):
            return []
        if self.column is None:
            return ["--reference", str(located(root, self.text))]
        return ["--tsv", str(located(root, self.text)), "--target-column", str(self.column)]


class NamesFiles(Protocol):
    """An entry of a recipe's [data]."""

    def model_dump(self, *, mode: str, exclude_none: bool) -> dict[str, Any]: ...

    def paths(self, root: Path) -> list[Path]: ...


def provenance(train: Sequence[NamesFiles], held_out: Mapping[str, NamesFiles | None], root: Path) -> dict[str, Any]:
    """What a model was made from, for its file: each entry of the recipe with the SHA-256 of its files."""

    def named(files: NamesFiles) -> dict[str, Any]:
        entry = files.model_dump(mode="json", exclude_none=True)
        return {**entry, "sha256": [fingerprint(path) for path in files.paths(root)]}

    return {
        "train": [named(files) for files in train],
        **{name: named(files) for name, files in held_out.items() if files},
    }


def name_row(store: Store, row: int, train: Sequence[Mapping[str, Any]]) -> str:
    """The example in `row` of a training store, for a message: its file, and its line where that can be told.

    Args:
        train: `provenance` of the training data.
    """
    entry = next((each for each in train if each.get("sha256") == store.metadata["fingerprints"]), {})
    keys = ["file"] if "file" in entry else [*FILES, "text"]
    files = " and ".join(str(entry[key]) for key in keys if key in entry)
    whole = "dropped" in store.metadata and "part" not in store.metadata.get("settings", {}) and "pairs" not in entry
    line = _line_of(Dropped.from_dict(store.metadata["dropped"]), row) if whole else None
    place = f"example {row + 1:,} of {len(store):,} that were kept" if line is None else f"line {line}"
    return f"{files or store.path}, {place}"


def _line_of(dropped: Dropped, row: int) -> int | None:
    """The line, from 1, of the row kept in place `row`, from 0; None where not all dropped lines are noted."""
    noted = sorted(line for lines in dropped.lines.values() for line in lines)
    if len(noted) < dropped.total:
        return None
    line = row + 1
    for each in noted:
        line += each <= line
    return line


def read_pairs(files: PairFiles, root: Path) -> Iterator[tuple[int, str, str]]:
    """(line number from 1, source, target), in the files' order. Of two files the line counts are checked first.

    Raises:
        InputError: unequal line counts, a line with too few columns, a missing file, text that is not UTF-8, fewer
            pairs than are asked for.
    """
    paths = files.paths(root)
    pairs = _read_two(*paths) if files.of_two_files else _read_columns(files, *paths)
    if files.pairs is None:
        return pairs
    chosen = chosen_numbers(files.pairs, count_pairs(files, root), paths[0])
    return (pair for number, pair in enumerate(pairs, 1) if number in chosen)


def count_pairs(files: PairFiles, root: Path) -> int:
    """How many there are, before any are chosen. Raises InputError as `read_pairs`."""
    path = files.paths(root)[0]
    return count_lines(path) if files.of_two_files else sum(1 for _ in _read_columns(files, path))


def about_pairs(files: PairFiles, root: Path) -> int:
    """About how many are read, by the number of lines. Raises InputError as `read_pairs`."""
    path = files.paths(root)[0]
    return files.pairs or (count_lines(path) if files.of_two_files else files.reader.about(path))


def read_tagged_pairs(
    files: PairFiles, root: Path, augment: Callable[[str, str], tuple[str, str]] | None = None
) -> Iterator[tuple[int, str, str]]:
    """As `read_pairs`, with the file's tags before each source. Raises the errors of `read_pairs`.

    augment: changes each pair; None = nothing does.
    """
    mark = "".join(f"{tag} " for tag in files.tags)
    pairs = read_pairs(files, root)  # whose files are looked at now
    changed = ((number, *augment(source, target)) for number, source, target in pairs) if augment else pairs
    return ((number, mark + source, target) for number, source, target in changed)


def sampled_pairs(corpora: Sequence[PairFiles], root: Path, count: int) -> Iterator[tuple[str, str]]:
    """About `count` (source, target) pairs out of all corpora, as many of each, evenly spread over its lines."""
    for files in corpora:
        step = max(1, about_pairs(files, root) * len(corpora) // count)
        yield from ((source, target) for _, source, target in islice(read_pairs(files, root), 0, None, step))


def read_text(file: TextFile, root: Path) -> Iterator[str]:
    """The lines of a text or of the part asked for; in unit "stream" with their newlines, cut to the character.

    Raises:
        InputError: a missing file, text that is not UTF-8.
    """
    lines = (line + "\n" for line in _text_lines(file, root)) if file.unit == "stream" else _text_lines(file, root)
    if file.part == (0.0, 1.0):
        return lines
    total = sum(len(line) + 1 for line in _text_lines(file, root))
    first, last = (int(share * total) for share in file.part)
    return _characters(lines, first, last) if file.unit == "stream" else _whole_lines(lines, first, last)


def train_pair_tokenizers(
    config: TokenizerConfig,
    corpora: Sequence[PairFiles],
    root: Path,
    read: ReadPairs = read_pairs,
    augmented: Augmented = NOT_AUGMENTED,
) -> tuple[Tokenizer, Tokenizer]:
    """The source's and the target's tokenizer, learnt from these files; one and the same where `joint`.

    The files' tags are tokens of the source's; so are the placeholders and marks of `augmented`.

    read: gives the pairs to learn from, where that is not all of a file.
    """
    tags = [tag for files in corpora for tag in files.tags]
    if config.joint:
        both = (text for files in corpora for _, *pair in read(files, root) for text in pair)
        joint = with_placeholders(with_tags(train_tokenizer(config, both, root), tags), augmented.source_names)
        return joint, joint
    sources = (source for files in corpora for _, source, _ in read(files, root))
    targets = (target for files in corpora for _, _, target in read(files, root))
    source = with_tags(train_tokenizer(config.of_side("source"), sources, root), tags)
    target = train_tokenizer(config.of_side("target"), targets, root)
    return with_placeholders(source, augmented.source_names), with_placeholders(target, augmented.target_names)


def train_text_tokenizer(config: TokenizerConfig, corpora: Sequence[TextFile], root: Path) -> Tokenizer:
    """A tokenizer learnt from the lines of these files."""
    return train_tokenizer(config, (piece for file in corpora for piece in read_text(file, root)), root)


def _text_lines(file: TextFile, root: Path) -> Iterator[str]:
    if file.column is None:
        return read_lines(located(root, file.text))
    return TsvColumn(located(root, file.text), file.column).lines()


def _characters(lines: Iterable[str], first: int, last: int) -> Iterator[str]:
    """The characters numbered first .. last - 1 of lines that carry their newlines."""
    place = 0
    for line in lines:
        cut = line[max(first - place, 0) : max(last - place, 0)]
        if cut:
            yield cut
        place += len(line)


def _whole_lines(lines: Iterable[str], first: int, last: int) -> Iterator[str]:
    """The lines whose first character is one of first .. last - 1."""
    place = 0
    for line in lines:
        if first <= place < last:
            yield line
        place += len(line) + 1


def _read_two(source: Path, target: Path) -> Iterator[tuple[int, str, str]]:
    sources, targets = count_lines(source), count_lines(target)
    if sources != targets:
        raise InputError(
            f"{source} has {sources:,} lines and {target} has {targets:,}: the n-th lines must belong "
            "together. Find where they diverge, or export both again from one source; Transduce cuts neither."
        )
    pairs = zip(text_lines(source), text_lines(target), strict=True)
    return ((number, *pair) for number, pair in enumerate(pairs, 1))


def _read_columns(files: PairFiles, path: Path) -> Iterator[tuple[int, str, str]]:
    separator = separator_of(files.source_separator)
    rows = files.reader.rows(path, files.keys)
    return ((number, separator.join(sources), target) for number, (*sources, target) in rows)


def chosen_numbers(count: int, pairs: int, path: Path) -> set[int]:
    """The numbers, from 1, of `count` of the pairs. Raises InputError where there are fewer in `path`."""
    if count > pairs:
        raise InputError(f"{path} has {pairs:,} pairs; data.train.pairs asks for {count:,}.")
    return set(nsmallest(count, range(1, pairs + 1), key=_hashed))


def _hashed(number: int) -> bytes:
    return blake2b(str(number).encode(), digest_size=8).digest()
