"""Text <-> token ids: the library `tokenizers`, with four special tokens and one text policy fixed.

What each kind makes of a text, before anything is learnt:

| kind | unit | text policy |
|---|---|---|
| bpe, unigram | subword | NFC, control characters -> space, no spaces at the ends; punctuation stands alone |
| whitespace | word between spaces | NFC, control characters -> space, one space between words |
| character | character | NFC, control characters but "\\n" -> space |
| byte | UTF-8 byte | none |

`normalization = "NFD"` puts NFD in the place of NFC: an accent, and each letter of a Hangul syllable, is a character of
its own. decode composes them again.

decode(encode(text)) is the text under its kind's policy: inner runs of spaces survive but in whitespace, and
byte gives back any text exactly. A character (or word) that training did not see reads "<unk>".

"Control characters" are Unicode's Cc (NUL, CR, TAB, "\\n", U+0085, ...) and the line breaks U+2028 and
U+2029: a decoded text of any kind but byte and character is therefore always one line. "▁" (U+2581) stands
for a space and reads as one.

A special token's name in a text is text: "</s>" is three punctuation marks and a letter, never the end of a
sentence. One exception is meant: to a whitespace tokenizer the word "<unk>" *is* the unknown word, because
corpora such as the Penn Treebank come with their rare words already replaced by it.
"""

import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache, cached_property
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError, TransduceError
from transduce.data.tokenizers.patterns import as_our_errors, linear, refuse_surrogates
from transduce.data.tokenizers.tokenizer_check import check_tokenizer, is_the_librarys, probe

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Inner


PAD, START, END, UNKNOWN = SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")
MASK = "<mask>"
ABSENT = -1
USUAL_NAMES = {
    "pad": (PAD, "[PAD]", "<|pad|>", "<|padding|>"),
    "start": (START, "[CLS]", "[BOS]", "<bos>", "<|startoftext|>", "<|begin_of_text|>", "<|startoftranscript|>"),
    "end": (END, "[SEP]", "[EOS]", "<eos>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|im_end|>"),
    "unknown": (UNKNOWN, "[UNK]", "<|unk|>"),
    "mask": (MASK, "[MASK]", "<|mask|>"),
}


class Tokenizer:
    """Text to ids and back. Tokenizers learnt here have <pad>=0, <s>=1, </s>=2, <unk>=3.

    A foreign tokenizer.json keeps its own ids; its special tokens are found by their usual names, or by `roles`. Those
    for padding, start, unknown characters and masks may be absent: their id is then -1, and padding, or else the end of
    a text, begins an output.

    Args:
        roles: names of special tokens by what they are for: "pad", "start", "end", "unknown", "mask".

    Raises:
        InputError: a foreign vocabulary has no end token, or lacks one of `roles`.
    """

    right_to_left = False
    """Whether ids run from the end of a text to its beginning; see `transduce.data.tokenizers.right_to_left`."""

    def __init__(self, inner: "Inner", roles: Mapping[str, str] = MappingProxyType({})) -> None:
        inner.no_truncation()
        inner.no_padding()
        inner.encode_special_tokens = True  # "</s>" in a text is text
        self._inner = inner
        vocabulary = inner.get_vocab(with_added_tokens=True)
        self.roles = dict(roles)
        special = find_special(vocabulary, self.roles)
        self.pad, self.start = special["pad"], special["start"]
        self.end, self.unknown = special["end"], special["unknown"]
        self.mask = special["mask"]
        self.size = max(vocabulary.values()) + 1
        self._decomposes = _decomposes(inner)
        added = sorted(inner.get_added_tokens_decoder().items())
        special_ids = {index for index, token in added if token.special} - {self.unknown}
        self._silent = ({self.pad, self.start, self.end} | special_ids) - {ABSENT}
        self._unsaid = self._silent
        self.added = [token.content for _, token in added if not token.special]  # found before a text is cut

    @property
    def left_to_right(self) -> "Tokenizer":
        """The same in the order of reading."""
        return self

    def problems(self, *roles: str) -> list[str]:
        """Which of `roles` it lacks, each as a sentence."""
        return [_lacks(role) for role in roles if role not in self.special]

    @property
    def special(self) -> dict[str, int]:
        """The ids of the roles there are, by what they are for."""
        found = {role: getattr(self, role) for role in USUAL_NAMES}
        return {role: index for role, index in found.items() if index != ABSENT}

    @property
    def spaces_words(self) -> bool:
        """Whether a space is part of the word behind it, as byte-level BPE of GPT-2 has it (Radford et al. 2019)."""
        return self._byte_level is not None and bool(self._byte_level.use_regex)

    @property
    def spaces_pieces(self) -> bool:
        """Whether a piece that begins with "▁" has a space before it, as those learnt here do, and SentencePiece's."""
        return type(self._inner.decoder).__name__ == "Metaspace"

    @property
    def spaces_texts(self) -> bool:
        """Whether a text is read as if a space stood before it."""
        return self._byte_level is not None and bool(self._byte_level.add_prefix_space)

    @property
    def _byte_level(self) -> Any:
        """What cuts a text into words of bytes; None = another."""
        found = self._inner.pre_tokenizer
        return found if type(found).__name__ == "ByteLevel" else None

    @cached_property
    def within_texts(self) -> "Tokenizer":
        """The same for parts of a text: no space is added before any of them."""
        return self.spacing_texts(False)

    def spacing_texts(self, spaces: bool) -> "Tokenizer":
        """The same, which reads a text as if a space stood before it, or as it is."""
        if self._byte_level is None or self.spaces_texts == spaces:
            return self
        from tokenizers import Tokenizer as Inner

        table = json.loads(self.to_json())
        table["pre_tokenizer"]["add_prefix_space"] = spaces
        return type(self)(Inner.from_str(json.dumps(table, ensure_ascii=False)), self.roles)

    def equals(self, other: "Tokenizer") -> bool:
        """Whether both make the same ids of every text."""
        same = self.right_to_left == other.right_to_left and self.special == other.special
        return same and self.to_json() == other.to_json()

    def normalized(self, text: str) -> str:
        """The text as it is before it is cut into tokens: composed, in lower case if the recipe says so."""
        normalizer = self._inner.normalizer
        return str(normalizer.normalize_str(text)) if normalizer else text

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without start and end. Other threads go on meanwhile.

        Raises:
            InputError: a text holds a lone surrogate.
            TransduceError: a foreign tokenizer breaks down over a text.
        """
        listed = list(texts)
        with as_our_errors(listed):
            encoded = self._inner.encode_batch_fast(listed, add_special_tokens=False)
        return [self._only_text(encoding.ids) for encoding in encoded]

    def encode_words(self, texts: Sequence[str], masked: bool = False) -> list[list[list[int]]]:
        """The same, word by word: of each part that is cut into tokens by itself, and of each added token.

        masked: the name of the mask in a text is the mask.

        Raises: as `encode`.
        """
        listed, inner = list(texts), self._finding_masks if masked else self._inner
        with as_our_errors(listed):
            encoded = inner.encode_batch(listed, add_special_tokens=False)
        silent = self._silent - {self.mask} if masked else self._silent
        words = (self._words(encoding.word_ids, encoding.ids, silent) for encoding in encoded)
        return [[[index for _, index in word] for _, word in groupby(each, itemgetter(0))] for each in words]

    def with_added(self, tokens: Iterable[str]) -> "Tokenizer":
        """The same with each of `tokens` as one more token, which nothing cuts; the same object if it has all."""
        new = [token for token in dict.fromkeys(tokens) if token not in self.added]
        if not new:
            return self
        from tokenizers import AddedToken
        from tokenizers import Tokenizer as Inner

        inner = Inner.from_str(self.to_json())
        inner.add_tokens([AddedToken(token, normalized=False, special=False) for token in new])
        return Tokenizer(inner, self.roles)

    def with_mask(self) -> "Tokenizer":
        """The same with a token that stands for a hidden one, "<mask>"; the same object if it has one."""
        if self.mask != ABSENT:
            return self
        from tokenizers import AddedToken
        from tokenizers import Tokenizer as Inner

        inner = Inner.from_str(self.to_json())
        inner.add_special_tokens([AddedToken(MASK, normalized=False, special=True, lstrip=True)])
        return Tokenizer(inner, self.roles)

    def with_roles(self, roles: Mapping[str, str]) -> "Tokenizer":
        """The same with these special tokens in the place of those of usual names; "" = there is none.

        Raises:
            InputError: the vocabulary lacks one; all such are named.
        """
        return Tokenizer(self._inner, {**self.roles, **roles}) if roles else self

    def hiding_unknown(self) -> "Tokenizer":
        """The same, which leaves unknown tokens out of texts."""
        hiding = copy(self)
        hiding._unsaid = self._silent | ({self.unknown} - {ABSENT})
        return hiding

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`: pad, start, end and further special tokens are skipped, an unknown shows as its name.

        Raises:
            TransduceError: a foreign tokenizer breaks down over them.
        """
        kept = [int(index) for index in ids if index not in self._unsaid]
        try:
            text = str(self._inner.decode(kept, skip_special_tokens=False))
        except BaseException as error:
            if not is_the_librarys(error):
                raise
            raise TransduceError(f"the tokenizer failed on an output: {error}.") from error
        return unicodedata.normalize("NFC", text) if self._decomposes else text

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The vocabulary's own spelling of each id, "▁" for a space; for figures."""
        return [str(self._inner.id_to_token(int(index))) for index in ids]

    def spells(self, index: int) -> bool:
        """Whether an id has a spelling: of an imported vocabulary some may have none, such as that of padding."""
        return self._inner.id_to_token(index) is not None

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """The ids that `tokens` spells so.

        Raises:
            InputError: a spelling is no token's; all such are named.
        """
        refuse_surrogates(tokens)
        found = {token: self._inner.token_to_id(token) for token in tokens}
        missing = [f'"{token}" is not a token of this model.' for token, index in found.items() if index is None]
        if missing:
            raise InputError(missing)
        return [index for token in tokens if (index := found[token]) is not None]

    def spellings(self) -> list[bytes]:
        """Of each id there is; see `spelled`."""
        return self.spelled(range(self.size))

    def spelled(self, ids: Iterable[int]) -> list[bytes]:
        """For each of `ids` the UTF-8 bytes that it adds to a text: `decode` joins these, and drops a space in front.

        Raises:
            InputError: a foreign tokenizer, whose decoder does more than that; a tokenizer that takes letters apart.
        """
        if self._decomposes:
            raise InputError('constraints on text do not work with tokenizer.normalization = "NFD".')
        decoder = self._inner.decoder
        kind = "none" if decoder is None else type(decoder).__name__
        spell: dict[str, Callable[[str], bytes]] = {
            "none": lambda token: f" {token}".encode(),
            "Fuse": str.encode,
            "Metaspace": lambda token: token.replace(getattr(decoder, "replacement", "▁"), " ").encode(),
            "ByteLevel": bytes_of,
        }
        if kind not in spell:
            raise InputError(
                f"the tokenizer's decoder is {kind}; constraints on text work only with {', '.join(spell)}."
            )
        names = [None if index in self._unsaid else self._inner.id_to_token(index) for index in ids]
        return [b"" if name is None else spell[kind](name) for name in names]

    @cached_property
    def _finding_masks(self) -> "Inner":
        """The same, to which the name of the mask in a text is the mask."""
        from tokenizers import Tokenizer as Inner

        table = json.loads(self.to_json())
        for token in table["added_tokens"]:
            token["special"] = token["special"] and token["id"] != self.mask
        inner = Inner.from_str(json.dumps(table, ensure_ascii=False))
        inner.encode_special_tokens = True
        return inner

    def offsets(self, text: str, masked: bool = False) -> list[tuple[int, int]]:
        """For each token of `text`, the characters [first, last) of `text` that it came from.

        masked: as `encode_words` reads it.

        The "▁" put before a text that begins with punctuation shares the offsets of its first character.
        """
        with as_our_errors([text]):
            inner = self._finding_masks if masked else self._inner
            (encoding,) = inner.encode_batch([text], add_special_tokens=False)  # other threads go on meanwhile
        return list(encoding.offsets)

    def to_json(self) -> str:
        """A tokenizer.json as other tools read it; `from_json` gives the same tokenizer back."""
        return str(self._inner.to_str())

    @classmethod
    def from_json(cls, text: str, name: str = "tokenizer.json") -> "Tokenizer":
        """The tokenizer that `to_json` or the library `tokenizers` wrote; `name` is for messages."""
        from tokenizers import Tokenizer as Inner

        check_tokenizer(text, name)
        try:
            inner = Inner.from_str(linear(text))
        except BaseException as error:  # the library raises bare Exception for every flaw
            if not is_the_librarys(error):
                raise
            raise InputError(
                f"{name}: expected a tokenizer.json of the library tokenizers, but it cannot be read: {error}."
            ) from error
        try:
            tokenizer = cls(inner)
        except InputError as error:
            raise InputError(f"{name}: {problem}" for problem in error.problems) from None
        probe(inner, name)
        return tokenizer

    def _only_text(self, ids: list[int]) -> list[int]:
        """No text can spell pad, start, end or a further special token, also where whole words are looked up."""
        if self._silent.isdisjoint(ids):
            return ids
        return [piece for index in ids for piece in self._as_text(index, self._silent)]

    def _words(self, words: Sequence[int | None], ids: Sequence[int], silent: set[int]) -> list[tuple[int | None, int]]:
        """The word of each piece, and the piece, those of `silent` as text."""
        pairs = zip(words, ids, strict=True)
        if silent.isdisjoint(ids):
            return list(pairs)
        return [(word, piece) for word, index in pairs for piece in self._as_text(index, silent)]

    def _as_text(self, index: int, silent: set[int]) -> list[int]:
        """The token itself; of one that no text spells, the unknown one, or else the characters of its name."""
        if index not in silent:
            return [index]
        if self.unknown != ABSENT:
            return [self.unknown]
        letters = list(str(self._inner.id_to_token(index)))
        encoded = self._inner.encode_batch_fast(letters, add_special_tokens=False)
        return [piece for encoding in encoded for piece in encoding.ids if piece not in silent]


def _decomposes(inner: "Inner") -> bool:
    """Whether its text policy takes letters and their accents apart."""
    try:
        return bool(inner.normalizer) and inner.normalizer.normalize_str("\u00e9") == "e\u0301"
    except BaseException as error:
        if not is_the_librarys(error):
            raise
        return False  # `probe` says that it fails


def read_tokenizers(texts: Mapping[str, str]) -> dict[str, Tokenizer]:
    """Those of a model file, whose texts are of "source" and "target", or of both sides, "joint"."""
    names = {side: "" if side == "joint" else f"{side} " for side in texts}
    return {side: Tokenizer.from_json(text, f"the model file's {names[side]}tokenizer") for side, text in texts.items()}


def printable_bytes() -> Iterator[str]:
    """The character by which byte-level tokenizers spell each byte 0..255 (GPT-2's `bytes_to_unicode`)."""
    shifted = 256
    for byte in range(256):
        if 33 <= byte <= 126 or 161 <= byte <= 172 or byte >= 174:
            yield chr(byte)
        else:
            yield chr(shifted)
            shifted += 1


def bytes_of(token: str) -> bytes:
    """What a token of a byte-level tokenizer stands for; one that is not spelled in its characters is its own text."""
    byte_of = _byte_of()
    if any(character not in byte_of for character in token):
        return token.encode()
    return bytes(byte_of[character] for character in token)


@cache
def _byte_of() -> dict[str, int]:
    return {character: byte for byte, character in enumerate(printable_bytes())}


def find_special(vocabulary: Mapping[str, int], roles: Mapping[str, str] = MappingProxyType({})) -> dict[str, int]:
    """The id of each role, by its name in `roles` or its usual names; -1 of one that is absent.

    Without a start token, padding begins an output, as in Marian and T5, or else the end of a text, as in GPT-2.

    Raises:
        InputError: there is no end token, or a name in `roles` is no token's; all are named.
    """
    if lacking := [name for name in roles.values() if name and name not in vocabulary]:
        raise InputError(f'"{name}" is not a token of this vocabulary.' for name in lacking)
    names = {role: [roles[role]] if role in roles else usual for role, usual in USUAL_NAMES.items()}
    found = {
        role: next((vocabulary[each] for each in several if each in vocabulary), ABSENT)
        for role, several in names.items()
    }
    if found["end"] == ABSENT:
        raise InputError(_lacks("end"))
    if found["start"] == ABSENT:
        found["start"] = found["end"] if found["pad"] == ABSENT else found["pad"]
    return found


def _lacks(role: str) -> str:
    names = USUAL_NAMES[role]
    return (
        f"the vocabulary has no {role} token (looked for {', '.join(names)}). "
        f'Add one with the library: tokenizer.add_special_tokens(["{names[0]}"]), then save it again.'
    )


def mark_special(inner: "Inner") -> "Inner":
    """Mark the special tokens, already first in the model's vocabulary, as special for other tools too."""
    from tokenizers import AddedToken

    inner.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in SPECIAL])
    return inner


def most_frequent(counts: Counter[str], vocabulary: int, min_frequency: int) -> dict[str, int]:
    """The special tokens, then the units of `min_frequency` or more, most frequent first, then by code point."""
    ranked = sorted(counts, key=lambda unit: (-counts[unit], unit))
    often = [unit for unit in ranked if counts[unit] >= min_frequency and unit not in SPECIAL]
    kept = list(SPECIAL) + often[: vocabulary - len(SPECIAL)]
    return {unit: index for index, unit in enumerate(kept)}
