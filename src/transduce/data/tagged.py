"""Files of texts whose words have labels: which format they are in, and their labels in one scheme.

A text is its words with one space between to all who pass it on, and so are its labels. A space within a word becomes
U+00A0.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.core.printable import NAMED, quoted
from transduce.data.files import suffix_of
from transduce.data.formats.json import Json
from transduce.data.formats.jsonl import Jsonl
from transduce.data.remote import located
from transduce.data.structures.label_schemes import (
    LABEL,
    OUTSIDE,
    Scheme,
    labels_of,
    most_labels,
    parts_of,
    scheme_of,
    spans_of,
)
from transduce.data.structures.tagged_rows import (
    Problems,
    TaggedRow,
    conll_rows,
    conllu_rows,
    json_rows,
    segmented_rows,
)
from transduce.data.structures.tagged_tables import table_rows
from transduce.data.structures.word_units import Unit, units_of, without_spaces

SUFFIXES = {".conll", ".bio", ".iob", ".iob2", ".conllu"}
"""Of files that hold nothing but words with labels."""
FORMATS = {".conllu": "conllu", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}
FORMATS |= dict.fromkeys((".csv", ".parquet", ".xlsx"), "table")
NAMED_COLUMNS = ("jsonl", "json", "table")  # formats whose columns have names, and no numbers
Example = tuple[int, str, str]  # line of the first word, words, labels


class TaggedFile(Config):
    """Words with their labels."""

    file: str
    """The file, compressed or not. .conllu: CoNLL-U; .jsonl and .json: objects with tokens and ner_tags (or tags,
    labels), or with text and spans; .csv, .parquet, .xlsx: a row a word with a column for the sentence, or a row a
    text; anything else, such as .conll, .bio, .iob: a word and its label a line, an empty line between texts."""
    format: Literal["conll", "conllu", "jsonl", "json", "table"] | None = None
    """Of the file. Unset: what its suffix says."""
    word: Annotated[int, Field(ge=0)] | str | None = None
    """Column of the words, from 0. Unset: the first, of CoNLL-U the second. Of objects a key, of tables a name."""
    label: int | str | None = None
    """Column of the labels, from 0. Unset: the last; of CoNLL-U upos, for which xpos, feats, deprel may stand. Of
    objects a key, of tables a name."""
    segmented: bool = False
    """Each line is words with spaces between, whose characters get the labels B, M, E, S: for cutting text into
    words."""
    weight: float = Field(default=1.0, gt=0)
    """How often an epoch shows each text."""

    @model_validator(mode="after")
    def _only_what_is_read(self) -> Self:
        """Columns are of files that have them."""
        if self.segmented and (
            unread := [key for key in ("format", "word", "label") if getattr(self, key) is not None]
        ):
            raise ValueError(f"{', '.join(unread)}: not read with segmented = true. Leave it out")
        kind = self.format_name
        if kind in NAMED_COLUMNS and any(isinstance(each, int) for each in (self.word, self.label)):
            raise ValueError('word and label: columns have names here, and no numbers, as in label = "tags"')
        if kind not in NAMED_COLUMNS and isinstance(self.word, str):
            raise ValueError("word: expected a column from 0, as in word = 1")
        if kind == "conll" and isinstance(self.label, str):
            raise ValueError("label: expected a column from 0, as in label = 3")
        return self

    @property
    def format_name(self) -> str:
        """conll, conllu, jsonl, json, table, or segmented."""
        return "segmented" if self.segmented else self.format or FORMATS.get(suffix_of(Path(self.file)), "conll")

    def paths(self, root: Path) -> list[Path]:
        """The file itself, relative ones from `root`."""
        return [located(root, self.file)]

    def evaluate_options(self, root: Path) -> list[str]:
        """The file as options of `transduce evaluate`, which reads it as the recipe does."""
        return ["--source", str(located(root, self.file))]


class TaggedTexts(NamedTuple):
    """The texts of a file, and in sentences what was done with their labels and words.

    documents: which one each text is of, counted from 1; 0 where the file marks none.
    """

    examples: list[Example]
    notes: list[str]
    documents: Sequence[int] = ()

    @property
    def labels(self) -> Counter[str]:
        """How many words have each."""
        return Counter(label for _, _, labels in self.examples for label in labels.split(" "))

    def only(self, chosen: Iterable[bool]) -> "TaggedTexts":
        """The texts that are chosen; one truth value a text."""
        kept = list(compress(zip(self.examples, self.documents, strict=True), chosen))
        return TaggedTexts([example for example, _ in kept], self.notes, [document for _, document in kept])


def read_tagged(file: TaggedFile, root: Path, unit: Unit = "word", scheme: Scheme | None = None) -> TaggedTexts:
    """All texts of a file.

    Args:
        unit: what labels are of. A word that it cuts hands its label on to its parts.
        scheme: in which labels are written, whatever the file's is; None = the one that they look like.

    Raises:
        InputError: what the file's reader refuses; labels that are of no scheme, where there is one.
    """
    [path] = file.paths(root)
    rows = list(_rows(file, path, unit, scheme))
    named = {label for row in rows for label in row.labels}
    target = scheme or scheme_of(named)
    problems, notes = Problems(path), Notes(path, scheme_of(named), target)
    examples, documents = [], []
    for row in rows:
        if target != "none" and (wrong := next((each for each in row.labels if not LABEL.match(each)), None)):
            problems.add(row.line, f'expected labels of the scheme {target}, such as B-PER or O; got "{wrong[:40]}".')
            continue
        made = notes.noted(_cut(_plain(row, notes), unit, notes), file.format_name == "conll")
        if made.words:
            examples.append((row.line, " ".join(made.words), " ".join(made.labels)))
            documents.append(row.document)
    problems.check()
    return TaggedTexts(examples, notes.told(), documents)


def _rows(file: TaggedFile, path: Path, unit: str, scheme: Scheme | None) -> Iterator[TaggedRow]:
    spans_in = scheme if scheme not in (None, "none") else "bio"
    word, key = (each if isinstance(each, str) else None for each in (file.word, file.label))
    match file.format_name:
        case "segmented":
            return segmented_rows(path)
        case "jsonl" | "json" as name:
            return json_rows(path, unit, spans_in, word, key, Json() if name == "json" else Jsonl())
        case "table":
            return table_rows(path, word, key)
        case "conllu":
            return conllu_rows(path, "upos" if file.label is None else file.label, _column(file.word, 1))
    return conll_rows(path, _column(file.word, 0), file.label if isinstance(file.label, int) else None)


def _column(given: int | str | None, usual: int) -> int:
    return given if isinstance(given, int) else usual


class Notes:
    """What was done with the rows of a file, counted.

    Args:
        came: the scheme that its labels look like.
        target: the scheme in which they are written.
    """

    def __init__(self, path: Path, came: Scheme, target: Scheme) -> None:
        self._path, self._came, self._target = path, came, target
        self.spaces = self.cut = self.widened = self.repaired = 0
        self._first_repaired = 0
        self._letters: Counter[str] = Counter()
        self._begun = False  # a span with B that no span of its kind stands before, as IOB1 has none

    def noted(self, row: TaggedRow, by_line: bool) -> TaggedRow:
        """The row with its labels in the scheme that is wanted."""
        self.widened += row.widened
        if self._target == "none":
            return row
        spans = spans_of(row.labels)
        self._look(row, spans_of(row.labels), by_line)
        return row._replace(labels=labels_of(spans, len(row.words), self._target))

    def _look(self, row: TaggedRow, spans: Sequence[tuple[int, int, str]], by_line: bool) -> None:
        """Which spans of BIO do not begin with B, and whether others do where IOB1 would have no B."""
        ends = {(end, kind) for _, end, kind in spans}
        for start, _, kind in spans:
            letter = parts_of(row.labels[start]).letter
            if letter in "IE":
                self.repaired += 1
                self._first_repaired = self._first_repaired or row.line + (start if by_line else 0)
            self._begun |= letter == "B" and (start, kind) not in ends
        self._letters.update(label[:1] for label in row.labels)

    def told(self) -> list[str]:
        """A sentence for each kind of change."""
        if not self.repaired:
            repaired = ""
        elif self._came == "bio" and not self._begun:
            repaired = f"IOB1 labels became {self._target.upper()}"
        else:
            repaired = (
                f"{_count(self.repaired, 'span begins', 'spans begin')} with a label inside, as I- behind O, and "
                f"{'was' if self.repaired == 1 else 'were'} read as if it were B- (first: line {self._first_repaired})"
            )
        bilou = self._came == "bioes" and self._letters["L"] + self._letters["U"]
        came = "BILOU" if bilou else self._came.upper()
        rewritten = self._came not in (self._target, "none") or bilou
        sentences = [
            repaired,
            f"{came} labels became {self._target.upper()}" if rewritten and self._target != "none" else "",
            f"{_count(self.widened, 'span', 'spans')} cut a word and became all of it" if self.widened else "",
            f"{_count(self.spaces, 'word', 'words')} had spaces inside, which became U+00A0" if self.spaces else "",
            f"{_count(self.cut, 'word was', 'words were')} cut into parts, which have its label" if self.cut else "",
        ]
        return [f"{self._path}: {each}." for each in sentences if each]


def _plain(row: TaggedRow, notes: Notes) -> TaggedRow:
    """With words and labels that a row of them can hold."""
    words, labels = ([without_spaces(each) for each in side] for side in (row.words, row.labels))
    notes.spaces += sum(map(str.__ne__, words, row.words))
    return row._replace(words=words, labels=labels)


def _cut(row: TaggedRow, unit: Unit, notes: Notes) -> TaggedRow:
    """With each word cut into units, of which the first has its label and the others go on with it."""
    if unit == "word":
        return row
    words, labels = list[str](), list[str]()
    for word, label in zip(row.words, row.labels, strict=True):
        parts = units_of(word, unit)
        words += parts
        labels += going_on(label, len(parts))
        notes.cut += len(parts) > 1
    return row._replace(words=words, labels=labels)


def going_on(label: str, parts: int) -> list[str]:
    """The labels of the parts of a word with this one: B-X, I-X, I-X; of one that is of no scheme, the same."""
    found = LABEL.match(label)
    if parts < 2 or found is None or found[1] == OUTSIDE:
        return [label] * parts
    kind, inside = label[1:], "M" if found[1] == "M" else "I"
    first = "B" if found[1] in "BSU" else inside
    last = found[1] if found[1] in "EL" else "E" if found[1] == "S" else "L" if found[1] == "U" else inside
    return [first + kind, *[inside + kind] * (parts - 2), last + kind]


def _count(number: int, one: str, several: str) -> str:
    return f"1 {one}" if number == 1 else f"{number:,} {several}"


def unseen_labels(known: Iterable[str], counts: Counter[str]) -> str:
    """Which labels of a held-out file training never had, in a sentence; "" where it had all."""
    there = set(known)
    new = sorted(label for label in counts if label not in there)
    if not new:
        return ""
    have = _count(sum(counts[label] for label in new), "word has", "words have")
    return f"{have} a label that training never had, and will be missed: {quoted(new, NAMED)}."


def one_scheme(texts: Sequence[TaggedTexts]) -> Scheme:
    """The scheme of the labels of several files."""
    return scheme_of({label for each in texts for label in each.labels})


def check_labels(path: Path, labels: Iterable[str]) -> None:
    """Raises InputError where all words have one label, or there are more labels than a model can have."""
    found = sorted(set(labels))
    if len(found) < 2:
        raise InputError(
            f"{path}: expected words with two different labels or more; got {quoted(found, NAMED) or 'none'}."
        )
    if len(found) > (most := most_labels(scheme_of(found))):
        raise InputError(
            f"{path}: expected at most {most:,} different labels; got {len(found):,}, such as {quoted(found, NAMED)}. "
            "Name the column of the labels, if these are none."
        )
