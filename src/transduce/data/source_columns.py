"""Sources of several columns, such as a lemma and its tags: joined for training, and likewise where one is read.

talo <tab> N;IN+ESS;SG   ->   talo | N;IN+ESS;SG
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

BETWEEN_COLUMNS = " | "


class SourceColumns(NamedTuple):
    """How many there are, and what stands between them in the source."""

    number: int
    separator: str

    def joined(self, texts: Sequence[str]) -> list[str]:
        """Texts that are these columns with tabs between, as the model has learnt them; all others as they are."""
        return [text.replace("\t", self.separator) if text.count("\t") == self.number - 1 else text for text in texts]

    def joined_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """The same of the sources of pairs."""
        return list(zip(self.joined([source for source, _ in pairs]), [target for _, target in pairs], strict=True))


def separator_of(given: str | None) -> str:
    """What stands between columns, where a recipe's `source_separator` is this."""
    return BETWEEN_COLUMNS if given is None else given


ONE = SourceColumns(1, BETWEEN_COLUMNS)


def source_columns(config: Mapping[str, Any]) -> SourceColumns:
    """Those of a model, by the recipe in its file; ONE where its sources are of one column, or of different ones."""
    data = config.get("data")
    entries = data.get("train") if isinstance(data, Mapping) else None
    found = {_of_entry(each) for each in entries} if isinstance(entries, list | tuple) else set()
    return found.pop() if len(found) == 1 else ONE


def _of_entry(entry: Any) -> SourceColumns:
    columns = entry.get("source_column") if isinstance(entry, Mapping) else None
    if not isinstance(columns, list | tuple) or len(columns) < 2:
        return ONE
    return SourceColumns(len(columns), separator_of(entry.get("source_separator")))
