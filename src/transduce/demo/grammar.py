"""The synchronous grammar of the demo corpus: a rule makes an English sentence and its one translation.

    frame (didnt, even_though, ...) -> clause ("it was too tired", "il était trop fatigué") -> noun phrase

Agreement, elision and contraction are worked out here, from the gender and number of each noun.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from transduce.demo.lexicon import Adjective, Noun, Setting, Verb, elides

Pair = tuple[str, str]


@dataclass(frozen=True)
class Phrase:
    """A noun with its article and perhaps an adjective beside it."""

    noun: Noun
    plural: bool = False
    indefinite: bool = False
    adjective: Adjective | None = None

    @property
    def english(self) -> str:
        """The old dogs; an animal."""
        noun = self.noun.english_plural if self.plural else self.noun.english
        words = f"{self.adjective.english} {noun}" if self.adjective else noun
        if self.indefinite:
            return f"an {words}" if words[0] in "aeiou" else f"a {words}"
        return f"the {words}"

    @property
    def french(self) -> str:
        """Les vieux chiens; un animal."""
        words = self._french_words()
        if self.indefinite:
            return f"{'une' if self.noun.feminine else 'un'} {words}"
        if self.plural:
            return f"les {words}"
        return elide("la" if self.noun.feminine else "le", words)

    @property
    def near(self) -> str:
        """The phrase after "près": du pont, de la rivière, de l'hôtel, des ponts."""
        if self.french.startswith("le "):
            return "du " + self.french.removeprefix("le ")
        if self.french.startswith("les "):
            return "des " + self.french.removeprefix("les ")
        return elide("de", self.french)

    def _french_words(self) -> str:
        noun = self.noun.french_plural if self.plural else self.noun.french
        if self.adjective is None:
            return noun
        adjective = self.adjective.agree(self.noun.feminine, self.plural)
        if not self.adjective.before_noun:
            return f"{noun} {adjective}"
        if not self.noun.feminine and not self.plural and elides(noun):
            adjective = self.adjective.before_vowel
        return f"{adjective} {noun}"


def elide(word: str, rest: str) -> str:
    """`word` before `rest`: elide("le", "animal") is "l'animal", elide("le", "hibou") is "le hibou"."""
    return f"{word[:-1]}'{rest}" if elides(rest.split(maxsplit=1)[0]) else f"{word} {rest}"


class Scene(NamedTuple):
    """Who does, or does not do, what to what; and what is then said of one of the two."""

    subject: Phrase
    verb: Verb
    thing: Phrase
    adjective: Adjective
    of_subject: bool

    @property
    def antecedent(self) -> Phrase:
        """The phrase that "it" stands for."""
        return self.subject if self.of_subject else self.thing


Frame = Callable[[Scene], Pair]

# ---- frames: sentences with a pronoun, of a scene ------------------------------------------------


def didnt(s: Scene) -> Pair:
    """The animal didn't cross the street because it was too tired."""
    english, french = _clause(s.antecedent, s.adjective, "too")
    return (
        f"{s.subject.english} didn't {s.verb.english} {s.thing.english} because {english}.",
        f"{s.subject.french} {_have_not(s.subject)} {s.verb.participle} {s.thing.french} {_because(french)}.",
    )


def couldnt(s: Scene) -> Pair:
    """The animal couldn't cross the street because it was too tired."""
    english, french = _clause(s.antecedent, s.adjective, "too")
    could_not = f"{_have_not(s.subject)} pu"
    return (
        f"{s.subject.english} couldn't {s.verb.english} {s.thing.english} because {english}.",
        f"{s.subject.french} {could_not} {s.verb.infinitive} {s.thing.french} {_because(french)}.",
    )


def refused(s: Scene) -> Pair:
    """The animal refused to cross the street because it was too tired."""
    english, french = _clause(s.antecedent, s.adjective, "too")
    doing = elide("de", s.verb.infinitive)
    return (
        f"{s.subject.english} refused to {s.verb.english} {s.thing.english} because {english}.",
        f"{s.subject.french} {_have(s.subject)} refusé {doing} {s.thing.french} {_because(french)}.",
    )


def wanted_but(s: Scene) -> Pair:
    """The animal wanted to cross the street, but it was too tired."""
    english, french = _clause(s.antecedent, s.adjective, "too")
    return (
        f"{s.subject.english} wanted to {s.verb.english} {s.thing.english}, but {english}.",
        f"{s.subject.french} {_wanted(s.subject)} {s.verb.infinitive} {s.thing.french}, mais {french}.",
    )


def even_though(s: Scene) -> Pair:
    """The animal crossed the street even though it was very tired."""
    english, french = _clause(s.antecedent, s.adjective, "very")
    return (
        f"{s.subject.english} {s.verb.past} {s.thing.english} even though {english}.",
        f"{s.subject.french} {_have(s.subject)} {s.verb.participle} {s.thing.french} {_even_if(french)}.",
    )


def so_it_didnt(s: Scene) -> Pair:
    """The animal was too tired, so it didn't cross the street."""
    english, french = _state(s.subject, s.adjective, "too")
    it, it_fr = _pronoun(s.subject)
    not_done = f"{_have_not(s.subject)} {s.verb.participle}"
    return (
        f"{s.subject.english} {english}, so {it} didn't {s.verb.english} {s.thing.english}.",
        f"{s.subject.french} {french}, alors {it_fr} {not_done} {s.thing.french}.",
    )


def did_because(s: Scene) -> Pair:
    """The animal crossed the street because it was very brave."""
    english, french = _clause(s.antecedent, s.adjective, "very")
    return (
        f"{s.subject.english} {s.verb.past} {s.thing.english} because {english}.",
        f"{s.subject.french} {_have(s.subject)} {s.verb.participle} {s.thing.french} {_because(french)}.",
    )


def wanted_because(s: Scene) -> Pair:
    """The animal wanted to cross the street because it was very brave."""
    english, french = _clause(s.antecedent, s.adjective, "very")
    return (
        f"{s.subject.english} wanted to {s.verb.english} {s.thing.english} because {english}.",
        f"{s.subject.french} {_wanted(s.subject)} {s.verb.infinitive} {s.thing.french} {_because(french)}.",
    )


def frames(helps: bool, of_subject: bool, verb: Verb, adjective: Adjective) -> list[Frame]:
    """The frames in which this makes sense."""
    if helps:
        return [did_because, wanted_because]
    possible: list[Frame] = [didnt, even_though]
    if verb.deliberate:
        possible.append(refused)
    if not adjective.unwilling:
        possible += [couldnt, wanted_but]
    return possible + [so_it_didnt] if of_subject else possible


NEGATIVE: tuple[Frame, ...] = (
    didnt,
    couldnt,
    so_it_didnt,
)  # "didn't open a box" would need "pas de" in French


# ---- sentences without a scene -------------------------------------------------------------------


def is_so(phrase: Phrase, adjective: Adjective, degree: str, now: bool) -> Pair:
    """The street is too wide; la rue est trop large."""
    english, french = _state(phrase, adjective, degree, now)
    return f"{phrase.english} {english}.", f"{phrase.french} {french}."


def did(subject: Phrase, verb: Verb, thing: Phrase) -> Pair:
    """The dog opened the door; le chien a ouvert la porte."""
    return (
        f"{subject.english} {verb.past} {thing.english}.",
        f"{subject.french} {_have(subject)} {verb.participle} {thing.french}.",
    )


def was_near(subject: Phrase, setting: Setting, place: Phrase, reason: Adjective | None) -> Pair:
    """The dog slept near the bridge because it was tired; le chien a dormi près du pont parce qu'il ..."""
    english = f"{subject.english} {setting.past} near {place.english}"
    french = f"{subject.french} {_have(subject)} {setting.participle} près {place.near}"
    if reason is None:
        return f"{english}.", f"{french}."
    clause, clause_fr = _clause(subject, reason, "very")
    return f"{english} because {clause}.", f"{french} {_because(clause_fr)}."


# ---- clauses -------------------------------------------------------------------------------------


def _clause(of: Phrase, adjective: Adjective, degree: str) -> Pair:
    """It was too tired; il était trop fatigué."""
    pronoun, pronoun_fr = _pronoun(of)
    english, french = _state(of, adjective, degree)
    return f"{pronoun} {english}", f"{pronoun_fr} {french}"


def _state(of: Phrase, adjective: Adjective, degree: str, now: bool = False) -> Pair:
    """Was too tired; était trop fatigué. `degree`: "too" or "very", left out if the adjective takes none."""
    be, be_fr = _be(of, now)
    agreed = adjective.agree(of.noun.feminine, of.plural)
    if adjective.absolute:
        return f"{be} {adjective.english}", f"{be_fr} {agreed}"
    degree_fr = {"too": "trop", "very": "très"}[degree]
    return f"{be} {degree} {adjective.english}", f"{be_fr} {degree_fr} {agreed}"


def _because(clause: str) -> str:
    return elide("parce que", clause)


def _even_if(clause: str) -> str:
    """Même s'il, but même si elle."""
    return elide("même si", clause) if clause.startswith("il") else f"même si {clause}"


def _be(of: Phrase, now: bool) -> Pair:
    if now:
        return ("are", "sont") if of.plural else ("is", "est")
    return ("were", "étaient") if of.plural else ("was", "était")


def _pronoun(of: Phrase) -> Pair:
    french = "elle" if of.noun.feminine else "il"
    return ("they", french + "s") if of.plural else ("it", french)


def _have(subject: Phrase) -> str:
    return "ont" if subject.plural else "a"


def _have_not(subject: Phrase) -> str:
    return f"{elide('ne', _have(subject))} pas"


def _wanted(subject: Phrase) -> str:
    return "voulaient" if subject.plural else "voulait"
