"""What systems are evaluated on: their inputs, the answers expected from them, and the outputs of other systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from transduce.core.errors import InputError
from transduce.data.corpus import TsvColumn, lines_of
from transduce.data.files import text_lines
from transduce.data.formats import format_name, is_table
from transduce.data.input_file import InputFile
from transduce.data.pairs.known_columns import AskedColumns, read_asked
from transduce.pipeline.pipeline import Pipeline

NOBODY = "name a model, or outputs to score."
NO_REFERENCES = (
    "name a file of references, one a line; or, as the source of a model that translates, one file with both sides: "
    ".tsv, .csv, .jsonl, .parquet, .xlsx or .tmx."
)


@dataclass(frozen=True)
class Files:
    """The inputs of systems and the answers expected from them.

    source: one input a line, or a file in the format of the model's task, which holds the correct answers as well; None
        for language models, and where all outputs are given.
    references: files with one correct answer a line; several files hold several correct answers.
    outputs: the outputs of other systems, by name; of a file in a task's format as `InputFile` has them.
    language: the code of the target language, which decides how words are split; by default each model's own, or `to`.
    to: code of the language to write, for models of several; see `transduce.data.tags`.
    columns: of a source that holds pairs, where they are not the recipe's.
    """

    source: Path | TsvColumn | None
    references: Sequence[Path | TsvColumn]
    outputs: Mapping[str, Path] = field(default_factory=dict)
    language: str | None = None
    to: str = ""
    columns: AskedColumns | None = None

    def all(self) -> list[Path]:
        named = [*([self.source] if self.source else []), *self.references, *self.outputs.values()]
        return list(dict.fromkeys(each.path if isinstance(each, TsvColumn) else each for each in named))


@dataclass(frozen=True)
class Texts:
    """What is read: sources ("" where there are none), for each its references, and outputs by system.

    left_out: how many inputs have no correct answer. groups: of each source, or none; see `transduce.metrics.groups`.
    files: what was read in the place of the source. note: what to tell of how.
    """

    sources: list[str]
    references: list[list[str]]
    outputs: dict[str, list[str]]
    left_out: int = 0
    groups: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    note: str = ""


def read_files(models: Mapping[str, Pipeline], files: Files) -> Texts:
    """Raises InputError for everything that does not fit, before any work is done."""
    if not models and not files.outputs:
        raise InputError(NOBODY)
    if found := _in_a_file(models, files):
        return found
    if not files.references:
        raise InputError(NO_REFERENCES)
    check_kinds(models, files.source is not None, bool(files.outputs), "--source", "--outputs")
    first = files.references[0]
    for each in (*files.references, *files.outputs.values()):
        _check_lines(each)
    references = [_paired(first, path) for path in files.references]
    sources = _paired(first, files.source) if files.source else [""] * len(references[0])
    outputs = {name: _paired(first, path) for name, path in files.outputs.items()}
    return Texts(sources, [list(several) for several in zip(*references, strict=True)], outputs)


def check_kinds(models: Mapping[str, Pipeline], sources: bool, outputs: bool, source: str, others: str) -> None:
    """Raises InputError where models do not go together, or not with what they are given.

    Args:
        sources, outputs: whether there are any.
        source, others: what sources, and outputs of other systems, are called where they are given.
    """
    if not models and not outputs:
        raise InputError(NOBODY)
    needs = {"source" in model.task.columns for model in models.values()}
    if len(needs) > 1:
        raise InputError("Translation models and language models share no metric; compare models of one kind.")
    if needs == {True} and not sources:
        raise InputError(f"This model translates: name the texts to translate with {source}.")
    if needs == {False} and sources:
        raise InputError(f"A language model reads no {source}; leave it out.")
    if needs == {False} and outputs:
        raise InputError(f"A language model is judged by likelihood, which {others} do not have; leave them out.")


def inputs_of(
    models: Mapping[str, Pipeline], path: Path, references: str = "", columns: AskedColumns | None = None
) -> InputFile | None:
    """What a file in the format of the first model's task holds; None where it has one input a line.

    Args:
        references: what others are called that were given besides; "": none were.
        columns: that are named for the file.

    Raises:
        InputError: it holds no answers, and none were given besides; or both.
    """
    found = next((inputs_in(model, path, columns) for model in models.values()), None)
    if found is None:
        return None
    if references and any(found.references):
        raise InputError(f"{path} holds the correct answers itself: leave out {references}.")
    if not references and not any(found.references):
        more = f": {found.missing}" if found.missing else "."
        raise InputError(f"{path}: no input has a correct answer, so there is nothing to compare with{more}")
    return found


def inputs_in(model: Pipeline, path: Path, columns: AskedColumns | None = None) -> InputFile | None:
    """What a file in the format of a model's task holds; None where it has one input a line."""
    return read_asked(path, model.recipe.to_table(), columns) if columns else model.task.read_inputs(path)


def _in_a_file(models: Mapping[str, Pipeline], files: Files) -> Texts | None:
    """The texts of a source in the format of the first model's task; None where it has one input a line."""
    if not isinstance(files.source, Path):
        return None
    found = inputs_of(models, files.source, "--reference" if files.references else "", files.columns)
    if found is None:
        return None
    for each in (*files.references, *(() if found.names else files.outputs.values())):  # those of names are no lines
        _check_lines(each)
    if files.references:
        found = found.answered([lines_of(path) for path in files.references], str(files.source))
    answered = [place for place, several in enumerate(found.references) if several]
    given = {name: found.outputs(path) for name, path in files.outputs.items()}
    outputs = {name: [lines[place] for place in answered] for name, lines in given.items()}
    texts, references = [found.texts[place] for place in answered], [found.references[place] for place in answered]
    groups = [found.groups[place] for place in answered] if found.groups else []
    return Texts(texts, references, outputs, len(found.texts) - len(answered), groups, found.files, found.note)


def _paired(first: Path | TsvColumn, other: Path | TsvColumn) -> list[str]:
    """The lines of `other`, as many as `first` has.

    Raises:
        InputError: unequal line counts, a missing file or column, text that is not UTF-8.
    """
    lines = lines_of(other)
    if other != first and len(lines) != (wanted := len(lines_of(first))):
        raise InputError(f"{other} has {len(lines):,} lines and {first} has {wanted:,}: line n must belong to line n.")
    return lines


def _check_lines(path: Path | TsvColumn) -> None:
    """Raises InputError for a file of pairs, whose lines are no texts."""
    if isinstance(path, TsvColumn):
        return
    if is_table(path) and (format_name(path) != "tsv" or "\t" in next(text_lines(path), "")):
        raise InputError(
            f"{path}: expected a text a line; this is a file with columns. A model that translates reads both sides of "
            "it with --source; otherwise write the column that is meant to a file of its own, or name it with --tsv."
        )
