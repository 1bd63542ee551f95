"""Files of words with labels, row by row: CoNLL's columns, CoNLL-U, JSON objects, segmented text.

EU NNP B-ORG         CoNLL: a word a line, an empty line between texts; tabs or spaces between columns
1 EU EU PROPN ..     CoNLL-U: ten columns with tabs; # comments, ranges 3-4 and empty nodes 5.1 are no words
{"tokens": ["EU", ..], "ner_tags": ["B-ORG", ..]}
{"text": "EU rejects ..", "spans": [[0, 2, "ORG"]]}
我 喜欢 猫           segmented: words with spaces between, whose characters are B M E S
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from transduce.core.errors import InputError
from transduce.core.printable import PROBLEMS
from transduce.data.files import text_lines
from transduce.data.formats.jsonl import Jsonl
from transduce.data.structures.label_schemes import LabelSpan, labels_of
from transduce.data.structures.word_units import SPACES, unit_bounds, units_of
from transduce.data.tokenizers.patterns import SURROGATE

FIELDS = {"lemma": 2, "upos": 3, "xpos": 4, "feats": 5, "deprel": 7}  # of CoNLL-U, besides form: 1
TOKENS = ("tokens", "words", "source")
LABELS = ("ner_tags", "tags", "labels", "pos_tags", "upos", "target")
SPANS = ("spans", "label", "entities", "labels")
DOCUMENT, NEW_DOCUMENT = "-DOCSTART-", "# newdoc"  # before each document: of CoNLL, of CoNLL-U
MARK = [DOCUMENT]
SHOWN = 40  # characters of what came in a message
DIGITS = 18  # of the number of a character in a text


class TaggedRow(NamedTuple):
    """A text: the line of its first word, its words, the label of each; widened: how many spans cut a word.

    document: which one it is of, counted from 1; 0 = the file marks none before it.
    """

    line: int
    words: list[str]
    labels: list[str]
    widened: int = 0
    document: int = 0


def conll_rows(path: Path, word: int = 0, label: int | None = None) -> Iterator[TaggedRow]:
    """The rows of a file in columns.

    Args:
        word, label: the columns, from 0, or from -1, the last, backwards; None = the last, and all lines have as many.

    Raises:
        InputError: a missing file; lines that lack a column, or have more or fewer than the first one where the last
            one is meant, all named.
    """
    problems, alike = Problems(path), label is None
    label = -1 if label is None else label
    least, columns, first = max(word + 1, label + 1, -label, 2), 0, 0

    def cells() -> Iterator[tuple[int, list[str]]]:
        nonlocal columns, first
        for number, line in enumerate(text_lines(path), 1):
            found = line.split("\t") if "\t" in line else line.split()
            if not line.strip():
                yield number, []
            elif line.startswith(DOCUMENT):
                yield number, MARK
            elif len(found) < least or not (found[word].strip() and found[label].strip()):
                wanted = "a word and its label" if least == 2 else f"{least} columns"
                problems.add(number, f'expected {wanted}; got "{line[:SHOWN]}".')
            elif alike and columns and len(found) != columns:
                wanted = f"{columns} columns, as in line {first}"
                problems.add(number, f'expected {wanted}; got "{line[:SHOWN]}". Correct it, or name the columns.')
            else:
                columns, first = columns or len(found), first or number
                yield number, [found[word], found[label].strip()]

    yield from _grouped(cells())
    problems.check()


def conllu_rows(path: Path, label: str | int = "upos", word: int = 1) -> Iterator[TaggedRow]:
    """The rows of a file in CoNLL-U.

    Args:
        label: upos, xpos, feats, deprel, lemma, or a column from 0.

    Raises:
        InputError: a missing file, an unknown name; lines that lack a column, all named.
    """
    if isinstance(label, str) and label not in FIELDS:
        raise InputError(f'{path}: label: expected one of {", ".join(FIELDS)}, or a column from 0; got "{label}".')
    column = FIELDS[label] if isinstance(label, str) else label
    problems = Problems(path)

    def cells() -> Iterator[tuple[int, list[str]]]:
        for number, line in enumerate(text_lines(path), 1):
            found = line.split("\t")
            if not line.strip():
                yield number, []
            elif line.startswith(NEW_DOCUMENT):
                yield number, MARK
            elif line.startswith("#") or "-" in found[0] or "." in found[0]:
                continue
            elif len(found) <= max(column, word):
                problems.add(number, f'expected the ten tab-separated columns of CoNLL-U; got "{line[:SHOWN]}".')
            else:
                yield number, [found[word], found[column]]

    yield from _grouped(cells())
    problems.check()


def _grouped(cells: Iterable[tuple[int, list[str]]]) -> Iterator[TaggedRow]:
    """Words and labels up to each empty line, or to where a document begins."""
    first, words, labels, document = 0, list[str](), list[str](), 0
    for number, cell in chain(cells, [(0, list[str]())]):
        if len(cell) == 2:
            first = first or number
            words.append(cell[0])
            labels.append(cell[1])
            continue
        if words:
            yield TaggedRow(first, words, labels, document=document)
            first, words, labels = 0, [], []
        document += cell == MARK


def json_rows(
    path: Path,
    unit: str,
    scheme: str,
    word: str | None = None,
    label: str | None = None,
    format: Jsonl | None = None,
) -> Iterator[TaggedRow]:
    """The rows of a .jsonl, or of another format of objects.

    Each has tokens with their labels, as lists or with spaces between; or a text with spans.

    Args:
        unit: how texts are cut into words; see `unit_bounds`.
        scheme: how spans are written.
        word: the key of the tokens; None = the first usual one that an object has. label: that of labels or spans.

    Raises:
        InputError: a missing file; lines that are neither, or whose labels are not as many as their tokens; spans that
            overlap, or lie outside of their texts. All are named.
    """
    problems = Problems(path)
    for each in (format or Jsonl()).objects(path):
        try:
            row = _json_row(each.value, unit, scheme, word, label)
            _check_characters(row, each.written)
        except InputError as error:
            problems.add(each.line, error.problems[0])
        else:
            yield row._replace(line=each.line)
    problems.check()


def _json_row(found: Any, unit: str, scheme: str, word: str | None, label: str | None) -> TaggedRow:
    table = found if isinstance(found, dict) else {}
    tokens = _listed(table, [word] if word else TOKENS)
    labels = _listed(table, [label] if label else LABELS if tokens is not None else SPANS)
    text = table.get("text")
    if labels is None or (tokens is None and not isinstance(text, str)):
        named = f'"{label}"' if label else '"ner_tags", "tags" or "labels"'
        spans = f'"{label}"' if label else '"spans"'
        raise InputError(f'expected an object with "tokens" and {named}, or with "text" and {spans}.')
    if tokens is None:
        return _spanned(str(text), labels, unit, scheme)
    if len(tokens) != len(labels):
        raise InputError(f"expected a label for each token; got {len(tokens)} tokens and {len(labels)} labels.")
    if not all(isinstance(each, str) for each in [*tokens, *labels]):
        raise InputError("expected texts as tokens, and texts or numbers as labels.")
    return TaggedRow(0, [str(each) for each in tokens], [str(each) for each in labels])


def _check_characters(row: TaggedRow, written: str) -> None:
    """Raises InputError for half a character, which JSON can write and UTF-8 cannot."""
    if "\\u" in written and any(map(SURROGATE.search, chain(row.words, row.labels))):
        raise InputError("expected text; got half a character (a lone surrogate), as \\ud83d. Correct or delete it.")


def _listed(table: dict[str, Any], keys: Sequence[str]) -> list[Any] | None:
    """What is at the first of the keys that an object has; of a text what stands between its spaces."""
    value = next((table[key] for key in keys if isinstance(table.get(key), list | str)), None)
    return units_of(value, "word") if isinstance(value, str) else value


def _spanned(text: str, given: Sequence[Any], unit: str, scheme: str) -> TaggedRow:
    """A text with spans of characters, as words with labels."""
    bounds = unit_bounds(text, unit)
    spans, widened = list[LabelSpan](), 0
    for start, end, kind in sorted(_span(each, len(text)) for each in given):
        within = [place for place, (first, last) in enumerate(bounds) if first < end and last > start]
        if not within:
            raise InputError(f'expected words in the span [{start}, {end}, "{kind}"]; there is none.')
        if spans and within[0] < spans[-1].end:
            before = spans[-1]
            named = text[bounds[before.start][0] : bounds[before.end - 1][1]]
            raise InputError(
                f'expected spans that share no word; "{named}" ({before.kind}) and "{text[start:end]}" ({kind}) do.'
            )
        widened += bounds[within[0]][0] < start or bounds[within[-1]][1] > end
        spans.append(LabelSpan(within[0], within[-1] + 1, kind))
    words = [text[start:end] for start, end in bounds]
    return TaggedRow(0, words, labels_of(spans, len(words), scheme), widened)


def _span(given: Any, length: int) -> tuple[int, int, str]:
    """[start, end, "PER"], or an object with these. Raises InputError for anything else."""
    values = [given.get(key) for key in ("start", "end", "label")] if isinstance(given, dict) else given
    if isinstance(values, list) and len(values) >= 3 and isinstance(values[2], str) and values[2]:
        start, end = map(_place, values[:2])
        if 0 <= start < end <= length:
            return start, end, values[2]
    raise InputError(f'expected spans as [start, end, "LABEL"] within {length} characters; got {str(given)[:SHOWN]}.')


def _place(given: Any) -> int:
    """The number of a character; -1 for what is none."""
    written = str(given)
    return int(written) if len(written) <= DIGITS and written.isdecimal() else -1


def segmented_rows(path: Path) -> Iterator[TaggedRow]:
    """The characters of words with spaces between, with the labels B, M, E, S. Raises InputError for a missing file."""
    for number, line in enumerate(text_lines(path), 1):
        words = [units_of(word, "character") for word in SPACES.split(line) if word.strip()]
        labels = [label for word in words for label in labels_of([LabelSpan(0, len(word), "")], len(word), "bmes")]
        if words:
            yield TaggedRow(number, [each for word in words for each in word], labels)


class Problems:
    """What is wrong with the lines of a file: the first ones by name, and how many more."""

    def __init__(self, path: Path) -> None:
        self._path, self._named, self._count = path, list[str](), 0

    def add(self, line: int, what: str) -> None:
        """One more."""
        self._count += 1
        if len(self._named) < PROBLEMS:
            self._named.append(f"{self._path}, line {line}: {what}")

    def check(self) -> None:
        """Raises InputError where there are any."""
        more = self._count - len(self._named)
        if self._named:
            raise InputError(self._named + ([f"{self._path}: {more:,} more lines like these."] if more else []))
