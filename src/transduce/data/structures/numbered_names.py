"""What the nodes of a graph, or graphs, are called: names where their file has them, else numbers from 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from transduce.core.errors import InputError
from transduce.core.printable import PROBLEMS, quoted
from transduce.core.registry import suggest

SUGGESTED = 100_000  # names at most, among which the nearest is looked for


@dataclass(frozen=True)
class NumberedNames:
    """Nodes, or graphs, from 0 to count - 1.

    names: one for each, all different, "" where it has none; () = none has a name. what: they are.
    """

    count: int
    names: tuple[str, ...] = ()
    what: str = "node"

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names) if name}

    @cached_property
    def _by_number(self) -> bool:
        """Whether a number means one for certain: no name is a whole number."""
        return not any(map(str.isdecimal, self._places))

    def find(self, text: str) -> int | None:
        """The one of this name, or of this number where no name is a number; None: there is none."""
        text = text.strip()
        if (place := self._places.get(text)) is not None:
            return place
        if not (text.isdecimal() and len(text) < 20 and int(text) < self.count):
            return None
        return int(text) if self._by_number or not self.names[int(text)] else None

    def text(self, place: int) -> str:
        """The name of one; its number where it has none."""
        return (self.names[place] if self.names else "") or str(place)

    @property
    def wanted(self) -> str:
        """What a text has to be, in words."""
        numbers = f"from 0 to {self.count - 1}"
        if not self._places:
            return f"the number of a {self.what}, {numbers}"
        if self._by_number:
            return f"the name of a {self.what}, or its number {numbers}"
        return f'the name of a {self.what}, such as "{next(iter(self._places))}"'

    def hint(self, text: str) -> str:
        """A sentence with the nearest name; "" = none is near."""
        return suggest(text.strip(), [*self._places]) if 0 < len(self._places) <= SUGGESTED else ""

    def encode(self, texts: Sequence[str]) -> list[int]:
        """The number of each. Raises InputError for what is none; the first of them are named."""
        found = [self.find(text) for text in texts]
        if wrong := [text for text, place in zip(texts, found, strict=True) if place is None]:
            raise InputError(f"expected {self.wanted}; got {quoted(wrong, PROBLEMS, 40)}.{self.hint(wrong[0])}")
        return [place for place in found if place is not None]
