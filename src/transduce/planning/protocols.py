"""What a training without a recipe asks of the kind of task that it plans."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from transduce.core.config import UNSET
from transduce.core.model_file import load_model_file
from transduce.data.pairs.inputs import Inputs
from transduce.planning.decisions import Decision, Size


class Recognised(NamedTuple):
    """What says that files are for a task.

    why: in words, such as "words with labels, as ..". doubt: why they may be pairs of texts instead; "" = they are not.
    sure: whether nothing else is meant, whatever else the files may look like.
    """

    why: str
    doubt: str = ""
    sure: bool = False


class Start(NamedTuple):
    """A model that training starts from.

    path: of its file, its run, or a folder of Hugging Face. model: its [model]. keeps: its tokenizers, too.
    task: its kind. training: its [training]; empty where another program trained it.
    """

    path: str
    model: dict[str, Any]
    keeps: bool
    task: str = "translation"
    training: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def of(cls, training: dict[str, Any]) -> "Start | None":
        """The one that [training] names. Raises InputError where there is no such model."""
        path = training.get("start")
        if not path or path == UNSET:
            return None
        config, keeps = load_model_file(path).config, training.get("start_tokenizer", "keep") == "keep"
        return cls(path, config["model"], keeps, config["task"].get("kind", "translation"), config.get("training", {}))


class TaskPlanner(Protocol):
    """Plans one kind of task for the files that somebody named. The same files give the same answers."""

    inputs: Inputs
    """The files as entries of [data]."""

    def to_lines(self) -> list[str]:
        """What the data is, in sentences. Raises InputError for files that cannot be learnt from."""

    def warnings(self) -> list[str]:
        """What is doubtful about the data, in sentences."""

    def usual_size(self) -> Size:
        """Of a model for this data."""

    def smaller(self, size: Size) -> Size | None:
        """The next smaller model; None: there is none."""

    def deserved_updates(self, start: Start | None) -> int:
        """As many as the data deserves."""

    def why_deserved(self, start: Start | None) -> str:
        """The reason for that number."""

    def decide(self, validation: bool, test: bool, size: Size, start: Start | None) -> list[Decision]:
        """All keys of the recipe but the files and what `schedule` decides.

        Args:
            validation: whether there are files for it; else examples are drawn. test: the same of the test.
        """

    def schedule(
        self, updates: int, reason: str, expected: int, start: Start | None, validations: int
    ) -> list[Decision]:
        """What follows from the number of updates.

        Args:
            expected: how many of them the time allows. validations: how many it allows.
        """
