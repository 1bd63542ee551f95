"""Sequence-level knowledge distillation: a teacher's translations as training targets of a student.

    y* = argmax_y log p_teacher(y | x) / L^alpha, by beam search, for every training source x     (Kim and Rush 2016)

Translations are written in parts, each atomically, and an interrupted distillation continues with the next part:

| file | contents |
|---|---|
| `parts/` | the finished parts; removed at the end |
| `source.gz`, `target.gz` | the new pairs: the unchanged sources, and line by line the teacher's translations |
| `distillation.json` | teacher, files, search, precision, counts; written last |

Back-translation makes pairs the other way round: what was translated is their target.
"""

import shutil
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from transduce.bulk.blocks import LineBlock, blocks_of
from transduce.bulk.engine import LocalEngine
from transduce.bulk.job import Placement
from transduce.bulk.predicting import PredictingWorker
from transduce.core.atomic import write_json
from transduce.core.bounded_file import read_table
from transduce.core.errors import InputError
from transduce.core.folders import check_folder, check_inside
from transduce.data.corpus import TextFile, read_text
from transduce.data.files import fingerprint, writing
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.tags import languages_of
from transduce.inference.options import PredictionOptions
from transduce.inference.protocols import Advance
from transduce.inference.sentences import Split
from transduce.pipeline.pipeline import Pipeline
from transduce.runtime.environment import library_versions
from transduce.search.settings import Search

PART = 2048  # lines that are sorted by length, translated and saved together
REPORT = "distillation.json"
ANEW = "Delete the folder, or choose another one with --output."
DISTILLATION = "sequence-level knowledge distillation (Kim and Rush 2016)"
BACKTRANSLATION = "back-translation (Sennrich et al. 2016)"
Table = dict[str, Any]


def distil(
    teacher: Pipeline,
    checksum: str,
    sources: Sequence[TextFile],
    root: Path,
    folder: Path,
    search: Search,
    batch_size: int = 128,
    advance: Advance = lambda lines: None,
    workers: int = 1,
    method: str = DISTILLATION,
    placement: Placement | None = None,
) -> Table:
    """Translate `sources` into `folder`, or continue an interrupted distillation of them; returns the report.

    The report counts: lines; empty_sources and empty_targets, which training will drop; unfinished targets, which were
    cut off at the length limit; and long sources, which were translated in pieces.

    Args:
        teacher: the model or ensemble.
        checksum: see `checksum_of`.
        sources: the files to translate.
        root: the directory to which their names are relative.
        folder: the directory for the translations.
        search: the search settings.
        batch_size: number of lines in a batch.
        advance: called with the number of further lines that are done, including those of earlier runs.
        workers: number of parallel workers, with one thread each.
        placement: where the teacher's copies translate, if not in this process.
        method: for the report. Back-translations that are sampled have random numbers of their own for each line.

    Raises:
        InputError: the teacher has no source, or writes several languages, `folder` contains another distillation, or a
            source cannot be read.
    """
    if "source" not in teacher.task.columns:
        raise InputError("The teacher must be a translation model; this is a language model.")
    tokenizer = teacher.task.tokenizers.get("source")
    if known := languages_of(tokenizer) if tokenizer else []:
        raise InputError(f"This model writes {', '.join(known)} by tags; expected one that writes a single language.")
    plan = _plan(teacher, checksum, sources, root, search, method)
    if _claim(folder, plan):
        advance(plan["lines"])
    else:
        apart = method == BACKTRANSLATION and search.method == "sample"
        split: Split = (
            "auto" if method == BACKTRANSLATION else "none"
        )  # a line of monolingual text may hold several sentences
        options = PredictionOptions(batch_size, split, workers=workers, protect=False, search=search.model_dump())
        how = {
            "predict": options.to_table(),
            "form": "pair",
            "parts": True,
            "part_seeds": apart,
        }
        here = Placement(LocalEngine(PredictingWorker(how, [], teacher)), [], {})
        _translate(placement or here, how, _lines(sources, root), folder / "parts", advance)
        write_json(folder / REPORT, {**plan, **_join(_lines(sources, root), folder, method == BACKTRANSLATION)})
    shutil.rmtree(folder / "parts", ignore_errors=True)
    return read_table(folder / REPORT, ANEW)


def training_sources(corpora: Sequence[PairFiles]) -> list[TextFile]:
    """The source side of training pairs.

    Raises:
        InputError: only some of a file are, in columns without tabs, in .csv or .jsonl, or behind tags.
    """
    cut = sorted({key for files in corpora for key in files.read_as})
    if cut:
        raise InputError(f"data.train: {', '.join(cut)}: a teacher translates whole files and tab-separated columns.")
    if tags := sorted({tag for files in corpora for tag in files.tags}):
        raise InputError(f"data.train: {', '.join(tags)}: a teacher translates files without tags (`to` and `tag`).")
    found, problems = list[TextFile](), list[str]()
    for files in corpora:
        if files.source is not None:
            found.append(TextFile(text=files.source))
        elif files.file is not None and files.format_name == "tsv" and isinstance(files.source_column, int):
            found.append(TextFile(text=files.file, column=files.source_column))
        else:
            problems.append(
                f"{files.paths(Path())[0]}: distillation reads sources of two files, or of a column of tsv."
            )
    if problems:
        raise InputError(problems)
    return found


def count_texts(sources: Sequence[TextFile], root: Path) -> int:
    """How many texts all of the files have."""
    return sum(1 for file in sources for _ in read_text(file, root))


def checksum_of(files: Sequence[Path]) -> str:
    """SHA-256 of a model's file; those of an ensemble are joined by "+"."""
    return "+".join(fingerprint(file) for file in files)


def taught_pairs(folder: Path) -> dict[str, str]:
    """The pairs in `folder` as an entry of data.train, which is valid for any data.root."""
    here = folder.absolute().as_posix()
    return {"source": f"{here}/source.gz", "target": f"{here}/target.gz"}


def read_distillation(folder: Path) -> Table | None:
    """The report of a finished distillation; None if there is none."""
    try:
        return read_table(folder / REPORT, ANEW)
    except InputError:
        return None


def is_searched_so(report: Table, search: Search, precision: str) -> bool:
    """Whether a finished distillation was made with these settings."""
    return bool(report.get("search") == _settings(search) and report.get("precision") == precision)


def _settings(search: Search) -> Table:
    return search.model_dump(mode="json", exclude_none=True)


def _plan(
    teacher: Pipeline, checksum: str, sources: Sequence[TextFile], root: Path, search: Search, method: str
) -> Table:
    """Everything that determines the targets."""
    named = [
        {"file": file.text, "sha256": fingerprint(file.paths(root)[0])}
        | ({} if file.column is None else {"column": file.column})
        for file in sources
    ]
    return {
        "method": method,
        **({"translations": "source.gz"} if method == BACKTRANSLATION else {}),
        "teacher": {"name": teacher.recipe.name, "sha256": checksum},
        "sources": named,
        "lines": count_texts(sources, root),
        "lines_a_part": PART,
        "search": _settings(search),
        "precision": teacher.precision,
    }


def _claim(folder: Path, plan: Table) -> bool:
    """Whether `folder` holds this distillation, finished; an empty folder is made its own.

    Raises:
        InputError: it holds another one, other files, or links that lead out of it.
    """
    check_inside(folder, option="--output")
    noted = next((path for path in (folder / REPORT, folder / "parts" / "plan.json") if path.exists()), None)
    if noted is None:
        check_folder(folder, own=["parts"], why=" and no distillation", option="--output")
        check_folder(folder / "parts", why=" and no plan.json of a distillation", option="--output")
        (folder / "parts").mkdir(parents=True, exist_ok=True)
        write_json(folder / "parts" / "plan.json", plan)
        return False
    before = read_table(noted, ANEW)
    different = sorted(key for key, value in _comparable(plan).items() if _comparable(before).get(key) != value)
    if different:
        raise InputError(
            f"{folder}: holds another distillation ({noted.relative_to(folder)} says so); different: "
            f"{', '.join(different)}. Choose another folder with --output, or delete this one."
        )
    return noted.name == REPORT


def _comparable(plan: Table) -> Table:
    """What decides, without the names of files: their fingerprints do."""
    given = plan.get("sources")
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        return plan
    return plan | {"sources": [{key: value for key, value in each.items() if key != "file"} for each in given]}


def _lines(sources: Sequence[TextFile], root: Path) -> Iterator[str]:
    return (line for file in sources for line in read_text(file, root))


def _translate(placement: Placement, how: Table, lines: Iterator[str], parts: Path, advance: Advance) -> None:
    """Every part that is not there yet: a target for each whole source.

    how: settings of `PredictingWorker`. Random numbers of a line belong to its place in its part; with "part_seeds"
        each part has another seed.
    """
    begun: deque[int] = deque()

    def missing() -> Iterator[LineBlock]:
        for block in blocks_of(({"text": line} for line in lines), PART):
            if _part(parts, block.number).exists():
                advance(len(block.rows))
            else:
                begun.append(block.number)
                yield block

    for answer in placement.engine.answers(placement.job("predict", how), missing(), advance):
        write_json(_part(parts, begun.popleft()), {"long": len(answer["told"]), "targets": answer["outputs"]})


def _join(lines: Iterator[str], folder: Path, back: bool) -> Table:
    """The two files out of the parts, and what was counted on the way; back: translations are the new sources."""
    counts = {"empty_sources": 0, "empty_targets": 0, "unfinished": 0, "long": 0}
    number = 0
    names = ("source.gz", "target.gz")
    with writing(folder / names[back]) as read, writing(folder / names[not back]) as written:
        while chunk := list(islice(lines, PART)):
            long, targets = _read_part(_part(folder / "parts", number), len(chunk))
            counts["long"] += long
            for line, (text, ended) in zip(chunk, targets, strict=True):
                counts["empty_sources"] += not line.strip()
                counts["empty_targets"] += bool(line.strip()) and not text
                counts["unfinished"] += not ended
                read.write(line.encode() + b"\n")
                written.write(text.encode() + b"\n")
            number += 1
    outputs = {name: fingerprint(folder / name) for name in names}
    return {"counts": counts, "sha256": outputs, "versions": library_versions()}


def _read_part(path: Path, lines: int) -> tuple[int, list[tuple[str, bool]]]:
    """How many of its sources were long, and each target with whether it was ended. Raises InputError if damaged."""
    again = "Delete it, and run the same command: its lines are translated again."
    part = read_table(path, again)
    try:
        targets = [(str(text), bool(ended)) for text, ended in part["targets"]]
        long = int(part["long"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: damaged: {error!r}. {again}") from error
    if len(targets) != lines:
        raise InputError(f"{path}: damaged: {len(targets)} targets; expected {lines}. {again}")
    return long, targets


def _part(parts: Path, number: int) -> Path:
    return parts / f"{number:06}.json"
