"""What comes before a model's own training: other models are trained, and what they translate becomes its data.

Each stage continues where it was stopped, and a finished stage is not repeated.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from transduce.core.atomic import write_json
from transduce.core.bounded_file import read_table
from transduce.core.errors import InputError
from transduce.core.model_file import find_model_file
from transduce.data.corpus import TextFile
from transduce.distillation.translations import (
    DISTILLATION,
    checksum_of,
    count_texts,
    distil,
    is_searched_so,
    read_distillation,
)
from transduce.kernels.matmul import Precision
from transduce.pipeline.pipeline import load
from transduce.recipe.recipe import Recipe
from transduce.runtime.event_log import REPORT
from transduce.runtime.lock import run_lock
from transduce.runtime.settings import repeatable
from transduce.search.settings import Search
from transduce.training.batch_size import with_earlier_batch
from transduce.training.display import Display
from transduce.training.finished import Report, finished_report, tell_finished
from transduce.training.parallel_runs import PATIENCE, train_all
from transduce.training.run import finish_training, train_in
from transduce.training.run_directory import claim, is_begun, make_directory


class Stages(ABC):
    """The stages of a recipe.

    Attributes:
        learner: the recipe of the model itself, whose data are the translations.
        learns, translates: what it and a model that translates are called.
        first: the recipes of the models that are trained first, by their run directories.
        parallel: how many of these are trained at once.
        models: what translates, as an ensemble: these models, or one that is given.
        texts, root: what they translate, and the directory to which its names are relative.
        folder: the directory for the translations.
        search, precision: how they translate.
        method: for the report of the translations.
        entries: those of the model's report that `report_entries` makes.
    """

    learner: Recipe
    learns: str
    translates: str
    first: Mapping[Path, Recipe]
    parallel = 1
    models: Sequence[str | Path]
    texts: Sequence[TextFile]
    root: Path
    folder: Path
    search: Search
    precision: Precision
    method = DISTILLATION
    entries: tuple[str, str]

    @abstractmethod
    def is_of(self, report: Report, noted: Report | None) -> bool:
        """Whether a finished run learnt from these models and texts; noted: the report of its translations."""

    @abstractmethod
    def report_entries(self, models: list[Report], translations: Report) -> Report:
        """What the model's report says of those that translated, and of how much, by `entries`."""

    def train(self, run: Path, display: Display) -> Report:
        """All stages; returns the model's report. Raises InputError, see `transduce.training.run.run_training`."""
        learner = with_earlier_batch(self.learner, run)
        report = finished_report(run, learner)
        if report is not None and self._is_done(report):
            tell_finished(run, learner, report, display)
            return report
        make_directory(run, learner)
        with run_lock(run, PATIENCE), repeatable(learner.training.threads):
            claim(run, learner)  # before hours are spent on other models
            train_all(self._untrained(), self.parallel, display)
            translated = self._translated(display)
            report = finished_report(run, learner)
            if report is None:
                display.tell(f"The {self.learns}, in {run}.")
                report = train_in(run, learner, Display(display.console, display.watch))
            models = [_trained(plan, folder) for folder, plan in self.first.items()] or [translated["teacher"]]
            report |= self.report_entries(models, {each: translated[each] for each in ("lines", "counts")})
            write_json(run / REPORT, report)
            return report

    def finish(self, run: Path, display: Display) -> Report:
        """`transduce.training.run.finish_training` of the model.

        Raises:
            InputError: see `finish_training`; or the model's training has not begun.
        """
        begun = [folder for folder in self.first if is_begun(folder)]
        if not is_begun(run) and begun:
            raise InputError(
                f"{run}: the {self.learns} has no checkpoint yet. To finish {self.translates}: transduce train "
                f"--finish {begun[0]}."
            )
        return finish_training(self.learner, run, display)

    def _is_done(self, report: Report) -> bool:
        """Whether a finished run is of these stages. What was deleted is not made again. Writes nothing."""
        if any(folder.exists() for folder in self._untrained()):
            return False
        if not report.keys() >= {*self.entries}:  # killed before they were written
            return False
        noted = read_distillation(self.folder)
        searched = noted is None or is_searched_so(noted, self.search, self.precision)
        return self.is_of(report, noted) and searched

    def _untrained(self) -> dict[Path, Recipe]:
        """The models whose training is not finished. Raises InputError if one has another recipe."""
        return {folder: plan for folder, plan in self.first.items() if finished_report(folder, plan) is None}

    def _translated(self, display: Display) -> Report:
        """Translate the texts, unless that is done; returns the report of it."""
        files = [find_model_file(each) for each in self.models]
        together = load(files, trust_code=None, precision=self.precision)
        with display.count("translating", count_texts(self.texts, self.root)) as advance:
            return distil(
                together,
                checksum_of(files),
                self.texts,
                self.root,
                self.folder,
                self.search,
                advance=advance,
                workers=torch.get_num_threads() if together.device.type == "cpu" else 1,
                method=self.method,
            )


def _trained(recipe: Recipe, folder: Path) -> Report:
    """A model's entry in the report, with its cost."""
    found = read_table(folder / REPORT, "Delete the folder: its model is trained again.")
    return {"name": recipe.name, "sha256": found["model"]["sha256"], "seconds": found["training"]["seconds"]}
