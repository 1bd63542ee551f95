"""A trained model, ready for use: `transduce.load(path)`."""

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, overload

import torch

from transduce.core.errors import InputError
from transduce.core.finite import check_finite
from transduce.core.model_file import ModelFile, load_model_file
from transduce.data.input_file import InputFile
from transduce.data.source_columns import source_columns
from transduce.data.tags import addressed
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.fused.pack import pack_all
from transduce.fused.watch import FollowsWeights
from transduce.inference.confidence import WordConfidence, judging
from transduce.inference.constraints import Constraints, Must, constraints_of_each, merged
from transduce.inference.decode import SearchedModel, SearchPredictor, decode, search_again, search_widely
from transduce.inference.familiarity import Familiarity
from transduce.inference.generates import generating
from transduce.inference.likelihood import Likelihood, pair_likelihoods
from transduce.inference.options import GlossaryTerms, PredictionOptions
from transduce.inference.prediction import OutputFaults, Prediction, cut_lines, refuse_cut
from transduce.inference.preparation import Preparation, Prepared, preparation_of
from transduce.inference.protocols import Advance
from transduce.inference.second_search import SearchAgain, SearchWider, looked_after, wider
from transduce.inference.sentences import Split, by_sentences, trained_on_single
from transduce.inference.splitting import (
    LongText,
    Pieces,
    pieces_of,
    refuse_attention_of_pieces,
    refuse_wants_of_pieces,
    tell_of_pieces,
    tell_unmet,
    utterances,
)
from transduce.kernels.matmul import Precision
from transduce.layers.fused_search import Mean
from transduce.models.protocols import Steps
from transduce.pipeline.arguments import differing_target, pairs_of, paths_of, text_of, texts_of
from transduce.pipeline.opened_datastore import OpenedDatastore
from transduce.pipeline.outline import Outline, lexicon_of, load_weights, ngrams_of
from transduce.runtime.devices import device_for
from transduce.search.datastore import ModelIdentity, identity_of
from transduce.search.ensemble import Ensemble
from transduce.search.request import OnStep
from transduce.search.settings import Search, search_settings
from transduce.tasks.base import Task

if TYPE_CHECKING:
    from transduce.interpret.attention import Attention
    from transduce.interpret.look_back import LookBack


class Pipeline(FollowsWeights):
    """Text in, predictions out: what `transduce.load` returns. Calling it is `predict`.

    recipe: what the model was trained with.
    metrics: of the best validation, as its file has them.
    provenance: data, versions and machine that it was trained with, as its file has them.
    task: columns, predictor and metrics.
    model: the torch module, in evaluation mode. Change its weights in place, and predictions follow.
    others: the tasks of an ensemble's further members.
    lexicon: what a shortlist is made of; None = the file holds none.
    precision: of matrix products.
    device: where they are computed.
    single_sentences, familiarity: whether it was trained on single sentences; on which characters, if its file says so.
    preparation: what it reads in place of a text: placeholders, terms of a glossary, its own quotes and capitals.
    judge: says how sure the words of a prediction are; None where it was not calibrated.
    """

    others: tuple[Task, ...] = ()
    familiarity = Familiarity()
    preparation = Preparation()
    judge: "Callable[[Prediction], list[WordConfidence]] | None" = None
    _datastore: OpenedDatastore | None = None
    searches = attends = True  # outputs are found by search, whose settings `predict` takes; `attention` may be asked

    def __init__(
        self,
        file: ModelFile,
        precision: Precision = "fp32",
        device: "str | torch.device" = "auto",
        outline: Outline | None = None,
    ) -> None:
        """outline: of this file, where there is one already."""
        self.device, self.precision = device_for(precision, device), precision
        outline = outline or Outline(file.config, file.tokenizers, file.columns, file.weights)
        self.recipe, self.task, self.model = outline.recipe, outline.task, outline.model
        self.metrics, self.provenance, self.source_columns = file.metrics, file.provenance, source_columns(file.config)
        self.lexicon, self.task.ngrams = lexicon_of(file, self.task), ngrams_of(file, self.task)
        check_finite(file.weights)
        load_weights(self.model, file.weights)
        self.model.eval().to(self.device)
        self.single_sentences = trained_on_single(file.provenance, self.task.of_sentences, self.recipe.tokenizer)
        if self.searches:  # others read an input in their own way: as a pair of texts, for example
            self.familiarity = Familiarity.of(file.provenance, self.task.tokenizers.get("source"))
            self.preparation = preparation_of(file.provenance, self.task, self.recipe.tokenizer)
            self.judge = judging(file.provenance.get("confidence"), self.task.tokenizers["target"])
        if self.device.type == "cpu":
            pack_all(self.model, precision)

    def __repr__(self) -> str:
        return f"<transduce.{type(self).__name__} {self.recipe.name}: {type(self.model).__name__} on {self.device}>"

    @overload
    def predict(self, texts: str, **options: Any) -> Prediction: ...

    @overload
    def predict(
        self,
        texts: Iterable[str],
        *,
        batch_size: int = 64,
        split: Split = "auto",
        long: LongText = "split",
        tell: Callable[[str], None] | None = None,
        advance: Advance | None = None,
        must: Sequence[Must] | Sequence[list[Must]] = (),
        must_not: Sequence[str] | Sequence[list[str]] = (),
        prefix: str | Sequence[str] = "",
        constraints: Sequence[Constraints] | None = None,
        to: str = "",
        lattice: bool = False,
        word_times: bool = False,
        workers: int = 1,
        on_step: OnStep | None = None,
        protect: bool = True,
        glossary: GlossaryTerms = (),
        datastore: str | PathLike[str] | None = None,
        knn: Mapping[str, Any] | None = None,
        origins: bool = False,
        matches: int | None = None,
        **search: Any,
    ) -> list[Prediction]: ...

    def predict(
        self,
        texts: str | Iterable[str],
        *,
        batch_size: int = 64,
        split: Split = "auto",
        long: LongText = "split",
        tell: Callable[[str], None] | None = None,
        advance: Advance | None = None,
        must: Sequence[Must] | Sequence[list[Must]] = (),
        must_not: Sequence[str] | Sequence[list[str]] = (),
        prefix: str | Sequence[str] = "",
        constraints: Sequence[Constraints] | None = None,
        to: str = "",
        lattice: bool = False,
        word_times: bool = False,
        workers: int = 1,
        on_step: OnStep | None = None,
        first: int = 0,
        protect: bool = True,
        glossary: GlossaryTerms = (),
        datastore: str | PathLike[str] | None = None,
        knn: Mapping[str, Any] | None = None,
        origins: bool = False,
        matches: int | None = None,
        **search: Any,
    ) -> Prediction | list[Prediction]:
        """One prediction a text, in order; each is what it would be alone. An empty text gives an empty prediction.

        Args:
            texts: one text, which gives one prediction; or several in anything that has an order, which give a list.
            batch_size: texts searched together: speed and memory, nothing else.
            split: "sentences": each sentence of a text is read by itself, and the outputs are put together with the
                text's white space; "none": it is read as a whole; "auto": by sentences, if the model was trained on
                single ones and nothing is wanted of the output. A prompt is never cut.
            long: a text (or sentence) longer than the model can read is translated in pieces, cut off, or refused; of
                a prompt the end is kept.
            tell: told which texts were long and what became of them, which outputs lack phrases that must appear, and
                how many lack something of their sources or repeat themselves.
            advance: told how many more texts are done.
            must: phrases that have to appear in the output, as text; a tuple holds alternatives, of which one is
                enough. One phrase or one list for all texts, or a list of lists, one for each. An output that reaches
                its limit without them has `ended` False, and the phrases are in `unmet`.
            must_not: phrases that may not appear, likewise.
            prefix: text whose tokens the output begins with, for all or for each.
            constraints: the same three in one object for each text, in addition to those above.
            to: code of the language to write, of a model of several; its tag comes before the texts that have none.
            lattice: keep what the beam weighed, for display, as `Prediction.lattice`; not of texts in pieces.
            word_times: find from when to when each word of a recording is said, as `Prediction.spoken_words`, where the
                model aligns (CTC, or attention with CTC); it reads the recording once more.
            workers: so many that search side by side, with one thread each; for many texts, on a processor. Threads
                where a search is one call, else processes.
            on_step: called with a `transduce.search.request.Step` after each token of a batch; its rows are indices
                into `texts`, or into `pieces(texts).read` if some texts are read in pieces. An exception that it raises
                ends the search.
            first: the number of the first text in its file, from 0, which seeds samples and is told in messages.
            protect: keep numbers, addresses, codes, placeholders and emoji, leave a text without letters and digits as
                it is, and read capitals, quotes and invisible characters as the training texts have them; see
                `transduce.inference.preparation`. What is missing all the same is in `Prediction.missing`.
            glossary: terms and their translations, as a table or as pairs, which outputs use where the terms stand.
            datastore: a file of `transduce datastore build` for this model: a translation memory with which search
                interpolates; see `transduce.search.knn`.
            knn: keys of `transduce.search.datastore.KnnSettings` in place of the datastore's.
            origins: with a datastore, tell where each token came from, as `Prediction.origins`; outputs are read again.
            matches: with a datastore, the least similarity, in percent, of pairs in `Prediction.matches`.
            search: any key of `transduce.search.settings.Search` in place of the recipe's: beam=5, alpha=0.75, ..

        Raises:
            InputError: what came is no text; a search setting is wrong; a text is too long and long="refuse", or in
                pieces that something is wanted of; what is wanted cannot be; no workers can be had here; the datastore
                is missing, damaged, or of another model.
        """
        options = PredictionOptions(
            batch_size=batch_size,
            split=split,
            long=long,
            tell=tell,
            advance=advance,
            must=must,
            must_not=must_not,
            prefix=prefix,
            constraints=constraints,
            to=to,
            lattice=lattice,
            word_times=word_times,
            workers=workers,
            on_step=on_step,
            first=first,
            protect=protect,
            glossary=glossary,
            datastore=datastore,
            knn=knn or {},
            origins=origins,
            matches=matches,
            search=search,
        )
        listed, alone = texts_of(texts)
        predictions = self.predict_all(listed, options)
        for line in cut_lines(predictions):
            tell(line) if tell else warnings.warn(line, stacklevel=2)
        if tell:
            for line in OutputFaults.of(predictions, first).lines(len(predictions)):
                tell(line)
        return predictions[0] if alone else predictions

    def predict_all(self, texts: Sequence[str], options: PredictionOptions) -> list[Prediction]:
        """What `predict` gives with these options."""
        tell, listed = options.tell, self.source_columns.joined(texts)
        listed = addressed(self.source_tokenizer, listed, options.to) if options.to else listed
        settings = search_settings(self.recipe.search, options.search)
        constraints = constraints_of_each(len(listed), options.must, options.must_not, options.prefix)
        if options.constraints is not None:
            constraints = merged(constraints, options.constraints)
        prepare = self.preparation.of_texts(options.protect, options.terms)
        pieces = self.pieces(listed, options.split, options.long, constraints, options.first, prepare)
        if tell:
            how = (options.split, options.long, (), options.first)
            tell_of_pieces(pieces, constraints, lambda: self.pieces(listed, *how), tell)
        refuse_wants_of_pieces(constraints, pieces)
        opened = self.datastore_of(options)
        searched = replace(self.searched, memory=opened.memory if opened else None)
        found = decode(searched, pieces, settings, options, constraints)
        if options.origins:
            from transduce.inference.origins import with_origins  # late: few ask for it

            found = with_origins(searched, pieces, found, options.batch_size)
        found = looked_after(pieces, found, *_second_searches(searched, settings, options, constraints))
        if options.word_times and self.times_words:
            from transduce.interpret.word_times import with_word_times  # late: few ask for it

            found = with_word_times(self.searched, pieces, found, options.batch_size)
        predictions = self._shown(listed, pieces, found)
        if opened and options.matches is not None:
            predictions = opened.with_matches(predictions, texts, options.matches)
        if tell:
            tell_unmet(predictions, tell, options.first)
        return predictions

    def predict_file(
        self, source: str | PathLike[str], output: str | PathLike[str], **options: Any
    ) -> list[Prediction]:
        """Translate a document into another file of its format; see docs/files.md.

        Args:
            source: a file of text, Markdown, HTML, subtitles, Office, OpenDocument, EPUB, gettext, XLIFF, TMX or JSON.
            output: the file to write, with the same ending. It appears when all of it is there.
            options: those of `predict`, but for what is about single outputs.

        Returns:
            What the model said of each segment of the text, in order.

        Raises:
            InputError: the file cannot be read or written; the model does not translate.
        """
        from transduce.pipeline.document_files import translate_file  # late: most programs have texts

        return translate_file(self, source, output, PredictionOptions.of(options))

    @property
    def searched(self) -> SearchedModel:
        """The model as `decode` takes it. Raises InputError where outputs are not searched for."""
        return SearchedModel(
            self.model, generating(self.task), [generating(other) for other in self.others], self.lexicon
        )

    def datastore_of(self, options: PredictionOptions) -> OpenedDatastore | None:
        """The datastore that the options name; None = they name none. The last one is kept open.

        Raises:
            InputError: it is missing, damaged, or of another model; settings of it are wrong; only settings are given.
        """
        if options.datastore is None:
            if options.knn or options.origins or options.matches is not None:
                raise InputError("knn, origins and matches are about a datastore: name one as datastore.")
            return None
        self._datastore = OpenedDatastore.of(options.datastore, self, self._datastore)
        return self._datastore.used(options.knn)

    @cached_property
    def identity(self) -> ModelIdentity:
        """What tells this model from others, as datastores name it."""
        tokenizers = {side: each.to_json() for side, each in self.task.tokenizers.items()}
        return identity_of(self.model, self.recipe.name, tokenizers)

    @property
    def times_words(self) -> bool:
        """Whether it hears recordings, and can tell when each word is said (`word_times`)."""
        source = self.task.columns.get("source")
        if source is None or not source.is_sound or not self.searches:
            return False
        from transduce.interpret.word_times import times_words

        return times_words(self.searched)

    def _shown(self, texts: Sequence[str], pieces: Pieces, found: Sequence[Prediction]) -> list[Prediction]:
        """A prediction for each text, which can be asked for its attention and for a picture."""
        attention_of_each = [self.attention if len(cut) == 1 else refuse_attention_of_pieces for cut in pieces.cuts]
        picture = picture_of(self.task)
        shown = zip(pieces.joined(found), attention_of_each, map(self.familiarity.unfamiliar, texts), strict=True)
        return [each.shown_by(attend, picture, new, self.judge) for each, attend, new in shown]

    __call__ = predict

    def attention(self, prediction: Prediction) -> "Attention":
        """What the model attended to while it gave a prediction that was read in one piece.

        Raises InputError for an empty text, or other tokens.
        """
        from transduce.interpret.attention import attention_of  # late: half of what is imported otherwise

        return attention_of(self.model, self.task, prediction)

    def look_back(self, text: str, name: str | None = None, head: int | None = None) -> "LookBack":
        """What each word looks back at while a language model reads a text, to which it adds nothing.

        Args:
            name: of a module that attends to the words before; None = the mean of all of these.
            head: number of the head, from 0; None = the mean of the module's heads.

        Raises:
            InputError: the text is empty or too long; the model reads a source, or does not attend to the words before.
        """
        from transduce.interpret.look_back import look_back

        return look_back(self.model, self.task, text_of(text), name, head)

    @overload
    def score(  # type: ignore[overload-overlap]  # a str is an Iterable[str]
        self, sources: str, targets: str | None = None, *, batch_size: int = 64, advance: Advance | None = None
    ) -> Likelihood: ...

    @overload
    def score(
        self,
        sources: Iterable[tuple[str, str]] | Iterable[str],
        targets: Iterable[str] | None = None,
        *,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> list[Likelihood]: ...

    def score(
        self,
        sources: str | Iterable[tuple[str, str]] | Iterable[str],
        targets: str | Iterable[str] | None = None,
        *,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> Likelihood | list[Likelihood]:
        """The log-probability of each target given its source; of texts alone for a language model.

        Args:
            sources: a list, as long as `targets`, or one text for one; or (source, target) pairs without `targets`.
            targets: texts, in the order of their sources; None: `sources` holds pairs, or for a language model texts.
            batch_size: texts at once: speed and memory, nothing else.
            advance: told how many more texts are done.

        Raises:
            InputError: it is none of these; unequal numbers of sources and targets.
        """
        pairs, alone = pairs_of(sources, targets, "source" in self.task.columns)
        pairs = self.source_columns.joined_pairs(pairs)
        found = pair_likelihoods(self.model, self.task, pairs, batch_size, advance, self.others)
        return found[0] if alone else found

    @property
    def config(self) -> dict[str, Any]:
        """The recipe as a table."""
        return self.recipe.to_table()

    @property
    def source_tokenizer(self) -> Tokenizer | None:
        """What it reads with; None = it reads no text but its own."""
        return self.task.tokenizers.get("source")

    def read_inputs(self, path: Path) -> InputFile | None:
        """What a file in a format of its task holds; None: the file has an input a line."""
        return self.task.read_inputs(path)

    def splits(self, split: Split) -> bool:
        """Whether a text is cut into its sentences where nothing is wanted of its output."""
        cuts = by_sentences(split, self.single_sentences)
        return cuts and not self.task.never_split and "source" in self.task.tokenizers

    def pieces(
        self,
        texts: Sequence[str],
        split: Split = "auto",
        long: LongText = "split",
        constraints: Sequence[Constraints] = (),
        first: int = 0,
        prepare: Callable[[str], Prepared] | None = None,
    ) -> Pieces:
        """How texts are read: which spans by themselves. Raises InputError for one too long, with long="refuse".

        prepare: what is read in place of each span; None = the span itself.
        """
        heard = self.task.columns.get("source")
        if heard is not None and (parts := heard.encode_audio(texts)) is not None:
            heard.refuse_unheard(texts, parts)
            return utterances(texts, parts, self.task.max_source_length, long, first)
        if heard is not None and not self.task.tokenizers:  # no text, but a graph, say
            return Pieces.whole(texts, heard.encode(texts), first)
        reads = self.task.tokenizers.get("source")
        whole = [split == "auto" and bool(wanted) for wanted in constraints] or [False] * len(texts)
        apart = [self.splits(split) and not each for each in whole]
        prompts, reads = reads is None, reads or self.task.tokenizers["target"]
        language = self.task.languages[0]
        most = sys.maxsize if self.task.never_split and long == "split" else self.task.max_source_length
        return pieces_of(texts, apart, reads, most, long, prompts, language, first, prepare)


class PredictorPipeline(Pipeline):
    """One whose task does not search: its predictor takes each text whole."""

    searches = False

    def predict_all(self, texts: Sequence[str], options: PredictionOptions) -> list[Prediction]:
        """What `predict` gives with these options.

        Those about reading and speed mean nothing here; those about the output are refused.

        Raises:
            InputError: something is asked of the output; a text is too long and long="refuse".
        """
        keys = [name for name, value in {"to": options.to, **options.search}.items() if value not in (None, "")]
        if refused := sorted({*options.asked_of_outputs, *keys} - {"lattice"}):
            kind = self.recipe.task.kind  # type: ignore[attr-defined]
            raise InputError(f"{', '.join(refused)}: {kind} does not search for its output. Leave it out.")
        found = self.task.predictor.predict(self.model, texts, None, options.batch_size, options.advance)
        if options.long == "refuse":
            refuse_cut(found, options.first)
        picture = picture_of(self.task)
        return [each.shown_by(self.attention, picture) for each in found]

    def splits(self, split: Split) -> bool:
        """Never: a text is taken whole."""
        return False


class EnsemblePipeline(Pipeline):
    """Several pipelines whose predictions are averaged. Search settings and lexicon are those of the first.

    Raises:
        InputError: their target tokens differ, only some read sources, or one writes all words at once.
    """

    def __init__(self, members: Sequence[Pipeline], mean: Mean = "probability", names: Sequence[str] = ()) -> None:
        check_members(members, names or [f"model {number}" for number in range(1, len(members) + 1)])
        first = members[0]
        self.recipe, self.task, self.lexicon = first.recipe, first.task, first.lexicon
        self.source_columns, self.familiarity = first.source_columns, first.familiarity
        self.preparation = first.preparation
        self.precision, self.device = first.precision, first.device
        self.single_sentences = all(member.single_sentences for member in members)
        self.others = tuple(member.task for member in members[1:])
        self.metrics = {}
        self.provenance = {"ensemble": mean, "members": [member.provenance for member in members]}
        self.model = Ensemble([member.model for member in members], mean).eval()

    def datastore_of(self, options: PredictionOptions) -> None:
        """None. Raises InputError where one is named: its states are those of one model."""
        if options.datastore is not None:
            raise InputError("datastore: it belongs to one model, and this is an ensemble. Leave it out.")

    def attention(self, prediction: Prediction) -> "Attention":
        """None: each member attends in its own way. Raises InputError always."""
        raise InputError("an ensemble has no attention of its own; load one of its members by itself.")

    def look_back(self, text: str, name: str | None = None, head: int | None = None) -> "LookBack":
        """None, likewise. Raises InputError always."""
        raise InputError("an ensemble has no attention of its own; load one of its members by itself.")


def load(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    trust_code: bool | None = False,
    ensemble: Mean = "probability",
    precision: Precision = "fp32",
    device: "str | torch.device" = "auto",
) -> Pipeline:
    """The model in a run directory or a model file; of several of these, an ensemble.

    Args:
        path: one, or a list: models of any architectures that write with the same target tokenizer.
        trust_code: let the file name classes outside Transduce, which are then imported: only if you trust its maker.
            None = those that a recipe of your own has named in this process.
        ensemble: what a mean is taken of, "probability" or "log_probability"; see `transduce.search.ensemble`.
        precision: of matrix products. "int8" is faster, and near to what "fp32" gives (`transduce.kernels.matmul`).
        device: "cpu", "cuda", "mps", or "auto", which is a GPU of CUDA if there is one. 8-bit products are the
            processor's alone, and so is "auto" for them.

    Raises:
        InputError: no model there, or one that is damaged, foreign or too new; several that do not go together; no
            such device here.
    """
    paths = paths_of(path)
    members = [_loaded(each, trust_code, precision, device_for(precision, device)) for each in paths]
    return members[0] if len(members) == 1 else EnsemblePipeline(members, ensemble, [str(each) for each in paths])


def _loaded(path: str | PathLike[str], trust_code: bool | None, precision: Precision, device: Any) -> Pipeline:
    """The model is built and compared with what the file says of its weights before these are read."""
    outlines: list[Outline] = []
    file = load_model_file(path, trust_code=trust_code, check=lambda *said: outlines.append(Outline(*said)))
    searches = isinstance(outlines[0].task.predictor, SearchPredictor)
    return (Pipeline if searches else PredictorPipeline)(file, precision, device, outlines[0])


class EnsembleMember(Protocol):
    """A loaded model."""

    @property
    def model(self) -> Any: ...
    @property
    def task(self) -> Task: ...


def check_members(members: Sequence[EnsembleMember], names: Sequence[str]) -> None:
    """Raises InputError that says of all that do not go together why, by their `names`."""
    first = members[0].task
    problems = [
        f"{name}: does not write token by token, as the members of an ensemble must."
        for name, member in zip(names, members, strict=True)
        if not isinstance(member.model, Steps)
    ]
    for name, member in zip(names[1:], members[1:], strict=True):
        task = member.task
        if not task.tokenizers["target"].equals(first.tokenizers["target"]):
            problems.append(differing_target(name, names[0]))
        elif task.columns.keys() != first.columns.keys():
            problems.append(f"{name}: its task is not that of {names[0]}: one reads a source, the other does not.")
        elif first.columns.get("source") != task.columns.get("source") and "source" not in first.tokenizers:
            problems.append(f"{name}: it hears other features than {names[0]}; the members of an ensemble share them.")
    if problems:
        raise InputError(problems)


def _second_searches(
    searched: SearchedModel, settings: Search, options: PredictionOptions, constraints: Sequence[Constraints]
) -> tuple[SearchAgain | None, SearchWider | None]:
    """For what is missing, and for loops; none where outputs are drawn, or written at once."""
    update = wider(settings.method, settings.beam)
    if update is None:
        return None, None
    again = partial(search_again, searched, settings, options, constraints)
    more = settings.model_copy(update={**update, "groups": 1, "diversity": 0.0})
    return again, None if any(constraints) else partial(search_widely, searched, more, options)


def picture_of(task: Task) -> Callable[[Prediction], str] | None:
    """What makes HTML of a prediction of this task; None where its text says all."""

    def picture(prediction: Prediction) -> str:
        from transduce.interpret.drawings import drawing_class  # late, as it draws with rich

        html: str = drawing_class(task.drawing).of(prediction)._repr_html_()
        return html

    return picture if task.drawing else None
