"""How texts are predicted: the options of `Pipeline.predict` in one object, from the command line to the search.

Nothing here imports torch or pydantic.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

from transduce.inference.glossary import Glossary
from transduce.inference.sentences import Split
from transduce.inference.splitting import LongText

if TYPE_CHECKING:
    from transduce.inference.constraints import Constraints, Must
    from transduce.inference.protocols import Advance
    from transduce.search.request import OnStep

GlossaryTerms = Glossary | Mapping[str, str] | Sequence[Sequence[str]]
"""Terms and their translations."""
OF_OUTPUTS = ("must", "must_not", "prefix", "constraints", "lattice", "on_step", "datastore")
"""Options that need a search which goes step by step."""
OF_THIS_CALL = ("constraints", "tell", "advance", "on_step", "first")
"""Options that mean something in this process, or for these texts, alone."""


@dataclass(frozen=True)
class PredictionOptions:
    """See the arguments of `transduce.pipeline.pipeline.Pipeline.predict`.

    search: keys of `transduce.search.settings.Search` in place of the recipe's.
    """

    batch_size: int = 64
    split: Split = "auto"
    long: LongText = "split"
    tell: Callable[[str], None] | None = None
    advance: "Advance | None" = None
    must: "Sequence[Must] | Sequence[list[Must]]" = ()
    must_not: Sequence[str] | Sequence[list[str]] = ()
    prefix: str | Sequence[str] = ""
    constraints: "Sequence[Constraints] | None" = None
    to: str = ""
    lattice: bool = False
    word_times: bool = False
    workers: int = 1
    on_step: "OnStep | None" = None
    first: int = 0
    protect: bool = True
    glossary: GlossaryTerms = ()
    datastore: "str | PathLike[str] | None" = None
    knn: Mapping[str, Any] = field(default_factory=dict)
    origins: bool = False
    matches: int | None = None
    search: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, named: Mapping[str, Any]) -> Self:
        """From options by name, among which search keys stand as they are called."""
        own = {each.name for each in fields(cls)} - {"search"}
        search = {name: value for name, value in named.items() if name not in own}
        return cls(**{name: value for name, value in named.items() if name in own}, search=search)

    def to_table(self) -> dict[str, Any]:
        """For `of`, as JSON; without what only this call can use."""
        named = {
            each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("search", *OF_THIS_CALL)
        }
        named["glossary"] = [list(term) for term in self.terms.terms]
        named["datastore"] = None if self.datastore is None else str(self.datastore)
        named["knn"] = dict(self.knn)
        return {**named, **self.search}

    @cached_property
    def terms(self) -> Glossary:
        """The glossary. Raises InputError for what is none."""
        return self.glossary if isinstance(self.glossary, Glossary) else Glossary.of(self.glossary)

    @property
    def asked_of_outputs(self) -> list[str]:
        """Those of `OF_OUTPUTS` that ask for something."""
        return [name for name in OF_OUTPUTS if _says_something(getattr(self, name))]


def _says_something(value: Any) -> bool:
    return any(map(_says_something, value)) if isinstance(value, list | tuple) else bool(value)
