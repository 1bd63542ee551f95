"""A folder of CTranslate2 as a pipeline: text in, predictions out, computed by CTranslate2.

It reads texts as our own pipelines do, sentence by sentence where the model learnt from single ones. Outputs are ranked
by the same rule, log p / L^alpha, where L counts the end token. What CTranslate2 does otherwise, or not at all, is
refused in words.

What a CTranslate2 folder says besides its weights: tokenizers, languages, and how outputs are searched for.

    transduce.json           name, task, readable, search, single_sentences     (`transduce export` writes these three)
    source_tokenizer.json
    target_tokenizer.json

A folder of others has SentencePiece models instead: `source.spm` and `target.spm`, or one of `sentencepiece.model`,
`spm.model` and `tokenizer.model` for both sides. In an Argos package, that one and `metadata.json`, which names the
languages, stand beside the folder `model`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from transduce.core.atomic import write_json, write_text
from transduce.core.bounded_file import bounded_bytes, bounded_text
from transduce.core.bounded_json import table_of_settings
from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.data.columns.tokens import Tokens
from transduce.data.tags import addressed
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.inference.batches import check_batch_size
from transduce.inference.options import PredictionOptions
from transduce.inference.prediction import Prediction, empty_prediction
from transduce.inference.protocols import Advance
from transduce.inference.splitting import Pieces, tell_of_long
from transduce.interop.model_card import Languages
from transduce.interop.sentencepiece_tokenizer import SentencePieceTokenizer
from transduce.kernels.matmul import Precision
from transduce.pipeline.outline import make_task
from transduce.pipeline.pipeline import Pipeline
from transduce.recipe.recipe import Recipe, parse_recipe
from transduce.runtime.devices import device_for
from transduce.search.settings import Search, search_settings
from transduce.tasks.base import Task

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline


SETTINGS = "transduce.json"
WEIGHTS = "model.bin"
JOINT = ("sentencepiece.model", "spm.model", "tokenizer.model")
LARGEST = 2**26  # bytes of a tokenizer
READABLE = 250  # tokens that a foreign model is taken to read at once
FOREIGN_SEARCH = {"method": "beam", "beam": 4, "length_rule": "power", "alpha": 0.6}

NO_MODEL = "an engine of CTranslate2 shows nothing of what happens in its model; serve the model itself for that."


class CTranslate2Pipeline(Pipeline):
    """What `transduce serve --engine ctranslate2` serves.

    Args:
        folder: written by `transduce export --to ctranslate2`, an unpacked Argos package, or a folder of others with
            SentencePiece models (see `transduce.interop.ctranslate2_pipeline`).
        precision: of matrix products: "fp32", or "int8", which quantizes weights as they are loaded.
        device: see `transduce.pipeline.pipeline.load`.
        threads: of CTranslate2; None = as many as torch has.

    Raises:
        InputError: the library is missing; this is no such folder, or CTranslate2 cannot read it.
    """

    attends = False

    def __init__(
        self, folder: Path, precision: Precision = "fp32", device: str = "auto", threads: int | None = None
    ) -> None:
        ctranslate2 = library("ctranslate2", "an engine of CTranslate2", "ctranslate2")
        contents = read_folder(folder)
        self.recipe, self.task = contents.recipe, contents.task
        self.device, self.precision = device_for(precision, device), precision
        self.metrics, self.provenance, self.lexicon = {}, {}, None
        self.single_sentences = contents.single_sentences
        try:
            self._translator = ctranslate2.Translator(
                str(contents.weights.parent),
                device=self.device.type,
                compute_type="int8" if precision == "int8" else "float32",
                intra_threads=threads or torch.get_num_threads(),
            )
        except (RuntimeError, ValueError) as error:
            raise InputError(f"{folder}: CTranslate2 cannot read this model: {error}.") from None

    @property  # type: ignore[misc]  # nobody sets it
    def model(self) -> Any:
        """None that could be looked into. Raises InputError always."""
        raise InputError(NO_MODEL)

    def __repr__(self) -> str:
        return f"<transduce.{type(self).__name__} {self.recipe.name}: CTranslate2 on {self.device}>"

    def predict_all(self, texts: Sequence[str], options: PredictionOptions) -> list[Prediction]:
        """What `predict` gives with these options. `token_log_probabilities` are empty: CTranslate2 tells none.

        Raises:
            InputError: as `Pipeline.predict`; a setting that CTranslate2 has not, or more than one worker.
        """
        check_batch_size(options.batch_size)
        refuse_options(options)
        settings = search_settings(self.recipe.search, options.search)
        check_search(settings)
        listed = addressed(self.task.tokenizers.get("source"), texts, options.to) if options.to else texts
        pieces = self.pieces(listed, options.split, options.long, first=options.first)
        if options.tell:
            tell_of_long(pieces, options.tell)
        found = self._searched(pieces, settings, options.batch_size, pieces.advancing(options.advance))
        return [each.shown_by(self.attention) for each in pieces.joined(found)]

    def attention(self, prediction: Prediction) -> Any:
        """None. Raises InputError always."""
        raise InputError(NO_MODEL)

    def look_back(self, text: str, name: str | None = None, head: int | None = None) -> Any:
        """None. Raises InputError always."""
        raise InputError(NO_MODEL)

    def score(self, *_: Any, **__: Any) -> Any:
        """None. Raises InputError always."""
        raise InputError("an engine of CTranslate2 does not score given targets; ask the model itself.")

    def _searched(self, pieces: Pieces, settings: Search, batch_size: int, advance: Advance | None) -> list[Prediction]:
        texts, ids, batches = pieces.read, pieces.ids, pieces.batches(batch_size)
        found = [empty_prediction(text) for text in texts]
        if advance:
            advance(len(texts) - sum(map(len, batches)))
        for batch in batches:
            limits = [settings.limit(len(ids[place])) for place in batch]
            results = self._translated([ids[place] for place in batch], settings, max(limits))
            for place, limit, result in zip(batch, limits, results, strict=True):
                longer = any(len(each) > limit for each in result.hypotheses)  # than this text's own limit
                own = self._translated([ids[place]], settings, limit)[0] if longer else result
                found[place] = self._prediction(texts[place], own, settings)
            if advance:
                advance(len(batch))
        return found

    def _translated(self, ids: Sequence[Sequence[int]], settings: Search, limit: int) -> list[Any]:
        source = self.task.tokenizers["source"]
        rule = settings.length
        return self._translator.translate_batch(
            [source.tokens(each) for each in ids],
            beam_size=settings.beam if settings.method == "beam" else 1,
            num_hypotheses=settings.nbest,
            length_penalty=rule.parts[2],
            no_repeat_ngram_size=settings.no_repeat_ngram or 0,
            min_decoding_length=settings.min_length,
            max_decoding_length=limit,
            max_input_length=0,
            return_scores=True,
            return_end_token=True,
        )

    def _prediction(self, text: str, result: Any, settings: Search) -> Prediction:
        listed = [
            self._output(text, tokens, score, settings)
            for tokens, score in zip(result.hypotheses, result.scores, strict=True)
        ]
        best = listed[0]
        return Prediction(**{**vars(best), "alternatives": tuple(listed)}) if len(listed) > 1 else best

    def _output(self, text: str, tokens: Sequence[str], score: float, settings: Search) -> Prediction:
        """score: of CTranslate2, divided by its length rule."""
        target = self.task.tokenizers["target"]
        [end] = target.tokens([target.end])
        ended = bool(tokens) and tokens[-1] == end
        kept = tuple(tokens[:-1] if ended else tokens)
        log_probability = score * max(1, len(tokens)) ** settings.length.parts[2]
        said = target.joined(kept) if isinstance(target, SentencePieceTokenizer) else target.decode(target.ids(kept))
        return Prediction(text, said, score, log_probability, kept, (), ended)


def refuse_options(options: PredictionOptions) -> None:
    """Raises InputError for what is asked of outputs, which CTranslate2 cannot promise."""
    wanted = options.asked_of_outputs
    problems = []
    if "on_step" in wanted:
        problems.append("CTranslate2 does not tell outputs as they grow: ask for the whole output.")
    if "datastore" in wanted:
        problems.append("datastore: CTranslate2 does not give the states that it holds. Leave it out.")
    if named := [name for name in wanted if name not in ("on_step", "datastore")]:
        problems.append(f"{', '.join(named)}: CTranslate2 has no constraints on outputs. Leave it out.")
    if options.workers > 1:
        problems.append("workers: CTranslate2 has threads of its own. Leave it out.")
    if problems:
        raise InputError(problems)


def check_search(settings: Search) -> None:
    """Raises InputError for settings that CTranslate2 has not, or does otherwise."""
    problems = []
    if settings.method not in ("greedy", "beam"):
        problems.append(f'search.method = "{settings.method}": CTranslate2 is asked for "greedy" or "beam" here.')
    if settings.length_rule == "gnmt" and settings.alpha and settings.method == "beam":
        problems.append('search.length_rule = "gnmt": CTranslate2 has "power" and "none".')
    fresh = Search()
    for name in ("prune", "coverage", "ctc_weight", "lm_weight", "shortlist", "groups"):
        if getattr(settings, name) != getattr(fresh, name):
            problems.append(f"search.{name}: CTranslate2 has none of this kind; leave it out.")
    if problems:
        raise InputError(problems)


class FolderContents(NamedTuple):
    """recipe: of which only the name, the task and the search mean anything."""

    recipe: Recipe
    task: Task
    weights: Path
    single_sentences: bool


def write_settings(pipeline: "Pipeline", folder: Path, languages: Languages) -> None:
    """What `read_folder` needs, into a folder of CTranslate2; nothing for tasks other than translation."""
    if pipeline.recipe.task.kind != "translation":  # type: ignore[attr-defined]
        return
    table = pipeline.recipe.to_table()
    settings = {
        "name": pipeline.recipe.name,
        "task": {"kind": "translation", **{side: code for side, code in languages._asdict().items() if code}},
        "readable": pipeline.task.max_source_length,
        "search": table.get("search", {}),
        "single_sentences": pipeline.single_sentences,
    }
    write_json(folder / SETTINGS, settings)
    for side, tokenizer in pipeline.task.tokenizers.items():
        write_text(folder / f"{side}_tokenizer.json", tokenizer.to_json())


def weights_of(path: Path) -> Path:
    """The file of weights of a folder of CTranslate2, or of an unpacked Argos package.

    Raises:
        InputError: there is none.
    """
    for found in (path / WEIGHTS, path / "model" / WEIGHTS):
        if found.is_file():
            return found
    if path.is_file():
        why = "a folder of CTranslate2 is needed; make one from a model: transduce export MODEL --to ctranslate2"
        raise InputError(f"{path}: this is a file, and {why}.")
    raise InputError(f"{path}: there is no {WEIGHTS} in this folder, so it is none of CTranslate2.")


def read_folder(path: Path) -> FolderContents:
    """What is known of the model in a folder.

    Raises:
        InputError: it is no such folder; its settings or tokenizers cannot be read.
    """
    weights = weights_of(path)
    folder = weights.parent
    ours = (folder / SETTINGS).is_file()
    settings = _settings(folder / SETTINGS) if ours else _foreign_settings(path)
    table = {
        "name": settings.get("name") or path.resolve().name,
        "task": settings.get("task", {"kind": "translation"}),
        "data": {
            "train": [{"source": "unknown", "target": "unknown"}],
            "filters": {"max_tokens": settings.get("readable", READABLE)},
        },
        "search": settings.get("search", FOREIGN_SEARCH),
    }
    recipe = parse_recipe(table, str(folder / SETTINGS) if ours else str(path))
    source, target = _our_tokenizers(folder) if ours else _foreign_tokenizers([folder, path])
    columns = {"source": Tokens(source, ends=True), "target": Tokens(target, starts=True, ends=True)}
    return FolderContents(recipe, make_task(recipe, columns), weights, settings.get("single_sentences", True) is True)


def _settings(path: Path) -> dict[str, Any]:
    try:
        found = table_of_settings(bounded_text(path, 2**20))
    except ValueError as error:
        raise InputError(f"{path}: expected settings in JSON, but this file {error}.") from None
    task = found.get("task")
    if not isinstance(task, dict) or task.get("kind") != "translation":
        raise InputError(f"{path}: expected task.kind = translation, which is all that CTranslate2 can serve.")
    return found


def _foreign_settings(path: Path) -> dict[str, Any]:
    """Languages of an Argos package; else nothing is known."""
    metadata = path / "metadata.json"
    if not metadata.is_file():
        return {}
    try:
        found = table_of_settings(bounded_text(metadata, 2**20))
    except ValueError as error:
        raise InputError(f"{metadata}: expected the metadata of an Argos package, but this file {error}.") from None
    task = {"kind": "translation", "source": str(found.get("from_code", "")), "target": str(found.get("to_code", ""))}
    return {"task": task}


def _our_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    source, target = (
        Tokenizer.from_json(bounded_text(path, LARGEST), str(path))
        for path in (folder / f"{side}_tokenizer.json" for side in ("source", "target"))
    )
    return source, target


def _foreign_tokenizers(folders: list[Path]) -> tuple[Tokenizer, Tokenizer]:
    for folder in folders:
        both = [folder / "source.spm", folder / "target.spm"]
        if all(path.is_file() for path in both):
            source, target = (SentencePieceTokenizer(bounded_bytes(path, LARGEST), str(path)) for path in both)
            return source, target
        for path in (folder / name for name in JOINT):
            if path.is_file():
                joint = SentencePieceTokenizer(bounded_bytes(path, LARGEST), str(path))
                return joint, joint
    raise InputError(
        f"{folders[-1]}: there is no tokenizer. Expected {SETTINGS} as `transduce export` writes it, or source.spm and "
        f"target.spm, or one of {', '.join(JOINT)}."
    )
