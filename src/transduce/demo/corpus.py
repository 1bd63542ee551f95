"""The built-in demo corpus: English-French pairs, made by a synchronous grammar, nothing to download.

    The animal didn't cross the street because it was too tired.
    L'animal n'a pas traversé la rue parce qu'il était trop fatigué.
    The animal didn't cross the street because it was too wide.
    L'animal n'a pas traversé la rue parce qu'elle était trop large.

To write *il* or *elle* a model must find what *it* stands for: an animal that is tired, or a street that is
wide. Validation and test ask this only of combinations (noun, adjective) that training never shows, in any
sentence. The example is that of Jakob Uszkoreit, "Transformer: A Novel Neural Network Architecture for
Language Understanding" (2017); the grammar and its words are our own.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from transduce.core.atomic import write_text
from transduce.demo.grammar import NEGATIVE, Pair, Phrase, Scene, did, frames, is_so, was_near
from transduce.demo.lexicon import Adjective, Noun, Verb, lexicon

Corpus = dict[str, list[Pair]]
Combination = tuple[str, str]  # (noun, adjective), both English, noun in the singular

SIZES = {"train": 30_000, "validation": 1_000, "test": 2_000}
HELD_OUT = {"validation": 0.05, "test": 0.10}  # shares of all combinations
SEEN_AT_LEAST = 3  # what training keeps: adjectives for every noun; nouns of each gender for every adjective
SIMPLE_SHARE = 0.25  # of the training sentences have no pronoun: they teach articles, genders and agreement


class PronounQuestion(NamedTuple):
    """A sentence, its translation, and the noun that "it" stands for."""

    english: str
    french: str
    antecedent: str


PRONOUN_PAIR = (
    PronounQuestion(
        "The animal didn't cross the street because it was too tired.",
        "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
        "animal",
    ),
    PronounQuestion(
        "The animal didn't cross the street because it was too wide.",
        "L'animal n'a pas traversé la rue parce qu'elle était trop large.",
        "street",
    ),
)
ALWAYS_IN_TEST: tuple[Combination, ...] = (("animal", "tired"), ("street", "wide"))


def make_corpus(seed: int = 1) -> Corpus:
    """The pairs (English, French) of `train`, `validation` and `test`; the same seed gives the same corpus.

    No source occurs twice. Every word of validation and test occurs in train. The two sentences of
    `PRONOUN_PAIR` open the test split.
    """
    rng = random.Random(seed)
    splits = split_combinations(rng)
    train = _distinct(_training_sentences(rng, splits), SIZES["train"], {})
    known = set(_words(train))
    corpus = {"train": train}
    for name in ("validation", "test"):
        first = {q.english: q.french for q in PRONOUN_PAIR} if name == "test" else {}
        readable = (pair for pair in _questions(rng, splits, name) if known.issuperset(_words([pair])))
        corpus[name] = _distinct(readable, SIZES[name], first)
    return corpus


def write_corpus(folder: str | Path, seed: int = 1) -> dict[str, tuple[Path, Path]]:
    """Writes train.en, train.fr, validation.en, ... into `folder`, UTF-8, each line ended by "\\n".

    Returns:
        split name -> (English file, French file). A file appears whole or not at all.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for name, pairs in make_corpus(seed).items():
        english, french = folder / f"{name}.en", folder / f"{name}.fr"
        write_text(english, "".join(f"{pair[0]}\n" for pair in pairs))
        write_text(french, "".join(f"{pair[1]}\n" for pair in pairs))
        written[name] = (english, french)
    return written


def antecedent(english: str) -> str | None:
    """The noun that "it" or "they" stands for, as the sentence writes it; None where there is no pronoun.

    An animate adjective is said of the animal, any other of the thing; "so it didn't ..." of the animal.
    """
    forms = _noun_forms()
    nouns = [word for word in re.findall(r"\w+", english.lower()) if word in forms]
    if re.search(r", so (it|they) didn't ", english):
        return nouns[0] if nouns else None
    clause = re.search(r"\b(?:it was|they were) (?:too |very )?(\w+)\.$", english)
    adjective = lexicon().adjectives.get(clause[1]) if clause else None
    if adjective is None:
        return None
    return next((n for n in nouns if forms[n].animate == (adjective.kind == "animate")), None)


def nouns_differ_in_gender(english: str) -> bool:
    """Whether the sentence names a masculine and a feminine, so that "il" or "elle" shows who is meant."""
    forms = _noun_forms()
    return len({forms[word].feminine for word in re.findall(r"\w+", english.lower()) if word in forms}) > 1


def combinations(english: str) -> set[Combination]:
    """Every (noun, adjective) that the sentence joins: "the tired dog", "the dog is tired", "it was tired".

    Descriptive adjectives ("old"), which never follow "it was", are no part of this.
    """
    forms, adjectives = _noun_forms(), lexicon().adjectives
    words = re.findall(r"\w+", english.lower())
    said = {w for w in words if w in adjectives and adjectives[w].kind != "descriptive"}
    nouns = [forms[w] for w in words if w in forms]
    return {(n.english, a) for a in said for n in nouns if n.animate == (adjectives[a].kind == "animate")}


# ---- which combinations are held out -------------------------------------------------------------


class Action(NamedTuple):
    """A verb and an object, with a quality (of whichever of the two) that hinders or helps."""

    verb: Verb
    thing: Noun
    adjective: Adjective
    helps: bool


def actions() -> dict[Combination, list[Action]]:
    """For every combination that "it was" can express, the actions in which it makes sense."""
    found: dict[Combination, list[Action]] = defaultdict(list)
    words = lexicon()
    animals = [animal.english for animal in _animals()]
    for verb in words.verbs.values():
        for thing in (words.nouns[name] for name in verb.objects):
            for english in verb.hinders + verb.helps:
                action = Action(verb, thing, words.adjectives[english], english in verb.helps)
                about = animals if action.adjective.kind == "animate" else [thing.english]
                for noun in about:
                    if english in words.nouns[noun].qualities:
                        found[noun, english].append(action)
    return dict(found)


def split_combinations(rng: random.Random) -> dict[Combination, str]:
    """Which split each combination belongs to.

    Training keeps enough adjectives of every noun, and enough nouns of either gender of every adjective.
    """
    nouns = lexicon().nouns
    everything = list(actions())
    splits = dict.fromkeys(everything, "train")
    left: Counter[str | tuple[str, bool]] = Counter()
    for noun, adjective in everything:
        left.update([noun, (adjective, nouns[noun].feminine)])

    def hold_out(combination: Combination, split: str) -> None:
        noun, adjective = combination
        splits[combination] = split
        left.subtract([noun, (adjective, nouns[noun].feminine)])

    for combination in ALWAYS_IN_TEST:
        hold_out(combination, "test")
    for animate in (True, False):
        candidates = [c for c in everything if nouns[c[0]].animate == animate and c not in ALWAYS_IN_TEST]
        rng.shuffle(candidates)
        quota = {split: round(share * len(candidates)) for split, share in HELD_OUT.items()}
        for noun, adjective in candidates:
            split = max(quota, key=lambda name: quota[name])
            enough = min(left[noun], left[adjective, nouns[noun].feminine]) > SEEN_AT_LEAST
            if quota[split] and enough:
                hold_out((noun, adjective), split)
                quota[split] -= 1
    return splits


# ---- sampling ------------------------------------------------------------------------------------


def _training_sentences(rng: random.Random, splits: dict[Combination, str]) -> Iterator[Pair]:
    questions = _questions(rng, splits, "train")
    simple = _simple_sentences(rng, splits)
    while True:
        yield next(simple if rng.random() < SIMPLE_SHARE else questions)


def _questions(rng: random.Random, splits: dict[Combination, str], split: str) -> Iterator[Pair]:
    """Sentences with a pronoun, endlessly: half about the subject, half about the thing."""
    possible = actions()
    nouns = lexicon().nouns
    about_subject = [c for c in possible if splits[c] == split and nouns[c[0]].animate]
    about_thing = [c for c in possible if splits[c] == split and not nouns[c[0]].animate]
    while True:
        of_subject = rng.random() < 0.5
        combination = rng.choice(about_subject if of_subject else about_thing)
        action = rng.choice(possible[combination])
        subject = nouns[combination[0]] if of_subject else rng.choice(_animals())
        yield _realise(rng, action, subject, of_subject)


def _realise(rng: random.Random, action: Action, subject: Noun, of_subject: bool) -> Pair:
    frame = rng.choice(frames(action.helps, of_subject, action.verb, action.adjective))
    scene = Scene(
        subject=_phrase(rng, subject, may_be_indefinite=True),
        verb=action.verb,
        thing=_phrase(rng, action.thing, may_be_indefinite=frame not in NEGATIVE),
        adjective=action.adjective,
        of_subject=of_subject,
    )
    return _capitals(frame(scene))


def _simple_sentences(rng: random.Random, splits: dict[Combination, str]) -> Iterator[Pair]:
    """Sentences that need no choice of antecedent, endlessly; no combination is held out."""
    seen = [combination for combination, split in splits.items() if split == "train"]
    qualities: dict[str, list[str]] = defaultdict(list)
    for noun, adjective in seen:
        qualities[noun].append(adjective)
    while True:
        kind = rng.random()
        if kind < 0.35:
            yield _capitals(_predication(rng, seen))
        elif kind < 0.8:
            yield _capitals(_transitive(rng, qualities))
        else:
            yield _capitals(_at_a_place(rng, qualities))


def _predication(rng: random.Random, seen: list[Combination]) -> Pair:
    noun, adjective = rng.choice(seen)
    phrase = _phrase(rng, lexicon().nouns[noun])
    return is_so(phrase, lexicon().adjectives[adjective], rng.choice(["too", "very"]), now=rng.random() < 0.5)


def _transitive(rng: random.Random, qualities: dict[str, list[str]]) -> Pair:
    words = lexicon()
    verb = rng.choice(list(words.verbs.values()))
    thing = _phrase(rng, words.nouns[rng.choice(verb.objects)], may_be_indefinite=True)
    subject = _phrase(rng, rng.choice(_animals()), may_be_indefinite=True)
    if rng.random() < 0.3:
        quality = words.adjectives[rng.choice(qualities[subject.noun.english])]
        subject = replace(subject, adjective=quality)
    return did(subject, verb, thing)


def _at_a_place(rng: random.Random, qualities: dict[str, list[str]]) -> Pair:
    words = lexicon()
    setting = rng.choice(words.settings)
    subject = _phrase(rng, rng.choice(_animals()), may_be_indefinite=True)
    place = _phrase(rng, words.nouns[rng.choice(words.places)])
    reasons = [reason for reason in setting.reasons if reason in qualities[subject.noun.english]]
    told = reasons and rng.random() < 0.5
    return was_near(subject, setting, place, words.adjectives[rng.choice(reasons)] if told else None)


def _phrase(rng: random.Random, noun: Noun, may_be_indefinite: bool = False) -> Phrase:
    plural = not noun.mass and rng.random() < 0.18
    indefinite = may_be_indefinite and not noun.mass and not plural and rng.random() < 0.2
    described = noun.descriptions and rng.random() < 0.15
    adjective = lexicon().adjectives[rng.choice(noun.descriptions)] if described else None
    return Phrase(noun, plural, indefinite, adjective)


def _animals() -> list[Noun]:
    return [noun for noun in lexicon().nouns.values() if noun.animate]


def _capitals(pair: Pair) -> Pair:
    english, french = pair
    return english[0].upper() + english[1:], french[0].upper() + french[1:]


def _distinct(pairs: Iterable[Pair], count: int, first: dict[str, str]) -> list[Pair]:
    """`first` and then new pairs up to `count`; a source that came before is passed over."""
    chosen = dict(first)
    for english, french in pairs:
        if len(chosen) >= count:
            break
        chosen.setdefault(english, french)
    return list(chosen.items())


def _words(pairs: Iterable[Pair]) -> set[str]:
    return {word for pair in pairs for side in pair for word in re.findall(r"\w+", side.lower())}


def _noun_forms() -> dict[str, Noun]:
    nouns = lexicon().nouns.values()
    return {noun.english_plural: noun for noun in nouns} | {noun.english: noun for noun in nouns}
