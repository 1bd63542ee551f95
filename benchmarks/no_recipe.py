"""Without a recipe: is it as good as the repository's, better than Seq2SeqTrainer, and done in the time promised?

    python benchmarks/no_recipe.py --runs /tmp/no-recipe [--time 20m] [--record]
    python benchmarks/no_recipe.py recipes/g2p.toml recipes/enja.toml --runs /tmp/no-recipe --who recipe plan
    python benchmarks/no_recipe.py recipes/low-resource.toml --change backtranslation=none --runs /tmp/no-recipe

For each recipe three systems learn from its files for training and validation, and translate its first test:

- recipe: `transduce train RECIPE`
- plan: `transduce train --source .. --time T`, which decides all but the files
- trainer: Hugging Face's Seq2SeqTrainer with its defaults, in an environment of its own (see peers/seq2seq_trainer.py);
  for the time T it trains alone, its translations do not count

T is --time; by default as long as the recipe took. All outputs are scored by the recipe's metrics; differences have the
interval of a paired bootstrap. `--change` changes the recipe, its files for example. One after another, in processes of
their own; --threads for each.

What is finished is not done again, so that the same command goes on after an interruption; a trainer that is stopped
begins again. `--record` writes benchmarks/results/no_recipe/RECIPE.json; then `python docs/make_results.py`.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import transduce
from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs
from transduce.data.pairs.pair_data import PairData
from transduce.data.pairs.pair_files import PairFiles
from transduce.metrics.evaluate import tallies
from transduce.metrics.paired import paired_bootstrap
from transduce.metrics.tally import Tally
from transduce.planning.facts import facts_of
from transduce.planning.planned_run import value_in_toml
from transduce.planning.promise import parse_minutes, worked
from transduce.recipe.recipe import Recipe, load_recipe
from transduce.runtime.environment import library_versions, machine
from transduce.runtime.settings import repeatable

sys.path.insert(0, str(Path(__file__).parent))
from metric_headings import unnumbered
from no_recipe_tables import NAMES, scores_table, times_table
from records import save_record
from speed import WORKERS, make_environments, python

ROOT = Path(__file__).parents[1]
RECORDS = Path(__file__).with_name("results") / "no_recipe"
COLUMNS = {"source_column", "target_column", "source_separator", "separator"}
OPTIONS = {"source", "target", "file", "format", "weight", *COLUMNS}  # of one file the weight changes nothing
CHOSEN = ("multi30k-de-en", "tatoeba-en-zh", "tatoeba-zh-en", "enja", "g2p", "inflection", "geoquery", "aeslc", "cogs")


def main() -> None:
    """Train and translate what is not done yet; print the tables."""
    asked = arguments()
    records = []
    for path, recipe in asked.read:
        name = asked.name or recipe.name
        records.append(compared(path, recipe, name, asked))
        save_record(asked.runs / name / "compared.json", records[-1])
        if asked.record:
            save_record(RECORDS / f"{name}.json", records[-1])
    headings = unnumbered(score for record in records for score in record["scores"])
    print(f"\n{scores_table(records, headings)}\nMinutes:\n\n{times_table(records)}")


def arguments() -> argparse.Namespace:
    """From the command line, with the recipes read; what is wrong is told before the first training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", type=Path, nargs="*", help=f"by default those of {', '.join(CHOSEN)}")
    parser.add_argument("--runs", type=Path, required=True, help="a folder is made in it for each recipe")
    parser.add_argument("--change", action="append", default=[], metavar="KEY=VALUE", help="of the recipe alone")
    parser.add_argument("--name", help="of the one recipe, where its files are changed")
    parser.add_argument("--time", help="as in 20m; by default as long as the recipe took")
    parser.add_argument("--who", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--both", action="append", default=[], metavar="KEY=VALUE", help="set for recipe and plan")
    parser.add_argument("--trainer", action="append", default=[], metavar="KEY=VALUE", help="Seq2SeqTrainingArguments")
    parser.add_argument("--python", type=Path, help="an interpreter with transformers; by default one is installed")
    parser.add_argument("--record", action="store_true", help="put the scores on record for docs/results.md")
    asked = parser.parse_intermixed_args()
    paths = asked.recipes or [ROOT / "recipes" / f"{name}.toml" for name in CHOSEN]
    if asked.who == ["trainer"]:
        parser.error("--who: expected recipe or plan beside trainer, to compare it with")
    if (asked.change or asked.name) and len(paths) > 1:
        parser.error("--change and --name are for one recipe; name it.")
    if "recipe" not in asked.who and not asked.time:
        parser.error("--time: expected a time such as 20m where no recipe is trained, which would take one")
    try:
        asked.minutes = parse_minutes(asked.time) if asked.time else None
        asked.read = [(path, load_recipe(path, asked.change)) for path in paths]
        for _, recipe in asked.read:
            if recipe.teachers or recipe.backtranslation:
                raise InputError(f"{recipe.name}: expected a recipe with no stage before the training.")
            plan_command(recipe, Path(), 1.0, asked.threads)
            texts_of_test(recipe)
    except InputError as error:
        parser.error(str(error))
    if "trainer" in asked.who and not asked.python:
        make_environments(["huggingface"])
        asked.python = python("huggingface")
    return asked


def compared(path: Path, recipe: Recipe, name: str, asked: argparse.Namespace) -> dict[str, Any]:
    """The record of one data set."""
    folder = asked.runs / name
    folder.mkdir(parents=True, exist_ok=True)
    systems, outputs = {}, {}
    minutes = asked.minutes
    if "recipe" in asked.who:
        settings = [*asked.change, f"training.threads={asked.threads}", *asked.both]
        words = ["train", path, *settings, "--run", folder / "recipe"]
        run(asked, [sys.executable, "-m", "transduce", *words])
        systems["recipe"], outputs["recipe"] = of_run(folder / "recipe", recipe, asked.threads)
        minutes = minutes or round(systems["recipe"]["minutes"], 2)
    if "plan" in asked.who:
        run(asked, plan_command(recipe, folder / "plan", minutes, asked.threads, asked.both))
        systems["plan"], outputs["plan"] = of_run(folder / "plan", recipe, asked.threads)
    if "trainer" in asked.who:
        systems["trainer"], outputs["trainer"] = of_trainer(folder / "trainer", recipe, minutes, asked)
    test, pairs = texts_of_test(recipe)
    first = json.loads((folder / next(who for who in asked.who if who != "trainer") / "report.json").read_text())
    return {
        "recipe": name,
        **({"changed": asked.change} if asked.change else {}),
        "test": test,
        "sentences": len(pairs),
        "commit": first["environment"]["commit"],
        "finished": date.today().isoformat(),
        "minutes": minutes,
        "threads": asked.threads,
        "machine": machine(),
        "versions": library_versions(),
        "systems": systems,
        "scores": scores(recipe, pairs, outputs),
    }


def scores(recipe: Recipe, pairs: Sequence[tuple[str, str]], outputs: dict[str, list[str]]) -> list[dict[str, Any]]:
    """By each metric of the recipe: of each system, and of the plan less the others."""
    task: Any = recipe.task
    counted: dict[str, list[Tally]] = {
        who: tallies(task.metrics, texts, [[target] for _, target in pairs], task.target or None)
        for who, texts in outputs.items()
    }
    found = []
    for number, metric in enumerate(task.metrics):
        each = {who: several[number] for who, several in counted.items()}
        one = next(iter(each.values()))
        found.append(
            {
                "metric": metric,
                "name": one.name,
                "signature": one.signature,
                "lower_is_better": one.lower_is_better,
                "systems": {who: tally.score().to_dict() for who, tally in each.items()},
                "differences": {
                    who: paired_bootstrap(tally, each["plan"]).to_dict()
                    for who, tally in each.items()
                    if "plan" in each and who != "plan"
                },
            }
        )
    return found


# ---- Transduce -------------------------------------------------------------------------------------------


def plan_command(
    recipe: Recipe, folder: Path, minutes: float | None, threads: int, both: Sequence[str] = ()
) -> list[object]:
    """What somebody types who has the recipe's files and no recipe; minutes: None for as long as the data deserves.

    Raises:
        InputError: they cannot be named on the command line.
    """
    data: Any = recipe.data
    if not isinstance(data, PairData) or not data.test:
        raise InputError(f"{recipe.name}: expected a recipe for translation with files for its tests.")
    if len(data.train) > 1:
        raise InputError(f"{recipe.name}: expected one file of training pairs.")
    files = named(data.train[0], data.root)
    one = files.get("file")
    words: list[object] = ["--source", one or files["source"], *([] if one else ["--target", files["target"]])]
    columns = files.get("source_column", 0)
    if columns != 0 or files.get("target_column", 1) != 1:
        for column in columns if isinstance(columns, list) else [columns]:
            words += ["--source-column", column]
        words += ["--target-column", files.get("target_column", 1)]
    if "source_separator" in files:
        words += ["--source-separator", files["source_separator"]]
    if "separator" in files:
        words += ["--separator", files["separator"]]
    if more := files.keys() - OPTIONS:
        raise InputError(f"{recipe.name}: data.train: {', '.join(sorted(more))}: has no option on the command line.")
    task: Any = recipe.task
    if task.source and task.target:
        words += ["--languages", f"{task.source}-{task.target}"]
    test, held_out = next(iter(data.test.items()))
    words.append(f"data.test={value_in_toml({test: named(held_out, data.root)})}")
    if data.validation:
        words.append(f"data.validation={value_in_toml(named(data.validation, data.root))}")
    elif data.hold_out and data.hold_out.validation:
        words.append(f"data.hold_out.validation={data.hold_out.validation}")
    words += ["--time", f"{minutes:.2f}m"] if minutes else []
    words += [f"training.threads={threads}", *both, "--run", folder]
    return [sys.executable, "-m", "transduce", "train", *words]


def named(files: PairFiles, root: str) -> dict[str, Any]:
    """An entry of [data] as it would stand in a recipe in the working directory; only what is not usual."""
    table = files.model_dump(mode="json", exclude_defaults=True)
    paths = {"source", "target", "file"}
    return {key: str(Path(root) / value) if key in paths else value for key, value in table.items()}


def of_run(folder: Path, recipe: Recipe, threads: int) -> tuple[dict[str, Any], list[str]]:
    """What a training took, and its translations of the recipe's first test."""
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    plan = report.get("plan", {})
    promised = plan.get("promised_seconds")
    found = {
        "parameters": report["model"]["parameters"],
        "updates": report["training"]["updates"],
        "minutes": plan.get("took_seconds", worked(report)) / 60,
        **({"promised_minutes": promised / 60} if promised else {}),
    }
    path = folder / "test.outputs"
    if not path.is_file():
        with repeatable(threads):
            outputs = transduce.load(folder).predict([source for source, _ in texts_of_test(recipe)[1]], split="none")
        write_lines(path, [each.text for each in outputs])
    return found, read_lines(path)


# ---- Seq2SeqTrainer --------------------------------------------------------------------------------------


def of_trainer(
    folder: Path, recipe: Recipe, minutes: float, asked: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """The same of Hugging Face's; words are spelt by characters, as nobody would cut them into pieces."""
    folder.mkdir(exist_ok=True)
    if not (folder / "figures.json").is_file():
        data: Any = recipe.data
        pairs = [(source, target) for _, source, target in read_pairs(data.train[0], Path(data.root))]
        texts = {
            "train": [pair for pair in pairs if all(text.strip() for text in pair)],
            "test": [source for source, _ in texts_of_test(recipe)[1]],
        }
        (folder / "texts.json").write_text(json.dumps(texts, ensure_ascii=False), encoding="utf-8")
        unit = "characters" if facts_of(data.train, Path(data.root)).of_words else "pieces"
        command = [asked.python, WORKERS / "seq2seq_trainer.py", folder / "texts.json", folder, "--minutes", minutes]
        run(asked, [*command, "--threads", asked.threads, "--unit", unit, *asked.trainer])
    figures = json.loads((folder / "figures.json").read_text())
    return {**figures, "minutes": figures["training_seconds"] / 60}, read_lines(folder / "outputs")


# ---- texts and processes ---------------------------------------------------------------------------------


def texts_of_test(recipe: Recipe) -> tuple[str, list[tuple[str, str]]]:
    """The name and the pairs of the first test."""
    data: Any = recipe.data
    test, files = next(iter(data.test.items()))
    return test, [(source, target) for _, source, target in read_pairs(files, Path(data.root))]


def run(asked: argparse.Namespace, command: Sequence[object]) -> None:
    """A process, whose output is shown; the end where it fails."""
    words = [str(word) for word in command]
    print(" ".join(words), flush=True)
    environment = {**os.environ, "OMP_NUM_THREADS": str(asked.threads)}
    done = subprocess.run(words, env=environment, check=False)
    if done.returncode:
        sys.exit(f"exit code {done.returncode}: {' '.join(words)}\nThe same command goes on.")


def write_lines(path: Path, texts: Sequence[str]) -> None:
    """One a line."""
    path.write_text("".join(f"{text.replace(chr(10), ' ')}\n" for text in texts), encoding="utf-8")


def read_lines(path: Path) -> list[str]:
    """Without the line feeds."""
    return path.read_text(encoding="utf-8").split("\n")[:-1]


if __name__ == "__main__":
    main()
