"""Tables of words with labels, such as .csv: a row for each word, or for each text.

Sentence #,Word,Tag            a word a row; a sentence begins where this column says something new
Sentence: 1,EU,B-ORG
,rejects,O

tokens,tags                    a text a row: words and labels with spaces between, or as Python writes lists
EU rejects,B-ORG O
"['EU', 'rejects']","['B-ORG', 'O']"
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from transduce.core.errors import InputError
from transduce.core.printable import quoted
from transduce.data.formats import format_of
from transduce.data.structures.tagged_rows import LABELS, Problems, TaggedRow

WORDS = ("word", "words", "token", "tokens", "form", "forms", "text", "sentence")
TAGS = (*LABELS, "ner", "tag", "ner_tag", "label", "pos", "pos_tag", "tags")
SENTENCES = ("sentence", "sentence_id", "sentence id", "sentence_idx", "sentence #", "sent", "sent_id", "text_id")
ITEM = re.compile(r"'((?:[^'\\]|\\.?)*)(?:'|\Z)|\"((?:[^\"\\]|\\.?)*)(?:\"|\Z)|([^\s,'\"\[\]]+)")  # of a list


class TaggedColumns(NamedTuple):
    """Which columns are which; sentence: None = a row is a text."""

    word: str
    label: str
    sentence: str | None


def tagged_columns(names: Sequence[str], word: str | None = None, label: str | None = None) -> TaggedColumns | None:
    """Which columns hold words, labels and sentences: those named, else those with a usual name; None: there are none.

    A column "sentence" is one of sentences where another one holds words.
    """
    words = [word] if word else _usual(names, WORDS)
    labels = [label] if label else _usual(names, TAGS)
    if not words or not labels:
        return None
    sentences = [each for each in _usual(names, SENTENCES) if each not in (words[0], labels[0])]
    return TaggedColumns(words[0], labels[0], next(iter(sentences), None))


def _usual(names: Sequence[str], usual: Sequence[str]) -> list[str]:
    """The names that are usual, the most usual first, whatever their case."""
    found = [name for name in names if name.strip().lower() in usual]
    return sorted(found, key=lambda name: usual.index(name.strip().lower()))


def table_rows(path: Path, word: str | None = None, label: str | None = None) -> Iterator[TaggedRow]:
    """The texts of a table.

    Args:
        word, label: the names of the columns; None = usual names.

    Raises:
        InputError: a missing file or column; rows without a word or a label, or with another number of labels than of
            words. All are named.
    """
    format = format_of(path)
    names = [str(each) for each in format.columns(path)]
    columns = tagged_columns(names, word, label)
    if columns is None:
        raise InputError(
            f"{path}: expected a column of words and one of labels, such as word and tag; it has "
            f"{quoted(names, 10)}. Name them: word = .., label = .., or --source-column and --target-column."
        )
    keys = [each for each in columns if each is not None]
    rows = format.rows(path, keys)
    problems = Problems(path)
    yield from _of_words(rows, problems) if columns.sentence else _of_texts(rows, problems)
    problems.check()


def _of_words(rows: Iterator[tuple[int, list[str]]], problems: Problems) -> Iterator[TaggedRow]:
    """A row for each word: a text is what stands before a row that names another sentence."""

    def numbered() -> Iterator[tuple[int, int, str, str]]:
        sentence, number = "", 0
        for line, (word, label, named) in rows:
            number += bool(named.strip()) and named != sentence
            sentence = named if named.strip() else sentence
            if word.strip() and label.strip():
                yield number, line, word.strip(), label.strip()
            else:
                problems.add(line, f"expected a word and its label; got {quoted([word, label], 2)}.")

    for _, group in groupby(numbered(), key=lambda each: each[0]):
        _, lines, words, labels = zip(*group, strict=True)
        yield TaggedRow(lines[0], list(words), list(labels))


def _of_texts(rows: Iterator[tuple[int, list[str]]], problems: Problems) -> Iterator[TaggedRow]:
    for line, (text, tags) in rows:
        words, labels = listed(text), listed(tags, labels=True)
        if len(words) != len(labels):
            problems.add(line, f"expected a label for each word; got {len(words)} words and {len(labels)} labels.")
        else:
            yield TaggedRow(line, words, labels)


def listed(cell: str, labels: bool = False) -> list[str]:
    """The items of a cell: what stands between spaces, or in a list as Python and NumPy write them.

    labels: whether they are labels, of which none looks like a list, as a word such as [UNK] does.
    """
    text = cell.strip()
    is_list = text.startswith("[") and text.endswith("]")
    if not is_list or not (labels or text == "[]" or re.search("['\",]", text)):
        return text.split()
    return [_unescaped(next(filter(None, each), "")) for each in ITEM.findall(text[1:-1])]


def _unescaped(item: str) -> str:
    """With what a backslash stands for, as in Python."""
    if "\\" not in item:
        return item
    try:
        return item.encode("latin-1", "backslashreplace").decode("unicode_escape")
    except UnicodeDecodeError:
        return item
