"""Datastores of a server's models: which is whose, and what they show of a text."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.core.errors import InputError
from transduce.inference.prediction import Prediction
from transduce.serve.schemas import MatchAnswer

if TYPE_CHECKING:
    from transduce.serve.served_model import ServedModel


def datastores_of(asked: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    """By model, from `path` or `name=path` each. Without a name it is that of the only model.

    Args:
        names: of the models.

    Raises:
        InputError: a name is that of no model, several are of one model, or it is not clear which model is meant.
    """
    found: dict[str, Path] = {}
    for each in asked:
        name, equals, path = each.partition("=")
        if not equals and len(names) > 1:
            raise InputError(f"--datastore {each}: there are several models; name one: {names[0]}={each}")
        name, path = (name, path) if equals else (names[0], each)
        if name not in names:
            raise InputError(f"--datastore {each}: there is no model {name}; this server has {', '.join(names)}.")
        if name in found:
            raise InputError(f"--datastore {each}: {name} has one already; a model takes one datastore.")
        found[name] = Path(path)
    return found


def check_memory(name: str, served: "ServedModel") -> None:
    """Raises InputError for a model that consults no translation memory, of which none of this can be asked."""
    if served.datastore is None:
        raise InputError(f"Invalid request: {name} has no translation memory here: leave out matches and origins.")


def matches_in(predictions: Sequence[Prediction]) -> list[MatchAnswer]:
    """The fuzzy matches of a text that was translated in these parts, each pair once, the most similar first."""
    best: Mapping[int, MatchAnswer] = {
        match.pair: MatchAnswer(similarity=match.similarity, source=match.source, target=match.target, pair=match.pair)
        for each in reversed(predictions)
        for match in sorted(each.matches, key=lambda match: match.similarity)
    }
    return sorted(best.values(), key=lambda match: (-match.similarity, match.pair))
