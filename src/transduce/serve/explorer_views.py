"""What the explorer's routes answer, computed with torch in the thread with the model."""

from pathlib import Path
from typing import Any

from transduce.attention.interventions import Place
from transduce.core.errors import InputError
from transduce.explore.example import example
from transduce.explore.exploration import asked as given_for
from transduce.explore.exploration import explore, sentences_of
from transduce.explore.offline import offline
from transduce.explore.page_file import page
from transduce.interpret.attention import looked
from transduce.interpret.capabilities import described
from transduce.interpret.importance import importance
from transduce.interpret.model_inputs import Given
from transduce.interpret.positions import placed
from transduce.interpret.rollout import rollout_dict
from transduce.interpret.steps import steps
from transduce.interpret.why_not import why_not as compared
from transduce.pipeline.pipeline import Pipeline
from transduce.serve import explorer_schemas as schemas
from transduce.serve.models import Loaded
from transduce.serve.schemas import search_of
from transduce.serve.settings import ServeSettings
from transduce.serve.work import WorkItem

MOST_SENTENCES = 20  # of a saved page, each of which is looked into without each head

View = dict[str, Any]
worked_example = example


def description(model: Loaded, run: Path | None, settings: ServeSettings) -> View:
    """What a model is, which of its parts attend, and which views it has.

    Args:
        run: where it was trained, if that is known.
    """
    inner = model.pipeline
    told = described(model.name, inner.model, inner.task, inner.recipe, run is not None, inner.provenance)
    if told["accepts_audio"]:
        told["accepts_audio"]["bytes"] = settings.audio_bytes
    return told


def prediction(work: WorkItem, asked: schemas.ExploreRequest, settings: ServeSettings) -> View:
    """The prediction, its n-best list, each token's alternatives, the beam, and all attention."""
    return explore(
        work.model.pipeline,
        asked.text,
        work.model.name,
        settings.attention_numbers,
        asked.sentence,
        asked.as_it_stands,
        [Place(**each.model_dump()) for each in asked.cut],
        work.model.served.datastore,
        **dict(search_of(asked)),
    )


def heads(work: WorkItem, asked: schemas.PairRequest, settings: ServeSettings) -> View:
    inner, given = work.model.pipeline, _given(work, asked, settings)
    return importance(inner.model, inner.task, given, work.check_connected)


def why_not(work: WorkItem, asked: schemas.WhyRequest, settings: ServeSettings) -> View:
    inner, own = work.model.pipeline, _given(work, asked, settings)
    other = _given(work, asked.model_copy(update={"target": asked.other}), settings)
    return compared(inner.model, inner.task, asked.text, own, other, work.check_connected)


def rollout(work: WorkItem, asked: schemas.PairRequest, settings: ServeSettings) -> View:
    inner, given = work.model.pipeline, _given(work, asked, settings)
    return rollout_dict(looked(inner.model, inner.task, given, asked.text, _written(inner, given))[0])


def step(work: WorkItem, asked: schemas.StepsRequest, settings: ServeSettings) -> View:
    inner, given = work.model.pipeline, _given(work, asked, settings)
    texts = (asked.text, _written(inner, given))
    return steps(inner.model, inner.task, given, texts, asked.name, asked.head, asked.query)


def positions(work: WorkItem, asked: schemas.PositionsRequest) -> View:
    """How the model knows where a token stands."""
    return placed(work.model.pipeline.model if asked.model else None, asked.length, asked.width)


def saved_page(work: WorkItem, asked: schemas.PageRequest, run: Path | None) -> str:
    """The explorer of one text as a file that works offline."""
    most, count = MOST_SENTENCES, len(sentences_of(work.model.pipeline, asked.text))
    if count > most:
        raise InputError(f"text: {count} sentences; {most} at most in a saved page.")
    name, datastore = work.model.name, work.model.served.datastore
    stores = {name: datastore} if datastore else {}
    return page(offline({name: work.model.pipeline}, [asked.text], run, work.check_connected, stores))


def _given(work: WorkItem, asked: schemas.PairRequest, settings: ServeSettings) -> Given:
    pipeline = work.model.pipeline
    given = given_for(pipeline, asked.text, asked.target, settings.attention_numbers)
    most = pipeline.task.max_source_length + settings.max_new
    if asked.target is not None and len(given.target) > most:
        raise InputError(f"target: {len(given.target):,} tokens; {most:,} at most on this server: shorten it.")
    return given


def _written(pipeline: Pipeline, given: Given) -> str:
    writes = pipeline.task.tokenizers.get("target")
    return writes.decode(given.target) if writes else pipeline.task.columns["target"].decode(given.target)
