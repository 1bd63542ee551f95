"""`transduce.evaluate`: what `transduce evaluate` does, for a program that may hold models and data itself."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from transduce.api.examples import KEYS, Columns, line_of, read_examples
from transduce.api.train import TrainedRun
from transduce.core.errors import InputError
from transduce.core.trust import allow_code
from transduce.data.corpus import TsvColumn, lines_of
from transduce.data.labelled import LabelledFile
from transduce.data.pairs.known_columns import AskedColumns
from transduce.data.pairs.pair_files import PairFiles
from transduce.evaluation.evaluate import Settings, evaluate_texts
from transduce.evaluation.result import Evaluation
from transduce.evaluation.texts import Files, Texts, check_kinds, inputs_of, read_files
from transduce.inference.sentences import Split
from transduce.kernels.matmul import Precision
from transduce.pipeline.arguments import listed_of, texts_of
from transduce.pipeline.pipeline import Pipeline, load

Models = Mapping[str, Pipeline]

Model = Pipeline | TrainedRun | str | PathLike[str] | Sequence[str | PathLike[str]]
MODEL = "expected the path of a model, a loaded model or a transduce.TrainedRun"


def evaluate(
    models: Model | Sequence[Model] | Mapping[str, Model] | None = None,
    data: Any = None,
    *,
    source: Any = None,
    reference: Any = None,
    outputs: Mapping[str, Any] | None = None,
    columns: Columns = None,
    metrics: str | Sequence[str] | None = None,
    language: str | None = None,
    to: str = "",
    split: Split = "none",
    batch_size: int = 64,
    advance: Callable[[int], None] | None = None,
    trust_code: bool = False,
    precision: Precision = "fp32",
    device: str = "auto",
    **search: Any,
) -> Evaluation:
    """Score models on a test set, and compare them, as `transduce evaluate` does.

    Each score has a 95 % bootstrap interval and the signature by which others compute the same. With several systems,
    each is compared with the first by a paired bootstrap (Koehn 2004). A language model is judged by the likelihood of
    `reference`. Inputs and answers are texts as `model.predict` reads and writes them, for any task.

    Args:
        models: one model, or several in a list, or by name: paths as `transduce.load` takes them, loaded models, or
            what `transduce.train` returned. A list within the list or the mapping is an ensemble. None: `outputs`
            alone.
        data: examples with their correct answers: (source, answer) pairs of texts, mappings with the keys source and
            target or text and label, in a list or a generator; a table of pandas, polars or pyarrow; a data set of
            Hugging Face. Or the path of a file of pairs (.tsv, .csv, .parquet ..), whose columns are those of the
            first model's recipe, or of a file in the format of its task. An answer may be a list of several correct
            ones.
        source, reference: instead of `data`, both sides. Each is a list of texts, or the path of a file with one a
            line; a str is always a path. The answers of an example may be a list; a list of `Path` objects is
            several files of answers.
        outputs: outputs of other systems by name, a list of texts or a file each.
        columns: keys of input and answer in mappings and tables, if they have other names than these, and than those
            that the models were trained on; `translation.en` is the key en in the mapping translation. Of a file of
            pairs, its columns by name or number.
        metrics: names of metrics; None = the first model's, or BLEU and chrF where there is no model.
        language: code of the target language, which decides how words are split (de, zh-CN); None = the models' own.
        to: code of the language to write, of models of several.
        split: "none": each text is read whole, as in the tests at the end of a training; "auto" and "sentences": as by
            `Pipeline.predict`.
        batch_size: texts at once: speed and memory, nothing else.
        advance: told how many more texts are done.
        trust_code, precision, device: of models that are loaded, see `transduce.load`.
        search: any key of `transduce.search.settings.Search` in place of the recipe's: beam=5, alpha=0.75, ..

    Raises:
        InputError: a model cannot be loaded; what was given is no list, table or file of examples, or has unequal
            numbers of sources, answers and outputs; unknown metrics or keys of search; models that share no metric; a
            model writes several languages, and it is not said which.
    """
    wanted = [metrics] if isinstance(metrics, str) else None if metrics is None else [*metrics]
    allow_code(wanted)
    settings = Settings(wanted, batch_size, search, split)
    given = EvaluationData(data, source, reference, outputs or {}, columns)
    loaded = {name: _opened(model, trust_code, precision, device) for name, model in _named(models).items()}
    if twice := [name for name in given.outputs if name in loaded]:
        raise InputError(f"outputs: {', '.join(twice)} is the name of a model as well; name each system once.")
    files = given_files(loaded, given)
    if files is None:
        files, texts = Files(None, []), given_texts(loaded, given)
    else:
        texts = read_files(loaded, files)
    found = evaluate_texts(loaded, texts, replace(files, language=language, to=to), settings, advance or _nobody)
    return found if found.data else replace(found, data={"examples": _fingerprint(texts.sources, texts.references)})


def _nobody(done: int) -> None:
    """Is told."""


def _fingerprint(sources: Iterable[str], references: Iterable[list[str]]) -> str:
    """SHA-256 of the examples as lines {"source": .., "target": ..}, where several answers are a list."""
    digest = hashlib.sha256()
    for source, answers in zip(sources, references, strict=True):
        digest.update(line_of(source, answers[0] if len(answers) == 1 else answers))
    return digest.hexdigest()


def _named(models: Any) -> dict[str, Any]:
    """Models by name: a path, the name of a loaded model's recipe, or as the caller named it."""
    if models is None:
        return {}
    if isinstance(models, Mapping):
        return {str(name): model for name, model in models.items()}
    listed = [*models] if isinstance(models, list | tuple) else [models]
    names = [_name(each) for each in listed]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(
            f'models: named twice: {", ".join(twice)}. Give them by name: {{"before": ..., "after": ...}}.'
        )
    return dict(zip(names, listed, strict=True))


def _name(model: Any) -> str:
    if isinstance(model, Pipeline):
        return model.recipe.name
    if isinstance(model, TrainedRun):
        return str(model.run)
    if isinstance(model, str | PathLike):
        return str(Path(model))
    if isinstance(model, list | tuple):
        return "+".join(map(_name, model))
    raise InputError(f"models: {MODEL}; got {type(model).__name__}.")


def _opened(model: Any, trust_code: bool, precision: Precision, device: str) -> Pipeline:
    if isinstance(model, Pipeline):
        return model
    if isinstance(model, TrainedRun):
        return model.model
    if isinstance(model, str | PathLike | list | tuple):
        return load(model, trust_code=trust_code, precision=precision, device=device)
    raise InputError(f"models: {MODEL}; got {type(model).__name__}.")


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
