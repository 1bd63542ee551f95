"""A tokenizer whose ids run from the end of a text to its beginning, for models that write from right to left."""

from collections.abc import Iterable, Sequence

from transduce.core.errors import InputError
from transduce.data.tokenizers.text_ids import Tokenizer


class RightToLeft(Tokenizer):
    """The ids of another tokenizer in reverse order; texts stay as people read them.

    Args:
        tokenizer: any; its file is that of this one as well, as the direction belongs to the task.
    """

    right_to_left = True

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__(tokenizer._inner, tokenizer.roles)

    @property
    def left_to_right(self) -> Tokenizer:
        """The same in the order of reading."""
        return Tokenizer(self._inner, self.roles)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, the last token of the text first."""
        return [ids[::-1] for ids in super().encode(texts)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`, the first of which is its last token."""
        return super().decode(list(ids)[::-1])

    def offsets(self, text: str, masked: bool = False) -> list[tuple[int, int]]:
        return super().offsets(text, masked)[::-1]

    def spellings(self) -> list[bytes]:
        """None: what is joined in the order of writing is no text.

        Raises:
            InputError: always.
        """
        raise InputError(
            "task.direction: this model writes from right to left, so phrases cannot be followed while it writes: "
            "leave the constraints out."
        )
