"""A package for Argos Translate and LibreTranslate: a zip with one folder, `translate-en_sw-1_0/`.

    metadata.json        versions, codes and names of the languages; licence and links, where they are given
    model/               CTranslate2
    sentencepiece.model  our source tokenizer; Argos cuts texts, and joins outputs, with it
    minisbd/             where sentences end: rules, see `transduce.interop.sentence_rules`
    README.md            version, licence, links, and scores with their signatures

Beside the packages lies `index.json`, a list with an entry for each, as Argos Translate reads it from
`ARGOS_PACKAGE_INDEX` and shows it to `argospm`.

Argos splits texts into sentences by itself, with a model that it finds in the package, and otherwise fetches.
"""

import json
import re
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.core.atomic import write_text, writing
from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.core.languages import name_of
from transduce.interop.export_ctranslate2 import CTranslate2Engine, write_ctranslate2
from transduce.interop.model_card import Languages, model_card
from transduce.interop.parity import EngineOutput
from transduce.interop.sentence_rules import sentence_rules
from transduce.interop.sentencepiece import SPACE, sentencepiece_model

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

CODE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*")  # as in BCP 47
PACKAGE_VERSION = re.compile(r"\d+(\.\d+){0,3}")
INDEX = "index.json"
ARGOS_VERSION = "1.9.0"  # the least that reads it
TIME = (1980, 1, 1, 0, 0, 0)  # of every file, so that equal models are equal packages


@dataclass(frozen=True)
class PackageFacts:
    """What people who install a package should know of it.

    version: numbers between points. licence: a name, such as CC-BY-4.0; "" = nobody said.
    links: where the package can be fetched; one that ends with a slash is a folder, which gets the package's name.
    """

    version: str = "1.0"
    licence: str = ""
    links: tuple[str, ...] = ()

    def problems(self) -> list[str]:
        """What is wrong with them."""
        found = [f"Argos: {link!r:.80} is no link: expected https://.." for link in self.links if "://" not in link]
        if not PACKAGE_VERSION.fullmatch(self.version):
            found.append(
                f"Argos: --package-version {self.version!r:.80}: expected numbers between points, such as 1.2."
            )
        return found

    def links_of(self, name: str) -> list[str]:
        """Of a package of this name."""
        return [f"{link}{name}" if link.endswith("/") else link for link in self.links]


FIRST = PackageFacts()


def export_argos(pipeline: "Pipeline", folder: Path, languages: Languages, facts: PackageFacts = FIRST) -> Path:
    """Writes the package into `folder`, which exists, adds it to the folder's index, and returns its path.

    Raises:
        InputError: the recipe does not say which languages these are; SentencePiece or CTranslate2 cannot do what the
            model does; a library is missing. All at once.
    """
    library("sentencepiece", "exporting to Argos", "argos")
    problems: list[str] = facts.problems()
    problems += _missing(languages)
    cutting = _cutting(pipeline, problems)
    root = f"translate-{languages.source}_{languages.target}-{facts.version.replace('.', '_')}"
    with tempfile.TemporaryDirectory(dir=folder) as staged:
        model = Path(staged) / "model"
        model.mkdir()
        try:
            write_ctranslate2(pipeline, model)
        except InputError as error:
            problems += error.problems
        if problems:
            raise InputError(problems)
        package = folder / f"{root}.argosmodel"
        metadata = _metadata(languages, facts, package.name)
        contents = {
            "metadata.json": json.dumps(metadata, indent=2, ensure_ascii=False).encode(),
            "sentencepiece.model": cutting,
            "minisbd/sentences.onnx": sentence_rules(languages.source),
            "README.md": _readme(pipeline, languages, facts, package.name).encode(),
        }
        _write_zip(package, root, contents, sorted(model.iterdir()))
    _add_to_index(folder / INDEX, metadata)
    return package


def _missing(languages: Languages) -> list[str]:
    return [
        f"Argos: the recipe does not say what language the {side} is: give --{side}-language, such as en."
        if not code
        else f"Argos: {code!r} is no code of a language: give --{side}-language, such as en."
        for side, code in languages._asdict().items()
        if not CODE.fullmatch(code)
    ]


def _cutting(pipeline: "Pipeline", problems: list[str]) -> bytes:
    tokenizer = pipeline.task.tokenizers.get("source")
    try:
        return sentencepiece_model(tokenizer) if tokenizer else b""
    except InputError as error:
        problems += [f"Argos: {problem}" for problem in error.problems]
        return b""


def _metadata(languages: Languages, facts: PackageFacts, name: str) -> dict[str, Any]:
    links = facts.links_of(name)
    return {
        "package_version": facts.version,
        "argos_version": ARGOS_VERSION,
        "from_code": languages.source,
        "from_name": name_of(languages.source),
        "to_code": languages.target,
        "to_name": name_of(languages.target),
        "type": "translate",
        **({"license": facts.licence} if facts.licence else {}),
        **({"links": links} if links else {}),
    }


def _readme(pipeline: "Pipeline", languages: Languages, facts: PackageFacts, name: str) -> str:
    """The model card, with what concerns the package."""
    rows = [("Version", facts.version), ("Licence", facts.licence), *(("Link", link) for link in facts.links_of(name))]
    return model_card(pipeline, languages) + "".join(f"\n{title}: {value}\n" for title, value in rows if value)


def _add_to_index(path: Path, metadata: dict[str, Any]) -> None:
    """Puts a package in the place of an earlier one of the same languages."""
    entry = {"links": [], **metadata, "code": f"translate-{metadata['from_code']}_{metadata['to_code']}"}
    others = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    entries = [*(each for each in others if each["code"] != entry["code"]), entry]
    write_text(path, json.dumps(sorted(entries, key=lambda each: each["code"]), indent=2, ensure_ascii=False) + "\n")


def _write_zip(path: Path, root: str, contents: dict[str, bytes], files: Sequence[Path]) -> None:
    with writing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, content in contents.items():
            packed.writestr(_entry(f"{root}/{name}"), content, zipfile.ZIP_DEFLATED)
        for each in files:
            with each.open("rb") as read, packed.open(_entry(f"{root}/model/{each.name}"), "w", force_zip64=True) as to:
                while block := read.read(1 << 20):
                    to.write(block)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, TIME)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


class ArgosEngine(CTranslate2Engine):
    """Cuts, translates and joins as Argos does, but for its sentences: lines are taken whole, and searched greedily.

    Args:
        pipeline: of the model that was exported.
        package: what `export_argos` wrote.
    """

    name = "Argos"

    def __init__(self, pipeline: "Pipeline", package: Path) -> None:
        with tempfile.TemporaryDirectory() as unpacked, zipfile.ZipFile(package) as packed:
            packed.extractall(unpacked)
            [root] = Path(unpacked).iterdir()
            super().__init__(pipeline, root / "model")
            sentencepiece = library("sentencepiece", "exporting to Argos", "argos")
            self.processor = sentencepiece.SentencePieceProcessor(model_file=str(root / "sentencepiece.model"))

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        return self.processor.encode(list(texts), out_type=str)

    def output(self, tokens: Sequence[str], score: float) -> EngineOutput:
        """As Argos joins them; it also makes a space of every underscore."""
        text = self.processor.decode_pieces(list(tokens)).replace(SPACE, " ").replace("_", " ")
        return EngineOutput(tuple(tokens), text.removeprefix(" "), score)


class ExportArgos:
    """See `transduce.interop.exports.Export`."""

    write, engine = staticmethod(export_argos), ArgosEngine
