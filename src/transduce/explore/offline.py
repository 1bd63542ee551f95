"""The explorer without a server: all data that its page shows for a few sentences, computed in advance."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce.explore.example import example
from transduce.explore.exploration import MOST, asked, explore, labelled_in_windows, sentences_of, unshown
from transduce.explore.live import live
from transduce.interpret.attention import looked
from transduce.interpret.capabilities import described
from transduce.interpret.importance import importance
from transduce.interpret.model_inputs import Given, source_ids
from transduce.interpret.positions import placed
from transduce.interpret.rollout import rollout_dict
from transduce.pipeline.pipeline import Pipeline
from transduce.runtime.event_log import trained
from transduce.version import __version__

VERSION = 1  # of the data format
POSITIONS = 50


def offline(
    pipelines: Mapping[str, Pipeline],
    texts: Sequence[str],
    run: Path | None = None,
    check: Callable[[], None] = lambda: None,
    datastores: Mapping[str, Path] = {},
) -> dict[str, Any]:
    """The data of the offline file, for every text and every model.

    Args:
        pipelines: the models, by name.
        texts: the texts.
        run: the run directory of a training to show.
        check: called before each pass; an exception that it raises ends the computation.
        datastores: translation memories that models consult, by the model's name.

    Raises:
        InputError: a text cannot be explored; see `explore`.
    """
    first, *_ = pipelines.values()
    return {
        "version": VERSION,
        "created_with": f"transduce {__version__}",
        "models": [
            described(name, each.model, each.task, each.recipe, run is not None, each.provenance)
            for name, each in pipelines.items()
        ],
        "explorations": [
            explored(name, each, text, check, datastores.get(name))
            for text in _single(first, texts)
            for name, each in pipelines.items()
        ],
        "live": {name: model for name, each in pipelines.items() if (model := live(each)) is not None},
        "positions": placed(first.model, POSITIONS),
        "training": trained(run) if run else None,
        "example": example(),
    }


def _single(pipeline: Pipeline, texts: Sequence[str]) -> list[str]:
    """The texts, split into sentences if the model reads sentences."""
    return list(dict.fromkeys(sentence for text in texts for sentence in sentences_of(pipeline, text)))


def explored(
    name: str,
    pipeline: Pipeline,
    text: str,
    check: Callable[[], None] = lambda: None,
    datastore: Path | None = None,
) -> dict[str, Any]:
    """An exploration with head importance and rollout, but of long recordings.

    Steps are computed in the page where the model runs in it, and need a server otherwise.
    """
    check()
    found = explore(pipeline, text, name, datastore=datastore)
    if pipeline.task.drawn_alone or labelled_in_windows(pipeline, text) or _is_long(pipeline, text):
        return {**found, "heads": None, "rollout": None, "steps": None}
    model, task = pipeline.model, pipeline.task
    given = asked(pipeline, text, found["nbest"][0]["tokens"])
    attention, _ = looked(model, task, given, text, found["nbest"][0]["text"])
    return {**found, "heads": importance(model, task, given, check), "rollout": rollout_dict(attention), "steps": None}


def _is_long(pipeline: Pipeline, text: str) -> bool:
    """Whether it is a recording of which some attention is left out."""
    return bool(unshown(pipeline, Given(source_ids(pipeline.task, text), []), MOST))
