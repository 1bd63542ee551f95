"""What a task that writes text says of itself."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from transduce.core.errors import InputError
from transduce.data.columns import Columns, Specs
from transduce.data.kneser_ney import KneserNey
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.inference.prediction import Prediction
from transduce.search.request import Request
from transduce.search.settings import Search


@runtime_checkable
class Generates(Protocol):
    """A task whose output is text."""

    columns: Columns
    ngrams: KneserNey | None
    """A language model of the targets; None = there is none."""

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        """Of the "target", and of the "source" where the task has one."""
        ...

    @property
    def specs(self) -> Specs:
        """Of its columns."""
        ...

    @property
    def start(self) -> int:
        """The id before the first target token."""
        ...

    @property
    def end(self) -> int:
        """The id that ends an output."""
        ...

    def request(self, ids: Any, search: Search) -> Request:
        """What search needs to know of one input, of which these are the ids: of its source, or of its prompt."""
        ...

    def grammar_for(self, request: Request, text: str) -> Request:
        """The request with the form that the output for `text` must have."""
        ...

    def postprocess(self, prediction: Prediction) -> Prediction:
        """What the output says of its source."""
        ...


def generating(task: object) -> Generates:
    """The task itself, if its output is text. Raises InputError otherwise."""
    if not isinstance(task, Generates):
        raise InputError(f"{type(task).__name__} writes no text, so there is nothing to search for.")
    return task
