"""A run directory belongs to one recipe and one state of its files; whoever comes with others is refused.

What a file holds decides, by its fingerprint, and never how its folder is written: a run stays the same when data or
run are moved, or are reached through a link.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath
from typing import Any

from transduce.core.atomic import write_json, write_text
from transduce.core.bounded_file import read_text
from transduce.core.bounded_toml import toml_file, toml_table, toml_text
from transduce.core.errors import InputError
from transduce.core.folders import RESOLVED, check_folder, check_inside
from transduce.core.model_file import find_model_file
from transduce.core.names import checked_name
from transduce.core.run_paths import from_run
from transduce.data.files import fingerprint
from transduce.data.hold_out import VERSIONS, HoldOut
from transduce.data.pairs.pair_files import FILES as PAIR_FILES
from transduce.data.pairs.pair_files import SHORT
from transduce.recipe.recipe import Recipe, parse_recipe
from transduce.training.checkpoint import FOLDER, PATTERN

NOTED = "data.json"
HELD_OUT = "held_out"  # a folder with the pairs that were drawn; runs with version 1 of the draw began without
PLAN = "plan.json"
BEGUN = ("job.json", "failed.txt", "memory.json", "replay")  # what may be noted in a run before its recipe is
FIRST = ("teachers", "reverse")  # runs of the models that are trained first
MAY_CHANGE = ("training.minutes", "training.log_every", "training.tensorboard", "search")
MAY_GROW = ("training.updates", "training.patience")
OTHERS = ("start", "tokenizer")  # what `fingerprints_of` names
SECTIONS = ("data", "tokenizer", "training", "search")  # of a recipe, that are looked into
FILES = (*PAIR_FILES, *SHORT, "text")  # keys of a recipe whose values are paths

Table = dict[str, Any]


def default_run(name: str, subfolder: str = "") -> Path:
    """Where a recipe of this name is trained unless somebody says otherwise. Raises InputError for what is no name."""
    try:
        return Path("runs", subfolder, checked_name(name))
    except ValueError as error:
        raise InputError(f"name: {error}.") from None


def make_directory(run: Path, recipe: Recipe | None = None) -> None:
    """The directory, with those above it.

    Args:
        run: the directory, which is new, empty or a run already.
        recipe: what is trained there; its data may lie in the directory.

    Raises:
        InputError: see `check_directory`.
    """
    check_directory(run, data=[] if recipe is None else within(run, getattr(recipe.data, "root", ".")))
    make_folder(run)


def make_folder(run: Path) -> None:
    """The same without a look at what is in it."""
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _impossible(run, error) from error


def check_directory(run: Path, own: Iterable[str] = (), data: Iterable[str] = ()) -> None:
    """Whether a training may write into `run`; all that write into one ask first.

    Args:
        own: names in it that belong to the training, too.
        data: the same of what is only read.

    Raises:
        InputError: there can be none of this name; it holds files, and is no run; or something in it is a link that
            leads out of it, or no file.
    """
    try:
        ours = is_run(run)
    except OSError as error:  # of a name that there cannot be
        raise _impossible(run, error) from error
    if not ours:
        check_folder(run, {*BEGUN, *own, *data}, f" and no {RESOLVED} of a training")
    check_inside(run, {*data})


def _impossible(run: Path, error: OSError) -> InputError:
    return InputError(f"{run}: cannot be a run directory: {error.strerror}. Choose another one with --run.")


def is_run(folder: Path) -> bool:
    """Whether a training has written its recipe there; a recipe of somebody's own may be called so as well."""
    if not (folder / RESOLVED).is_file():
        return _is_plan(folder / PLAN)
    return any((folder / name).exists() for name in (NOTED, FOLDER, *FIRST)) or _is_resolved(folder / RESOLVED)


def _is_plan(path: Path) -> bool:
    """Whether a training without a recipe has noted there what it decided."""
    try:
        return {"asked", "table", "promised"} <= json.loads(read_text(path)).keys()
    except (OSError, ValueError, RecursionError, AttributeError):
        return False


def _is_resolved(path: Path) -> bool:
    """Whether a recipe is as `claim` writes it, so that nobody's comments are in it; a damaged one was ours."""
    import tomli_w

    try:
        text = toml_text(path)
        table = toml_table(text)
        return text == tomli_w.dumps(table) and {"name", *SECTIONS} <= table.keys()
    except (OSError, ValueError, RecursionError, TypeError):
        return True


def within(run: Path, folder: str | Path) -> list[str]:
    """What of a run data in `folder` lie in; nothing where that is elsewhere."""
    place, around = Path(folder).resolve(), run.resolve()
    return [*place.relative_to(around).parts[:1]] if place.is_relative_to(around) else []


def claim(run: Path, recipe: Recipe) -> None:
    """Write the resolved recipe into a new run; refuse a run of another one.

    Raises:
        InputError: which keys differ; there can be no such directory.
    """
    check_recipe(run, recipe)
    make_directory(run, recipe)
    write_recipe(run, recipe)


def write_recipe(run: Path, recipe: Recipe) -> None:
    """The resolved recipe into its run, in which paths inside the run are relative to it."""
    import tomli_w

    write_text(run / RESOLVED, tomli_w.dumps(movable(recipe.to_table(), run)))


def movable(table: Table, run: Path) -> Table:
    """A recipe's table with its paths inside the run as files of the run name them: see `transduce.core.run_paths`.

    Relative names of files are relative to data.root, which is changed itself.
    """

    def named(path: str) -> str:
        return from_run(path, run) if PurePath(path).is_absolute() else path

    kept = {key: _with_paths(table[key], named) for key in ("data", "tokenizer") if isinstance(table.get(key), dict)}
    if isinstance(root := kept.get("data", {}).get("root"), str):
        kept["data"]["root"] = from_run(root, run)
    return {**table, **kept}


def check_recipe(run: Path, recipe: Recipe) -> None:
    """Whether the run, if there is one, is a training of `recipe`, or of one that it goes on from.

    Raises:
        InputError: which keys differ.
    """
    changed = changed_keys(run, recipe)
    fewer = [key for key in changed if key in MAY_GROW and not _grows(run, recipe, key)]
    different = [key for key in changed if key not in MAY_GROW or key in fewer]
    if different:
        less = f" ({' and '.join(fewer)} may be raised, but not lowered)" if fewer else ""
        raise InputError(
            f"{run}: holds a training of another recipe; these keys differ: {', '.join(different)}{less}. "
            "Choose another directory with --run, or delete this one."
        )


def changed_keys(run: Path, recipe: Recipe) -> list[str]:
    """The keys by which `recipe` is another one than that of the run, if there is one; some may change."""
    before, recipe = resolved_table(run), with_earlier_draw(recipe, run)
    if before is None:
        return []
    drawn = getattr(recipe.data, "hold_out", None)
    if isinstance(drawn, HoldOut) and (version := _version_of_draw(run)) is not None:
        before["data"]["hold_out"]["version"] = version
    different = sorted(differences(_comparable(_completed(before)), _comparable(recipe.to_table())))
    return [key for key in different if not key.startswith(MAY_CHANGE)]


def with_earlier_draw(recipe: Recipe, run: Path) -> Recipe:
    """The recipe with the version by which a run that has begun drew its held-out pairs, unless it names one itself.

    Raises:
        InputError: they were drawn by a version that is not known here.
    """
    hold_out = getattr(recipe.data, "hold_out", None)
    if not isinstance(hold_out, HoldOut) or "version" in hold_out.model_fields_set:
        return recipe
    version = _version_of_draw(run)
    if version is None:
        return recipe
    drawn = HoldOut.model_validate({**hold_out.model_dump(), "version": version})
    return recipe.model_copy(update={"data": recipe.data.model_copy(update={"hold_out": drawn})})


def _version_of_draw(run: Path) -> int | None:
    """That of the pairs that a run holds out; None where it holds out none. Early runs did not note it."""
    drawn = (resolved_table(run) or {}).get("data", {}).get("hold_out")
    if not isinstance(drawn, dict):
        return None
    version = drawn.get("version", 1 if is_begun(run) and not (run / HELD_OUT).is_dir() else 2)
    if version not in VERSIONS:
        raise InputError(
            f"{run}: its held-out pairs were drawn by version {version} of the draw; this Transduce knows "
            f"{' and '.join(map(str, VERSIONS))}. Go on with the Transduce that began it, or choose another directory "
            "with --run."
        )
    return int(version)


def _completed(table: Table) -> Table:
    """With the keys that a run of an earlier version could not note, as they are if nobody sets them."""
    try:
        return parse_recipe(table, RESOLVED).to_table()
    except InputError:
        return table


def changed_search(run: Path, recipe: Recipe) -> list[str]:
    """The keys of [search] by which `recipe` differs from that of the run."""
    before, now = resolved_table(run) or {}, recipe.to_table()
    return sorted(differences(before.get("search", {}), _plain(now["search"]), "search."))


def resolved_table(run: Path) -> Table | None:
    """The recipe that a run notes; None where it notes none.

    Raises:
        InputError: it cannot be read.
    """
    path = run / RESOLVED
    try:
        found = toml_file(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: the recipe of this run cannot be read: {error}. Choose another --run.") from error
    if wrong := [name for name in SECTIONS if not isinstance(found.get(name, {}), dict)]:
        raise InputError(f"{path}: the recipe of this run is damaged: {', '.join(wrong)}: expected a table.")
    return found


def claim_data(run: Path, fingerprints: Mapping[str, Any]) -> None:
    """Note in a new run what its files hold; refuse to go on with a run whose files have changed since.

    Args:
        fingerprints: of the data, see `transduce.data.corpus.provenance`, and of other files, see `fingerprints_of`.

    Raises:
        InputError: which files changed.
    """
    check_data(run, fingerprints)
    write_json(run / NOTED, _plain(fingerprints))


def check_data(run: Path, fingerprints: Mapping[str, Any]) -> None:
    """Whether files hold what the run, if there is one, noted of them. Raises InputError as `claim_data`."""
    noted = run / NOTED
    if not noted.exists():
        return
    before, now = _read_noted(noted), _plain(fingerprints)
    unknown = [key for key in OTHERS if (key in before) != (key in now)]  # earlier versions noted none of these
    changed = sorted({*differences(_without_names(before), _without_names(now))} - {*unknown})
    if changed:
        raise InputError(
            f"{run}: its training began with other data; these have changed since: {', '.join(changed)} (fingerprints "
            f"are in {noted}). Restore the files, choose another directory with --run, or delete this one."
        )


def _read_noted(path: Path) -> Table:
    try:
        found = json.loads(read_text(path))
        if isinstance(found, dict):
            return found
        problem = "expected a table"
    except (OSError, ValueError, RecursionError) as error:
        problem = str(error)
    raise InputError(
        f"{path}: the fingerprints of this run's data cannot be read: {problem}. Choose another directory with --run, "
        "or delete this one."
    )


def fingerprints_of(recipe: Recipe) -> Table:
    """Of the files besides the data that decide what a training makes: the model it starts from, a tokenizer."""
    start, root = recipe.training.start, Path(getattr(recipe.data, "root", "."))
    found = {"start": fingerprint(find_model_file(start))} if start else {}
    return found | {key: fingerprint(root / file) for key, file in recipe.tokenizer.files.items()}


def without_folders(table: Any) -> Any:
    """`table` as it may leave this machine: a path below data.root as it is, of any other the file's name alone."""
    return _with_paths(table, _portable)


def is_begun(run: Path) -> bool:
    """Whether there is a checkpoint to go on from."""
    return any((run / FOLDER).glob(PATTERN))


def differences(one: Mapping[str, Any], other: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The dotted keys whose values differ."""
    found = []
    for key in {*one, *other}:
        here, there = one.get(key), other.get(key)
        if isinstance(here, dict) and isinstance(there, dict):
            found += differences(here, there, f"{prefix}{key}.")
        elif here != there:
            found.append(f"{prefix}{key}")
    return found


def _grows(run: Path, recipe: Recipe, key: str) -> bool:
    """Whether a limit is higher than the run's; a limit that is unset is the highest."""
    name = key.partition(".")[2]
    before, now = (resolved_table(run) or {}).get("training", {}).get(name), getattr(recipe.training, name)
    return now is None or (isinstance(before, int | float) and now > before)


def _comparable(table: Table) -> Table:
    """A recipe's table without what fingerprints decide."""
    table = _plain(table)
    for section in ("data", "tokenizer"):
        table[section] = _without_names(table.get(section, {}))
    table["data"].pop("root", None)
    table["data"].pop("workers", None)
    if "start" in table.get("training", {}):
        table["training"]["start"] = True
    return table


def _without_names(table: Any) -> Any:
    return _with_paths(table, lambda path: "")


def _with_paths(value: Any, change: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _with_paths(each, change, name) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_paths(each, change, key) for each in value]
    return change(value) if key in FILES and isinstance(value, str) else value


def _portable(path: str) -> str:
    pure = PurePath(path)
    return pure.name if pure.is_absolute() or ".." in pure.parts else path


def _plain(table: Any) -> Any:
    """As JSON and TOML read it back."""
    return json.loads(json.dumps(table))
