"""The exploration of one sentence: the prediction, its alternatives, the beam, and attention.

These are the numbers of the explorer's page; docs/explorer.md defines each of them.

The recording that a model of speech heard: its sound and its features, for the explorer's page.

Shapes: T target positions, V vocabulary, H heads, S keys; of a recording N samples, S frames, F features, C columns of
the picture.
"""

import base64
import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.attention.capture import capture
from transduce.attention.interventions import Place
from transduce.core.errors import InputError
from transduce.data.columns import Column
from transduce.data.columns.frames import Frames
from transduce.data.columns.word_labels import WordLabels
from transduce.data.columns.words import Words
from transduce.data.speech.audio import name_of
from transduce.data.speech.filterbank import SHIFT, WINDOW
from transduce.data.speech.wav import wav
from transduce.data.tags import leading_tags
from transduce.inference.memory_use import origins_table
from transduce.inference.prediction import Prediction
from transduce.inference.sentences import Segment, rejoined, sentences
from transduce.interpret.attention import looked, texts_of
from transduce.interpret.drawings import drawing_name, drawn
from transduce.interpret.layers import attending
from transduce.interpret.model_inputs import Given, given_of, positions, source_ids
from transduce.interpret.numbers import packed
from transduce.interpret.token_spans import column_tokens, frames_a_place, word_side, written_side
from transduce.models.protocols import HasMemory, Points, writes_at_once
from transduce.pipeline.arguments import text_of
from transduce.pipeline.generation import judged
from transduce.pipeline.pipeline import EnsemblePipeline, Pipeline
from transduce.search.settings import search_settings
from transduce.tasks.base import Task

COLUMNS = 1000  # of the picture: more than a page is wide

ALTERNATIVES = 10
MOST = 2_000_000  # attention weights in one answer
WRITTEN = 1024  # tokens of a text that is explored as it stands; more, where the model reads more


def explore(
    pipeline: Pipeline,
    text: str,
    name: str = "",
    max_weights: int = MOST,
    sentence: int = 0,
    as_it_stands: bool = False,
    cut: Sequence[Place] = (),
    datastore: Path | None = None,
    **search: Any,
) -> dict[str, Any]:
    """The prediction with its n-best list, the ten most likely tokens at each position, the beam, and all attention.

    If the model reads the text sentence by sentence, these are the results of one sentence, and "whole" contains the
    outputs of `Pipeline.predict` for all of them.

    Args:
        pipeline: the model.
        text: the text; of a model of speech, a recording as `transduce.data.speech.audio` names it.
        name: the model's name in the result.
        max_weights: maximum number of attention weights.
        sentence: number of the sentence, from 0; the last one if there are fewer.
        as_it_stands: of a language model: nothing is written; the text itself is what is explored.
        cut: what is not attended to, as `transduce.capture` takes it.
        datastore: a translation memory that the model consults; "memory" then says from which of its pairs each token
            of the output came. The alternatives are what the model says without it.
        search: keys of `transduce.search.settings.Search` that override the recipe's.

    Raises:
        InputError: the pipeline is an ensemble, the text is empty or cannot be read in one piece, there are too many
            weights, or a setting is wrong.
    """
    if cut:
        with capture(pipeline, cut=cut):
            return explore(pipeline, text, name, max_weights, sentence, as_it_stands, datastore=datastore, **search)
    text = text_of(text)
    if pipeline.task.drawn_alone and not isinstance(pipeline, EnsemblePipeline):
        return pictured(pipeline, text, name, max_weights)
    if labelled_in_windows(pipeline, text):
        return _labelled(pipeline, text, name, max_weights)
    consulted = {"datastore": datastore} if datastore else {}
    whole = _all_sentences(pipeline, text, sentence, {**consulted, **search})
    text = whole["sentences"][whole["sentence"]]["text"] if whole else text
    check_text(pipeline, text, as_it_stands)
    if as_it_stands:
        if "source" in pipeline.task.columns or not pipeline.searches:
            raise InputError("as_it_stands: expected a language model; this one reads a source.")
        check_size(pipeline, Given(None, list(pipeline.task.columns["target"].encode([text])[0])), max_weights)
        prediction = judged(pipeline, text, text)
    else:
        how = {**consulted, "origins": bool(datastore), **_asked_of_search(pipeline, search)}
        prediction = pipeline.predict(text, split="none", long="refuse", protect=False, **how)  # as the model reads
    given = given_of(pipeline.task, prediction)
    left_out = unshown(pipeline, given, max_weights)
    check_size(pipeline, given, max_weights, left_out)
    texts = texts_of(pipeline.task, prediction)
    attention, next_TV = looked(pipeline.model, pipeline.task, given, *texts, without=left_out)
    name_of_drawing = drawing_name(pipeline.model, pipeline.task)
    drawing = drawn(pipeline.model, pipeline.task, prediction, attention)
    return {
        "model": name,
        "text": name_of(text),
        "whole": whole,
        **attention.sides(),
        "recording": recording(pipeline.model, pipeline.task, given, text),
        "score": prediction.score,
        "log_probability": prediction.log_probability,
        "ended": prediction.ended,
        "nbest": [_listed(each) for each in prediction.alternatives or (prediction,)],
        "alternatives": alternatives(next_TV, pipeline.task.columns["target"]),
        "lattice": prediction.lattice.to_dict() if prediction.lattice else None,
        "memory": origins_table(prediction.origins) if prediction.origins else None,
        "attention": [layer.to_dict(as_lists=False) for layer in attention.layers],
        "drawing": {"kind": name_of_drawing, **drawing.to_dict()} if drawing else None,
    }


def _asked_of_search(pipeline: Pipeline, search: dict[str, Any]) -> dict[str, Any]:
    """With all that a beam finds, and what it weighed."""
    if not pipeline.searches:
        return search
    settings = search_settings(pipeline.recipe.search, search)
    nbest = {"nbest": settings.beam} if settings.method in ("beam", "ctc") else {}  # the best stays the best
    return {**nbest, **search, "lattice": settings.method == "beam"}


def sentences_of(pipeline: Pipeline, text: str) -> list[str]:
    """The parts of a text that are explored separately: its sentences if the model reads them so, else the text.

    Each stands behind the tags of the text.
    """
    if not pipeline.splits("auto"):
        return [text]
    tags = leading_tags(pipeline.task.tokenizers["source"], text)
    cut = sentences(text[len(tags) :], pipeline.task.languages[0])
    return [tags + text[len(tags) :][start:end] for start, end in cut] if len(cut) > 1 else [text]


def _all_sentences(pipeline: Pipeline, text: str, sentence: int, search: dict[str, Any]) -> dict[str, Any] | None:
    """The outputs of all sentences, and their positions in the whole output; None if there is only one."""
    each = sentences_of(pipeline, text)
    if len(each) < 2 or isinstance(pipeline, EnsemblePipeline):
        return None
    found = [one.text for one in pipeline.predict(each, split="none", protect=False, **search)]
    tags = leading_tags(pipeline.task.tokenizers["source"], text)
    plain, cut, done = text[len(tags) :], list[Segment](), 0
    for one in each:
        start = plain.index(one[len(tags) :], done)
        done = start + len(one) - len(tags)
        cut.append(Segment(start, done))
    return {
        "text": text,
        "output": rejoined(plain, cut, found),
        "sentence": min(sentence, len(each) - 1),
        "sentences": [{"text": one, "output": output} for one, output in zip(each, found, strict=True)],
    }


def alternatives(next_TV: Tensor, column: Column) -> list[list[dict[str, Any]]]:
    """The most likely tokens at each position, best first, with their log-probabilities by the full softmax.

    What is impossible there, as a label that a scheme forbids, is left out.
    """
    found = next_TV.topk(min(ALTERNATIVES, next_TV.shape[1]))
    rows = zip(found.values.tolist(), found.indices.tolist(), strict=True)
    return [
        [
            {"token": token, "log_probability": value}
            for token, value in zip(column_tokens(column, ids), values, strict=True)
            if value > -math.inf
        ]
        for values, ids in rows
    ]


def asked(pipeline: Pipeline, text: str, target: str | list[str] | None, max_weights: int = MOST) -> Given:
    """A source and an output: `target`, or the model's prediction.

    Args:
        pipeline: the model.
        text: the source.
        target: a text, or a list of tokens as in `nbest`; None = the prediction.
        max_weights: maximum number of attention weights.

    Raises:
        InputError: see `explore`; or a token of the target is not in the vocabulary.
    """
    text = text_of(text)
    check_text(pipeline, text, target is not None)
    prediction = (
        pipeline.predict(text, split="none", long="refuse", protect=False)
        if target is None or _windows(pipeline)
        else None
    )
    if target is None or (prediction and tuple(target) == prediction.tokens):
        assert prediction is not None
        given = given_of(pipeline.task, prediction)
    elif prediction and prediction.seen and len(prediction.seen) < len(source_ids(pipeline.task, text)):
        raise InputError("target: this text is read in several windows; leave it out, for the model's own answer.")
    else:
        writes = pipeline.task.columns["target"]
        ids = list(writes.encode([target])[0]) if isinstance(target, str) else writes.ids(target)
        _check_labels(pipeline, text, ids)
        given = Given(source_ids(pipeline.task, text), ids)
    check_size(pipeline, given, max_weights)
    return given


def _check_labels(pipeline: Pipeline, text: str, ids: list[int]) -> None:
    """Raises InputError for other labels of words than one known label for each."""
    reads, labels = pipeline.task.columns.get("source"), pipeline.task.columns["target"]
    if not isinstance(reads, Words) or not isinstance(labels, WordLabels):
        return
    words = len(reads.bounds(text))
    if len(ids) != words or len(labels.labels) in ids:
        raise InputError(f"target: expected {words} labels, one for each word, among those of the model; got others.")


def check_text(pipeline: Pipeline, text: str, written: bool = False) -> None:
    """Raises InputError for what cannot be explored: an ensemble, no text, one too long for one piece.

    Args:
        written: of a language model: nothing is to be written behind the text.
    """
    if isinstance(pipeline, EnsemblePipeline):
        raise InputError("an ensemble cannot be explored; name a single one of its members.")
    reads = pipeline.task.columns.get("source") or pipeline.task.columns["target"]
    if pipeline.task.drawn_alone:
        raise InputError("this model reads or writes no text: there is its picture, and no attention between words.")
    length = len(reads.encode([text])[0])
    if reads.is_sound and not length:
        told = f"this one is shorter than a frame, {1000 * WINDOW:g} ms" if text.strip() else "there is none"
        raise InputError(f"text: expected a recording; {told}.")
    if not length or not text.strip():
        raise InputError("text: expected a sentence; this one is empty.")
    longest = pipeline.task.max_source_length
    if written and "source" not in pipeline.task.columns:
        longest = max(WRITTEN, 2 * longest)
    if length > longest and not _windows(pipeline):
        raise InputError(
            f"text: {length} {'frames' if reads.is_sound else 'tokens'}; the model reads at most "
            f"{longest} at once: shorten it."
        )


def _windows(pipeline: Pipeline) -> bool:
    """Whether a text of any length is read, in windows."""
    return isinstance(pipeline.model, Points)


def unshown(pipeline: Pipeline, given: Given, max_weights: int) -> list[str]:
    """The modules between positions of a recording, if they alone have more than `max_weights` attention weights."""
    if given.source is None or not pipeline.task.columns["source"].is_sound:
        return []
    parts = [part for part in attending(pipeline.model, pipeline.task) if part.rows == part.columns == "source"]
    count = sum(part.heads for part in parts) * positions(pipeline.model, given) ** 2
    return [part.name for part in parts] if count > max_weights else []


def check_size(pipeline: Pipeline, given: Given, max_weights: int, left_out: Collection[str] = ()) -> None:
    """Raises InputError for more attention weights than `max_weights`, before any is computed.

    Args:
        left_out: names of modules whose weights are not shown.
    """
    parts = [part for part in attending(pipeline.model, pipeline.task) if part.name not in left_out]
    reads = positions(pipeline.model, given) + max((part.before for part in parts), default=0)
    writes = len(given.target) + (not writes_at_once(pipeline.model))
    sizes = {"source": reads, "target": writes, "decoder_input": writes, "other": 1}
    count = sum(part.heads * sizes[part.rows] * sizes[part.columns] for part in parts)
    if count > max_weights:
        raise InputError(
            f"this sentence and its output have {count:,} attention weights; {max_weights:,} at most: shorten it."
        )


def _listed(prediction: Prediction) -> dict[str, Any]:
    return {
        "text": prediction.text,
        "score": prediction.score,
        "log_probability": prediction.log_probability,
        "tokens": list(prediction.tokens),
        "token_log_probabilities": list(prediction.token_log_probabilities),
    }


def pictured(pipeline: Pipeline, text: str, name: str, max_numbers: int) -> dict[str, Any]:
    """As `transduce.explore.exploration.explore` answers, with nothing to walk through but the drawing.

    Raises:
        InputError: the text is empty, or is nothing that the model reads; its picture has over `max_numbers` numbers.
    """
    if not text.strip():
        raise InputError("text: expected an input of this model; this one is empty.")
    _check_size(pipeline, text, max_numbers)
    prediction = pipeline.predict(text, protect=False)
    drawing = drawn(pipeline.model, pipeline.task, prediction)
    listed = {
        "text": prediction.text,
        "score": prediction.score,
        "log_probability": prediction.log_probability,
        "tokens": list(prediction.tokens),
        "token_log_probabilities": list(prediction.token_log_probabilities),
    }
    return {
        "model": name,
        "text": text,
        "whole": None,
        "source": None,
        "target": {"text": prediction.text, "tokens": [], "words": []},
        "recording": None,
        "score": prediction.score,
        "log_probability": prediction.log_probability,
        "ended": prediction.ended,
        "nbest": [listed],
        "alternatives": [],
        "lattice": None,
        "attention": [],
        "drawing": {"kind": drawing_name(pipeline.model, pipeline.task), **drawing.to_dict()} if drawing else None,
    }


def _check_size(pipeline: Pipeline, text: str, max_numbers: int) -> None:
    """Before any memory is taken for it."""
    if not isinstance(pipeline.model, HasMemory):
        return
    steps, slots, width = len(pipeline.task.columns["source"].encode([text])[0]), *pipeline.model.memory_size
    if steps * slots * width > max_numbers:
        raise InputError(
            f"text: {steps:,} steps of a memory of {slots} x {width} numbers; the page shows {max_numbers:,} numbers "
            f"at most, which is {max_numbers // (slots * width):,} steps: shorten it."
        )


def labelled_in_windows(pipeline: Pipeline, text: str) -> bool:
    """Whether words get labels, and are too many to be read at once, so that their attention is not known."""
    reads, longest = pipeline.task.columns.get("source"), pipeline.task.max_source_length
    return isinstance(reads, Words) and len(reads.encode([text])[0]) > longest


def _labelled(pipeline: Pipeline, text: str, name: str, max_numbers: int) -> dict[str, Any]:
    """As `explore` answers, without attention. Raises InputError where its picture has over `max_numbers` numbers."""
    reads, labels = pipeline.task.columns["source"], pipeline.task.columns["target"]
    assert isinstance(reads, Words)
    if (count := len(reads.bounds(text)) * labels.spec.size) > max_numbers:
        raise InputError(f"text: {count:,} probabilities of labels; {max_numbers:,} at most: shorten it.")
    found = pictured(pipeline, text, name, max_numbers)
    listed = found["nbest"][0]
    return {
        **found,
        "source": word_side(reads, text).to_dict(),
        "target": written_side(labels, labels.ids(listed["tokens"]), listed["text"], ends=False).to_dict(),
    }


def recording(model: nn.Module, task: Task, given: Given, text: str) -> dict[str, Any] | None:
    """What the model heard, for JSON; None if it reads text.

    Its keys are those of `transduce.serve.explorer_schemas.RecordingAnswer`.

    Args:
        given: holds the frames.
        text: the recording, as `transduce.data.speech.audio` names it.

    Raises:
        InputError: it cannot be read.
    """
    column = task.columns.get("source")
    if not isinstance(column, Frames):
        return None
    frames_SF, sound_N = torch.as_tensor(given.source), column.sound(text)
    merged = -(-len(frames_SF) // COLUMNS)
    return {
        "seconds": len(frames_SF) * SHIFT if sound_N is None else len(sound_N) / (column.rate or 1),
        "shift": SHIFT,
        "frames": len(frames_SF),
        "frames_a_position": frames_a_place(len(frames_SF), positions(model, given)),
        "frames_a_column": merged,
        "features": packed(averaged(frames_SF, merged)),
        "rate": column.rate,
        "sound": None if sound_N is None else base64.b64encode(wav(sound_N, column.rate or 1)).decode(),
    }


def averaged(frames_SF: Tensor, count: int) -> Tensor:
    """(C, F) the means of `count` frames each, of those that are left in the last one."""
    means_FC = F.avg_pool1d(frames_SF.T[None].float(), count, ceil_mode=True, count_include_pad=False)[0]
    return means_FC.T.contiguous()
