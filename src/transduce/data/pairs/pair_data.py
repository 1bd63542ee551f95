"""[data] of a recipe whose examples are pairs of texts."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from transduce.core.config import Config
from transduce.data.augmentation import Augmented
from transduce.data.filters import FilterConfig
from transduce.data.hold_out import HELD_OUT, HoldOut, Split, drawn_from, split_pairs
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.shards import shards_of


class PairData(Config):
    """The files of a text-pair recipe; paths are relative to `root`, `root` to the working directory."""

    root: str = "."
    """Where the files lie."""
    train: tuple[PairFiles, ...]
    """One corpus or several, each with its weight. Names with * or ? stand for all files that match, side by side."""
    workers: int | None = Field(default=None, ge=1)
    """How many processes encode files side by side. Unset: one a processor."""
    validation: PairFiles | None = None
    """Picks the best weights."""
    test: dict[str, PairFiles] = Field(default_factory=dict)
    """By name; scored once, at the end."""
    hold_out: HoldOut | None = None
    """In the place of files for validation and test: how many training pairs are drawn for them, none from files
    with a `tag`. A number alone: those for validation."""
    filters: FilterConfig = FilterConfig()
    """Which training pairs are dropped."""
    temperature: float = Field(default=1.0, ge=1)
    """How evenly files of different sizes are shown, as those of several languages: a file of n pairs gets a share in
    proportion to n^(1 / temperature), and the largest is shown once an epoch. 1: by size; 5 is usual."""
    bpe_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Training words are cut into pieces in several ways, leaving out this share of merges; usual: 0.1."""
    placeholders: float = Field(default=0.0, ge=0, lt=1)
    """Teach the model to copy placeholders, so that numbers, addresses and codes are kept: in this share of the
    training pairs, words and their translations become placeholders, and so does what stands in both; usual: 0.15."""
    terms: float = Field(default=0.0, ge=0, lt=1)
    """Teach the model to use a glossary: in this share of the training pairs, words of the source are annotated with
    their translations (Dinu et al. 2019); usual: 0.15."""
    segmentations: int = Field(default=8, ge=2)
    """With bpe_dropout, placeholders or terms: how many versions there are of each training pair, one of them the pair
    itself as the tokenizer cuts it."""

    @model_validator(mode="after")
    def _has_training_text(self) -> Self:
        if not self.train:
            raise ValueError("name at least one pair of training files: [[data.train]] source = .. target = ..")
        held_out = {"validation": self.validation, **self.test}
        if fewer := [name for name, files in held_out.items() if files and files.pairs is not None]:
            raise ValueError(f"{', '.join(fewer)}: pairs: only training files may be cut. Leave it out")
        return self

    @model_validator(mode="after")
    def _held_out_once(self) -> Self:
        if self.hold_out and self.hold_out.validation and self.validation:
            raise ValueError("validation and hold_out both give validation pairs: leave out either")
        drawn = {HELD_OUT, *held_out_names(self.train).values()}
        if self.hold_out and self.hold_out.test and (taken := sorted(drawn & self.test.keys())):
            raise ValueError(f"hold_out.test is the test set {taken[0]}; give the other one another name")
        return self

    @property
    def augmented(self) -> Augmented:
        """Shares of training pairs that are changed."""
        return Augmented(self.placeholders, self.terms)

    @property
    def versions(self) -> int:
        """How many there are of each training pair."""
        return self.segmentations if self.bpe_dropout or self.augmented else 1

    def split(self) -> Split | None:
        """Where each training pair belongs; None where none is held out."""
        if self.hold_out is None or not self.hold_out.draws:
            return None
        return split_pairs(self.corpora(), Path(self.root), self.hold_out)

    def drawn_tests(self) -> dict[str | None, str]:
        """What the test sets of drawn pairs are called, by language; see `held_out_names`."""
        return held_out_names(self.train)

    def corpora(self) -> list[PairFiles]:
        """The files of `train`: of an entry whose names are patterns, one entry a file. Raises as `grouped_shards`."""
        return shards_of(self.train, Path(self.root))


def held_out_names(train: Sequence[PairFiles]) -> dict[str | None, str]:
    """What the test sets of drawn pairs are called, by language; `held_out` where there is one alone, or no name."""
    languages = {files.to: re.sub(r"[^\w-]", "_", files.to or "") for files in drawn_from(train)}
    several = len(languages) > 1
    return {to: f"{HELD_OUT}.{name}" if several and name else HELD_OUT for to, name in languages.items()}
