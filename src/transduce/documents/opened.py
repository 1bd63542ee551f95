"""A file that was taken apart: texts to cut into pieces, and how they become the file again."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from transduce.documents.runs import Document, Fits, Output, Parse, Part, Piece, Run, Translatable


class FileText(Protocol):
    """One text of a file. shown: what of it is for people to read."""

    @property
    def shown(self) -> str: ...

    def cut(self, fits: Fits, language: str) -> Translatable:
        """As pieces to translate; see `transduce.documents.runs.Document`."""
        ...


class PartsText:
    """A text as parts. islands: see `Document`."""

    def __init__(self, parts: Sequence[Part], islands: Sequence[Sequence[Part]] = ()) -> None:
        self._parts, self._islands = parts, islands
        runs = [each for every in (parts, *islands) for each in every if isinstance(each, Run)]
        self.shown = "\n".join(each.text for each in runs)

    def cut(self, fits: Fits, language: str) -> Document:
        """As pieces to translate."""
        return Document(self._parts, fits, language, self._islands)


class WholeText(NamedTuple):
    """A text that a class takes apart. parse: its `__init__`, of the text, `fits` and the language."""

    shown: str
    parse: Parse

    def cut(self, fits: Fits, language: str) -> Translatable:
        """As pieces to translate."""
        return self.parse(self.shown, fits, language)


class OpenedFile:
    """A file as texts. write: the file of the same texts, translated.

    shown: what of it is for people to read.
    """

    def __init__(self, texts: Sequence[FileText], write: Callable[[Sequence[str]], bytes]) -> None:
        self._texts, self._write = texts, write
        self.shown = "\n".join(each.shown for each in texts)

    def cut(self, fits: Fits, language: str = "") -> "CutFile":
        """As pieces to translate; see `transduce.documents.runs.Document`."""
        return CutFile([each.cut(fits, language) for each in self._texts], self._write)


class CutFile:
    """A file as pieces to translate."""

    def __init__(self, texts: Sequence[Translatable], write: Callable[[Sequence[str]], bytes]) -> None:
        self._texts, self._write = texts, write
        self.pieces: list[Piece] = [piece for each in texts for piece in each.pieces]

    def rejoined(self, outputs: Sequence[Output]) -> bytes:
        """The file with each of `pieces` replaced by its output."""
        assert len(outputs) == len(self.pieces)
        waiting = iter(outputs)
        return self._write([each.rejoined(list(islice(waiting, len(each.pieces)))) for each in self._texts])
