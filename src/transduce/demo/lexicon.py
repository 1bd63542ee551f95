"""The words of the demo corpus and how they inflect: plurals, agreement, elision, contraction.

The tables are in `demo.toml`; here are the rules of English and French that the tables rely on.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

VOWELS = "aeiouyâàéèêëîïôûùœ"


@dataclass(frozen=True)
class Noun:
    """A noun in both languages; `qualities` may follow "it was", `descriptions` only stand beside it."""

    english: str
    english_plural: str
    french: str
    french_plural: str
    feminine: bool
    animate: bool
    mass: bool
    qualities: tuple[str, ...]
    descriptions: tuple[str, ...]


@dataclass(frozen=True)
class Adjective:
    """An adjective in both languages.

    kind: animate, inanimate (both may follow "it was") or descriptive (only beside a noun).
    absolute: takes neither "too" nor "very".
    unwilling: a reason not to want, rather than not to be able.
    before_noun: where French puts it.
    """

    english: str
    masculine: str
    feminine: str
    before_vowel: str
    kind: str
    absolute: bool
    unwilling: bool
    before_noun: bool

    def agree(self, feminine: bool, plural: bool) -> str:
        """The French form for a noun of that gender and number."""
        singular = self.feminine if feminine else self.masculine
        return french_plural(singular) if plural else singular


@dataclass(frozen=True)
class Verb:
    """A transitive verb, the nouns that may be its object, and what hinders or helps its subject to do it.

    deliberate: one can refuse to do it; nobody refuses to find a key.
    """

    english: str
    past: str
    infinitive: str
    participle: str
    objects: tuple[str, ...]
    hinders: tuple[str, ...]
    helps: tuple[str, ...]
    deliberate: bool


@dataclass(frozen=True)
class Setting:
    """An intransitive verb ("slept") and the animate adjectives that are a reason for it."""

    past: str
    participle: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class WordLists:
    """All words, each table by its English word, in the order of the file."""

    nouns: dict[str, Noun]
    adjectives: dict[str, Adjective]
    verbs: dict[str, Verb]
    settings: tuple[Setting, ...]
    places: tuple[str, ...]


@cache
def lexicon() -> WordLists:
    """The tables of `demo.toml`, read once."""
    table = tomllib.loads(files("transduce.demo").joinpath("demo.toml").read_text(encoding="utf-8"))
    adjectives = _adjectives(table["adjectives"])
    settings = dict(table["settings"])
    places = tuple(settings.pop("places").split())
    return WordLists(
        nouns=_nouns(table),
        adjectives=adjectives,
        verbs={english: _verb(english, entry, table["nouns"]) for english, entry in table["verbs"].items()},
        settings=tuple(_setting(past, entry) for past, entry in settings.items()),
        places=places,
    )


def elides(word: str) -> bool:
    """Whether le, la, de, ne, que lose their vowel before this word: l'hôtel, but le hibou (h aspiré)."""
    first = word[0].lower()
    return first in VOWELS or (first == "h" and word not in aspirated())


@cache
def aspirated() -> frozenset[str]:
    """French nouns of the lexicon that begin with an h aspiré, singular and plural."""
    table = tomllib.loads(files("transduce.demo").joinpath("demo.toml").read_text(encoding="utf-8"))
    singular = table["aspirated"].split()
    return frozenset(singular) | {table["french_plurals"].get(noun, french_plural(noun)) for noun in singular}


def english_plural(noun: str) -> str:
    """The regular English plural: fox -> foxes, berry -> berries, boy -> boys."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def french_plural(word: str) -> str:
    """The regular French plural: cheval -> chevaux, oiseau -> oiseaux, souris -> souris, grand -> grands."""
    if word.endswith(("s", "x", "z")):
        return word
    if word.endswith(("eau", "œu")):
        return word + "x"
    return word[:-2] + "aux" if word.endswith("al") else word + "s"


def french_feminine(adjective: str) -> str:
    """The regular French feminine: paresseux -> paresseuse, léger -> légère, large -> large, dur -> dure."""
    if adjective.endswith("e"):
        return adjective
    if adjective.endswith("eux"):
        return adjective[:-1] + "se"
    return adjective[:-2] + "ère" if adjective.endswith("er") else adjective + "e"


def _nouns(table: dict[str, Any]) -> dict[str, Noun]:
    animate = tuple(table["adjectives"]["animate"])
    nouns = {}
    for group, entries in table["nouns"].items():
        for english, entry in entries.items():
            head, _, qualities = entry.partition(":")
            french, gender = head.split()
            nouns[english] = Noun(
                english=english,
                english_plural=table["english_plurals"].get(english, english_plural(english)),
                french=french,
                french_plural=table["french_plurals"].get(french, french_plural(french)),
                feminine=gender == "f",
                animate=group == "animals",
                mass=english in table["mass"].split(),
                qualities=animate if group == "animals" else tuple(qualities.split()),
                descriptions=tuple(table["descriptions"][group].split()),
            )
    return nouns


def _adjectives(table: dict[str, Any]) -> dict[str, Adjective]:
    absolute, unwilling, before_noun = (table[key].split() for key in ("absolute", "unwilling", "before_noun"))
    adjectives = {}
    for kind in ("animate", "inanimate", "descriptive"):
        for english, forms in table[kind].items():
            masculine, *others = forms.split()
            adjectives[english] = Adjective(
                english=english,
                masculine=masculine,
                feminine=others[0] if others else french_feminine(masculine),
                before_vowel=others[1] if len(others) > 1 else masculine,
                kind=kind,
                absolute=english in absolute,
                unwilling=english in unwilling,
                before_noun=english in before_noun,
            )
    return adjectives


def _verb(english: str, entry: dict[str, Any], groups: dict[str, dict[str, str]]) -> Verb:
    objects: dict[str, None] = {}  # a dict keeps the order and drops a noun that a group already brought
    for name in entry["objects"].split():
        objects.update(dict.fromkeys(groups.get(name, [name])))
    return Verb(
        english,
        entry["past"],
        entry["infinitive"],
        entry["participle"],
        tuple(objects),
        tuple(entry["hinders"].split()),
        tuple(entry["helps"].split()),
        entry.get("deliberate", True),
    )


def _setting(past: str, entry: str) -> Setting:
    participle, _, reasons = entry.partition(":")
    return Setting(past, participle.strip(), tuple(reasons.split()))
