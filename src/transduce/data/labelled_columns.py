"""Which columns of a table are texts with their labels, where nobody says it: by their names, or by their values.

Looked at are the names and the first 2,000 rows, so the same table always gives the same answer.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from transduce.core.languages import BY_CODE
from transduce.core.printable import quoted
from transduce.data.formats import Format, Key
from transduce.data.pairs.languages import languages_of_columns
from transduce.data.structures.label_schemes import parts_of, scheme_of

LOOKED_AT = 2_000  # rows
MOST_COLUMNS = 100  # of wider tables none is looked at
MOST_LABELS, LONGEST_LABEL, ROWS_A_LABEL = 50, 40, 10  # of a column that is labels by its values
DIFFERENT = 0.9  # share of different texts beside such a column
OWN_TEXT = 0.5  # different values for a row, from which a column called "label" holds texts rather
SHOWN = 5  # labels that are told
WORDS_A_TEXT, SHARED = 3, 0.5  # of two texts in one language: words of each; share of words that the first has, too
LABELS = (
    *("label", "labels", "gold_label", "class", "classes", "category", "categories", "sentiment"),
    *("标签", "类别", "分类", "情感"),
)
"""Names of columns of labels, whatever they hold."""
LABELS_IF_FEW = (
    *("target", "answer", "output", "topic", "intent", "emotion", "polarity", "rating", "stars", "genre", "stance"),
    *("spam", "toxic", "y"),
)
"""Names of columns that are labels if they hold few different values."""
TEXTS = (
    *("text", "texts", "sentence", "review", "content", "comment", "message", "body", "document", "tweet", "utterance"),
    *("question", "query", "abstract", "description", "title", "headline", "phrase", "input"),
    *("文本", "内容", "句子", "评论"),
)
"""Names of columns of texts."""
TWO_TEXTS = (
    *(("premise", "hypothesis"), ("sentence1", "sentence2"), ("question1", "question2"), ("text1", "text2")),
    *(("text_a", "text_b"), ("sentence_a", "sentence_b"), ("question", "sentence"), ("question", "passage")),
    *(("question", "context"), ("query", "document"), ("claim", "evidence")),
)
"""Names of columns of two texts that are classified together."""
LANGUAGES = {name.lower() for name in BY_CODE.values()}


class LabelledColumns(NamedTuple):
    """What a table of labelled texts is read by.

    text: the column of the texts; two of pairs of texts. why: what says so.
    doubt: what speaks against it; "" = nothing.
    """

    text: tuple[Key, ...]
    label: Key
    why: str
    doubt: str = ""


def are_few(values: Sequence[str]) -> bool:
    """Whether values are labels by themselves: few different ones, short, and each in many rows."""
    found = {*values}
    short = all(len(each) <= LONGEST_LABEL for each in found)
    return 2 <= len(found) <= MOST_LABELS and short and len(values) >= ROWS_A_LABEL * len(found)


class _Column(NamedTuple):
    key: Key
    name: str
    values: list[str]

    @property
    def different(self) -> list[str]:
        return list(dict.fromkeys(self.values))

    @property
    def is_few(self) -> bool:
        """Whether it holds labels by its values alone."""
        return are_few(self.values)

    @property
    def is_of_spans(self) -> bool:
        """Whether it holds labels of words, such as B-PER and I-PER."""
        return scheme_of(self.different) != "none" and any(parts_of(each).kind for each in self.different)

    @property
    def is_of_texts(self) -> bool:
        """Whether nearly each value is another one, and most have letters."""
        letters = sum(any(map(str.isalpha, each)) for each in self.values)
        return len(self.different) >= DIFFERENT * len(self.values) and letters > len(self.values) / 2

    @property
    def length(self) -> float:
        return sum(map(len, self.values)) / max(1, len(self.values))


class _Table(NamedTuple):
    columns: list[_Column]

    def called(self, names: Iterable[str]) -> _Column | None:
        """The first column with one of these names, in their order."""
        by_name = {each.name: each for each in reversed(self.columns)}
        return next((by_name[name] for name in names if name in by_name), None)

    def without(self, column: _Column) -> "_Table":
        return _Table([each for each in self.columns if each.key != column.key])


class Looked:
    """A table, of which the names of its columns and its first rows are read.

    Args:
        asked: columns of the texts that somebody named; () = none.
        label: that of the labels; None = none.

    Raises:
        InputError: it cannot be read.
    """

    def __init__(self, path: Path, format: Format, asked: Sequence[Key] = (), label: Key | None = None) -> None:
        self.path, self.format, self.asked, self.label = path, format, tuple(asked), label

    @cached_property
    def keys(self) -> list[Key]:
        """The columns that are looked at: of objects those that hold texts, and those called as labels are."""
        columns = list(self.format.columns(self.path))
        if not self.format.counted:
            texts = set(self.format.text_columns(self.path))
            return [key for key in columns if key in texts or str(key).lower() in (*LABELS, *LABELS_IF_FEW)]
        if columns and isinstance(columns[0], int):
            _, first = next(iter(self.format.rows(self.path, columns)), (0, list[str]()))
            words = [cell.strip().lower() for cell in first]
            if len({*words}) == len(words) and {*words} & {*LABELS} and {*words} & {*TEXTS}:
                return [*first]  # a header that the format does not know
        return columns

    @cached_property
    def table(self) -> _Table:
        """The columns with the values that are not empty."""
        optional = self.keys if self.format.sparse else ()
        rows = [row for _, row in islice(self.format.rows(self.path, self.keys, optional), LOOKED_AT)]
        cells = [[row[place].strip() for row in rows] for place in range(len(self.keys))]
        names = [str(key).strip().lower() for key in self.keys]
        columns = zip(self.keys, names, cells, strict=True)
        return _Table([_Column(key, name, [*filter(None, each)]) for key, name, each in columns])

    def recognised(self) -> LabelledColumns | None:
        """The columns of labelled texts; None: it holds something else, or nothing that is known."""
        if self.format.languages or not 2 <= len(self.keys) <= MOST_COLUMNS or self._names_pairs():
            return None
        label, by_name = self._labels()
        if label is None:
            return None
        two = self._two_texts(label) if by_name or self._two_alike() else ()
        text = two or self._text(label, by_name)
        if not text:
            return None
        return LabelledColumns(text, label.key, self._why(label, by_name), self._doubt(label, text, by_name))

    def chosen(self) -> LabelledColumns | None:
        """The columns of a table that is known to hold labels: recognised, asked for, or the last with few values."""
        found = self.recognised()
        if found is not None:
            return found
        if self.asked and self.label is not None:
            return LabelledColumns(self.asked, self.label, "")
        named = [self._by_key(self.label)] if self.label is not None else [self.table.called(LABELS)]
        few = [each for each in self.table.columns if each.is_few]
        label = next((each for each in (*named, *few[-1:], *self.table.columns[1:2]) if each), None)
        text = self._two_texts(label) or self._text(label, by_name=True) if label else ()
        return LabelledColumns(text, label.key, self._why(label, False)) if label and text else None

    def _names_pairs(self) -> bool:
        """Whether the columns are called as those of pairs of texts are."""
        names = [each.name for each in self.table.columns]
        languages = sum(name in LANGUAGES for name in names) > 1
        return {"source", "target"} <= {*names} or languages or languages_of_columns(names) != ("", "")

    def _by_key(self, key: Key) -> _Column | None:
        return next((each for place, each in enumerate(self.table.columns) if key in (each.key, place)), None)

    def _labels(self) -> tuple[_Column | None, bool]:
        """The column of the labels, and whether its name says so."""
        table = self.table
        if self.label is not None:
            asked = self._by_key(self.label)
            table = _Table([asked] if asked else [])
        if (named := table.called(LABELS)) is not None:
            return named, True
        if (named := table.called(LABELS_IF_FEW)) is not None and named.is_few:
            return named, True
        if self.label is None and len(self.keys) != 2:
            return (table.columns[-1], False) if self._two_alike() else (None, False)
        few = [each for each in table.columns if each.is_few and not each.is_of_spans]
        return (few[0], False) if len(few) == 1 else (None, False)

    def _two_alike(self) -> bool:
        """Whether of three columns two hold texts of one language, and the last few values: pairs with labels,
        perhaps."""
        columns = self.table.columns
        if self.asked or len(columns) != 3 or not columns[2].is_few or columns[2].is_of_spans:
            return False
        one, other = (Counter(word for text in each.values for word in text.lower().split()) for each in columns[:2])
        words = [each.total() >= WORDS_A_TEXT * max(1, len(columns[0].values)) for each in (one, other)]
        shared = sum(count for word, count in other.items() if word in one)
        return all(words) and shared >= SHARED * other.total()

    def _two_texts(self, label: _Column) -> tuple[Key, ...]:
        if self.asked:
            return self.asked if len(self.asked) == 2 else ()
        if self.label is None and self._two_alike():
            return self.table.columns[0].key, self.table.columns[1].key
        others = self.table.without(label)
        pairs = ([others.called([name]) for name in names] for names in TWO_TEXTS)
        return next(((one.key, other.key) for one, other in pairs if one and other), ())

    def _text(self, label: _Column, by_name: bool) -> tuple[Key, ...]:
        """The column of the texts: as asked for, by its name, or the one with the longest; () = there is none."""
        if self.asked:
            return self.asked if len(self.asked) == 1 else ()
        others = self.table.without(label)
        if by_name and (named := others.called(TEXTS)) is not None:
            return (named.key,)
        texts = [each for each in others.columns if each.is_of_texts]
        if by_name and len(others.columns) == 1:
            texts = others.columns
        return (max(texts, key=lambda each: each.length).key,) if texts else ()

    def _why(self, label: _Column, by_name: bool) -> str:
        found = sorted(label.different)
        what = "labels" if by_name else "different values"
        return f'column "{label.key}" has {len(found):,} {what} ({quoted(found, SHOWN, LONGEST_LABEL)})'

    def _doubt(self, label: _Column, text: tuple[Key, ...], by_name: bool) -> str:
        """What speaks for pairs of texts."""
        if len(label.values) > 2 and len(label.different) > max(2, OWN_TEXT * len(label.values)):
            return f'most values of column "{label.key}" occur once, as texts do'
        if not by_name and len(text) == 2:
            return f'columns "{text[0]}" and "{text[1]}" both hold texts'
        if not by_name and self.asked:
            return "columns are named as for pairs of texts"
        others = [each for each in self.table.without(label).columns if each.key not in text and each.is_of_texts]
        chosen = self._by_key(text[0])
        alike = [each for each in others if chosen and chosen.name not in TEXTS and 3 * each.length > chosen.length]
        if alike and not self.asked and len(text) == 1:
            return f'columns "{text[0]}" and "{alike[0].key}" both hold texts'
        return ""
