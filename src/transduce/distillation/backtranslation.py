"""Back-translation from one recipe (Sennrich et al. 2016): texts of the target language become training pairs.

    RUN/reverse/          the run of a model from target to source: the recipe with its sides exchanged
    RUN/backtranslated/   its translations of the texts in [backtranslation], beside them
    RUN/                  the model's run, with its own ordinary recipe.toml; it learns from both kinds of pairs

The sources that a model wrote begin with a tag, so that the model tells them from real ones (Caswell et al. 2019).

With data.hold_out both models hold out the same pairs, as they are drawn alike in both directions, and never from pairs
with a tag. What is written for a held-out text is left out of training.
"""

from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.model_file import find_model_file
from transduce.data.corpus import TextFile
from transduce.data.files import existing_file, fingerprint
from transduce.data.pairs.pair_files import PairFiles
from transduce.distillation.stages import Stages
from transduce.distillation.translations import BACKTRANSLATION, taught_pairs
from transduce.recipe.recipe import Recipe, lay_over, parse_recipe
from transduce.recipe.training import Backtranslation
from transduce.tasks.base import pairs_of
from transduce.training.finished import Report

REVERSE, PAIRS = "reverse", "backtranslated"
NAMES = {"source": "target", "target": "source", "source_column": "target_column", "target_column": "source_column"}


class Backtranslating(Stages):
    """Of a recipe with [backtranslation]. Raises InputError if it is not for translation, or that is wrong."""

    learns, translates, method = "model", "the reverse model", BACKTRANSLATION
    entries = ("reverse", "backtranslations")

    def __init__(self, recipe: Recipe, run: Path) -> None:
        asked, reverse = _asked(recipe), reverse_of(recipe)
        self.learner, self.folder = with_pairs(recipe, run), run / PAIRS
        self.given, self.first = asked.model, {} if asked.model else {run / REVERSE: reverse}
        self.models = [asked.model or run / REVERSE]
        self.texts, self.root = [TextFile(text=name) for name in asked.text], Path(getattr(recipe.data, "root", "."))
        self.search, self.precision = reverse.search, asked.precision

    def is_of(self, report: Report, noted: Report | None) -> bool:
        if noted is None:
            return True
        texts = [fingerprint(self.root / each.text) for each in self.texts]
        return texts == [each["sha256"] for each in noted["sources"]] and (
            not self.given or noted["teacher"]["sha256"] == fingerprint(find_model_file(self.given))
        )

    def report_entries(self, models: list[Report], translations: Report) -> Report:
        return dict(zip(self.entries, (models[0], translations), strict=True))


def reverse_of(recipe: Recipe) -> Recipe:
    """The recipe of the reverse model: the sides of all files exchanged, and no tests but those of data.hold_out.

    Raises:
        InputError: [backtranslation] has wrong values, or the recipe is not for it.
    """
    asked, data = _asked(recipe), pairs_of(recipe)
    assert data is not None  # which `_asked` has checked
    table = recipe.to_table()
    del table["backtranslation"]
    table["name"] = f"{recipe.name}-reverse"
    table["task"] |= {"source": table["task"].get("target", ""), "target": table["task"].get("source", "")}
    table["data"] |= {"train": [_exchanged(files) for files in data.train], "test": {}}
    if data.validation:
        table["data"]["validation"] = _exchanged(data.validation)
    table["tokenizer"] = {NAMES.get(key, key): value for key, value in table["tokenizer"].items()}
    if not table["task"]["target"]:  # whose tokenizer that metric needs
        table["task"]["metrics"] = [each for each in table["task"]["metrics"] if each != "bleu-lc-moses"] or ["chrf"]
    if table["training"]["best"] not in ("loss", "perplexity", *table["task"]["metrics"]):
        table["training"]["best"] = "loss"
    table["search"] |= {**asked.search, "nbest": 1}
    table["training"].pop("start", None)
    table["training"].pop("start_tokenizer", None)
    changed = {"model": asked.reverse_model, "training": asked.training}
    return parse_recipe(lay_over(table, changed), f"{recipe.name}: [backtranslation]")


def with_pairs(recipe: Recipe, run: Path) -> Recipe:
    """The model's recipe: to its training files come the texts, with the sources that the reverse model wrote."""
    asked, table = _asked(recipe), recipe.to_table()
    del table["backtranslation"]
    entry: dict[str, Any] = {**taught_pairs(run / PAIRS), "weight": asked.weight}
    table["data"]["train"] = [*table["data"]["train"], entry | ({"tag": asked.tag} if asked.tag else {})]
    return parse_recipe(table, recipe.name)


def _asked(recipe: Recipe) -> Backtranslation:
    """The section. Raises InputError for what does not go with it."""
    asked, data, problems = recipe.backtranslation, pairs_of(recipe), []
    assert asked is not None
    if data is None:
        raise InputError(f"{recipe.name}: [backtranslation] makes pairs of texts, so the task must be translation.")
    if recipe.teachers:
        problems.append(
            f"{recipe.name}: [backtranslation] and [teachers] both make training pairs; keep one, train, and give its "
            "pairs to the other in data.train."
        )
    if any(files.tags for files in data.train):
        problems.append(
            f"{recipe.name}: [backtranslation] is for one direction; leave out `to` and `tag` of data.train, or give "
            "the pairs that `transduce translate-back` writes."
        )
    if any(len(files.sources) > 1 for files in (*data.train, *([data.validation] if data.validation else []))):
        problems.append(
            f"{recipe.name}: [backtranslation] writes sources, which cannot be cut into several columns again; write "
            "the columns of source_column into one."
        )
    for name in asked.text:
        try:
            existing_file(Path(data.root, name))
        except InputError as error:
            problems += [f"backtranslation.text: {problem}" for problem in error.problems]
    if problems:
        raise InputError(problems)
    return asked


def _exchanged(files: PairFiles) -> dict[str, Any]:
    """The entry with source and target exchanged; of objects, the keys are named."""
    source, target = files.keys
    table = files.model_dump(mode="json", exclude_none=True) | {"source_column": source, "target_column": target}
    return {NAMES.get(key, key): value for key, value in table.items()}
