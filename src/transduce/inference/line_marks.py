"""What stands between the lines of a language model's texts: "|" between the verses of a poem, or a line break."""

from transduce.data.tokenizers.tokenizer import Tokenizer

MARKS = ("|", "/")  # what may stand between the lines of a text that is one line itself


class LineMarks:
    """The marks that a model may write between lines.

    Args:
        tokenizer: of what it writes.
        data: the recipe's, which says whether it was trained on running text, whose lines end with a line break.
        separator: the mark to use in place of the usual ones.
    """

    def __init__(self, tokenizer: Tokenizer, data: object, separator: str | None = None) -> None:
        self._tokenizer = tokenizer
        running = any(getattr(file, "unit", "line") == "stream" for file in getattr(data, "train", ()))
        self.asked = (separator,) if separator is not None else ("\n",) if running else MARKS

    @property
    def first(self) -> str | None:
        """The first of them that the model can write; None if it can write none, and so no acrostic."""
        return next((mark for mark in self.asked if mark and self.writes(mark)), None)

    def writes(self, text: str) -> bool:
        """Whether the model has tokens for the text."""
        ids = self._tokenizer.encode([text])[0]
        return self._tokenizer.unknown not in ids and self._tokenizer.decode(ids) == text
