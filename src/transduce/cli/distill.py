"""`transduce distill TEACHER .. --output FOLDER [--student RECIPE]`."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from transduce.cli import options
from transduce.cli.search_keys import models_and_search

if TYPE_CHECKING:
    from transduce.data.corpus import TextFile


def distill(
    teacher: Annotated[
        list[Path],
        typer.Argument(
            metavar="TEACHER|search.KEY=VALUE",
            help="A run directory or a model file. Several teach as an ensemble. search.KEY=VALUE sets any key of "
            "search, such as search.beam=5.",
        ),
    ],
    output: Annotated[Path, typer.Option(help="The folder for source.gz, target.gz and distillation.json.")],
    source: Annotated[
        list[Path] | None, typer.Option(help="A file to translate. Repeatable. By default the teacher's training data.")
    ] = None,
    recipe: Annotated[
        Path | None,
        typer.Option(help="Translate the training data of this recipe. By default that of the first teacher's run."),
    ] = None,
    beam: Annotated[int | None, typer.Option(help="The beam width. By default the teacher's.")] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            help="The exponent alpha in log p / length^alpha, by which outputs are ranked. By default the teacher's."
        ),
    ] = None,
    prune: options.Prune = None,
    precision: options.Precision = "fp32",
    device: options.Device = "auto",
    batch_size: options.BatchSize = 128,
    engine: options.Engine = "local",
    workers: options.Workers = None,
    student: Annotated[Path | None, typer.Option(help="Then train this recipe on the translations.")] = None,
    run: Annotated[
        Path | None, typer.Option(help="The student's run directory. By default runs/<recipe name>.")
    ] = None,
    trust_code: options.TrustCode = False,
) -> None:
    """Translate training data with a teacher, to train a student.

        transduce distill runs/my --output runs/my-distilled

    The same command continues where it stopped.
    """
    from transduce.cli.text import tell

    teacher, asked = models_and_search(teacher, {"beam": beam, "alpha": alpha, "prune": prune})
    sources, root = _sources(teacher[0], source, recipe, trust_code)
    student_recipe = _student(student, output) if student else None  # a wrong one is told now
    use = {"trust_code": trust_code, "precision": precision, "device": device}
    how: dict[str, Any] = {"batch_size": batch_size, "engine": engine, "workers": workers}
    told = translated(teacher, use, asked, sources, root, output, **how)
    tell(f"{told} To train on it:")
    typer.echo(f'[data]\nroot = "."\ntrain = [{{ source = "{output}/source.gz", target = "{output}/target.gz" }}]')
    if student_recipe:
        _train(student_recipe, run)


def translated(
    models: list[Path],
    use: dict[str, Any],
    search: dict[str, Any],
    sources: list["TextFile"],
    root: Path,
    output: Path,
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    **how: Any,
) -> str:
    """Translate files into a folder with a model or an ensemble; returns how much there was, in words.

    use: of `load`; search: keys in place of the model's; how: of `distil`, as all others.
    """
    from transduce.bulk.engine import engine_of
    from transduce.bulk.job import Placement
    from transduce.cli.text import bar, libraries_on_stderr
    from transduce.core.model_file import find_model_file
    from transduce.distillation.translations import checksum_of, count_texts, distil
    from transduce.pipeline.pipeline import load
    from transduce.runtime.allocator import keep_freed_memory
    from transduce.runtime.devices import use_device
    from transduce.search.settings import search_settings

    keep_freed_memory()
    files = [find_model_file(each) for each in models]
    placement = None if engine == "local" else Placement(engine_of(engine, workers=workers), files, use)
    here = {**use, "device": "cpu"} if placement else use
    use_device(here["device"])
    pipeline = load(files, **here)
    settings = search_settings(pipeline.recipe.search, {"nbest": 1, **search})
    checksum, lines = checksum_of(files), count_texts(sources, root)
    how |= {"placement": placement, "workers": workers or 1 if engine == "local" else 1}
    with libraries_on_stderr(), bar("translating", lines) as advance:
        report = distil(pipeline, checksum, sources, root, output, settings, advance=advance, **how)
    counts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in report["counts"].items())
    return f"{output}: {lines:,} lines; {counts}."


def _sources(
    model: Path, named: list[Path] | None, recipe: Path | None, trust_code: bool
) -> tuple[list["TextFile"], Path]:
    """What to translate, and the folder that it lies in."""
    from transduce.cli.training_data import training_data
    from transduce.core.errors import InputError
    from transduce.core.model_file import find_model_file
    from transduce.data.corpus import TextFile
    from transduce.data.shards import shards_of
    from transduce.distillation.translations import training_sources

    if named and recipe:
        raise InputError("name --source or --recipe, not both: each says what to translate.")
    if named:
        return [TextFile(text=str(path)) for path in named], Path()
    data = training_data(find_model_file(model), recipe, "--source or --recipe", trust_code)
    if data.hold_out is not None:
        raise InputError(
            "data.hold_out draws the held-out pairs from the training files, but a teacher translates whole files. "
            "Name files without those pairs with --source."
        )
    return training_sources(shards_of(data.train, Path(data.root))), Path(data.root)


def _student(path: Path, output: Path) -> Any:
    """The student's recipe, its training data replaced. Raises InputError if it draws held-out pairs from them."""
    from transduce.core.errors import InputError
    from transduce.distillation.translations import taught_pairs
    from transduce.recipe.recipe import load_recipe

    pairs = taught_pairs(output)
    source, target = (json.dumps(pairs[side], ensure_ascii=False) for side in ("source", "target"))
    recipe = load_recipe(path, [f"data.train=[{{ source = {source}, target = {target} }}]"])
    if getattr(recipe.data, "hold_out", None):
        raise InputError(
            f"{path}: data.hold_out would draw held-out pairs from the teacher's translations: name files for "
            "data.validation and data.test."
        )
    return recipe


def _train(recipe: Any, run: Path | None) -> None:
    from transduce.runtime.console import make_console
    from transduce.training.display import Display
    from transduce.training.run import run_training
    from transduce.training.run_directory import default_run

    run_training(recipe, run or default_run(recipe.name), Display(make_console()))
