"""Which kind of task somebody means who names files and no recipe: the one they name, or what the files look like."""

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from transduce.core.errors import InputError
from transduce.core.folders import RESOLVED
from transduce.core.registry import suggest
from transduce.data.files import suffix_of
from transduce.data.pairs.inputs import Named, names_data
from transduce.data.tagged import SUFFIXES
from transduce.planning.protocols import Recognised, TaskPlanner
from transduce.planning.tasks import labels, running_text, spans, speech, tags
from transduce.planning.tasks.labels import LabelsPlanner
from transduce.planning.tasks.pairs import PairsPlanner
from transduce.planning.tasks.running_text import MaskedTextPlanner, RunningTextPlanner, is_plain_text
from transduce.planning.tasks.spans import SpansPlanner
from transduce.planning.tasks.speech import SpeechPlanner
from transduce.planning.tasks.tags import TagsPlanner

PAIRS = "translation"
DOCS = "docs/planning.md"


class PlannedKind(NamedTuple):
    """A kind of task that can be planned.

    recognise: what says that files are for it; None: they are for another one.
    """

    planner: Callable[[Named], TaskPlanner]
    recognise: Callable[[Named], Recognised | None]


KINDS = {
    "classification": PlannedKind(LabelsPlanner, labels.recognise),
    "tagging": PlannedKind(TagsPlanner, tags.recognise),
    "extractive_qa": PlannedKind(SpansPlanner, spans.recognise),
    "speech_recognition": PlannedKind(SpeechPlanner, speech.recognise),
    "language_modelling": PlannedKind(RunningTextPlanner, running_text.recognise),
    "masked_language_modelling": PlannedKind(MaskedTextPlanner, running_text.recognise),
    PAIRS: PlannedKind(PairsPlanner, lambda named: None),
}


def planner_of(named: Named) -> TaskPlanner:
    """What plans the task that the files are for.

    Raises:
        InputError: there is no such task; the files may be for several; what the planner of the task refuses.
    """
    return KINDS[kind_of(named)].planner(named)


def check_kind(task: str) -> None:
    """Raises InputError for a task that cannot be planned."""
    if task not in KINDS:
        raise InputError(
            f"--task {task}: expected {_listed(KINDS)}.{suggest(task, [*KINDS])} Other tasks need a recipe; see {DOCS}."
        )


def kind_of(named: Named) -> str:
    """The kind of task: the one that is named, else what the files are recognised as, else translation.

    Raises:
        InputError: there is no such task; the files may be for several.
    """
    if named.task is not None:
        check_kind(named.task)
        return named.task
    found = {kind: evidence for kind, each in KINDS.items() if (evidence := each.recognise(named))}
    found = {kind: evidence for kind, evidence in found.items() if evidence.sure} or found
    if not found:
        _refuse_text_alone(named)
        return PAIRS
    claims = {kind: evidence.why for kind, evidence in found.items()}
    if doubt := next((each.doubt for each in found.values() if each.doubt), ""):
        claims[PAIRS] = f"pairs of texts, as {doubt}"
    if len(claims) > 1:
        command = f"transduce train {shlex.quote(str(named.source))}"
        raise InputError(
            f"{named.source}: may be {', or '.join(claims.values())}. Say which: "
            f"{_listed(f'{command} --task {kind}' for kind in claims)}."
        )
    return next(iter(claims))


def _refuse_text_alone(named: Named) -> None:
    """Raises InputError for text without a second side, which may be that of pairs or for a language model."""
    if not is_plain_text(named):
        return
    command = f"transduce train {shlex.quote(str(named.source))} --task"
    raise InputError(
        f"{named.source}: the target is missing. To learn from pairs of texts, name its file with --target; or name "
        "one file with both sides: tab-separated (or with another --separator), .csv, .jsonl, .json, .parquet, .xlsx, "
        f".tmx or a .zip of OPUS. To learn how this text goes on: {command} language_modelling. Other kinds of task "
        f"({', '.join(kind for kind in KINDS if kind != PAIRS)}) and their files: {DOCS}."
    )


def names_examples(path: Path, separator: str | None = None, task: str | None = None) -> bool:
    """Whether what is named where a recipe may be is data of a kind that can be planned.

    separator: what is said to stand between source and target on a line. task: the kind that somebody named.
    """
    if names_data(path, separator) or suffix_of(path) in SUFFIXES:
        return True
    if path.is_dir() and not (path / RESOLVED).exists():
        return any(each.recognise(Named(path)) for each in KINDS.values())
    return path.is_file() and path.suffix != ".toml" and (task is not None or suffix_of(path) == ".txt")


def _listed(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}"
