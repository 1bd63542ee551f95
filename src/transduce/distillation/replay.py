"""Fine-tuning that keeps what the first model could do: pairs that it knows are trained on beside the new ones.

    RUN/replay/    train.source, train.target: the pairs; kept.source, kept.target: others, which validation measures
    RUN/           the model's run, with its own ordinary recipe.toml: these files stand in its [data]

The pairs are those that the first model learnt from, where its run directory names them and they are there (rehearsal,
Robins 1995); else the model writes them itself (Kim and Rush 2016), see `transduce.distillation.similar_sentences`.
"""

import hashlib
from collections.abc import Iterable, Iterator
from functools import partial
from heapq import nsmallest
from pathlib import Path
from typing import Any

from transduce.core.atomic import write_json, write_text
from transduce.core.bounded_file import read_table
from transduce.core.errors import InputError
from transduce.core.model_file import find_model_file
from transduce.data.corpus import count_pairs, read_pairs
from transduce.data.files import fingerprint
from transduce.distillation.similar_sentences import SimilarSentences
from transduce.pipeline.pipeline import load
from transduce.recipe.recipe import Recipe, parse_recipe
from transduce.recipe.training import Replay
from transduce.runtime.event_log import REPORT
from transduce.runtime.lock import run_lock
from transduce.runtime.settings import repeatable
from transduce.tasks.base import pairs_of
from transduce.training.display import Display
from transduce.training.finished import Report
from transduce.training.parallel_runs import PATIENCE
from transduce.training.run import finish_training, run_training
from transduce.training.run_directory import make_directory
from transduce.training.start_data import Pair, StartData, start_data

FOLDER, NOTE, KEPT = "replay", "replay.json", "kept"
ANEW = "Delete the folder: its pairs are made again."
Table = dict[str, Any]


class Replaying:
    """Of a recipe with [replay]. Raises InputError if it is not for translation, or starts from no model."""

    def __init__(self, recipe: Recipe, run: Path) -> None:
        asked, data = recipe.replay, pairs_of(recipe)
        assert asked is not None
        if data is None or not recipe.training.start:
            raise InputError(
                f"{recipe.name}: [replay] is for pairs of texts and a model to start from: name it in training.start."
            )
        if KEPT in data.test or recipe.training.kept:
            raise InputError(
                f"{recipe.name}: [replay] makes the test set {KEPT}, which training.kept names: leave both out."
            )
        self.recipe, self.run, self.asked, self.data = recipe, run, asked, data
        self.start = recipe.training.start
        self.folder, self.root = run / FOLDER, Path(data.root)

    def train(self, display: Display) -> Report:
        """The pairs, unless they are there; then the model. Returns its report, see `run_training`."""
        noted = self._noted()
        if noted is None:
            make_directory(self.run, self.recipe)
            with run_lock(self.run, PATIENCE), repeatable(self.recipe.training.threads):
                noted = self._made(display)
        report = run_training(self._learner(noted), self.run, display)
        if "replay" not in report:
            report |= {"replay": noted}
            write_json(self.run / REPORT, report)
        return report

    def finish(self, display: Display) -> Report:
        """`finish_training` of the model. Raises InputError where its training has not begun."""
        noted = self._noted()
        if noted is None:
            raise InputError(f"{self.run}: its training has not begun: it has no {FOLDER}/{NOTE} yet.")
        return finish_training(self._learner(noted), self.run, display)

    def _plan(self) -> Table:
        """All that decides the pairs."""
        files = [path for each in self.data.corpora() for path in each.paths(self.root)]
        return {
            "start": fingerprint(find_model_file(self.start)),
            "settings": self.asked.model_dump(mode="json"),
            "sources": [fingerprint(path) for path in files],
        }

    def _noted(self) -> Table | None:
        """What was made before; None where nothing is whole. Raises InputError where other pairs are there."""
        if not (self.folder / NOTE).is_file():
            return None
        noted = read_table(self.folder / NOTE, ANEW)
        different = [key for key, value in self._plan().items() if noted.get(key) != value]
        if different:
            raise InputError(
                f"{self.folder}: was made for another training; different: {', '.join(different)}. Choose another "
                "directory with --run, or delete this one."
            )
        return noted

    def _learner(self, noted: Table) -> Recipe:
        """The model's recipe, whose [data] names the pairs, if there are any."""
        table = self.recipe.to_table()
        del table["replay"]
        if not noted["pairs"]:
            return parse_recipe(table, self.recipe.name)
        here, data = self.folder.absolute().as_posix(), table["data"]
        entry = {"weight": noted["weight"], "hold_out": False}
        data["train"] = [*data["train"], {**_files(here, "train"), **entry}]
        data["test"] = {**data.get("test", {}), KEPT: _files(here, KEPT)}
        table["training"]["kept"] = KEPT
        return parse_recipe(table, self.recipe.name)

    def _made(self, display: Display) -> Table:
        new = {source for files in self.data.corpora() for _, source, _ in read_pairs(files, self.root)}
        before = start_data(self.start) if self.asked.kind != "generated" else None
        if self.asked.kind == "learnt" and (before is None or not before.train):
            raise InputError(
                f'replay.kind = "learnt": the pairs that {self.start} learnt from are not there, or have changed. Use '
                '"generated".'
            )
        if before is not None and before.train:
            kind, (train, kept, kept_are) = "learnt", _learnt(before, new, self.asked)
        else:
            kind, (train, kept, kept_are) = "generated", self._generated(display)
        return self._written(train, kept, {"kind": kind, "kept_are": kept_are}, display)

    def _generated(self, display: Display) -> tuple[list[Pair], list[Pair], str]:
        asked, corpora = self.asked, self.data.corpora()
        pairs = [(source, target) for files in corpora for _, source, target in read_pairs(files, self.root)]
        with display.count("writing pairs to replay", asked.pairs + asked.kept) as advance:
            found = SimilarSentences(load(self.start, trust_code=None), pairs, asked.seed)
            train, kept = found.pairs(asked.pairs, asked.kept, advance)
        return train, kept, "sentences like the new ones, as the first model translates them"

    def _written(self, train: list[Pair], kept: list[Pair], how: Table, display: Display) -> Table:
        """The files, the note last; no files where there are not both."""
        self.folder.mkdir(exist_ok=True)
        if not train or not kept:
            noted = {**self._plan(), **how, "pairs": 0, "kept": 0}
            write_json(self.folder / NOTE, noted)
            display.warn(f"{self.start} gives no pairs to replay, so what it could do is neither kept nor measured.")
            return noted
        new = sum(files.weight * (files.pairs or count_pairs(files, self.root)) for files in self.data.corpora())
        weight = self.asked.share / (1 - self.asked.share) * new / len(train)
        for part, pairs in (("train", train), (KEPT, kept)):
            for side, texts in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
                write_text(
                    self.folder / f"{part}.{side}", "".join(f"{' '.join(text.splitlines())}\n" for text in texts)
                )
        counts = {"pairs": len(train), "kept": len(kept), "weight": round(weight, 6)}
        noted = {**self._plan(), **how, **counts}
        write_json(self.folder / NOTE, noted)
        display.tell(_sentence(noted, self.start))
        return noted


def _sentence(noted: Table, start: str) -> str:
    from_ = "that it learnt from" if noted["kind"] == "learnt" else "that it wrote itself"
    return (
        f"So that {start} forgets less, {noted['pairs']:,} pairs {from_} are trained on, too. What it keeps is "
        f"measured by {noted['kept']:,} others: {noted['kept_are']}."
    )


def _files(folder: str, part: str) -> Table:
    return {side: f"{folder}/{part}.{side}" for side in ("source", "target")}


def _learnt(before: StartData, new: set[str], asked: Replay) -> tuple[list[Pair], list[Pair], str]:
    """Pairs to train on and others to measure, with what these are; none has a source of the new pairs."""
    held_out, kept_are = before.validation, "of its validation"
    if not held_out:
        held_out, kept_are = before.tests, "of its tests"
    if not held_out:
        held_out, kept_are = before.train, "that it learnt from, but does not now"
    choose = partial(_chosen, seed=asked.seed)
    kept = choose(before.pairs(held_out), asked.kept, new)
    train = choose(before.pairs(before.train), asked.pairs, new | {source for source, _ in kept})
    return train, kept, kept_are


def _chosen(pairs: Iterable[Pair], count: int, without: set[str], seed: int) -> list[Pair]:
    """So many pairs, whose sources are not `without`, by a hash of their texts."""

    def left() -> Iterator[Pair]:
        return ((source, target) for source, target in pairs if source not in without and source and target)

    return nsmallest(count, left(), key=lambda pair: hashlib.sha256(f"{seed} {pair[0]}\t{pair[1]}".encode()).digest())
