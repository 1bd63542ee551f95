"""What a program gives to be evaluated on: files as the command reads them, or texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from transduce.api.examples import KEYS, Columns, read_examples
from transduce.core.errors import InputError
from transduce.data.corpus import TsvColumn, lines_of
from transduce.data.labelled import LabelledFile
from transduce.data.pair_files import PairFiles
from transduce.data.pair_inputs import AskedColumns
from transduce.evaluation.texts import Files, Texts, check_kinds, inputs_of
from transduce.pipeline.arguments import listed_of, texts_of
from transduce.pipeline.pipeline import Pipeline

Models = Mapping[str, Pipeline]


@dataclass(frozen=True)
class EvaluationData:
    """As `transduce.evaluate` was given it."""

    data: Any
    source: Any
    reference: Any
    outputs: Mapping[str, Any]
    columns: Columns


def given_files(models: Models, given: EvaluationData) -> Files | None:
    """What was given, if all of it is files; None: there are texts among it.

    Raises:
        InputError: data and source or reference; a file that is not there.
    """
    if given.data is not None and (given.source is not None or given.reference is not None):
        raise InputError("data already holds sources and answers: leave out source and reference.")
    if given.data is None and given.source is None and given.reference is None:
        raise InputError("expected examples: evaluate(model, pairs), or evaluate(model, source=.., reference=..).")
    references = [*given.reference] if _paths(given.reference) else [given.reference]
    named = [each for each in (given.data, given.source, *references) if each is not None]
    if not all(map(_is_path, [*named, *given.outputs.values()])):
        return None
    outputs = {name: _there(f'outputs["{name}"]', each) for name, each in given.outputs.items()}
    if given.data is not None:
        return _data_file(models, _there("data", given.data), given.columns, outputs)
    source = None if given.source is None else _there("source", given.source)
    answers = [_there("reference", each) for each in references if each is not None]
    return Files(source, answers, outputs)


def given_texts(models: Models, given: EvaluationData) -> Texts:
    """What was given, some of it perhaps in files.

    Raises:
        InputError: all problems of the examples; unequal numbers; sources for models without, or none for others.
    """
    if given.data is not None:
        if _is_path(given.data):
            raise InputError(
                "outputs: data is a file, so expected files of outputs as well; or give source and reference."
            )
        return _examples(models, given)
    references = _answers(given.reference)
    sources = None if given.source is None else _sources(models, given.source)
    outputs = _outputs(given.outputs)
    check_kinds(models, sources is not None, bool(outputs), "source", "outputs")
    for name, lines in [("source", sources), *outputs.items()]:
        if lines is not None and len(lines) != len(references):
            raise InputError(
                f"{name} has {len(lines):,} texts and reference has {len(references):,}: text n must belong to text n."
            )
    return Texts(sources or [""] * len(references), references, outputs)


def _examples(models: Models, given: EvaluationData) -> Texts:
    problems = list[str]()
    pairs = list(read_examples(given.data, "data", given.columns, problems, [*_learnt_columns(models), *KEYS]))
    if problems:
        raise InputError(problems)
    outputs = _outputs(given.outputs)
    check_kinds(models, True, bool(outputs), "data with sources: give reference=.. alone", "outputs")
    for name, lines in outputs.items():
        if len(lines) != len(pairs):
            raise InputError(f"{name} has {len(lines):,} texts and data has {len(pairs):,} examples.")
    return Texts([source for source, _ in pairs], [answers for _, answers in pairs], outputs)


def _learnt_columns(models: Models) -> list[tuple[str, str]]:
    """The names of input and answer in the files that the models were trained on, where they have names."""
    trained_on = [getattr(model.recipe.data, "train", ()) for model in models.values()]
    keys = [_keys(entry) for entries in trained_on if isinstance(entries, tuple) for entry in entries]
    return [(pair[0], pair[1]) for pair in keys if len(pair) == 2 and all(isinstance(key, str) for key in pair)]


def _keys(entry: Any) -> Sequence[Any]:
    """The columns of a file of examples; none of other files."""
    if isinstance(entry, PairFiles):
        return entry.keys
    return (entry.text, entry.label) if isinstance(entry, LabelledFile) else ()


def _data_file(models: Models, path: Path, columns: Columns, outputs: dict[str, Path]) -> Files:
    """In the format of the first model's task, which holds the answers; else tab-separated."""
    if columns is not None:
        source, answer = columns
        return Files(path, [], outputs, columns=AskedColumns((source,), answer))
    for model in models.values():
        if model.task.read_inputs(path) is not None:
            return Files(path, [], outputs)
        break
    if several := [name for name, model in models.items() if model.source_columns.number > 1]:
        raise InputError(f"{path}: expected a .tsv with the source columns that {several[0]} reads, and the answers.")
    reads = not models or any("source" in model.task.columns for model in models.values())
    return Files(TsvColumn(path, 0) if reads else None, [TsvColumn(path, 1)], outputs)


def _answers(given: Any) -> list[list[str]]:
    """The correct answers of each example."""
    if given is None:
        raise InputError("reference: expected a list of texts, or a file with one a line; got none.")
    if _paths(given):
        return [list(several) for several in zip(*(_lines("reference", each) for each in given), strict=True)]
    if _is_path(given):
        return [[each] for each in _lines("reference", given)]
    listed = listed_of(given, "reference", "a list of texts, or of lists of texts")
    if not any(isinstance(each, list | tuple) for each in listed):
        return [[each] for each in texts_of(listed, "reference")[0]]
    each_of = [[each] if isinstance(each, str) else each for each in listed]
    if empty := [str(place) for place, several in enumerate(each_of) if not several]:
        raise InputError(f"reference: expected an answer at least for each; none for {', '.join(empty[:10])}.")
    return [texts_of(several, f"reference[{place}]")[0] for place, several in enumerate(each_of)]


def _sources(models: Models, given: Any) -> list[str]:
    """Texts, or those of a file. Raises InputError where it holds answers, too."""
    if not _is_path(given):
        return texts_of(given, "source")[0]
    path = _there("source", given)
    found = inputs_of(models, path, "reference")
    return lines_of(path) if found is None else found.texts


def _outputs(given: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name: _lines(f'outputs["{name}"]', each) for name, each in given.items()}


def _lines(name: str, given: Any) -> list[str]:
    return lines_of(_there(name, given)) if _is_path(given) else texts_of(given, name)[0]


def _paths(given: Any) -> bool:
    """Whether it is several files: `Path` objects, as a list of str is one of texts."""
    return isinstance(given, list | tuple) and bool(given) and all(isinstance(each, PathLike) for each in given)


def _is_path(given: Any) -> bool:
    return isinstance(given, str | PathLike)


def _there(name: str, given: Any) -> Path:
    """The path. Raises InputError for what can only be a text."""
    path = Path(given)
    if isinstance(given, str) and (" " in given or "\n" in given or not given) and not path.exists():
        raise InputError(f"{name}: there is no file {given[:60]!r}. A str is a path; texts come in a list, as [..].")
    return path
