"""A translation model without torch: `transduce.without_torch.translator.load(path)`.

It reads the same model files as `transduce.load`, and gives the same predictions to the last bit, as it calls the same
kernels. What needs more than these is refused, with the name of the package that has it.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from types import SimpleNamespace
from typing import Any, Literal, overload

import numpy as np

from transduce.core.errors import InputError
from transduce.core.finite import check_finite
from transduce.core.model_file import ColumnTables, ModelFile, load_model_file
from transduce.core.tensor_file import TensorInfo, read_arrays
from transduce.data.lexicon import Lexicon, check_candidates
from transduce.data.source_columns import source_columns
from transduce.data.tags import addressed
from transduce.data.tokenizers.framed_text import FramedText
from transduce.data.tokenizers.text_ids import Tokenizer, read_tokenizers
from transduce.inference.batches import check_batch_size
from transduce.inference.confidence import WordConfidence, judging
from transduce.inference.example_texts import example_texts
from transduce.inference.familiarity import Familiarity
from transduce.inference.options import PredictionOptions
from transduce.inference.prediction import Prediction, empty_prediction
from transduce.inference.preparation import Preparation, Prepared
from transduce.inference.second_search import Wanted, looked_after, wider
from transduce.inference.sentences import Split, by_sentences, trained_on_single
from transduce.inference.splitting import LongText, Pieces, pieces_of, tell_of_long
from transduce.kernels.native import beam, kernels, multiplies_int8, openmp
from transduce.layers.fused_search import BeamRequest, Mean
from transduce.pipeline.arguments import differing_target, paths_of, texts_of
from transduce.runtime.allocator import freed_memory_kept
from transduce.search.hypothesis import Hypothesis
from transduce.search.one_call import hypotheses_of, refuse_impossible
from transduce.search.plain_settings import PlainSearch
from transduce.search.word_lists import permit, words_of
from transduce.without_torch.network import Network
from transduce.without_torch.supported import (
    WHOLE,
    Sizes,
    check_shapes,
    framed,
    max_source_length,
    section_of,
    sizes_of,
)

Ids = Sequence[int]
NAMES = {
    "must": "phrases that must appear",
    "must_not": "phrases that must not appear",
    "prefix": "a prefix",
    "constraints": "constraints on outputs",
    "lattice": "a lattice",
    "on_step": "a call after each token",
    "datastore": "a datastore",
}
"""What `transduce.inference.options.OF_OUTPUTS` is, for messages."""
LISTS_OF_SEVERAL = f"search.shortlist: an ensemble with shortlists goes step by step. {WHOLE}"
TWO_VOCABULARIES = "the model file's config: model.pointer needs one vocabulary for source and target."
LISTS_WITH_POINTER = f"search.shortlist: a pointer with shortlists goes step by step. {WHOLE}"


@dataclass(frozen=True)
class Member:
    """One model: what reads with its own tokenizer, and writes with the tokens that all members share."""

    network: Network
    source: FramedText
    target: FramedText


class Translator:
    """Text in, predictions out, as of `transduce.load`.

    Args:
        members: the models, of which several are used as one.
        mean: what is averaged over them.
        config: the first model's, with its settings of search.
        lexicon: what shortlists are made of; None = the file holds none.
        single_sentences: whether they were trained on pairs of single sentences.
        familiarity: which characters the first model's training texts had.
        preparation: what the first model reads in place of a text.
        examples: texts like those that the first model was trained on.

    config: the first model's recipe.
    task: what the first model's recipe says of its task, such as its languages.
    search: settings of search, by key; those that `predict` is given come in their place.
    readable: the longest source, in tokens, that is read in one piece.
    judge: says how sure the words of a prediction are; None where the model was not calibrated.
    again: searches once more, with torch, for what outputs lack; None = that cannot be had, and it is only told.
    """

    judge: "Callable[[Prediction], list[WordConfidence]] | None" = None
    again: "Callable[[PredictionOptions, Pieces, Sequence[Wanted]], list[Prediction | None]] | None" = None

    def __init__(
        self,
        members: Sequence[Member],
        mean: Mean,
        config: dict[str, Any],
        lexicon: Lexicon | None,
        single_sentences: bool,
        familiarity: Familiarity,
        preparation: Preparation = Preparation(),  # noqa: B008
        examples: Sequence[str] = (),
    ) -> None:
        self.members, self.mean, self.lexicon = list(members), mean, lexicon
        self.single_sentences, self.familiarity, self.preparation = single_sentences, familiarity, preparation
        self.name, self.examples = str(config.get("name", "")), examples
        self.config, self.task, self.search = config, section_of(config, "task"), section_of(config, "search")
        self.max_source_length, self.source_columns = max_source_length(config), source_columns(config)

    def __repr__(self) -> str:
        more = f" and {len(self.members) - 1} more" if len(self.members) > 1 else ""
        return f"<transduce {type(self).__name__} {self.name}{more}>"

    @property
    def source_tokenizer(self) -> Tokenizer:
        """What the first model reads with."""
        return self.members[0].source.tokenizer

    @property
    def target(self) -> Tokenizer:
        """What all of them write with."""
        return self.members[0].target.tokenizer

    @overload
    def predict(self, texts: str, **options: Any) -> Prediction: ...

    @overload
    def predict(self, texts: Iterable[str], **options: Any) -> list[Prediction]: ...

    def predict(self, texts: str | Iterable[str], **options: Any) -> Prediction | list[Prediction]:
        """One prediction a text, in order; see `transduce.pipeline.pipeline.Pipeline.predict`.

        Args:
            texts: one text, which gives one prediction; or several in anything that has an order, which give a list.
            options: those of `Pipeline.predict`, of which none may need a search that goes step by step. Search keys
                are beam, nbest, prune, shortlist, length_rule, alpha, max_length_factor, max_length_offset and method
                ("greedy", "beam").

        Raises:
            InputError: what came is no text; a setting is wrong, or needs torch; a text is too long and long="refuse".
        """
        listed, alone = texts_of(texts)
        predictions = self.predict_all(listed, PredictionOptions.of(options))
        return predictions[0] if alone else predictions

    def predict_all(self, texts: Sequence[str], options: PredictionOptions) -> list[Prediction]:
        """What `predict` gives with these options."""
        _refuse_steps(options)
        check_batch_size(options.batch_size)
        listed = self.source_columns.joined(texts)
        listed = addressed(self.source_tokenizer, listed, options.to) if options.to else listed
        settings = PlainSearch.asked(self.search, options.search)
        self._check_shortlist(settings)
        prepare = self.preparation.of_texts(options.protect, options.terms)
        pieces = self.pieces(listed, options.split, options.long, options.first, prepare)
        if options.tell:
            tell_of_long(pieces, options.tell)
        found = self._decoded(pieces, settings, options)
        again, widely = (partial(self.again, options) if self.again else None), partial(self._widely, options)
        found = looked_after(pieces, found, again, widely)
        shown = zip(pieces.joined(found), map(self.familiarity.unfamiliar, listed), strict=True)
        return [each.shown_by(_no_attention, unfamiliar=new, judge=self.judge) for each, new in shown]

    __call__ = predict

    def predict_file(
        self, source: str | PathLike[str], output: str | PathLike[str], **options: Any
    ) -> list[Prediction]:
        """Translate a document into another file of its format; see `transduce.pipeline.pipeline.Pipeline`.

        Without attention, codes inside a sentence go to its end, and formats around all of it.
        """
        from transduce.pipeline.document_files import translate_file  # late: most programs have texts

        return translate_file(self, source, output, PredictionOptions.of(options))

    def pieces(
        self,
        texts: Sequence[str],
        split: Split = "auto",
        long: LongText = "split",
        first: int = 0,
        prepare: Callable[[str], Prepared] | None = None,
    ) -> Pieces:
        """How the model reads texts: which spans of each by themselves. See `predict`.

        prepare: what is read in place of each span; None = the span itself.
        """
        apart = [self.splits(split)] * len(texts)
        language = str(self.task.get("source", ""))
        most, tokenizer = self.max_source_length, self.source_tokenizer
        return pieces_of(texts, apart, tokenizer, most, long, False, language, first, prepare)

    def splits(self, split: Split) -> bool:
        """Whether a text is cut into its sentences."""
        return by_sentences(split, self.single_sentences)

    def _decoded(self, pieces: Pieces, settings: PlainSearch, options: PredictionOptions) -> list[Prediction]:
        texts, ids, owners, advance = pieces.read, pieces.ids, pieces.owners, pieces.advancing(options.advance)
        predictions, batches = [empty_prediction(text) for text in texts], pieces.batches(options.batch_size)
        if advance:
            advance(len(texts) - sum(map(len, batches)))

        def searched(batch: list[int]) -> list[list[Hypothesis]]:
            others = [member.source.tokenizer.encode([texts[place] for place in batch]) for member in self.members[1:]]
            lines = [pieces.first + owners[place] for place in batch]
            return self._searched([[ids[place] for place in batch], *others], settings, lines)

        with freed_memory_kept() if len(batches) > 1 else nullcontext():
            for batch, found in zip(batches, _side_by_side(searched, batches, options.workers), strict=True):
                for place, hypotheses in zip(batch, found, strict=True):
                    predictions[place] = Prediction.from_hypotheses(texts[place], hypotheses, self.target)
                if advance:
                    advance(len(batch))
        return predictions

    def _widely(self, options: PredictionOptions, pieces: Pieces, places: Sequence[int]) -> list[Prediction]:
        """See `transduce.inference.second_search.SearchWider`."""
        asked = PlainSearch.asked(self.search, options.search)
        settings = replace(asked, **wider(asked.method, asked.beam) or {})
        return self._decoded(pieces.chosen(places), settings, PredictionOptions(batch_size=options.batch_size))

    def _searched(
        self, read: Sequence[Sequence[Ids]], settings: PlainSearch, lines: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each source, best first.

        Args:
            read: the ids of all sources without end tokens, as each member reads them.
            lines: the number of each source, for messages.
        """
        limits = [self.members[0].target.roomy(settings.limit(len(ids))) for ids in read[0]]
        request = self._request(read[0], limits, settings)
        writers = [
            (member.network.writer(max(limits)), member.network.read([member.source.closed(ids) for ids in own]))
            for member, own in zip(self.members, read, strict=True)
        ]

        def call(request: BeamRequest) -> tuple[list[list[Any]], float]:
            found, impossible = beam.search(writers, self.mean, request)
            if np.isnan(impossible):
                for member in self.members:
                    member.network.check_length(max(limits))
            return found, impossible

        found = hypotheses_of(call, request, settings.length)
        refuse_impossible(lines, found)
        return found

    def _request(self, sources: Sequence[Ids], limits: Sequence[int], settings: PlainSearch) -> BeamRequest:
        source, target, words = self.members[0].source, self.members[0].target, None
        forbidden, opening = target.unwritten, target.opening
        beam = 1 if settings.method == "greedy" else settings.beam
        if settings.shortlist is not None and self.lexicon is not None:
            frequent = max(settings.shortlist, settings.beam)
            closed = [source.closed(ids) for ids in sources]
            allowed_BV = self.lexicon.allowed(closed, settings.shortlist, frequent, target.tokenizer.size)
            permit(allowed_BV, forbidden, target.end)
            allowed_BV[:, opening] = True
            words = words_of(allowed_BV)
        return BeamRequest(
            start=target.start,
            end=target.end,
            beam=beam,
            nbest=settings.nbest,
            forbidden=forbidden,
            limits=limits,
            prune=np.inf if settings.prune is None else settings.prune,
            length=settings.length.parts,
            words=words,
            prefixes=[opening] * len(sources),
            stopping="slots" if beam == 1 else settings.stopping,
            at_limit=settings.at_limit,
        )

    def _check_shortlist(self, settings: PlainSearch) -> None:
        if settings.shortlist is None:
            return
        if len(self.members) > 1:
            raise InputError(LISTS_OF_SEVERAL)
        if self.members[0].network.sizes.pointer:
            raise InputError(LISTS_WITH_POINTER)
        check_candidates(settings.shortlist, self.lexicon)


def _refuse_steps(options: PredictionOptions) -> None:
    """Raises InputError for what needs a search that goes step by step."""
    if refused := options.asked_of_outputs:
        raise InputError(f"{name}: {NAMES[name]} needs a search that goes step by step. {WHOLE}" for name in refused)


def _no_attention(prediction: Prediction) -> Any:
    raise InputError(f"without torch, nothing is recorded of what the model attended to. {WHOLE}")


def _side_by_side(work: Callable[[list[int]], Any], batches: Sequence[list[int]], workers: int) -> Iterable[Any]:
    """`work` of each batch, in order; with several workers in threads that use one core each."""
    if workers <= 1 or len(batches) <= 1:
        yield from map(work, batches)
        return
    from concurrent.futures import ThreadPoolExecutor  # late: most calls need no threads

    pool = ThreadPoolExecutor(min(workers, len(batches)), initializer=partial(openmp.set_threads, 1))
    try:
        yield from pool.map(work, batches)
    finally:
        pool.shutdown(cancel_futures=True)


def load(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    ensemble: Mean = "probability",
    precision: Literal["fp32", "int8"] = "fp32",
    threads: int | None = None,
    search: Mapping[str, Any] | None = None,
) -> Translator:
    """The model in a run directory or a model file; of several of these, an ensemble.

    Args:
        path: one, or a list of models that write with the same target tokenizer.
        ensemble: what a mean is taken of, "probability" or "log_probability".
        precision: of matrix products.
        threads: how many threads kernels use that the calling thread calls; None = OMP_NUM_THREADS, or all cores.
        search: settings that `predict` will be asked for; if they cannot be, that is told before weights are read.
            None = nobody knows yet.

    Raises:
        InputError: no model there, or one that is damaged, foreign or too new; one that needs torch; several that do
            not go together; there are no kernels for this machine.
    """
    paths = paths_of(path)
    if precision not in ("fp32", "int8"):
        raise InputError(f'precision: expected "fp32" or "int8"; got {precision!r}.')
    if ensemble not in ("probability", "log_probability"):
        raise InputError(f'ensemble: expected "probability" or "log_probability"; got {ensemble!r}.')
    if len(paths) > 1 and search and search.get("shortlist") is not None:
        raise InputError(LISTS_OF_SEVERAL)
    if threads is not None:
        if threads < 1:
            raise InputError(f"threads = {threads}: expected at least 1.")
        openmp.set_threads(threads)
    loaded = [_loaded(each, precision == "int8", None if place else search) for place, each in enumerate(paths)]
    members, files, lexicons = (list(each) for each in zip(*loaded, strict=True))
    problems = [
        differing_target(os.fspath(name), os.fspath(paths[0]))
        for name, member in zip(paths[1:], members[1:], strict=True)
        if not member.target.tokenizer.equals(members[0].target.tokenizer)
    ]
    if problems:
        raise InputError(problems)
    familiarity = Familiarity.of(files[0].provenance, members[0].source.tokenizer)
    single, examples = all(map(_reads_single, files)), example_texts(files[0].provenance)
    preparation = _preparation(files[0], members[0])
    found = Translator(members, ensemble, files[0].config, lexicons[0], single, familiarity, preparation, examples)
    if len(members) == 1:
        found.judge = judging(files[0].provenance.get("confidence"), members[0].target.tokenizer)
    return found


def _preparation(file: ModelFile, member: Member) -> Preparation:
    """What a model reads in place of a text; see `transduce.inference.preparation.preparation_of`."""
    sentences = section_of(file.config, "tokenizer").get("kind") != "character"
    return Preparation.of(file.provenance, member.source.tokenizer, member.target.tokenizer, sentences)


def _check_machine(int8: bool) -> None:
    """Raises InputError where there are no kernels, or int8: none in 8 bits."""
    if kernels() is None:
        raise InputError(f"there are no kernels for this system here, without which torch is needed. {WHOLE}")
    if int8 and not multiplies_int8():
        raise InputError(f"precision int8 needs an x86 processor with AVX2; use fp32. {WHOLE}")


def _loaded(
    path: str | PathLike[str], int8: bool, search: Mapping[str, Any] | None
) -> tuple[Member, ModelFile, Lexicon | None]:
    """Settings, tokenizers and shapes are checked before weights are read; those of search where they are given."""
    read: list[tuple[Sizes, FramedText, FramedText]] = []

    def check(
        config: dict[str, Any], texts: dict[str, str], columns: ColumnTables, weights: dict[str, TensorInfo]
    ) -> None:
        sizes = sizes_of(config, columns)
        if search is not None:
            asked = PlainSearch.asked(section_of(config, "search"), search)
            if sizes.pointer and asked.shortlist is not None:
                raise InputError(LISTS_WITH_POINTER)
        source, target = framed(columns, read_tokenizers(texts))
        check_shapes(sizes, (source.tokenizer.size, target.tokenizer.size), weights)
        apart = "source_embedding.weight" in weights and not source.tokenizer.equals(target.tokenizer)
        if sizes.pointer and apart:
            raise InputError(TWO_VOCABULARIES)
        _check_machine(int8)  # last: it loads OpenMP's library, which a process that goes on with torch does not need
        read.append((sizes, source, target))

    file = load_model_file(path, check=check, read=read_arrays)
    [(sizes, source, target)] = read
    check_finite(file.weights)
    vocabularies = source.tokenizer.size, target.tokenizer.size
    lexicon = None if file.lexicon is None else Lexicon(*file.lexicon).checked(*vocabularies)  # type: ignore[arg-type]
    return Member(Network(file.weights, sizes, int8), source, target), file, lexicon  # type: ignore[arg-type]


def _reads_single(file: ModelFile) -> bool:
    """Whether the model was trained on pairs of single sentences."""
    return trained_on_single(file.provenance, True, SimpleNamespace(**section_of(file.config, "tokenizer")))
