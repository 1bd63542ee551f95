"""Languages: trains a recipe once for each language and seed, and scores single models and the ensemble of the seeds.

    python benchmarks/languages.py recipes/g2p.toml --languages dut,fre,hun,kor,arm_e --runs /tmp/g2p [KEY=VALUE ..]
    python benchmarks/languages.py recipes/inflection.toml --languages english,finnish,german,spanish --runs /tmp/forms

The recipe names the files of one language, such as dut_train.tsv.gz. In the names of its files, not of their folders,
each other language's code stands in its place. All files are looked for before the first training. Single models are
scored as `transduce train` scores them at its end, the ensemble of a language's seeds as `transduce predict A B` is.

What is trained already is not trained again, so that the same command goes on after an interruption; a run may also be
trained by itself, see --only. `--record` writes benchmarks/results/languages/RECIPE.json; then
`python docs/make_results.py`.
"""

import argparse
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import transduce
from transduce.core.errors import InputError
from transduce.core.names import checked_name
from transduce.data.files import existing_file
from transduce.data.pairs.pair_data import PairData
from transduce.recipe.recipe import Recipe, load_recipe, parse_recipe
from transduce.runtime.settings import repeatable
from transduce.training.display import Display
from transduce.training.run import open_task, run_training

sys.path.insert(0, str(Path(__file__).parent))
from language_tables import deciding, error_rates, table
from publish import in_words
from records import save_record

RECORDS = Path(__file__).with_name("results") / "languages"
FILES = ("source", "target", "file")


def main() -> None:
    """Train what is not trained yet, then print the table, and write it to languages.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", type=Path)
    named = "codes as in the names of the files, with commas between"
    parser.add_argument("--languages", type=codes, required=True, help=named)
    parser.add_argument("--code", help="the language that the recipe names, where it is none of --languages")
    parser.add_argument("--seeds", type=int, default=5, help="how many: 1, 2, .. (default 5)")
    parser.add_argument("--runs", type=Path, required=True, help="the folder of the runs: LANGUAGE/seed-1, ..")
    parser.add_argument("--only", metavar="LANGUAGE", help="train this language's models and score nothing")
    parser.add_argument("--record", action="store_true", help="put the scores on record for docs/results.md")
    parser.add_argument("--commit", help="with --record: the code they were trained by, where reports do not say")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_intermixed_args()
    languages: list[str] = options.languages
    if options.seeds < 2:
        parser.error(f"--seeds: expected 2 or more, as ensembles have several members; got {options.seeds}")
    if options.only and options.only not in languages:
        parser.error(f"--only: expected one of {', '.join(languages)}; got {options.only}")
    try:
        recipe = load_recipe(options.recipe, options.overrides)
        recipes = {each: of_language(recipe, found_code(recipe, languages, options.code), each) for each in languages}
        check_files(recipes.values())
    except InputError as error:
        parser.error(str(error))
    chosen = [options.only] if options.only else languages
    reports = {each: trained(recipes[each], options.runs / each, options.seeds) for each in chosen}
    if options.only:
        return
    record = recorded(recipes, reports, options)
    for score in deciding(record):
        print(f"\n{score['test']}, {score['name']} ({score['signature']}):\n\n{table(score)}\n{error_rates(score)}")
    save_record(options.runs / "languages.json", record)
    if options.record:
        if not record["commit"]:
            sys.exit(f"{options.runs}: the reports do not say which commit trained them: --commit")
        print(save_record(RECORDS / f"{recipe.name}.json", record))


# ---- the recipe of another language ----------------------------------------------------------------------


def codes(text: str) -> list[str]:
    """Each code is the name of a folder, too. Raises ValueError for what is none."""
    return list(dict.fromkeys(checked_name(each.strip()) for each in text.split(",") if each.strip()))


def found_code(recipe: Recipe, languages: Sequence[str], named: str | None) -> str:
    """The language that the recipe names: in all its entries of files.

    Raises:
        InputError: there is none, or several; the recipe is of another task.
    """
    if not isinstance(recipe.data, PairData):
        raise InputError(f"{recipe.name}: expected a recipe of kind translation, whose files are of one language.")
    every = list(entries(recipe.to_table()["data"]))
    found = [each for each in ([named] if named else languages) if all(_names(files, each) for _, files in every)]
    if len(found) == 1:
        return found[0]
    told = "; ".join(f"{where}: {', '.join(_files(files).values())}" for where, files in every)
    if found:
        raise InputError(f"{recipe.name}: its files name {' and '.join(found)}; say by --code which one it is: {told}.")
    wanted = named or f"one of {', '.join(languages)}"
    raise InputError(f"{recipe.name}: expected {wanted} in the names of all entries of files; got {told}.")


def of_language(recipe: Recipe, code: str, language: str) -> Recipe:
    """The recipe with files of another language; and with its code, where the task names the recipe's own."""
    made = recipe.to_table()
    for _, files in entries(made["data"]):
        for key, name in _files(files).items():
            folder, slash, last = name.rpartition("/")
            files[key] = folder + slash + _whole(code).sub(language, last)
    for side in ("source", "target"):
        if made["task"].get(side) == code:
            made["task"][side] = language
    return parse_recipe(made, f"{recipe.name}, {language}")


def entries(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those of training, validation and tests, with what each is called."""
    for number, files in enumerate(data["train"], 1):
        yield f"data.train, {number}", files
    if data.get("validation"):
        yield "data.validation", data["validation"]
    for name, files in data.get("test", {}).items():
        yield f"data.test.{name}", files


def check_files(recipes: Any) -> None:
    """Raises InputError that names all files which are not there."""
    problems = []
    for recipe in recipes:
        data = recipe.data
        for files in (*data.train, *([data.validation] if data.validation else []), *data.test.values()):
            for path in files.paths(Path(data.root)):
                try:
                    existing_file(path)
                except InputError as error:
                    problems += error.problems
    if problems:
        raise InputError(problems)


def _files(entry: dict[str, Any]) -> dict[str, str]:
    return {key: entry[key] for key in FILES if entry.get(key)}


def _names(entry: dict[str, Any], code: str) -> bool:
    return any(_whole(code).search(name.rpartition("/")[2]) for name in _files(entry).values())


def _whole(code: str) -> re.Pattern[str]:
    """The code with no letter or digit beside it: `de` stands in train.de.gz, and not in model.gz."""
    return re.compile(rf"(?<![^\W_]){re.escape(code)}(?![^\W_])")


# ---- trainings and scores --------------------------------------------------------------------------------


def trained(recipe: Recipe, folder: Path, seeds: int) -> dict[int, Any]:
    """The reports of a language's trainings, by seed."""
    reports = {}
    for seed in range(1, seeds + 1):
        own = recipe.model_copy(update={"training": recipe.training.model_copy(update={"seed": seed})})
        reports[seed] = run_training(own, folder / f"seed-{seed}", Display(Console(stderr=True)))
        figures = [
            f"{test}, {score['name']} {score['value']:.2f}"
            for test, found in reports[seed]["tests"].items()
            for score in found["scores"].values()
        ]
        print(f"{folder.name}, seed {seed}: {'; '.join(figures)}", flush=True)
    return reports


def recorded(recipes: dict[str, Recipe], reports: dict[str, dict[int, Any]], options: argparse.Namespace) -> Any:
    """What a reader of the table wants to know."""
    ensembles = {}
    for language, recipe in recipes.items():
        ensembles[language] = ensemble_scores(
            recipe, [options.runs / language / f"seed-{s}" for s in reports[language]]
        )
        print(
            f"{language}, ensemble: {', '.join(f'{score:.2f}' for score in _values(ensembles[language]))}", flush=True
        )
    every = [each for one in reports.values() for each in one.values()]
    environment = every[0]["environment"]
    kept = ("updates", "target_tokens", "seconds")
    return {
        "recipe": every[0]["name"],
        "change": " ".join(options.overrides),
        "commit": options.commit or " ".join(sorted({str(each["environment"].get("commit") or "") for each in every})),
        "finished": max(each["finished"] for each in every)[:10],
        "seeds": list(range(1, options.seeds + 1)),
        "precision": every[0]["training"]["precision"],
        "machine": {key: environment["machine"][key] for key in ("processor", "kernels", "threads")},
        "versions": {key: environment["versions"][key] for key in ("python", "torch")},
        "trainings": {
            language: {
                seed: {"parameters": each["model"]["parameters"], **{key: each["training"][key] for key in kept}}
                for seed, each in one.items()
            }
            for language, one in reports.items()
        },
        "scores": list(_scores(reports, ensembles)),
    }


def ensemble_scores(recipe: Recipe, runs: Sequence[Path]) -> dict[str, Any]:
    """Of all tests: metric -> score."""
    found = {}
    with repeatable(recipe.training.threads):
        pipeline = transduce.load(list(runs))
        _, data = open_task(recipe, Display(Console(stderr=True, quiet=True)))
        for name, dataset in data.tests.items():
            outputs = pipeline.predict([source for source, _ in dataset.texts], split="none")
            texts = [each.text for each in outputs]
            counted = pipeline.task.tallies(texts, dataset.references, language=dataset.language)
            found[name] = {metric: tally.score().to_dict() for metric, tally in counted.items()}
    return found


def _scores(reports: dict[str, dict[int, Any]], ensembles: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """For each test set and metric: those of all languages, of each seed and of their ensemble."""
    first = next(iter(next(iter(reports.values())).values()))
    for test, found in first["tests"].items():
        for metric, score in found["scores"].items():
            yield {
                "test": test,
                "search": in_words(found["search"]) if found.get("search") else "",
                "metric": metric,
                **{key: score[key] for key in ("name", "signature")},
                "languages": {
                    language: {
                        "seeds": {seed: each["tests"][test]["scores"][metric]["value"] for seed, each in one.items()},
                        "ensemble": {
                            key: ensembles[language][test][metric][key] for key in ("value", "interval", "signature")
                        },
                    }
                    for language, one in reports.items()
                },
            }


def _values(ensemble: dict[str, Any]) -> Iterator[float]:
    return (score["value"] for scores in ensemble.values() for score in scores.values())


if __name__ == "__main__":
    main()
