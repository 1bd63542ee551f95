"""Recordings and what is said in them: tables, archives whose names say it, and strings of recordings.

A recording is called by its name, which `transduce.data.speech.audio` reads.
"""

import hashlib
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.core.printable import NAMED, first_of
from transduce.core.registry import suggest
from transduce.data.files import existing_file, fingerprint, read_lines
from transduce.data.formats import format_name, format_of, is_table
from transduce.data.remote import located
from transduce.data.speech.audio import ARCHIVE, ARRAY, JOIN, members
from transduce.data.speech.layouts import transcripts
from transduce.data.speech.uploads import DATA

Values = str | tuple[str, ...]
BY = ("speaker", "name")  # what recordings of a folder may be split by


class Strings(Config):
    """Utterances that are strings of recordings, drawn by a seed; no recording stands in one twice."""

    count: int = Field(ge=1)
    """How many."""
    shortest: int = Field(default=3, ge=1)
    """The fewest recordings of one."""
    longest: int = Field(default=8, ge=1)
    """The most."""
    seed: int = 1
    """Another seed, other strings."""
    between: str = ""
    """What stands between the texts of two recordings."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.longest < self.shortest:
            raise ValueError(f"longest ({self.longest}) must be at least shortest ({self.shortest})")
        return self


class RecordingParts(Config):
    """Recordings by the value of a column or a group: equal values are in the same part, whatever their order."""

    by: str | int
    """The column of the table, or the group of `pattern`, such as speaker. Of a folder: speaker or name."""
    of: int = Field(default=10, ge=2)
    """How many parts there are. A value's part is the MD5 of its UTF-8, as a number, modulo this."""
    take: tuple[int, ...] = Field(min_length=1)
    """Which parts are read: [0] for a tenth as a test set, [2, 3, 4, 5, 6, 7, 8, 9] for most of the rest."""

    @model_validator(mode="after")
    def _are_parts(self) -> Self:
        if wrong := [part for part in self.take if not 0 <= part < self.of]:
            raise ValueError(f"expected parts from 0 to {self.of - 1}; got {', '.join(map(str, wrong))}")
        return self

    def takes(self, value: str) -> bool:
        """Whether recordings with this value are read."""
        return int(hashlib.md5(value.encode(), usedforsecurity=False).hexdigest(), 16) % self.of in self.take


class RecordingFile(Config):
    """Recordings with their texts: a table, a tar archive with a `pattern`, or a folder with a `layout`."""

    file: str
    """The table, compressed or not, the archive, or the folder. .csv, .jsonl and the like have named columns; any other
    table is tab-separated, and columns that are called by name stand in its first line."""
    audio: int | str = 0
    """Column of the recording: FILE.wav, ARCHIVE.tar.gz:FILE.wav or FEATURES.npy:START:FRAMES; a number from 0, or a
    name."""
    text: int | str = 1
    """Column of what is said."""
    features: str | None = None
    """An array that holds the features of all recordings, instead of the column `audio`."""
    start: int | str = "start_frame"
    """With features: column of a recording's first row."""
    frames: int | str = "num_frames"
    """With features: column of how many rows it has."""
    folder: str = ""
    """What stands before the names of a table's recordings: the folder they lie in, relative to `root`."""
    suffix: str = ""
    """What stands behind the names of a table's recordings, such as .wav."""
    separator: str = Field(default="\t", min_length=1)
    """What stands between the columns of a table that is neither .csv nor .jsonl, such as |."""
    layout: Literal["trans", "beside"] | None = None
    """Of a folder. trans: *.trans.txt as LibriSpeech has them, a name and its text a line. beside: a .txt or .lab
    beside each sound."""
    where: dict[str, Values] = Field(default_factory=dict)
    """Only the rows with this, or one of these, in the column of this name: { split = "train" }."""
    but: dict[str, Values] = Field(default_factory=dict)
    """No rows with this, or one of these, in the column of this name: { speaker = ["ann", "bob"] }."""
    pattern: str | None = None
    """Of an archive: what the names of its recordings look like, with a group (?P<text>..), and (?P<speaker>..) where a
    string of recordings is to be of one speaker. Others are left out."""
    parts: RecordingParts | None = None
    """Only some parts of the recordings, where nobody has split them: { by = "speaker", take = [0] }."""
    strings: Strings | None = None
    """Strings of these recordings instead of single ones."""
    weight: float = Field(default=1.0, gt=0)
    """How often an epoch shows each example."""

    @field_validator("pattern")
    @classmethod
    def _names_the_text(cls, pattern: str | None) -> str | None:
        try:
            groups = re.compile(pattern or "(?P<text>)").groupindex
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        if "text" not in groups:
            raise ValueError("expected a group (?P<text>..), which is what a recording says")
        return pattern

    @model_validator(mode="after")
    def _parts_by_a_group(self) -> Self:
        groups = re.compile(self.pattern or "").groupindex
        if self.layout and self.parts and self.parts.by not in BY:
            raise ValueError(f"parts.by: expected {' or '.join(BY)} of a folder; got {self.parts.by}")
        if self.parts and self.pattern is not None and self.parts.by not in groups:
            raise ValueError(f"parts.by: expected a group of pattern ({', '.join(groups)}); got {self.parts.by}")
        return self

    def called(self, name: str) -> str:
        """The path of a table's recording."""
        return str(Path(self.folder) / f"{name}{self.suffix}") if self.folder or self.suffix else name

    def paths(self, root: Path) -> list[Path]:
        """The file itself, and its array of features; the texts of a folder."""
        path = located(root, self.file)
        if self.layout and path.is_dir():
            return list(dict.fromkeys(each.path for each in transcripts(path, self.layout)))
        return [path, *([located(root, self.features)] if self.features else [])]

    def evaluate_options(self, root: Path) -> list[str]:
        """None: `transduce evaluate` reads tables whose sounds lie beside them, and no archives."""
        return []


class Recordings(NamedTuple):
    """The files of recordings that a recipe names.

    files: by role: "train", "train 2", "validation", "test NAME".
    root: where their relative paths begin.
    words: what their texts are called; None = as they stand.
    rate: samples a second that sound is brought to.
    max_frames: of an utterance that is trained on.
    """

    files: dict[str, RecordingFile]
    root: Path
    words: dict[str, str] | None
    rate: int
    max_frames: int


class Recording(NamedTuple):
    """line: of the table, or its number in the archive, from 1. name: see `transduce.data.speech.audio`."""

    line: int
    name: str
    text: str
    speaker: str = ""


def read_recordings(
    file: RecordingFile, root: Path, words: Mapping[str, str] | None = None
) -> Iterator[tuple[int, str, str]]:
    """(line number from 1, name of the recording, text) of each utterance.

    Args:
        words: what texts are called; recordings of any other are left out.

    Raises:
        InputError: a missing file, text that is not UTF-8; lines without the columns; too few recordings for strings.
    """
    read = _foldered if file.layout else _archived if file.pattern is not None else _listed
    found = read(file, root)
    if words is not None:
        found = (each._replace(text=words[each.text]) for each in found if each.text in words)
    if file.strings is None:
        yield from ((each.line, each.name, each.text) for each in found)
    else:
        yield from _strings(list(found), file.strings, located(root, file.file))


def check_there(table: str, recordings: Sequence[tuple[int, str]]) -> None:
    """Raises InputError for sounds that are not there, naming the first lines."""
    gone = [(line, name) for line, name in recordings if not all(_is_there(part) for part in name.split(JOIN))]
    if gone:
        named = "; ".join(f"line {line}: {name}" for line, name in gone[:NAMED])
        raise InputError(
            f"{table}: {len(gone):,} of {len(recordings):,} sound files are not there ({named}). Correct or delete "
            "these lines."
        )


def _is_there(name: str) -> bool:
    return name.startswith(DATA) or Path(_file_of(name.strip())).is_file()


def recordings_digest(names: Sequence[str], root: Path) -> str:
    """SHA-256, in hex, of the content of all files that these recordings are in, in the order of their names."""
    files = sorted({path for name in names for part in name.split(JOIN) if (path := _file_of(part))})
    return hashlib.sha256("".join(fingerprint(located(root, path)) for path in files).encode()).hexdigest()


def _file_of(name: str) -> str:
    found = ARCHIVE.fullmatch(name) or ARRAY.fullmatch(name)
    return "" if name.startswith(DATA) else found[1] if found else name


def _archived(file: RecordingFile, root: Path) -> Iterator[Recording]:
    pattern, count = re.compile(file.pattern or ""), 0
    for name in sorted(members(located(root, file.file))):
        if found := pattern.fullmatch(name.rpartition("/")[2]):
            said = found.groupdict()
            if file.parts and not file.parts.takes(said[str(file.parts.by)] or ""):
                continue
            count += 1
            yield Recording(count, f"{file.file}:{name}", said["text"], said.get("speaker") or "")
    if not count:
        parts = " in these parts" if file.parts else ""
        raise InputError(f"{located(root, file.file)}: no file in the archive has a name like {file.pattern}{parts}.")


def _listed(file: RecordingFile, root: Path) -> Iterator[Recording]:
    path = existing_file(located(root, file.file))
    asked: dict[str, Any] = {"text": file.text}
    asked |= {"start": file.start, "frames": file.frames} if file.features else {"audio": file.audio}
    by = [file.parts.by] if file.parts else []
    places, rows = _rows(file, path, [*asked.values(), *file.where, *file.but, *by])
    wanted = [(places[column], _several(value), True) for column, value in file.where.items()]
    wanted += [(places[column], _several(value), False) for column, value in file.but.items()]
    least, short = max(places.values()), list[int]()
    for line, row in rows:
        if len(row) <= least:
            short.append(line)
        elif not short and all((row[place] in values) == should for place, values, should in wanted):
            if file.parts and not file.parts.takes(row[places[file.parts.by]]):
                continue
            found = {key: row[places[column]] for key, column in asked.items()}
            name = (
                f"{file.features}:{found['start']}:{found['frames']}" if file.features else file.called(found["audio"])
            )
            yield Recording(line, name, found["text"])
    if short:
        lines = first_of(short, NAMED)
        raise InputError(f"{path}: expected {least + 1} tab-separated columns; line {lines} has fewer.")


def _rows(
    file: RecordingFile, path: Path, columns: Sequence[int | str]
) -> tuple[dict[int | str, int], Iterator[tuple[int, list[str]]]]:
    """Where columns stand in the rows of a table, and the rows with their lines."""
    if file.separator == "\t" and is_table(path) and format_name(path) != "tsv":
        keys = list(dict.fromkeys(columns))
        return {key: place for place, key in enumerate(keys)}, format_of(path).rows(path, keys)
    rows = ((line, text.split(file.separator)) for line, text in enumerate(read_lines(path), 1))
    named = any(isinstance(each, str) for each in columns)
    header = next(rows, (1, []))[1] if named else []
    return _places(path, columns, header), rows


def _foldered(file: RecordingFile, root: Path) -> Iterator[Recording]:
    """The recordings of a folder without a table."""
    folder = located(root, file.file)
    for number, each in enumerate(transcripts(folder, file.layout or ""), 1):
        name = each.sound.relative_to(folder).as_posix()
        if file.parts is None or file.parts.takes(each.speaker if file.parts.by == "speaker" else name):
            yield Recording(number, str(Path(file.file) / name), each.text, each.speaker)


def _several(values: Values) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else values


def _places(path: Path, columns: Sequence[int | str], header: Sequence[str]) -> dict[int | str, int]:
    known = {name: place for place, name in enumerate(header)}
    if wrong := [each for each in columns if isinstance(each, str) and each not in known]:
        near = suggest(wrong[0], list(known))
        raise InputError(f"{path}: expected columns {', '.join(wrong)}; its header has {', '.join(header)}.{near}")
    return {each: known[each] if isinstance(each, str) else each for each in columns}


def _strings(found: Sequence[Recording], config: Strings, path: Path) -> Iterator[tuple[int, str, str]]:
    speakers: dict[str, list[Recording]] = defaultdict(list)
    for each in found:
        speakers[each.speaker].append(each)
    groups = [group for _, group in sorted(speakers.items()) if len(group) >= config.longest]
    if not groups:
        raise InputError(f"{path}: strings of {config.longest} recordings need as many; got {len(found)}.")
    random_ = random.Random(config.seed)
    for line in range(1, config.count + 1):
        group = groups[_below(random_, len(groups))]
        length = config.shortest + _below(random_, config.longest - config.shortest + 1)
        chosen = dict[int, None]()  # in the order drawn
        while len(chosen) < length:
            chosen[_below(random_, len(group))] = None
        parts = [group[place] for place in chosen]
        yield line, JOIN.join(part.name for part in parts), config.between.join(part.text for part in parts)


def _below(random_: random.Random, size: int) -> int:
    """A number below `size`, by plain random numbers: Python may change how it chooses."""
    return int(random_.random() * size)
