"""Recordings to hear, from a table or a folder as training without a recipe takes them, and what is said in them."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from transduce.core.errors import InputError
from transduce.data.formats import Key
from transduce.data.input_file import InputFile
from transduce.data.speech.layouts import layout_of
from transduce.data.speech.recordings import RecordingFile, check_there, read_recordings

HOW = "Name its columns by --source-column (sounds) and --target-column (texts)."


def read_recording_inputs(
    path: Path, words: Mapping[str, str] | None = None, columns: Sequence[Key] = (), text: Key | None = None
) -> InputFile | None:
    """The recordings of a table or a folder by their absolute paths, with their texts; None: it has a name a line.

    Names in a table are relative to it, or to a folder beside it such as clips or wavs; see
    `transduce.data.speech.layouts`. A table may also have no texts.

    Args:
        words: what texts are called, as the recipe's `data.words` has it; others stay as they are.
        columns, text: those of the sounds and of the texts, where somebody names them.

    Raises:
        InputError: columns are named, or it is a folder, and there are no recordings; sounds are not there, whose lines
            are named; what `read_recordings` refuses.
    """
    found = layout_of(path, columns, text, inputs=True)
    if found is None:
        if columns or text is not None or path.is_dir():
            raise InputError(f"{path}: expected a table or a folder of recordings. {HOW}")
        return None
    file = RecordingFile.model_validate(found.entry)
    recordings = list(read_recordings(file, Path()))
    check_there(file.file, [(line, name) for line, name, _ in recordings])
    called = words or {}
    references = [[called.get(said, said)] if found.texts else [] for _, _, said in recordings]
    names = [str(Path(name).absolute()) for _, name, _ in recordings]
    missing = "" if found.texts else f"it has no column of texts. {HOW}"
    return InputFile([], names, references, files=file.paths(Path()), missing=missing)
