"""A folder of CTranslate2 as a pipeline: text in, predictions out, computed by CTranslate2.

It reads texts as our own pipelines do, sentence by sentence where the model learnt from single ones. Outputs are ranked
by the same rule, log p / L^alpha, where L counts the end token. What CTranslate2 does otherwise, or not at all, is
refused in words.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.data.tags import addressed
from transduce.inference.batches import check_batch_size
from transduce.inference.prediction import Prediction, empty_prediction
from transduce.inference.protocols import Advance
from transduce.inference.sentences import Split
from transduce.inference.splitting import LongText, Pieces, tell_of_long
from transduce.interop.ctranslate2_folder import read_folder
from transduce.interop.sentencepiece_tokenizer import SentencePieceTokenizer
from transduce.kernels.matmul import Precision
from transduce.pipeline.arguments import asked_of_outputs, texts_of, without_asked
from transduce.pipeline.pipeline import Pipeline
from transduce.runtime.devices import device_for
from transduce.search.settings import Search, search_settings

NO_MODEL = "an engine of CTranslate2 shows nothing of what happens in its model; serve the model itself for that."


class CTranslate2Pipeline(Pipeline):
    """What `transduce serve --engine ctranslate2` serves.

    Args:
        folder: written by `transduce export --to ctranslate2`, an unpacked Argos package, or a folder of others with
            SentencePiece models (see `transduce.interop.ctranslate2_folder`).
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

    def predict(  # type: ignore[override]
        self,
        texts: str | Iterable[str],
        *,
        batch_size: int = 64,
        split: Split = "auto",
        long: LongText = "split",
        tell: Callable[[str], None] | None = None,
        advance: Advance | None = None,
        to: str = "",
        workers: int = 1,
        first: int = 0,
        **options: Any,
    ) -> Prediction | list[Prediction]:
        """One prediction a text, in order. `token_log_probabilities` are empty: CTranslate2 tells none.

        Args:
            texts, batch_size, split, long, tell, advance, to, first: see `Pipeline.predict`.
            workers: one.
            options: search keys; what is asked of outputs is refused.

        Raises:
            InputError: as `Pipeline.predict`; a setting that CTranslate2 has not.
        """
        check_batch_size(batch_size)
        listed, alone = texts_of(texts)
        refuse_options(options, workers)
        settings = search_settings(self.recipe.search, without_asked(options))
        check_search(settings)
        listed = addressed(self.task.tokenizers.get("source"), listed, to) if to else listed
        pieces = self.pieces(listed, split, long, first=first)
        if tell:
            tell_of_long(pieces, tell)
        found = self._searched(pieces, settings, batch_size, pieces.advancing(advance))
        predictions = [each.shown_by(self.attention) for each in pieces.joined(found)]
        return predictions[0] if alone else predictions

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


def refuse_options(options: dict[str, Any], workers: int) -> None:
    """Raises InputError for what is asked of outputs, which CTranslate2 cannot promise."""
    wanted = asked_of_outputs(options)
    problems = []
    if "on_step" in wanted:
        problems.append("CTranslate2 does not tell outputs as they grow: ask for the whole output.")
    if named := [name for name in wanted if name != "on_step"]:
        problems.append(f"{', '.join(named)}: CTranslate2 has no constraints on outputs. Leave it out.")
    if workers > 1:
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
    for name in ("prune", "coverage", "ctc_weight", "shortlist", "groups"):
        if getattr(settings, name) != getattr(fresh, name):
            problems.append(f"search.{name}: CTranslate2 has none of this kind; leave it out.")
    if problems:
        raise InputError(problems)
