"""Plain text: all of it is translated, line by line."""

from collections.abc import Sequence

from transduce.documents.runs import Fits, Output, Piece
from transduce.inference.sentences import has_letters_or_digits, rejoined, segments


class PlainText:
    """Text as pieces to translate; the white space between them stays."""

    def __init__(self, source: str, fits: Fits, language: str = "") -> None:
        self._source = source
        found = segments(source, fits, language=language)
        self._cut = [each for each in found if has_letters_or_digits(source[each.start : each.end])]
        self.pieces = [Piece(source[start:end], []) for start, end in self._cut]

    def rejoined(self, outputs: Sequence[Output]) -> str:
        """The text with each of `pieces` replaced by its output."""
        return rejoined(self._source, self._cut, [output for output, _ in outputs])
