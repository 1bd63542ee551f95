"""What the tokenizers of a recipe are learnt as, and how; see `transduce.data.tokenizers.text_ids` for what they do."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import regex
from pydantic import Field, field_validator, model_validator

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.remote import located
from transduce.data.tokenizers.patterns import once_a_run
from transduce.data.tokenizers.text_ids import SPECIAL, UNKNOWN, Tokenizer, mark_special, most_frequent, printable_bytes

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Inner
    from tokenizers.normalizers import Normalizer


__all__ = ["Tokenizer", "TokenizerConfig", "UnitsConfig", "train_tokenizer"]


class UnitsConfig(Config):
    """What one tokenizer is learnt as, or where a finished one lies."""

    kind: Literal["bpe", "unigram", "byte", "character", "whitespace"] = "bpe"
    """bpe, unigram: pieces of words. byte, character, whitespace (words): those units."""
    vocabulary: int = Field(default=8000, ge=5)
    """At most so many tokens, the four special ones included; byte always has 260."""
    file: str | None = None
    """An existing tokenizer.json; then the other settings are not used."""
    lowercase: bool = False
    """Lower-case the text first."""
    normalization: Literal["NFC", "NFD"] = "NFC"
    """NFD: letters and their accents are characters of their own, and so are the letters of a Korean syllable; outputs
    are composed again. For pronunciation and inflection; byte has none."""
    min_frequency: int = Field(default=2, ge=1)
    """Pairs (bpe), pieces (unigram), characters and words seen less often are not learnt."""
    symbols: str = ""
    """A regular expression (Python's): what it matches in the training text becomes one token each, such as the tags
    behind a lemma: `" [|] [^;]+|;[^;]+"` for "Bluff | N;DAT;SG". Where two fit, the longer one counts. They are not
    counted in `vocabulary`."""

    @field_validator("symbols")
    @classmethod
    def _is_a_pattern(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"expected a regular expression; {error}") from error
        return pattern


class TokenizerConfig(UnitsConfig):
    """What the tokenizers of a recipe are learnt as: one for all its texts, or one for each side of its pairs."""

    joint: bool = True
    """One vocabulary for both sides of a pair."""
    source: UnitsConfig | None = None
    """[tokenizer.source]: other settings for the source of pairs. Then joint is false."""
    target: UnitsConfig | None = None
    """[tokenizer.target]: other settings for the target of pairs. Then joint is false."""

    @model_validator(mode="before")
    @classmethod
    def _sides_are_apart(cls, table: Any) -> Any:
        """A side has the settings above where it does not say its own."""
        if not isinstance(table, dict):
            return table
        sides = {side: table[side] for side in ("source", "target") if isinstance(table.get(side), dict)}
        shared = {key: value for key, value in table.items() if key in UnitsConfig.model_fields and key != "file"}
        return {
            **({"joint": False} if sides else {}),
            **table,
            **{side: {**shared, **own} for side, own in sides.items()},
        }

    @model_validator(mode="after")
    def _joint_has_no_sides(self) -> Self:
        if self.joint and (self.source or self.target):
            raise ValueError("joint = true is one tokenizer for both sides; leave out either it or the sides' tables")
        return self

    def of_side(self, side: Literal["source", "target"]) -> UnitsConfig:
        """The settings of one side's tokenizer."""
        return getattr(self, side) or UnitsConfig(**self.model_dump(include={*UnitsConfig.model_fields}))

    @property
    def files(self) -> dict[str, str]:
        """Finished tokenizers by the key that names them."""
        keys = ("tokenizer", self), ("tokenizer.source", self.source), ("tokenizer.target", self.target)
        return {key: each.file for key, each in keys if each and each.file is not None}


def train_tokenizer(config: UnitsConfig, texts: Iterable[str], root: Path = Path()) -> Tokenizer:
    """Learn a tokenizer from `texts`, or read `config.file` (relative to `root`) and leave `texts` alone.

    The same texts in the same order give the same JSON, byte for byte, whatever the machine and its threads.

    Raises:
        InputError: the file is not a tokenizer, there is no text, or more characters than vocabulary.
    """
    if isinstance(config, TokenizerConfig) and (config.source or config.target):
        raise InputError(
            "[tokenizer.source] and [tokenizer.target] are for pairs of texts; this task has one tokenizer."
        )
    if config.file is not None:
        return _open(located(root, config.file))
    symbols = Counter[str]()
    counted = _counting(symbols, config.symbols, texts) if config.symbols else texts
    tokenizer = Tokenizer(mark_special(LEARN[config.kind](config, counted)))
    if tokenizer.size == len(SPECIAL):
        raise InputError(
            f"tokenizer: there is nothing to learn from: no {config.kind} unit occurs {config.min_frequency} times in "
            "the training text. Give it text, or lower min_frequency."
        )
    return tokenizer.with_added(sorted(each for each, often in symbols.items() if often >= config.min_frequency))


def _counting(symbols: Counter[str], pattern: str, texts: Iterable[str]) -> Iterator[str]:
    """The texts, while what matches in them is counted."""
    find = re.compile(pattern)
    for text in texts:
        symbols.update(match[0] for match in find.finditer(text) if match[0].strip())
        yield text


def _open(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_json(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected a tokenizer.json, but it cannot be read: {error}.") from error


class LearntUnits(Protocol):
    """Of `transduce.data.tokenizers.tokenizer.UnitsConfig`, what learning asks for."""

    kind: Any
    vocabulary: int
    lowercase: bool
    min_frequency: int
    normalization: Any


LONGEST_WORD = 10_000
"""Characters of a word from which pieces are learnt: the cost of a word grows with the square of its length."""
IN_WORD = r"[^\s\p{P}$+<=>^`|~]"  # what the pre-tokenizer of pieces does not cut at
ENDLESS = regex.compile(rf"({IN_WORD}{{{LONGEST_WORD}}}){IN_WORD}+")
CONTROL = "[\\p{Cc}\u2028\u2029]"
CONTROL_BUT_NEWLINE = "[\\p{Cc}\u2028\u2029&&[^\n]]"


def _policy(config: LearntUnits, control: str, strip: bool) -> "Normalizer":
    """One text policy as a normaliser, in the order: case, NFC or NFD, control characters, ends."""
    from tokenizers import Regex, normalizers

    steps: list[Any] = [normalizers.Lowercase()] if config.lowercase else []
    steps += [normalizers.NFD() if config.normalization == "NFD" else normalizers.NFC()]
    steps += [normalizers.Replace(Regex(control), " ")]
    if strip:  # one space stays in front, where Metaspace takes it for the one it would have put there itself
        steps += [normalizers.Replace(Regex(r"\A +"), " "), normalizers.Replace(Regex(once_a_run(r" +\z")), "")]
    return normalizers.Sequence(steps)


def _subword(config: LearntUnits, model: Any) -> "Inner":
    from tokenizers import Tokenizer as Inner
    from tokenizers import decoders, pre_tokenizers

    inner = Inner(model)
    inner.normalizer = _policy(config, CONTROL, strip=True)
    inner.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Punctuation("isolated"), pre_tokenizers.Metaspace(prepend_scheme="first")]
    )
    inner.decoder = decoders.Metaspace(prepend_scheme="first")
    return inner


def without_endless_words(texts: Iterable[str]) -> Iterator[str]:
    """The texts, of whose words all but the first `LONGEST_WORD` characters are left out: a picture in base64, say."""
    for text in texts:
        yield text if len(text) <= LONGEST_WORD else ENDLESS.sub(r"\1", text)


def _learn_bpe(config: LearntUnits, texts: Iterable[str]) -> "Inner":
    from tokenizers import models, trainers

    inner = _subword(config, models.BPE(unk_token=UNKNOWN))
    trainer = trainers.BpeTrainer(
        vocab_size=config.vocabulary,
        min_frequency=config.min_frequency,
        special_tokens=list(SPECIAL),
        show_progress=False,
    )
    inner.train_from_iterator(without_endless_words(texts), trainer)
    _refuse_overflow(config, inner.get_vocab_size())
    return inner


def _learn_unigram(config: LearntUnits, texts: Iterable[str]) -> "Inner":
    """Not the library's own unigram trainer: its result changes from run to run with its hash seeds."""
    from tokenizers import models

    untrained = _subword(config, models.Unigram())
    words = Counter(
        word
        for text in without_endless_words(texts)
        for word, _ in untrained.pre_tokenizer.pre_tokenize_str(untrained.normalizer.normalize_str(text))
    )
    _refuse_overflow(config, len(SPECIAL) + len(set().union(*words)))
    size = config.vocabulary - len(SPECIAL)
    pieces = learn_pieces(words, size, config.min_frequency) if words else []
    return _subword(config, models.Unigram([(name, 0.0) for name in SPECIAL] + pieces, SPECIAL.index(UNKNOWN), False))


def _refuse_overflow(config: LearntUnits, needed: int) -> None:
    if needed > config.vocabulary:
        raise InputError(
            f"tokenizer: vocabulary = {config.vocabulary} cannot hold the {needed - len(SPECIAL)} different "
            f"characters of the training text and {len(SPECIAL)} special tokens. "
            f"{config.kind} needs at least {needed}: raise it well above that, or clean the text."
        )


def _learn_character(config: LearntUnits, texts: Iterable[str]) -> "Inner":
    """A BPE model without merges, so that every character is a token."""
    from tokenizers import Tokenizer as Inner
    from tokenizers import decoders, models

    policy = _policy(config, CONTROL_BUT_NEWLINE, strip=False)
    counts = Counter(character for text in texts for character in policy.normalize_str(text))
    counts["\n"] += config.min_frequency  # lines come without their ends; a stream's tokenizer must know them
    inner = Inner(
        models.BPE(vocab=most_frequent(counts, config.vocabulary, config.min_frequency), merges=[], unk_token=UNKNOWN)
    )
    inner.normalizer = policy
    inner.decoder = decoders.Fuse()
    return inner


def _learn_whitespace(config: LearntUnits, texts: Iterable[str]) -> "Inner":
    from tokenizers import Tokenizer as Inner
    from tokenizers import models, pre_tokenizers

    policy = _policy(config, CONTROL, strip=False)
    counts = Counter(word for text in texts for word in policy.normalize_str(text).split(" ") if word)
    inner = Inner(models.WordLevel(most_frequent(counts, config.vocabulary, config.min_frequency), unk_token=UNKNOWN))
    inner.normalizer = policy
    inner.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    return inner


def _make_byte(config: LearntUnits, texts: Iterable[str]) -> "Inner":
    """Byte b has the id 4 + b; nothing is learnt."""
    from tokenizers import Tokenizer as Inner
    from tokenizers import decoders, models, normalizers, pre_tokenizers

    names = [*SPECIAL, *printable_bytes()]
    vocabulary = {name: index for index, name in enumerate(names)}
    inner = Inner(models.BPE(vocab=vocabulary, merges=[], unk_token=UNKNOWN))
    if config.lowercase:
        inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    return inner


LEARN: dict[str, Callable[[LearntUnits, Iterable[str]], "Inner"]] = {
    "bpe": _learn_bpe,
    "unigram": _learn_unigram,
    "byte": _make_byte,
    "character": _learn_character,
    "whitespace": _learn_whitespace,
}
"""By the kind's name."""


LONGEST_PIECE = 12
SEEDS_PER_PIECE = 6
SHRINK = 0.75
MOST_CHARACTERS = 500_000
"""Pieces are learnt from the most frequent words, so many characters of them in all: memory stays bounded."""

Scores = dict[str, float]


def learn_pieces(words: Counter[str], size: int, min_frequency: int) -> list[tuple[str, float]]:
    """At most `size` pieces with their log-probabilities, the likeliest first.

    Every character of `words` is a piece, so that any word of the same alphabet can be written; pieces longer
    than that occur at least `min_frequency` times. `size` must be at least the number of characters.
    """
    alphabet = set().union(*words)
    frequent = _most_frequent(words)
    scores = _score(_seeds(frequent, size * SEEDS_PER_PIECE, min_frequency), alphabet)
    while True:
        for _ in range(2):
            scores = _score(_count(frequent, scores), alphabet)
        if len(scores) <= size:
            return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        scores = _prune(_count(frequent, scores), scores, max(size, int(len(scores) * SHRINK)), alphabet)


def _most_frequent(words: Counter[str]) -> dict[str, int]:
    kept, room = {}, MOST_CHARACTERS
    for word in sorted(words, key=lambda word: (-words[word], word)):
        room -= len(word)
        if room < 0:
            break
        kept[word] = words[word]
    return kept


def _seeds(words: dict[str, int], limit: int, min_frequency: int) -> Counter[str]:
    """The substrings that cover most text: count x length, as in the paper's initial vocabulary."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for first in range(len(word)):
            for last in range(first + 2, min(first + LONGEST_PIECE, len(word)) + 1):
                counts[word[first:last]] += count
    often = [piece for piece, count in counts.items() if count >= min_frequency]
    often.sort(key=lambda piece: (-counts[piece] * len(piece), piece))
    return Counter({piece: counts[piece] for piece in often[:limit]})


def _score(counts: Counter[str], alphabet: set[str]) -> Scores:
    """Log-probabilities; no character falls out. Rounded: a logarithm's last bit differs by machine."""
    full = {**dict.fromkeys(alphabet, 1), **{piece: count for piece, count in counts.items() if count}}
    total = math.log(sum(full.values()))
    return {piece: round(math.log(count) - total, 6) for piece, count in full.items()}


def _count(words: dict[str, int], scores: Scores) -> Counter[str]:
    """How often each piece occurs in the best segmentations of the words."""
    from tokenizers import Tokenizer, models

    vocabulary = sorted(scores.items())
    tokenizer = Tokenizer(models.Unigram(vocabulary, None, False))
    counts = [0] * len(vocabulary)
    segmented = tokenizer.encode_batch_fast(list(words), add_special_tokens=False)
    for encoding, count in zip(segmented, words.values(), strict=True):
        for index in encoding.ids:
            counts[index] += count
    return Counter({piece: count for (piece, _), count in zip(vocabulary, counts, strict=True) if count})


def _prune(counts: Counter[str], scores: Scores, size: int, alphabet: set[str]) -> Scores:
    """Keep the alphabet and the pieces whose loss would cost the text most likelihood."""
    longer = [piece for piece in scores if piece not in alphabet]
    cost = {piece: counts[piece] * (scores[piece] - _best_without(piece, scores)) for piece in longer}
    longer.sort(key=lambda piece: (-cost[piece], piece))
    return {piece: scores[piece] for piece in [*sorted(alphabet), *longer[: size - len(alphabet)]]}


def _best_without(word: str, scores: Scores) -> float:
    """The score of the best segmentation of `word` into at least two pieces (Viterbi)."""
    best = [0.0] + [-math.inf] * len(word)
    for last in range(1, len(word) + 1):
        for first in range(last):
            piece = word[first:last]
            if piece in scores and piece != word:
                best[last] = max(best[last], best[first] + scores[piece])
    return best[-1]
