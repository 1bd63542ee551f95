"""A file of pairs where inputs are read, to translate or to compare outputs with its targets: new.csv, new.jsonl, ..

Its columns are those of the recipe's file of the same name, or else of the same kind.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.languages import matching
from transduce.data.corpus import read_pairs
from transduce.data.files import TABLES, existing_file, suffix_of, text_lines
from transduce.data.input_file import InputFile
from transduce.data.pair_files import PairFiles
from transduce.data.rows import csv_has, csv_header, jsonl_has
from transduce.data.tmx import tmx_languages

OF_TRAINING: dict[str, Any] = {"pairs": None, "weight": 1.0, "to": None, "tag": None}  # what other files do not share


def read_pair_inputs(path: Path, known: Sequence[PairFiles], languages: tuple[str, str]) -> InputFile | None:
    """The sources of a file of pairs, with the targets if it has them; None: the file has a source a line.

    A tab-separated file has a source a line, unless it has more columns than a source.

    Args:
        known: the entries of the recipe.
        languages: of the model, for a translation memory.

    Raises:
        InputError: as `read_pairs`; a .csv or a memory, of which the recipe has none, does not tell what is meant.
    """
    files = _read_as(path, known, languages)
    if files is None:
        return None
    answered = _has_targets(files, path)
    read = files if answered else files.model_copy(update={"target_column": files.keys[0]})
    pairs = [pair for _, *pair in read_pairs(read, Path())]
    sources, references = [source for source, _ in pairs], [[target] if answered else [] for _, target in pairs]
    return InputFile([], sources, references, note=_note(path, files, known, answered))


def known_files(data: Mapping[str, Any]) -> list[PairFiles]:
    """The entries of a recipe's [data], as a model file has it. Raises InputError where they are none of pairs."""
    try:
        entries = [*data.get("test", {}).values(), data.get("validation"), *data.get("train", ())]
        return [PairFiles.model_validate(each) for each in entries if each]
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"the model file: expected [data] of pairs in its recipe; {error}") from error


def _read_as(path: Path, known: Sequence[PairFiles], languages: tuple[str, str]) -> PairFiles | None:
    """The file as an entry of a recipe; None: it has a source a line."""
    if (suffix := suffix_of(path)) not in TABLES or path.is_fifo():
        return None
    path, kind = existing_file(path), suffix[1:]
    tables = [each for each in known if kind in each.names]
    alike = next((each for each in tables if Path(each.names[kind]).name == path.name), next(iter(tables), None))
    if kind == "tsv" and not _has_more_columns(path, alike, known):
        return None
    if alike is None:
        return PairFiles.model_validate({kind: str(path), **_usual_columns(path, kind, known, languages)})
    return alike.model_copy(update={kind: str(path), **OF_TRAINING})


def _has_more_columns(path: Path, alike: PairFiles | None, known: Sequence[PairFiles]) -> bool:
    """Whether a tab-separated file has more columns than a source."""
    between = (alike and alike.separator) or "\t"
    columns = len(alike.sources) if alike else _of_sources(known)[0]
    return next(text_lines(path), "").count(between) >= columns


def _of_sources(known: Sequence[PairFiles]) -> tuple[int, str | None]:
    """How many columns sources have, and what stands between them."""
    found = ((len(each.sources), each.source_separator) for each in known)
    return max(found, key=lambda each: each[0], default=(1, None))


def _usual_columns(path: Path, kind: str, known: Sequence[PairFiles], languages: tuple[str, str]) -> dict[str, Any]:
    """Those of a file of a kind that the recipe has none of: by the names source and target, or the languages'."""
    if kind == "jsonl":
        return {}
    if kind == "tsv":
        columns, between = _of_sources(known)
        return {"source_column": tuple(range(columns)), "target_column": columns, "source_separator": between}
    found = [*tmx_languages(path)] if kind == "tmx" else csv_header(path)
    called = [("source", "target"), *([tuple(matching(each, found) for each in languages)] if all(languages) else [])]
    for source, target in called:
        if source in found:
            return {"source_column": source, "target_column": target}
    if kind == "csv" and len(found) < 3:
        return {}
    there = ", ".join(found)
    if kind == "tmx":
        wanted = (
            " and ".join(languages) if all(languages) else "the languages of the model, which its recipe does not say"
        )
        raise InputError(f"{path}: expected units in {wanted}; it has {there}.")
    wanted = " or ".join(" and ".join(each) for each in called)
    raise InputError(f"{path}: expected columns called {wanted}; it has {there}.")


def _note(path: Path, files: PairFiles, known: Sequence[PairFiles], answered: bool) -> str:
    """Which columns were read, where that is a guess."""
    if isinstance(files.keys[0], str) or any(files.names.keys() & each.names.keys() for each in known):
        return ""
    columns = "the first column was" if len(files.sources) == 1 else f"the first {len(files.sources)} columns were"
    target = ", the next as the target" if answered else ""
    return f"{path}: {columns} read as the source{target}; the recipe has no .{next(iter(files.names))} to go by."


def _has_targets(files: PairFiles, path: Path) -> bool:
    """Whether the file has the column of the targets at all."""
    target = files.keys[-1]
    if files.csv is not None:
        return csv_has(path, target)
    if files.jsonl is not None:
        return jsonl_has(path, str(target))
    if files.tmx is not None:
        found = tmx_languages(path)
        return matching(str(target), found) in found
    return True
