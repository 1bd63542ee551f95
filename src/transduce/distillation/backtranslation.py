"""Back-translation from one recipe (Sennrich et al. 2016): texts of the target language become training pairs.

    RUN/reverse/          the run of a model from target to source: the recipe with its sides exchanged
    RUN/backtranslated/   its translations of the texts in [backtranslation], beside them
    RUN/                  the model's run, with its own ordinary recipe.toml; it learns from both kinds of pairs

The sources that a model wrote begin with a tag, so that the model tells them from real ones (Caswell et al. 2019). Each
stage continues where it was stopped, and a finished stage is not repeated.
"""

import json
from pathlib import Path
from typing import Any

import torch

from transduce.core.atomic import write_json
from transduce.core.errors import InputError
from transduce.core.model_file import find_model_file
from transduce.data.corpus import TextFile
from transduce.data.files import count_lines, existing_file, fingerprint
from transduce.distillation.translations import BACKTRANSLATION, distil, is_searched_so, read_distillation, taught_pairs
from transduce.pipeline.pipeline import load
from transduce.recipe.recipe import Recipe, lay_over, parse_recipe
from transduce.recipe.training import Backtranslation
from transduce.runtime.event_log import REPORT
from transduce.runtime.settings import repeatable
from transduce.search.settings import Search
from transduce.tasks.translation import TranslationData
from transduce.training.batch_size import with_earlier_batch
from transduce.training.display import Display
from transduce.training.finished import finished_report, tell_finished
from transduce.training.lock import alone_in
from transduce.training.parallel_runs import PATIENCE
from transduce.training.run import finish_training, run_training, train_in
from transduce.training.run_directory import claim, is_begun, make_directory

Report = dict[str, Any]
REVERSE, PAIRS = "reverse", "backtranslated"


def train_backtranslated(recipe: Recipe, run: Path, display: Display) -> Report:
    """Train the reverse model, translate the texts with it, then train the model, in the directory `run`.

    Returns the model's report, which names the reverse model and counts the translations.

    Raises:
        InputError: see `run_training`; or the recipe is not for translation, or has what does not go with
            [backtranslation].
    """
    reverse, learner = reverse_of(recipe), with_earlier_batch(with_pairs(recipe, run), run)
    given = _asked(recipe).model
    report = finished_report(run, learner)
    if report is not None and _is_translated_so(recipe, reverse, run):
        tell_finished(run, learner, report, display)
        return report
    make_directory(run)
    with alone_in(run, PATIENCE), repeatable(recipe.training.threads):
        claim(run, learner)  # before the reverse model is trained
        if given is None:
            display.tell(f"The reverse model, in {run / REVERSE}.")
            run_training(reverse, run / REVERSE, Display(display.console), PATIENCE)
        model, translated = _translated(recipe, reverse.search, run, display)
        report = finished_report(run, learner)
        if report is None:
            display.tell(f"The model, in {run}.")
            report = train_in(run, learner, Display(display.console))
        report |= {"reverse": model, "backtranslations": translated}
        write_json(run / REPORT, report)
        return report


def finish_backtranslated(recipe: Recipe, run: Path, display: Display) -> Report:
    """`transduce.training.run.finish_training` of the model.

    Raises:
        InputError: see `finish_training`; or the model's training has not begun.
    """
    if not is_begun(run) and is_begun(run / REVERSE):
        raise InputError(
            f"{run}: the model has no checkpoint yet. To finish the reverse model: transduce train --finish "
            f"{run / REVERSE}."
        )
    return finish_training(with_pairs(recipe, run), run, display)


def reverse_of(recipe: Recipe) -> Recipe:
    """The recipe of the reverse model: the sides of all files exchanged, and no tests.

    Raises:
        InputError: [backtranslation] has wrong values, or the recipe is not for it.
    """
    asked, data = _asked(recipe), recipe.data
    assert isinstance(data, TranslationData)
    table = recipe.to_table()
    del table["backtranslation"]
    table["name"] = f"{recipe.name}-reverse"
    table["task"] |= {"source": table["task"].get("target", ""), "target": table["task"].get("source", "")}
    exchanged = [_exchanged(files) for files in table["data"]["train"]]
    table["data"] |= {"train": exchanged, "test": {}}
    if "validation" in table["data"]:
        table["data"]["validation"] = _exchanged(table["data"]["validation"])
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
    pairs = taught_pairs(run / PAIRS)
    entry: dict[str, Any] = {"source": pairs["target"], "target": pairs["source"], "weight": asked.weight}
    table["data"]["train"] = [*table["data"]["train"], entry | ({"tag": asked.tag} if asked.tag else {})]
    return parse_recipe(table, recipe.name)


def _asked(recipe: Recipe) -> Backtranslation:
    """The section. Raises InputError for what does not go with it."""
    asked, data, problems = recipe.backtranslation, recipe.data, []
    assert asked is not None
    if not isinstance(data, TranslationData):
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
    for name in asked.text:
        try:
            existing_file(Path(data.root, name))
        except InputError as error:
            problems += [f"backtranslation.text: {problem}" for problem in error.problems]
    if problems:
        raise InputError(problems)
    return asked


def _exchanged(files: dict[str, Any]) -> dict[str, Any]:
    names = {"source": "target", "target": "source", "source_column": "target_column", "target_column": "source_column"}
    return {names.get(key, key): value for key, value in files.items()}


def _is_translated_so(recipe: Recipe, reverse: Recipe, run: Path) -> bool:
    """Whether the translations that there are, are those that are asked for. What was deleted is not made again."""
    asked, noted, root = _asked(recipe), read_distillation(run / PAIRS), Path(getattr(recipe.data, "root", "."))
    if asked.model is None and (run / REVERSE).exists() and finished_report(run / REVERSE, reverse) is None:
        return False
    if noted is None:
        return True
    texts = [each["sha256"] for each in noted["sources"]] == [fingerprint(root / name) for name in asked.text]
    model = asked.model is None or noted["teacher"]["sha256"] == fingerprint(find_model_file(asked.model))
    return texts and model and is_searched_so(noted, reverse.search, asked.precision)


def _translated(recipe: Recipe, search: Search, run: Path, display: Display) -> tuple[Report, Report]:
    """Translate the texts, unless that is done. Returns which model did it, and the counts."""
    asked, root = _asked(recipe), Path(getattr(recipe.data, "root", "."))
    file = find_model_file(run / REVERSE if asked.model is None else asked.model)
    checksum = fingerprint(file)
    pipeline = load(file, trust_code=asked.model is None, precision=asked.precision)  # of our own: code it has just run
    texts = [TextFile(text=name) for name in asked.text]
    with display.count("translating back", sum(count_lines(root / name) for name in asked.text)) as advance:
        found = distil(
            pipeline,
            checksum,
            texts,
            root,
            run / PAIRS,
            search,
            advance=advance,
            workers=torch.get_num_threads() if pipeline.device.type == "cpu" else 1,
            method=BACKTRANSLATION,
        )
    model: Report = {"name": pipeline.recipe.name, "sha256": checksum}
    if asked.model is None:
        trained = json.loads((run / REVERSE / REPORT).read_text(encoding="utf-8"))
        model["seconds"] = trained["training"]["seconds"]
    return model, {each: found[each] for each in ("lines", "counts")}
