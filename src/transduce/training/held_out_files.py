"""`held_out/` in a run directory: the examples that `data.hold_out` drew, a text a line, for `transduce evaluate`.

| file | contents |
|---|---|
| `validation.source`, `validation.target` | what picks the best weights: pairs, or texts and their labels |
| `test.source`, `test.target` | the test set `held_out` |
| `test.fr.source`, `test.fr.target` | that of one language of several, `held_out.fr` |

Sources are without the tag of their language, which `--to` adds, unless the lines of a file are of several languages.
"""

import re
from pathlib import Path

from transduce.core.atomic import write_text
from transduce.core.errors import InputError
from transduce.data.hold_out import HELD_OUT, HoldOut
from transduce.data.tags import language_tag
from transduce.recipe.recipe import Recipe
from transduce.tasks.protocols import Dataset, TaskData
from transduce.training.display import Display
from transduce.training.run_directory import HELD_OUT as FOLDER
from transduce.training.run_directory import is_begun

LINE_BREAK = re.compile(r"\r?\n|\r\Z")  # what a file with a text a line cannot hold


def write_held_out(recipe: Recipe, run: Path, data: TaskData, display: Display) -> None:
    """The files of all parts that were drawn; none where `data.hold_out` asks for nothing.

    Raises:
        InputError: the run was begun with other held-out pairs.
    """
    drawn = _drawn(recipe, data)
    files = {run / FOLDER / name: text for part, dataset in drawn.items() for name, text in _texts(part, dataset)}
    _check(run, files, display)
    if files:
        (run / FOLDER).mkdir(exist_ok=True)
    for path, text in files.items():
        if not _holds(path, text):
            write_text(path, text)
    broken = sum(bool(LINE_BREAK.search(text)) for dataset in drawn.values() for pair in dataset.texts for text in pair)
    if broken:
        display.tell(
            f"{run / FOLDER}: the line breaks in {broken:,} held-out texts are written as spaces there, so the scores "
            "of these files may differ a little from those of the report."
        )


def evaluate_options(recipe: Recipe, run: Path) -> list[str]:
    """The first test that was drawn, as options of `transduce evaluate`; none where there is none."""
    hold_out = _hold_out(recipe)
    if hold_out is None or not hold_out.test:
        return []
    names = recipe.data.drawn_tests()  # type: ignore[attr-defined]
    for to, name in names.items():
        source, target = (run / FOLDER / f"{_part(name)}.{side}" for side in ("source", "target"))
        if (to or len(names) == 1) and source.is_file() and target.is_file():
            return ["--source", str(source), "--reference", str(target), *(["--to", to] if to else [])]
    return []


def _drawn(recipe: Recipe, data: TaskData) -> dict[str, Dataset]:
    """What was drawn, by the names of the files."""
    hold_out = _hold_out(recipe)
    if hold_out is None:
        return {}
    validation = {"validation": data.validation} if hold_out.validation and data.validation else {}
    names = dict.fromkeys(recipe.data.drawn_tests().values()) if hold_out.test else {}  # type: ignore[attr-defined]
    return validation | {_part(name): data.tests[name] for name in names if name in data.tests}


def _hold_out(recipe: Recipe) -> HoldOut | None:
    """What is drawn from the training data; None where its task draws otherwise, or nothing is drawn."""
    hold_out = getattr(recipe.data, "hold_out", None)
    return hold_out if isinstance(hold_out, HoldOut) else None


def _part(test: str) -> str:
    """What the files of a test set are called."""
    return f"test{test.removeprefix(HELD_OUT)}"


def _texts(part: str, dataset: Dataset) -> list[tuple[str, str]]:
    """Two files, each with its name."""
    mark = f"{language_tag(dataset.language)} " if dataset.language else ""
    sources, targets = zip(*dataset.texts, strict=True)
    columns = {"source": [source.removeprefix(mark) for source in sources], "target": targets}
    return [
        (f"{part}.{side}", "".join(f"{LINE_BREAK.sub(' ', text)}\n" for text in texts))
        for side, texts in columns.items()
    ]


def _check(run: Path, files: dict[Path, str], display: Display) -> None:
    """Raises InputError where a run that has begun holds other files; where it has none, that is told."""
    if not files or not is_begun(run):
        return
    there = [path for path in files if path.exists()]
    if wrong := [path for path in there if not _holds(path, files[path])]:
        raise InputError(
            f"{wrong[0]}: this run was begun with other held-out pairs than are drawn now, so it may have been trained "
            f"on these. Choose another directory with --run; or, if it was you who changed the file, delete "
            f"{run / FOLDER}, and it is written again."
        )
    if not there:
        display.tell(f"{run}: begun without files of its held-out pairs, which are drawn again as they were then.")


def _holds(path: Path, text: str) -> bool:
    """Whether this is what is written there."""
    return path.is_file() and path.read_bytes() == text.encode("utf-8")
