"""What the tokenizers of a recipe are learnt as, and how; see `transduce.data.tokenizers.text_ids` for what they do."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.remote import located
from transduce.data.tokenizers.special_tokens import SPECIAL, mark_special
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.data.tokenizers.tokenizer_kinds import LEARN

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
    behind a lemma: " [|] [^;]+|;[^;]+" for "Bluff | N;DAT;SG". Where two fit, the longer one counts. They are not
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
