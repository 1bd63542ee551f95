"""Data that nobody owns, drawn by a seed: sentences with their trees, texts with questions, a graph of linked pages.

In the sentences it depends on the words where "with ..." belongs: one sees a man with a telescope, but a man with a
beard is seen. In the graph, the words of a page say little, and the pages that it is linked to say more.
"""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transduce.core.atomic import write_text


class Sighting(NamedTuple):
    """What is done to what: tools go with the verb, parts with the object."""

    verbs: tuple[str, ...]
    objects: tuple[str, ...]
    tools: tuple[str, ...]
    parts: tuple[str, ...]


SCENES = (
    Sighting(
        ("saw", "watched", "spotted"),
        ("man", "boy", "sailor", "doctor", "painter", "neighbour", "king"),
        ("telescope", "camera", "binoculars", "lens"),
        ("beard", "hat", "scarf", "umbrella", "moustache"),
    ),
    Sighting(
        ("ate", "tasted", "finished"),
        ("soup", "rice", "salad", "pasta", "cake", "pie"),
        ("spoon", "fork", "chopsticks", "knife"),
        ("onions", "cheese", "cherries", "beans", "nuts"),
    ),
    Sighting(
        ("opened", "mended", "broke"),
        ("door", "box", "chest", "cupboard", "window"),
        ("hammer", "key", "wrench", "screwdriver"),
        ("handle", "carving", "mirror", "drawers", "lid"),
    ),
)
SUBJECTS = ("girl", "woman", "student", "cook", "captain", "man", "boy", "doctor", "painter", "neighbour")
ADJECTIVES = ("old", "young", "small", "tall", "quiet", "red", "new")
PLACES = ("garden", "park", "kitchen", "harbour", "street", "house")
HELD_OUT = 0.25  # of the combinations of an object with what stands behind "with"

NAMES = ("Anna", "Paul", "Mei", "Omar", "Lena", "Kofi", "Rosa", "Ivan", "Aiko", "Juma", "Nora", "Ravi")
WHERE = ("garden", "harbour", "station", "market", "museum", "library", "bakery", "school", "island", "bridge")
WHEN = ("in the morning", "at noon", "in the evening", "at night", "on Monday", "on Friday", "in spring", "in winter")
THINGS = ("a lantern", "an old clock", "two letters", "a green umbrella", "the red boat", "a loaf of bread", "a map")
DEEDS = {"bought": "buy", "lost": "lose", "found": "find", "painted": "paint", "mended": "mend"}
ACTORS = 4  # sentences of a text, each of another person

TOPICS = {
    "sea": ("wave", "ship", "harbour", "tide", "sail", "shell", "storm", "anchor"),
    "mountain": ("peak", "snow", "rope", "valley", "goat", "ridge", "storm", "hut"),
    "kitchen": ("spoon", "oven", "salt", "knife", "bread", "shell", "oil", "pan"),
}
PAGES, LABELLED, WORDS = 90, 4, 6  # pages; of each topic, those that training sees labels of; words of a page
OWN_WORDS, OWN_LINKS, LINKS = 0.45, 0.9, 4  # shares of a page's own topic; links of a page


def write_trees(folder: Path, seed: int = 1, train: int = 8000, held_out: int = 300) -> None:
    """train.mrg, validation.mrg and test.mrg; what validation and test combine is never combined in training."""
    rng = random.Random(seed)
    combined = [(thing, behind) for scene in SCENES for thing in scene.objects for behind in scene.tools + scene.parts]
    asked = set(rng.sample(sorted(combined), round(HELD_OUT * len(combined))))
    for part, count in {"train": train, "validation": held_out, "test": held_out}.items():
        found = _distinct(rng, count, asked, held_out=part != "train")
        write_text(folder / f"{part}.mrg", "".join(f"{tree}\n" for tree in found))


def _distinct(rng: random.Random, count: int, asked: set[tuple[str, str]], held_out: bool) -> list[str]:
    found: dict[str, None] = {}
    while len(found) < count:
        tree, combination = _sentence(rng)
        if (combination in asked) == held_out:
            found.setdefault(tree)
    return list(found)


def _sentence(rng: random.Random) -> tuple[str, tuple[str, str]]:
    """A tree in brackets, and which object stands before which noun behind "with"."""
    scene = rng.choice(SCENES)
    thing, verb = rng.choice(scene.objects), f"(VBD {rng.choice(scene.verbs)})"
    tool = rng.random() < 0.5
    behind = rng.choice(scene.tools if tool else scene.parts)
    what, phrase = _phrase(rng, thing), f"(PP (IN with) {_phrase(rng, behind)})"
    inside = f"{verb} {what} {phrase}" if tool else f"{verb} (NP {what} {phrase})"
    place = f" (PP (IN in) {_phrase(rng, rng.choice(PLACES))})" if rng.random() < 0.3 else ""
    return f"(S {_phrase(rng, rng.choice(SUBJECTS))} (VP {inside}{place}))", (thing, behind)


def _phrase(rng: random.Random, noun: str) -> str:
    adjective = [rng.choice(ADJECTIVES)] if rng.random() < 0.25 else []
    first = (adjective or [noun])[0]
    article = "the" if rng.random() < 0.75 or noun[-1] == "s" else "an" if first[0] in "aeiou" else "a"
    described = "".join(f" (JJ {word})" for word in adjective)
    return f"(NP (DT {article}){described} (NN {noun}))"


def write_questions(folder: Path, seed: int = 1, train: int = 1500, held_out: int = 100) -> None:
    """train.json, validation.json and test.json, as SQuAD has them: four questions a text; no text comes twice."""
    rng = random.Random(seed)
    known: set[str] = set()
    for part, count in {"train": train, "validation": held_out, "test": held_out}.items():
        paragraphs: list[dict[str, Any]] = []
        while len(paragraphs) < count:
            paragraph = _story(rng)
            if paragraph["context"] not in known:
                known.add(paragraph["context"])
                paragraphs.append(paragraph)
        for text, paragraph in enumerate(paragraphs):
            for place, question in enumerate(paragraph["qas"]):
                question["id"] = f"{part}-{text}-{place}"
        file = {"version": "1.1", "data": [{"title": "stories", "paragraphs": paragraphs}]}
        write_text(folder / f"{part}.json", json.dumps(file))


def _story(rng: random.Random) -> dict[str, Any]:
    """A text about four people, and four questions on it, each of another kind."""
    draw = [rng.sample(each, ACTORS) for each in (NAMES, WHERE, WHEN, THINGS, sorted(DEEDS))]
    scenes = list(zip(*draw, strict=True))
    told = [f"{name} {deed} {thing} near the {where} {when}." for name, where, when, thing, deed in scenes]
    context = " ".join(told)
    questions = []
    for kind, scene, sentence in zip(rng.sample(range(4), 4), scenes, told, strict=True):
        name, where, when, thing, deed = scene
        ask, answer = (
            (f"Who {deed} {thing}?", name),
            (f"Where did {name} {DEEDS[deed]} {thing}?", f"near the {where}"),
            (f"When did {name} {DEEDS[deed]} {thing}?", when),
            (f"What did {name} {DEEDS[deed]} near the {where}?", thing),
        )[kind]
        start = context.index(sentence) + sentence.index(answer)
        questions.append({"question": ask, "answers": [{"text": answer, "answer_start": start}]})
    return {"context": context, "qas": questions}


def write_graph(folder: Path, seed: int = 1) -> None:
    """nodes.tsv and edges.tsv: pages of three topics, which few say and most links know."""
    rng = random.Random(seed)
    names = list(TOPICS)
    labels = [names[i % len(names)] for i in range(PAGES)]
    rng.shuffle(labels)
    words = sorted({word for each in TOPICS.values() for word in each})
    nodes = ["node\tname\tsplit\tlabel\tfeature_indices"]
    for node, (label, split) in enumerate(zip(labels, _splits(rng, labels), strict=True)):
        indices = " ".join(str(words.index(word)) for word in _page(rng, label, words))
        nodes.append(f"{node}\t{node + 1}\t{split}\t{label}\t{indices}")
    edges = ["source\ttarget", *(f"{one + 1}\t{other + 1}" for one, other in sorted(_links(rng, labels)))]
    write_text(folder / "nodes.tsv", "\n".join(nodes) + "\n")
    write_text(folder / "edges.tsv", "\n".join(edges) + "\n")


def _splits(rng: random.Random, labels: Sequence[str]) -> Iterator[str]:
    """The first of each topic are for training; of the others a third for validation."""
    seen = dict.fromkeys(labels, 0)
    for label in labels:
        seen[label] += 1
        yield "train" if seen[label] <= LABELLED else rng.choice(("val", "test", "test"))


def _page(rng: random.Random, label: str, words: Sequence[str]) -> list[str]:
    drawn = {rng.choice(TOPICS[label] if rng.random() < OWN_WORDS else words) for _ in range(WORDS)}
    return sorted(drawn, key=words.index)


def _links(rng: random.Random, labels: Sequence[str]) -> set[tuple[int, int]]:
    found: set[tuple[int, int]] = set()
    while len(found) < LINKS * len(labels) / 2:
        one, own = rng.randrange(len(labels)), rng.random() < OWN_LINKS
        other = rng.choice([i for i, label in enumerate(labels) if i != one and (label == labels[one]) == own])
        found.add((min(one, other), max(one, other)))
    return found
