"""Whether a model can have learnt to read a text: which of its characters the training texts had, as its file says.

No vocabulary of bytes or of pieces has unknown tokens, so that a model writes something for any input, without a doubt.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from transduce.data.character_profile import CharacterProfile, counted
from transduce.data.known_words import KnownWords
from transduce.data.language_profile import LanguageProfile
from transduce.data.protected import Protected, protected
from transduce.data.tags import leading_tags, tags_of
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.data.words import WORD

SIDES = ("source", "target")
LOOKED_AT, CUT = 10_000, 1_000  # texts of an input whose characters are counted; that are cut into tokens
MANY = 0.05  # share of unseen characters that is told
FEW_WORDS = 3  # of a text, below which nothing is said of how many are unknown
MOSTLY = 0.5  # share of unseen characters from which a text cannot be read
LONG = 200  # characters from which it is asked which side a text is of
APART = 0.1  # nats a character by which a text is rather one that the model writes


@dataclass(frozen=True)
class InputFamiliarity:
    """What is unfamiliar in some inputs.

    unseen: share of their characters that no training source had; None: the model file does not say. unknown: share of
    their tokens that are the unknown one, such as words of a whitespace tokenizer. texts: inputs looked at. unread: of
    these, such of mostly unseen characters. exchanged: whether they look like what the model writes, and not like what
    it reads.
    """

    unseen: float | None = None
    unknown: float = 0.0
    texts: int = 0
    unread: int = 0
    exchanged: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def sentence(self) -> str:
        """For people; "" where there is nothing to tell."""
        if self.exchanged:
            return "The input looks like what this model writes, not like what it reads: are its sides exchanged?"
        if self.unread or (self.unseen or 0) >= MANY:
            lines = f"; {self.unread:,} of {self.texts:,} texts are mostly of such" if self.texts > 1 else ""
            return f"{_percent(self.unseen or 0)} of the characters of the input were never seen in training{lines}."
        if self.unknown >= MANY:
            return f"{_percent(self.unknown)} of the tokens of the input are unknown to this model."
        return ""


class Unfamiliar(NamedTuple):
    """What of a text no training source had.

    unseen: the share of its characters; None = the model's file does not say. unknown: words, of so many `words`.
    """

    unseen: float | None = None
    unknown: tuple[str, ...] = ()
    words: int = 0

    @property
    def warnings(self) -> list[str]:
        """For people."""
        mostly = self.words >= FEW_WORDS and len(self.unknown) > MOSTLY * self.words
        return ["most words of this text are unknown to the model."] if mostly else []


@dataclass(frozen=True)
class Familiarity:
    """What the training texts of a model were like. source, target: their characters; None: its file does not say.

    ngrams: of the "source" and the "target", sequences of letters, likewise. words: of its sources, likewise.
    """

    source: CharacterProfile | None = None
    target: CharacterProfile | None = None
    tokenizer: Tokenizer | None = None
    ngrams: Mapping[str, LanguageProfile] = field(default_factory=dict)
    words: KnownWords | None = None

    @classmethod
    def of(cls, provenance: Mapping[str, Any], tokenizer: Tokenizer | None) -> "Familiarity":
        """As a model file says it; tokenizer: of its sources."""
        noted = provenance.get("characters")
        noted = noted if isinstance(noted, Mapping) else {}
        source, target = (CharacterProfile.from_dict(noted.get(side)) for side in SIDES)
        written = provenance.get("ngrams")
        profiles = (
            {side: LanguageProfile.from_dict(written.get(side)) for side in SIDES}
            if isinstance(written, Mapping)
            else {}
        )
        words = KnownWords.from_text(provenance.get("words"))
        return cls(source, target, tokenizer, {side: each for side, each in profiles.items() if each}, words)

    def profile(self, side: str) -> LanguageProfile | CharacterProfile | None:
        """What tells the language of one side: "source" or "target"."""
        return self.ngrams.get(side) or {"source": self.source, "target": self.target}[side]

    def unseen(self, text: str) -> float | None:
        """The share of a text's characters that no training source had; None where that is not known."""
        if self.source is None:
            return None
        if self.source.characters.issuperset(text.replace(" ", "")):
            return 0.0
        return self.source.unseen(self._counted(text))

    def unfamiliar(self, text: str) -> Unfamiliar:
        """What of a text no training source had."""
        words = [*self._words_of(text)]
        new = tuple(word for word in words if self.words is not None and word not in self.words)
        return Unfamiliar(self.unseen(text), new, len(words))

    def _words_of(self, text: str) -> Iterator[str]:
        """Without its tags, and without numbers, addresses and codes."""
        start = len(leading_tags(self.tokenizer, text)) if self.tokenizer and self.words else 0
        done = start
        for part in (*protected(text), Protected(len(text), len(text), "")) if self.words else ():
            yield from WORD.findall(text[done : max(done, part.start)])
            done = max(done, part.end)

    def of_inputs(self, texts: Iterable[str]) -> InputFamiliarity:
        """What is unfamiliar in the first inputs."""
        listed = [*islice(texts, LOOKED_AT)]
        unknown = self._unknown(listed[:CUT])
        if self.source is None:
            return InputFamiliarity(unknown=unknown, texts=len(listed))
        every, unread = self._counted(*listed), sum((self.unseen(text) or 0) > MOSTLY for text in listed)
        return InputFamiliarity(self.source.unseen(every), unknown, len(listed), unread, self._is_exchanged(every))

    def _unknown(self, texts: Sequence[str]) -> float:
        if self.tokenizer is None:
            return 0.0
        found = Counter(token for ids in self.tokenizer.encode(texts) for token in ids)
        return found[self.tokenizer.unknown] / max(1, found.total())

    def _counted(self, *texts: str) -> "Counter[str]":
        tokenizer = self.tokenizer
        if tokenizer is None:
            return counted(texts)
        untagged = (text[len(leading_tags(tokenizer, text)) :] for text in texts) if tags_of(tokenizer) else texts
        return counted([tokenizer.normalized("\n".join(untagged))])

    def _is_exchanged(self, characters: "Counter[str]") -> bool:
        if self.source is None or self.target is None or characters.total() < LONG:
            return False
        return self.target.nearness(self.source, characters) > APART


def _percent(share: float) -> str:
    return f"{100 * share:.{0 if share >= 0.01 else 1}f} %"
