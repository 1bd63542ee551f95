"""Pairs of texts: translation and its like. Facts and decisions have a file each, `facts` and `decisions`."""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TypeGuard

from transduce.data.pairs.inputs import Named, pair_files, resolve_inputs
from transduce.planning import decisions, fine_tuning
from transduce.planning.decisions import Decision, Size
from transduce.planning.facts import Facts, facts_of
from transduce.planning.protocols import Start
from transduce.recipe.recipe import parse_recipe

FEWEST = 50  # pairs; of fewer, two or three would be held out for each score
USEFUL = 500  # pairs, below which a model is of little use, whatever is decided


class PairsPlanner:
    """A `TaskPlanner` for pairs of texts.

    Raises:
        InputError: what `resolve_inputs` refuses.
    """

    def __init__(self, named: Named) -> None:
        self.named, self.inputs = named, resolve_inputs(named)

    @cached_property
    def facts(self) -> Facts:
        """Raises InputError as `facts_of`."""
        found = facts_of((pair_files(self.inputs.train),), Path(), self.inputs.languages, FEWEST)
        return replace(found, languages_named=self.named.languages is not None)

    def to_lines(self) -> list[str]:
        """As `TaskPlanner.to_lines`."""
        return self.facts.to_lines()

    def warnings(self) -> list[str]:
        """That there are few pairs."""
        if self.facts.pairs >= USEFUL:
            return []
        return [
            f"{self.facts.pairs:,} pairs are too few for a useful model: you need at least {USEFUL}, preferably "
            "thousands. Scores on so few held-out pairs mean little."
        ]

    def usual_size(self) -> Size:
        """As `TaskPlanner.usual_size`."""
        return decisions.usual_size(self.facts)

    def smaller(self, size: Size) -> Size | None:
        """As `TaskPlanner.smaller`."""
        return decisions.smaller(size)

    def deserved_updates(self, start: Start | None) -> int:
        """As `TaskPlanner.deserved_updates`; a quarter from a model that translates."""
        updates = decisions.deserved_updates(self.facts)
        return fine_tuning.fewer_updates(updates) if _translates(start) else updates

    def why_deserved(self, start: Start | None) -> str:
        """As `TaskPlanner.why_deserved`."""
        if _translates(start):
            return "a quarter of those from nothing, as a model that goes on learning also forgets"
        return "grows with the cube root of the text"

    def decide(self, validation: bool, test: bool, size: Size, start: Start | None) -> list[Decision]:
        """As `TaskPlanner.decide`."""
        decided = decisions.decide(self.facts, validation, test, size)
        return self._fine_tuned(decided, start) if start else decided

    def schedule(
        self, updates: int, reason: str, expected: int, start: Start | None, validations: int
    ) -> list[Decision]:
        """As `TaskPlanner.schedule`; from a model that translates, the learning rate rises over a tenth."""
        planned = decisions.schedule(updates, reason, expected, validations)
        return fine_tuning.with_warmup(planned, expected) if _translates(start) else planned

    def _fine_tuned(self, decided: list[Decision], start: Start) -> list[Decision]:
        """The same for a training from another model: with its sizes, its embeddings, and its tokenizers if kept."""
        data = {"train": [self.inputs.train]}
        table = {"name": self.inputs.name, "data": data, "model": {"kind": start.model["kind"]}}
        known = parse_recipe(table, self.inputs.name).to_table()["model"] | {"kind": None}
        reason = "as in the model that training starts from"
        sizes = [
            Decision(f"model.{key}", value, reason) for key, value in start.model.items() if known.get(key) != value
        ]
        own = ("model.", "training.embeddings", *(("tokenizer.",) if start.keeps else ()))
        found = [*(each for each in decided if not each.key.startswith(own)), *sizes]
        return fine_tuning.keeping(found, start, self.facts) if _translates(start) else found


def _translates(start: Start | None) -> TypeGuard[Start]:
    """Whether there is something to keep."""
    return start is not None and start.task == "translation"
