"""How each kind of tokenizer is learnt from text, as one of the library `tokenizers`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import regex

from transduce.core.errors import InputError
from transduce.data.tokenizers.byte_level import printable_bytes
from transduce.data.tokenizers.patterns import once_a_run
from transduce.data.tokenizers.special_tokens import SPECIAL, UNKNOWN, most_frequent
from transduce.data.tokenizers.unigram import learn_pieces

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Inner
    from tokenizers.normalizers import Normalizer


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
