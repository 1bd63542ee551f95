"""What a CTranslate2 folder says besides its weights: tokenizers, languages, and how outputs are searched for.

    transduce.json           name, task, readable, search, single_sentences     (`transduce export` writes these three)
    source_tokenizer.json
    target_tokenizer.json

A folder of others has SentencePiece models instead: `source.spm` and `target.spm`, or one of `sentencepiece.model`,
`spm.model` and `tokenizer.model` for both sides. In an Argos package, that one and `metadata.json`, which names the
languages, stand beside the folder `model`.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from transduce.core.atomic import write_json, write_text
from transduce.core.bounded_file import bounded_bytes, bounded_text
from transduce.core.bounded_json import table_of_settings
from transduce.core.errors import InputError
from transduce.data.columns.tokens import Tokens
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.interop.model_card import Languages
from transduce.interop.sentencepiece_tokenizer import SentencePieceTokenizer
from transduce.pipeline.outline import make_task
from transduce.recipe.recipe import Recipe, parse_recipe
from transduce.tasks.base import Task

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

SETTINGS = "transduce.json"
WEIGHTS = "model.bin"
JOINT = ("sentencepiece.model", "spm.model", "tokenizer.model")
LARGEST = 2**26  # bytes of a tokenizer
READABLE = 250  # tokens that a foreign model is taken to read at once
FOREIGN_SEARCH = {"method": "beam", "beam": 4, "length_rule": "power", "alpha": 0.6}


class FolderContents(NamedTuple):
    """recipe: of which only the name, the task and the search mean anything."""

    recipe: Recipe
    task: Task
    weights: Path
    single_sentences: bool


def write_settings(pipeline: "Pipeline", folder: Path, languages: Languages) -> None:
    """What `read_folder` needs, into a folder of CTranslate2; nothing for tasks other than translation."""
    if pipeline.recipe.task.kind != "translation":  # type: ignore[attr-defined]
        return
    table = pipeline.recipe.to_table()
    settings = {
        "name": pipeline.recipe.name,
        "task": {"kind": "translation", **{side: code for side, code in languages._asdict().items() if code}},
        "readable": pipeline.task.readable,
        "search": table.get("search", {}),
        "single_sentences": pipeline.single_sentences,
    }
    write_json(folder / SETTINGS, settings)
    for side, tokenizer in pipeline.task.tokenizers.items():
        write_text(folder / f"{side}_tokenizer.json", tokenizer.to_json())


def weights_of(path: Path) -> Path:
    """The file of weights of a folder of CTranslate2, or of an unpacked Argos package.

    Raises:
        InputError: there is none.
    """
    for found in (path / WEIGHTS, path / "model" / WEIGHTS):
        if found.is_file():
            return found
    if path.is_file():
        why = "a folder of CTranslate2 is needed; make one from a model: transduce export MODEL --to ctranslate2"
        raise InputError(f"{path}: this is a file, and {why}.")
    raise InputError(f"{path}: there is no {WEIGHTS} in this folder, so it is none of CTranslate2.")


def read_folder(path: Path) -> FolderContents:
    """What is known of the model in a folder.

    Raises:
        InputError: it is no such folder; its settings or tokenizers cannot be read.
    """
    weights = weights_of(path)
    folder = weights.parent
    ours = (folder / SETTINGS).is_file()
    settings = _settings(folder / SETTINGS) if ours else _foreign_settings(path)
    table = {
        "name": settings.get("name") or path.resolve().name,
        "task": settings.get("task", {"kind": "translation"}),
        "data": {
            "train": [{"source": "unknown", "target": "unknown"}],
            "filters": {"max_tokens": settings.get("readable", READABLE)},
        },
        "search": settings.get("search", FOREIGN_SEARCH),
    }
    recipe = parse_recipe(table, str(folder / SETTINGS) if ours else str(path))
    source, target = _our_tokenizers(folder) if ours else _foreign_tokenizers([folder, path])
    columns = {"source": Tokens(source, ends=True), "target": Tokens(target, starts=True, ends=True)}
    return FolderContents(recipe, make_task(recipe, columns), weights, settings.get("single_sentences", True) is True)


def _settings(path: Path) -> dict[str, Any]:
    try:
        found = table_of_settings(bounded_text(path, 2**20))
    except ValueError as error:
        raise InputError(f"{path}: expected settings in JSON, but this file {error}.") from None
    task = found.get("task")
    if not isinstance(task, dict) or task.get("kind") != "translation":
        raise InputError(f"{path}: expected task.kind = translation, which is all that CTranslate2 can serve.")
    return found


def _foreign_settings(path: Path) -> dict[str, Any]:
    """Languages of an Argos package; else nothing is known."""
    metadata = path / "metadata.json"
    if not metadata.is_file():
        return {}
    try:
        found = table_of_settings(bounded_text(metadata, 2**20))
    except ValueError as error:
        raise InputError(f"{metadata}: expected the metadata of an Argos package, but this file {error}.") from None
    task = {"kind": "translation", "source": str(found.get("from_code", "")), "target": str(found.get("to_code", ""))}
    return {"task": task}


def _our_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    source, target = (
        Tokenizer.from_json(bounded_text(path, LARGEST), str(path))
        for path in (folder / f"{side}_tokenizer.json" for side in ("source", "target"))
    )
    return source, target


def _foreign_tokenizers(folders: list[Path]) -> tuple[Tokenizer, Tokenizer]:
    for folder in folders:
        both = [folder / "source.spm", folder / "target.spm"]
        if all(path.is_file() for path in both):
            source, target = (SentencePieceTokenizer(bounded_bytes(path, LARGEST), str(path)) for path in both)
            return source, target
        for path in (folder / name for name in JOINT):
            if path.is_file():
                joint = SentencePieceTokenizer(bounded_bytes(path, LARGEST), str(path))
                return joint, joint
    raise InputError(
        f"{folders[-1]}: there is no tokenizer. Expected {SETTINGS} as `transduce export` writes it, or source.spm and "
        f"target.spm, or one of {', '.join(JOINT)}."
    )
