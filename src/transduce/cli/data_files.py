"""Options that name data where a recipe is meant, the same for `train`, `new` and `doctor`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.cli.options import column

if TYPE_CHECKING:
    from transduce.data.pairs.inputs import Named

SourceFile = Annotated[
    Path | None,
    typer.Option(
        help="Train without a recipe: a file of sources, one a line; or both sides: a table (.tsv, .csv, .jsonl, "
        ".json, .parquet, .xlsx, .tmx, .xlf, .po), a .zip of OPUS, a folder, or the common beginning of two names: "
        "corpus for corpus.en and corpus.sw."
    ),
]
TargetFile = Annotated[Path | None, typer.Option(help="The file of the targets, one a line, beside --source.")]
SourceColumns = Annotated[
    list[str] | None,
    typer.Option(
        help="The column of the source in one file: its number from 0, or its name in .csv and .jsonl. Repeatable: "
        "several columns, such as a lemma and its tags, are joined."
    ),
]
TargetColumn = Annotated[str | None, typer.Option(help="The column of the target in one file: its number or its name.")]
SourceSeparator = Annotated[
    str | None, typer.Option(help="What stands between several source columns. By default ' | '.")
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="What separates source and target on a line of one file. By default a tab, or ' ||| ' where the first "
        "line has that."
    ),
]
Languages = Annotated[
    str | None,
    typer.Option(help="The languages of source and target, as in en-sw, where the names of the files do not say them."),
]
Validation = Annotated[
    Path | None,
    typer.Option(
        help="Pairs that pick the best weights: one file with the columns of --source, or its sources beside "
        "--validation-target. By default some of the training pairs, which are not trained on."
    ),
]
ValidationTarget = Annotated[Path | None, typer.Option(help="The targets beside --validation, one a line.")]
Test = Annotated[
    Path | None,
    typer.Option(
        help="Pairs for the test at the end, named as those of --validation. By default some of the training pairs."
    ),
]
TestTarget = Annotated[Path | None, typer.Option(help="The targets beside --test, one a line.")]
Task = Annotated[
    str | None,
    typer.Option(
        help="What to learn from a file, where it is not recognised: classification (texts with labels), tagging "
        "(words with labels), extractive_qa (questions on texts), speech_recognition (recordings and what is said), "
        "language_modelling or masked_language_modelling (text alone), or translation (pairs of texts)."
    ),
]
Start = Annotated[
    str | None,
    typer.Option(
        help="A model to fine-tune: its file, its run, or a folder of Hugging Face. The same as training.start."
    ),
]
Time = Annotated[
    str | None,
    typer.Option(help="The time that training and tests may take, as in 2h or 90m. By default an hour at most."),
]


def named_files(
    source: Path,
    target: Path | None,
    source_column: list[str] | None,
    target_column: str | None,
    source_separator: str | None,
    separator: str | None,
    languages: str | None,
    validation: Path | None = None,
    validation_target: Path | None = None,
    test: Path | None = None,
    test_target: Path | None = None,
    task: str | None = None,
) -> "Named":
    """What the options name. Raises InputError for languages that are none."""
    from transduce.data.pairs.inputs import Named
    from transduce.data.pairs.languages import parse_languages

    columns = tuple(map(column, source_column or ()))
    to = None if target_column is None else column(target_column)
    named = parse_languages(languages) if languages else None
    held_out = validation, validation_target, test, test_target
    return Named(source, target, columns, to, source_separator, separator, named, *held_out, task=task)


def with_start(overrides: list[str], start: str | None) -> list[str]:
    """The keys that were given, with the model that training starts from."""
    return overrides if start is None else [*overrides, f"training.start={start}"]
