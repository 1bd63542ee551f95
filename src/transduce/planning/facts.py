"""What pairs of texts are, in the numbers that decisions are made from."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import regex

from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs
from transduce.data.pairs.copied import COPIED, copied
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.pairs.tags import Tags, tags_in
from transduce.data.source_columns import separator_of
from transduce.doctor.side_checks import LONG, LONG_TIMES_MEDIAN
from transduce.inference.sentence_marks import WITHOUT_SPACES
from transduce.search.keys import DEFAULTS

SAMPLED = 50_000  # pairs that are looked at closely, evenly spread
UNSPACED = re.compile(rf"[{WITHOUT_SPACES}\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
ENDING = regex.compile(r"\w\p{Terminal_Punctuation}+$")
SENTENCE_END = regex.compile(r"\p{Sentence_Terminal}$")
END_APART = regex.compile(r"""(?:^|\s)[…\p{Sentence_Terminal}]+(?:\s*["'”’」』）)]+)*\s*$""")
MOSTLY_UNSPACED = 0.3
ROOM = DEFAULTS["max_length_offset"]  # that a search leaves to any output
FEW_NEW = 0.02  # new words of a further text, below which its words are a small set
OPEN = 0.03  # share of a further text's words that are new, from which its words are no small set
FORMAL = 0.9  # of the texts have one word in common: a formal language, such as SELECT of SQL, with new names in it
FEW_WORDS = 2.5  # words of a text, on average, up to which it is an inflected form such as "has been seen"
LONG_TEXT, SUMMARY = 30, 3  # words of a source; for each of a summary
FEW_SIGNS = 8  # the same in characters, where a script puts no spaces between words


@dataclass(frozen=True)
class SideFacts:
    """The texts of one side.

    words, characters: of a text, on average; longest: characters that all but one in a thousand stay below.
    word_length: characters of a word. alphabet, types: different characters, different words.
    repeated: characters that occur twice or more.
    letters: different characters once accents, and the letters of Korean syllables, stand apart.
    unspaced: share of characters of scripts that put no spaces between words.
    closing: share of words that a full stop or another mark sticks to, but for those of most texts, such as "IN:",
        unless a text ends in it.
    ended: share of texts that end in a full stop or the like, as a word of its own.
    new: words of a further text that no text here has, on average; as many as occur once, for each text (Good 1953).
    common: share of texts that have the word which most of them have.
    """

    words: float
    characters: float
    longest: int
    word_length: float
    alphabet: int
    types: int
    unspaced: float = 0.0
    closing: float = 0.0
    letters: int = 0
    new: float = 0.0
    ended: float = 0.0
    repeated: int = 0
    common: float = 0.0

    @property
    def of_signs(self) -> bool:
        """Whether its characters are signs for syllables or words, as Chinese and Korean ones are."""
        return self.unspaced > MOSTLY_UNSPACED or self.composed

    @property
    def composed(self) -> bool:
        """Whether characters are made of few letters, as Korean syllables are."""
        return 0 < self.letters < self.alphabet / 3

    @property
    def kind(self) -> str:
        """words (one a text), symbols and closed (small sets, with spaces between), unspaced, or sentences."""
        cut = self.words > 1.2 and self.word_length <= 4  # somebody has put the spaces
        if self.unspaced > MOSTLY_UNSPACED and not cut:
            return "unspaced"
        if self.words <= 1.2:
            return "words"
        if self._is_cut_text:
            return "sentences"
        if self.word_length <= 2.5 and self.types <= 300:
            return "symbols"
        if self.types <= 2000 and self.closing < 0.01 and not self._is_unmarked_text:
            return "closed"
        return "sentences"

    @property
    def _is_unmarked_text(self) -> bool:
        """Whether it is running text without full stops: it has many new words, and no word that all texts have."""
        return self.new >= OPEN * self.words and self.common < FORMAL

    @property
    def _is_cut_text(self) -> bool:
        """Whether it is running text between whose words, and before whose full stops, somebody has put spaces."""
        return self.new >= FEW_NEW and (self.unspaced > MOSTLY_UNSPACED or self.ended > 0.5)


@dataclass(frozen=True)
class Facts:
    """A corpus of pairs.

    shared: share of the rarer side's letters that the other side has, too. copied: share of target words that stand in
    their source. ratio: characters of the longer side for one of the shorter that all but one in a hundred stay below.
    expansion: the same of the target for one of the source, but for the first 20 characters of each target.
    languages_named: whether the languages were said, and not read from the files' names.
    columns: of a table, that make the source. tags: in the further columns, as for inflection; each counts as one
    character of the source.
    """

    pairs: int
    source: SideFacts
    target: SideFacts
    shared: float
    copied: float
    ratio: float
    columns: int = 1
    languages: tuple[str, str] = ("", "")
    tags: Tags | None = None
    languages_named: bool = False
    expansion: float = 0.0

    @property
    def of_words(self) -> bool:
        """Whether single words are transduced: pronunciation, inflection, transliteration."""
        if self.source.characters > 60 or self.target.characters > 60:
            return False
        return self.source.kind == "words" or (self.columns > 1 and self._are_inflected)

    @property
    def _are_inflected(self) -> bool:
        """Whether the first column, and the target, are words: of few characters where words are not written apart."""
        if self.target.words > FEW_WORDS:
            return False
        if self.target.unspaced <= MOSTLY_UNSPACED:
            return True
        tags = self.tags.in_a_text if self.tags else 0.0
        if self.source.unspaced > MOSTLY_UNSPACED and self.source.characters - tags > FEW_SIGNS:
            return False
        most = FEW_WORDS if self.tags else FEW_WORDS * self.columns
        return self.target.characters <= FEW_SIGNS and self.source.words <= most

    @property
    def is_near(self) -> bool:
        """Whether targets are running text in many words of their sources: a creole of its language, a correction."""
        return self.source.kind == self.target.kind == "sentences" and self.copied >= COPIED

    @property
    def compresses(self) -> bool:
        """Whether targets are summaries: running text, much shorter than its source, and largely in words of it."""
        return self.is_near and self.source.words >= max(LONG_TEXT, SUMMARY * self.target.words)

    def to_lines(self) -> list[str]:
        names = [language or side for language, side in zip(self.languages, ("source", "target"), strict=True)]
        sides = zip(names, (self.source, self.target), strict=True)
        told = [f"{name}: {each.words:.1f} words, {each.characters:.0f} characters a text" for name, each in sides]
        return [f"{self.pairs:,} pairs. {told[0][0].upper() + told[0][1:]}; {told[1]}."]


def facts_of(corpora: Sequence[PairFiles], root: Path, languages: tuple[str, str] = ("", ""), fewest: int = 3) -> Facts:
    """The facts of these files, from a sample where they are large.

    Raises:
        InputError: what `read_pairs` refuses; there are fewer than `fewest` pairs with two sides.
    """
    pairs = sum(1 for files in corpora for _ in read_pairs(files, root))
    step = max(1, pairs // SAMPLED)
    every = ((source, target) for files in corpora for _, source, target in read_pairs(files, root))
    sample = _without_endless([pair for pair in islice(every, 0, None, step) if all(text.strip() for text in pair)])
    if len(sample) < fewest:
        names = ", ".join(str(path) for files in corpora for path in files.paths(root))
        raise InputError(
            f"{names}: expected at least {fewest} pairs with text on both sides; found {len(sample)}. Add more: a "
            "model that is of use needs hundreds, better thousands."
        )
    columns = max(len(files.sources) for files in corpora)
    separators = {separator_of(files.source_separator) for files in corpora}
    tags = tags_in([pair[0] for pair in sample], *separators) if columns > 1 and len(separators) == 1 else None
    if tags:
        sample = [(tags.shortened(source), target) for source, target in sample]
    source, target = (side_facts([pair[side] for pair in sample]) for side in (0, 1))
    letters = [{letter for pair in sample for letter in pair[side].casefold() if letter.isalpha()} for side in (0, 1)]
    fewer = max(1, min(map(len, letters)))
    lengths_N2 = np.array([[len(text) for text in pair] for pair in sample])
    return Facts(
        pairs,
        source,
        target,
        shared=len(letters[0] & letters[1]) / fewer,
        copied=copied(sample),
        ratio=float(np.quantile(lengths_N2.max(axis=1) / lengths_N2.min(axis=1), 0.99)),
        columns=columns,
        languages=languages,
        tags=tags,
        expansion=float(np.quantile((lengths_N2[:, 1] - ROOM).clip(0) / lengths_N2[:, 0], 0.99)),
    )


def _without_endless(sample: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Without pairs of which one text is so long that it would be most of its side: a file in one line, for example."""
    if not sample:
        return []
    lengths = np.array([[len(text) for text in pair] for pair in sample])
    most = np.maximum(LONG, LONG_TIMES_MEDIAN * np.median(lengths, axis=0))
    return [pair for pair, fits in zip(sample, (lengths <= most).all(axis=1), strict=True) if fits]


def side_facts(texts: Sequence[str]) -> SideFacts:
    """Of some texts, each of which has something in it."""
    words = Counter(word for text in texts for word in text.split())
    having = Counter(word for text in texts for word in set(text.split()))
    count = sum(words.values())
    characters = Counter(character for text in texts for character in text)
    total = sum(characters.values())
    return SideFacts(
        words=count / len(texts),
        characters=total / len(texts),
        longest=int(np.quantile([len(text) for text in texts], 0.999)),
        word_length=sum(len(word) * often for word, often in words.items()) / count,
        alphabet=len(characters),
        types=len(words),
        repeated=sum(often > 1 for often in characters.values()),
        unspaced=sum(often for each, often in characters.items() if UNSPACED.match(each)) / total,
        closing=_closing(texts, words) / count,
        ended=sum(bool(END_APART.search(text)) for text in texts) / len(texts),
        common=max(having.values()) / len(texts),
        new=sum(often == 1 for often in words.values()) / len(texts),
        letters=len({letter for each in characters for letter in unicodedata.normalize("NFD", each)}),
    )


def _closing(texts: Sequence[str], words: Counter[str]) -> int:
    """How many words have a mark at their end, of those with a place in `SideFacts.closing`."""
    last = Counter(text.split()[-1] for text in texts)
    marked, most = [word for word in words if ENDING.search(word)], len(texts) / 2
    rare = sum(words[word] for word in marked if words[word] <= most)
    return rare + sum(last[word] for word in marked if words[word] > most and SENTENCE_END.search(word))
