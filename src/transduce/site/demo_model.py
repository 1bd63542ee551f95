"""The model of the demo, which the pages run: trained from the built-in corpus in minutes."""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from transduce.core.errors import InputError
from transduce.core.folders import new_folder
from transduce.demo.corpus import PRONOUN_PAIR, write_corpus
from transduce.demo.pronouns import Head, Sought, attention_by_head, clearest
from transduce.pipeline.pipeline import Pipeline, load
from transduce.recipe.recipe import Recipe, load_recipe
from transduce.runtime.allocator import keep_freed_memory
from transduce.training.display import Display
from transduce.training.finished import finished_report
from transduce.training.run import run_training
from transduce.training.run_directory import check_directory, check_recipe, make_folder

RECIPE = Path(__file__).with_name("demo.toml")
CORPUS = "corpus"  # a folder of the run


def demo_model(run: Path, overrides: Sequence[str], console: Console) -> Pipeline:
    """The model of a finished run of this very recipe, or of one that is trained now.

    Raises:
        InputError: the folder holds something else; `overrides`, KEY=VALUE of the recipe, are wrong.
    """
    recipe = _recipe(run / CORPUS, overrides)
    check_directory(run, data=[CORPUS])
    check_recipe(run, recipe)
    _write_corpus(run / CORPUS, console)
    if is_finished(run, overrides):
        console.print(f"{run} is trained already: showing it again.", highlight=False, soft_wrap=True)
    else:
        keep_freed_memory()
        pair = [question.english for question in PRONOUN_PAIR]
        run_training(recipe, run, Display(console), first=pair)
    return load(run)


def is_finished(run: Path, overrides: Sequence[str] = ()) -> bool:
    """Whether the model was trained there, by this very recipe."""
    recipe = _recipe(run / CORPUS, overrides)
    try:
        return finished_report(run, recipe) is not None
    except InputError:
        return False


def pronoun_head(pipeline: Pipeline) -> Head:
    """The head in which it is best seen what "it" stands for.

    Raises:
        InputError: the model does not write "il" and "elle" for the two sentences that differ in an adjective.
    """
    for question in PRONOUN_PAIR:
        output = pipeline.predict(question.english).text
        if output != question.french:
            raise InputError(
                f"The model translates {question.english!r} as {output!r}; expected {question.french!r}. Train it "
                f"anew, or with another seed: training.seed in {RECIPE.name}."
            )
    asked = [Sought(question.english, "it", question.antecedent) for question in PRONOUN_PAIR]
    return clearest(attention_by_head(pipeline, asked))


def _recipe(corpus: Path, overrides: Sequence[str]) -> Recipe:
    return load_recipe(RECIPE, [f"data.root={json.dumps(corpus.as_posix())}", *overrides])


def _write_corpus(folder: Path, console: Console) -> None:
    """Raises InputError where the folder holds something else."""
    if (folder / "test.fr").exists():
        return
    console.print(f"Writing the built-in corpus, English to French, to {folder}", highlight=False, soft_wrap=True)
    make_folder(folder.parent)
    with new_folder(folder) as staged:
        write_corpus(staged)
