"""A text as the model's training texts were written: quotes, dashes and spaces, invisible characters, capitals.

Which characters a model knows, its file says (`transduce.data.character_profile`). Nothing here imports torch.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from transduce.data.character_profile import CharacterProfile

INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
SEEN = 1e-4  # share of an invisible character among those of the training texts, from which it is part of the writing
RARER = 0.1  # times as often as its usual form: a character of training texts that is written as that form
USUAL = {  # character -> what it may be written as, the first that the training texts have
    **dict.fromkeys("’‘‛ʼ′`´＇", "'’"),
    **dict.fromkeys("'", "’"),
    **dict.fromkeys("“”„‟″«»＂", '"“'),
    **dict.fromkeys('"', "“"),
    **dict.fromkeys("‐‑−", "-"),
    **dict.fromkeys("–‒", "–-"),
    **dict.fromkeys("—―", "—–-"),
}
WORDS_IN_CAPITALS, LETTERS_IN_CAPITALS = 2, 6  # at least, of a text in capitals
FEW = 0.02  # share of training sources in capitals, below which a text in capitals is read in lower case
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


@dataclass(frozen=True)
class Typography:
    """How a model's training texts were written.

    characters: which they have; None = the model's file does not say, and characters stay as they are.
    cased: of words that are usually written with capitals, how: "paris" -> "Paris".
    capitals: the share of them that is in capitals; None: not known, and capitals stay as they are.
    """

    characters: CharacterProfile | None = None
    cased: Mapping[str, str] | None = None
    capitals: float | None = None

    def written(self, text: str) -> str:
        """The text with its characters as the training texts have them; the same where they have all of these."""
        known = self.characters is None or self.characters.characters.issuperset(text.replace(" ", ""))
        if known and not INVISIBLE.search(text):
            return text
        return "".join(map(self._table.__getitem__, text))

    def in_capitals(self, text: str) -> bool:
        """Whether it is a text in capitals, of which the model has seen few."""
        if self.capitals is None or self.capitals >= FEW or any(map(str.islower, text)):
            return False
        words = [word for word in WORD.findall(text) if len(word) > 1 and word.isupper()]
        return len(words) >= WORDS_IN_CAPITALS and sum(map(len, words)) >= LETTERS_IN_CAPITALS

    def lowered(self, text: str) -> str:
        """A text in capitals as it is usually written: its first word and those of `cased` with a capital."""
        cased = self.cased or {}
        text = WORD.sub(lambda match: cased.get(match[0].lower(), match[0].lower()), text)
        first = next((place for place, each in enumerate(text) if each.isalpha()), 0)
        return text[:first] + text[first : first + 1].upper() + text[first + 1 :]

    @cached_property
    def _table(self) -> "_Table":
        return _Table(self.characters)


class _Table(dict[str, str]):
    """Character -> what it is written as, found when it is first asked for."""

    def __init__(self, characters: CharacterProfile | None) -> None:
        super().__init__()
        self._profile = characters
        self._in_lower_case = characters is not None and not any(map(str.isupper, characters.characters))
        self._total = sum(characters.counts.values()) + characters.rest if characters else 0

    def __missing__(self, character: str) -> str:
        self[character] = self._found(character)
        return self[character]

    def _found(self, character: str) -> str:
        if INVISIBLE.match(character):
            return character if self._often(character) > SEEN * self._total else ""
        if self._profile is None or character.isspace():
            return " " if unicodedata.category(character) == "Zs" else character
        usual = max(USUAL.get(character, ""), key=self._often, default=character)
        if usual != character and self._often(usual) and self._often(character) < RARER * self._often(usual):
            return usual
        if character in self._profile.characters:
            return character
        compatible = unicodedata.normalize("NFKC", character)
        others = (compatible.lower(),) if self._in_lower_case else (compatible,)
        known = (each for each in others if self._profile.characters.issuperset(each.replace(" ", "")) and each)
        return next(known, character)

    def _often(self, character: str) -> int:
        if self._profile is None:
            return 0
        return self._profile.counts.get(character, int(character in self._profile.others))


def cased_words(texts: Sequence[str], most: int = 20_000) -> str:
    """Words that stand within training texts with a capital more often than without, with spaces between."""
    counts: dict[str, dict[str, int]] = {}
    for text in texts:
        for word in WORD.findall(text)[1:]:
            forms = counts.setdefault(word.lower(), {})
            forms[word] = forms.get(word, 0) + 1
    ranked = sorted(counts.items(), key=lambda item: (-sum(item[1].values()), item[0]))
    usual = (max(forms, key=lambda form: (forms[form], form)) for _, forms in ranked if sum(forms.values()) > 1)
    return " ".join([form for form in usual if form != form.lower()][:most])


def share_in_capitals(texts: Sequence[str]) -> float:
    """The share of texts in capitals."""
    any_case = Typography(capitals=0.0)
    return sum(map(any_case.in_capitals, texts)) / max(1, len(texts))
