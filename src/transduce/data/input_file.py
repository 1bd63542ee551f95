"""Inputs in a file that holds more than one a line: a .csv with its answers, questions with names, stories."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from transduce.core.errors import InputError
from transduce.data.files import read_lines, read_whole


@dataclass(frozen=True)
class InputFile:
    """A file of inputs in a format of its own, not one a line. Its outputs are a JSON object: {"name": "output", ..}.

    names: of the inputs, each different; none: the outputs are one a line. texts: the inputs. references: of each, all
        that the file holds. groups: see `Dataset`. files: what was read, where it is not the file itself. note: what to
        tell of how it was read, in a sentence. missing: why no input has references, where that is known.
    """

    names: list[str]
    texts: list[str]
    references: list[list[str]]
    groups: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    note: str = ""
    missing: str = ""

    def answered(self, references: Sequence[Sequence[str]], name: str) -> "InputFile":
        """With references from elsewhere, one list or several; name: the file's. Raises InputError for other counts."""
        for each in references:
            if len(each) != len(self.texts):
                wanted = f"{name} has {len(self.texts):,} inputs; expected a reference for each"
                raise InputError(f"{wanted}, got {len(each):,}.")
        return replace(self, references=[list(several) for several in zip(*references, strict=True)])

    def outputs(self, path: Path) -> list[str]:
        """The outputs in a JSON file, in the order of the inputs; what it does not name is "". Without names: lines.

        Raises:
            InputError: it is no object of texts, or names none of the inputs; it has more or fewer lines than inputs.
        """
        if not self.names:
            lines = list(read_lines(path))
            if len(lines) != len(self.texts):
                raise InputError(f"{path} has {len(lines):,} lines; expected {len(self.texts):,}, one an input.")
            return lines
        try:
            found = json.loads(read_whole(path).decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}: expected JSON; it cannot be read: {error}.") from None
        if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
            raise InputError(f'{path}: expected a JSON object of outputs by name, such as {{"{self.names[0]}": ".."}}.')
        if not found.keys() & set(self.names):
            raise InputError(f"{path}: names none of the inputs, the first of which is {self.names[0]}.")
        return [found.get(name, "") for name in self.names]
