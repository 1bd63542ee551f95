"""A SentencePiece model of others as a tokenizer: for engines that read pieces, not ids."""

from collections.abc import Iterable, Sequence
from typing import Any

from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.data.tokenizers.tokenizer import Tokenizer


class SentencePieceTokenizer(Tokenizer):
    """Cuts and joins with SentencePiece's own library.

    Args:
        model: the contents of a `.model` or `.spm` file.
        name: for messages.

    Raises:
        InputError: the library is missing; this is no model of SentencePiece.
    """

    def __init__(self, model: bytes, name: str) -> None:
        sentencepiece = library("sentencepiece", "reading SentencePiece models", "argos")
        try:
            self._processor: Any = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, ValueError, TypeError) as error:
            raise InputError(f"{name}: expected a model of SentencePiece, but it cannot be read: {error}.") from None
        self._name = name
        self.size = self._processor.get_piece_size()
        self.pad, self.start = self._processor.pad_id(), self._processor.bos_id()
        self.end, self.unknown = self._processor.eos_id(), self._processor.unk_id()
        self.added: list[str] = []

    def equals(self, other: Tokenizer) -> bool:
        """Whether it is the same model."""
        return isinstance(other, SentencePieceTokenizer) and self.to_json() == other.to_json()

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without start and end."""
        return self._processor.encode([_without_surrogates(text) for text in texts])

    def decode(self, ids: Iterable[int]) -> str:
        return self.joined(self.tokens(ids))

    def joined(self, pieces: Sequence[str]) -> str:
        """The text of pieces, which need not be in the vocabulary."""
        return str(self._processor.decode_pieces(list(pieces)))

    def tokens(self, ids: Iterable[int]) -> list[str]:
        return [str(self._processor.id_to_piece(int(index))) for index in ids]

    def ids(self, tokens: Sequence[str]) -> list[int]:
        return [int(self._processor.piece_to_id(token)) for token in tokens]

    def offsets(self, text: str, masked: bool = False) -> list[tuple[int, int]]:
        """For each piece the characters [first, last) that it came from."""
        found = self._processor.encode(_without_surrogates(text), out_type="immutable_proto")
        return [(piece.begin, piece.end) for piece in found.pieces]

    def to_json(self) -> str:
        """There is none of this kind; a text that tells models apart."""
        return f'"{self._processor.serialized_model_proto().hex()}"'


def _without_surrogates(text: str) -> str:
    """Without halves of characters, which the library refuses."""
    return text.encode("utf-8", "replace").decode("utf-8")
