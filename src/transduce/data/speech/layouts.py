"""Recordings in folders and tables of other people: where the sounds lie, and where it stands what is said in them.

metadata.csv with file_name and transcription, beside the sounds    AudioFolder of Hugging Face; also .tsv, .jsonl
train.tsv with path and sentence, sounds in clips/                  Common Voice
metadata.csv with LJ001-0001|text|normalized text, sounds in wavs/  LJSpeech
61/70968/61-70968.trans.txt with 61-70968-0000 TEXT                 LibriSpeech
a.wav with a.txt or a.lab beside                                    each text in a file
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from transduce.core.errors import InputError
from transduce.data.files import read_lines, read_whole, suffix_of
from transduce.data.formats import Format, Key, format_of, is_table
from transduce.data.formats.tsv import Tsv
from transduce.data.labelled_columns import LOOKED_AT

SOUNDS = (".wav", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".aiff", ".au")
FOLDERS = ("", "clips", "wavs", "wav", "audio", "sounds", "recordings")  # beside a table, that sounds lie in
AUDIO = (
    *("path", "file_name", "audio", "file", "filename", "wav", "audio_filepath", "audio_file", "audio_path", "sound"),
    *("wav_filename", "clip", "recording"),
)
SAID = ("sentence", "transcription", "text", "transcript", "normalized_text", "said", "label", "words", "utterance")
SPEAKERS = ("client_id", "speaker", "speaker_id", "spk", "spk_id", "reader", "user_id")
METADATA = ("metadata.csv", "metadata.tsv", "metadata.jsonl", "train.tsv", "train.csv", "validated.tsv")
BARS = "|"
TRANS = ".trans.txt"
BESIDE = (".txt", ".lab")
MOST = 0.9  # of the cells of a column are sounds, from which it is that of the recordings
LOOKED_FOR = 20  # sounds, of which one must be there


class Layout(NamedTuple):
    """How recordings lie.

    entry: of [data], by the keys of `RecordingFile`. why: what says so. speaker: the column that tells who speaks.
    table: the file, or the folder. texts: whether it tells what is said.
    """

    table: Path
    entry: dict[str, Any]
    why: str
    speaker: Key | None = None
    texts: bool = True


class Transcript(NamedTuple):
    """A text in a folder, and its sound. speaker: as the folder's names say it; "" = they do not."""

    path: Path
    sound: Path
    text: str
    speaker: str = ""


def layout_of(
    source: Path, columns: Sequence[Key] = (), text: Key | None = None, inputs: bool = False
) -> Layout | None:
    """How the recordings of a folder or a table lie; None: there are none.

    Args:
        columns, text: those of the recordings and of their texts, where somebody names them.
        inputs: a table may also be one without texts; or one with texts whose sounds are all gone, of which that can be
            told.

    Raises:
        InputError: a table cannot be read.
    """
    if not source.is_dir():
        return _table(source, columns, text, inputs) if source.is_file() else None
    tables = [source / name for name in METADATA if (source / name).is_file()]
    found = next((each for path in tables if (each := _table(path, columns, text))), None)
    return found or _folder(source)


def _folder(source: Path) -> Layout | None:
    """A folder without a table."""
    for layout, what in (("trans", f"its {TRANS} files are those of LibriSpeech"), ("beside", "texts lie beside")):
        first = next(transcripts(source, layout), None)
        if first:
            return Layout(source, {"file": str(source), "layout": layout}, what, "speaker" if first.speaker else None)
    return None


def _table(path: Path, columns: Sequence[Key], text: Key | None, inputs: bool = False) -> Layout | None:
    first = next(iter(read_lines(path)), "")
    if BARS in first and "\t" not in first:
        return _with_bars(path, first)
    if not is_table(path) and "\t" not in first:
        return None
    format = format_of(path)
    names = _names(path, format, first)
    header = bool(names) and isinstance(names[0], str)
    audio = columns[0] if columns else _audio(path, format, names)
    said = _said(names, audio) if text is None else text
    if audio is None or format.languages or (said is None and not inputs):
        return None
    place = _place(path, [row[0] for _, row in islice(format.rows(path, [audio]), LOOKED_FOR)])
    if place is None and inputs and said is not None:
        place = _beside(path.parent)
    if place is None:
        return None
    if said is None:
        return Layout(path, {"file": str(path), "audio": audio, "text": audio, **place}, "it names sounds", texts=False)
    speaker = _called(names, SPEAKERS) if header else None
    why = f'column "{audio}" names sound files, and column "{said}" what is said'
    return Layout(path, {"file": str(path), "audio": audio, "text": said, **place}, why, speaker)


def _with_bars(path: Path, first: str) -> Layout | None:
    """LJSpeech: the name of a sound, its text, perhaps a normalized one."""
    cells = first.split(BARS)
    place = _place(path, [line.split(BARS)[0] for line in islice(read_lines(path), LOOKED_FOR)])
    if place is None:
        return None
    entry = {"file": str(path), "separator": BARS, "audio": 0, "text": len(cells) - 1, **place}
    return Layout(path, entry, "its lines are names of sounds and texts, with | between")


def _names(path: Path, format: Format, first: str) -> list[Key]:
    """The columns; of a .tsv also by a header that its format does not know."""
    cells = [cell.strip() for cell in first.split("\t")]
    known = _called(cells, AUDIO) is not None and _called(cells, SAID) is not None
    if known and isinstance(format, Tsv):
        return [*cells]
    return [*(format.columns(path) if format.counted else format.text_columns(path))]


def _called(names: Sequence[Key], wanted: Sequence[str]) -> Key | None:
    by_name = {str(name).strip().lower(): name for name in reversed(names)}
    return next((by_name[name] for name in wanted if name in by_name), None)


def _audio(path: Path, format: Format, names: Sequence[Key]) -> Key | None:
    """The column whose cells are names of sounds."""
    known = _called(names, AUDIO)
    others = [name for name in names if name != known]
    for name in [*([] if known is None else [known]), *others]:
        rows = islice(format.rows(path, [name], [name] if format.sparse else ()), LOOKED_AT)
        cells = [row[0].strip() for _, row in rows]
        sounds = sum(Path(cell).suffix.lower() in SOUNDS for cell in cells)
        if cells and (sounds >= MOST * len(cells)):
            return name
    return None


def _said(names: Sequence[Key], audio: Key | None) -> Key | None:
    """The column of the texts: by its name, or the only other one."""
    others = [name for name in names if name != audio]
    found = _called(others, SAID)
    return others[0] if found is None and len(others) == 1 else found


def _place(path: Path, names: Sequence[str]) -> dict[str, str] | None:
    """Where the sounds of a table lie: what stands before and behind their names; None: none of them is there."""
    for folder in FOLDERS:
        above = path.parent / folder
        for suffix in ("", *SOUNDS):
            if any((above / f"{name}{suffix}").is_file() for name in names if name):
                return _beside(above) | ({"suffix": suffix} if suffix else {})
    return None


def _beside(folder: Path) -> dict[str, str]:
    """What stands before the names of sounds in a folder."""
    return {} if folder == Path() else {"folder": str(folder)}


def transcripts(folder: Path, layout: str) -> Iterator[Transcript]:
    """The texts of a folder without a table, in the order of their paths. Raises InputError as `read_lines`."""
    return _of_librispeech(folder) if layout == "trans" else _each_beside(folder)


def _of_librispeech(folder: Path) -> Iterator[Transcript]:
    for path in sorted(folder.rglob(f"*{TRANS}")):
        for number, line in enumerate(read_lines(path), 1):
            name, _, text = line.strip().partition(" ")
            if not name:
                continue
            sound = _sound(path.parent / name)
            if sound is None:
                raise InputError(f"{path}, line {number}: no sound of {name} lies beside, such as {name}.flac.")
            yield Transcript(path, sound, text.strip(), name.partition("-")[0])


def _each_beside(folder: Path) -> Iterator[Transcript]:
    for path in sorted(folder.rglob("*")):
        if suffix_of(path) in BESIDE and (sound := _sound(path.with_suffix(""))):
            text = " ".join(read_whole(path).decode("utf-8-sig", "replace").split())
            within = path.parent.relative_to(folder)
            yield Transcript(path, sound, text, within.parts[0] if within.parts else "")


def _sound(stem: Path) -> Path | None:
    return next((path for each in SOUNDS if (path := stem.with_name(f"{stem.name}{each}")).is_file()), None)
