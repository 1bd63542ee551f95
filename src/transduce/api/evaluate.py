"""`transduce.evaluate`: what `transduce evaluate` does, for a program that may hold models and data itself."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from transduce.api.evaluation_data import EvaluationData, given_files, given_texts
from transduce.api.examples import Columns, line_of
from transduce.api.train import TrainedRun
from transduce.core.errors import InputError
from transduce.core.trust import allow_code
from transduce.evaluation.evaluate import Settings, evaluate_texts
from transduce.evaluation.result import Evaluation
from transduce.evaluation.texts import Files, read_files
from transduce.inference.sentences import Split
from transduce.kernels.matmul import Precision
from transduce.pipeline.pipeline import Pipeline, load

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
