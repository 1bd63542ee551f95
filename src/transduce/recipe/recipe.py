"""A recipe: all settings that determine the result of a training, read from TOML.

    base = "other.toml"              # optional: a recipe for all settings that are missing here, which may have a base
                                     # itself; its [model] is ignored if it is of another kind
    [task]                           # kind = "translation" | "language_modelling"
    [data]                           # which files; its keys depend on the task
    [tokenizer] [batch] [model] [training] [search]
    [teachers]                       # optional: models to train first, which this one learns from
    [backtranslation]                # optional: texts of the target language, which become training pairs
    [replay]                         # optional: pairs that the model to start from knows, so that it forgets less

Keys on the command line override the file: `training.updates=2000`. "none" unsets optional keys:
`training.minutes=none`. All problems of a recipe are reported at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any

from pydantic import SerializeAsAny, ValidationError

from transduce.core.bounded_toml import toml_file
from transduce.core.config import UNSET, Config
from transduce.core.config_errors import explain
from transduce.core.errors import InputError
from transduce.core.folders import RESOLVED
from transduce.core.foreign_files import told_of_foreign
from transduce.core.model_file import NAME, NO_MODELS, find_model_file, parsed_tables, refuse_url
from transduce.core.names import checked_name
from transduce.core.overrides import apply_overrides
from transduce.core.registry import resolve, suggest
from transduce.core.run_paths import in_run
from transduce.core.tensor_file import read_metadata
from transduce.core.trust import allow_code, check_code, foreign_code
from transduce.data.batches import BatchConfig
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.recipe.training import Backtranslation, Replay, Teachers, TrainingConfig
from transduce.search.dispatch import only_method
from transduce.search.settings import Search

Table = dict[str, Any]
BESIDE = ("data.json", "log.jsonl", "report.json", "plan.json", "checkpoints", NAME)  # what training leaves there
STACKS = {"transformer": "encoder_layers", "transformer_decoder": "layers"}  # models of text, by how deep they read
INHERITS_BESIDE = {
    "kind",
    "dropout",
    "inner_dropout",
}  # a [model] of these keys has all others of the one to start from


class Recipe(Config):
    """A resolved recipe, in which every key has a value: `recipe.training.updates`. It cannot be changed.

    name: of its run.
    task, data, model: of the kinds that it names.
    tokenizer, batch, training, search: the sections that every recipe has.
    teachers, backtranslation, replay: stages before its own training; None without.
    """

    name: str
    task: SerializeAsAny[Config]
    data: SerializeAsAny[Config]
    tokenizer: TokenizerConfig
    batch: BatchConfig
    model: SerializeAsAny[Config]
    training: TrainingConfig
    search: Search
    teachers: Teachers | None = None
    backtranslation: Backtranslation | None = None
    replay: Replay | None = None

    def to_table(self) -> Table:
        """The recipe as plain tables and values, for TOML and JSON."""
        return self.model_dump(mode="json", exclude_none=True)

    @classmethod
    def load(cls, path: str | PathLike[str], overrides: Iterable[str] = ()) -> "Recipe":
        """The recipe in a TOML file, with `a.b=value` overrides.

        Raises:
            InputError: the file is missing or is not TOML; unknown keys and wrong values, all of them at once.
        """
        return load_recipe(Path(path), overrides)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> "Recipe":
        """The recipe of sections as a TOML file has them. Classes that it names as `file:Class` may be imported.

        Raises:
            InputError: unknown keys, with the nearest known ones, and wrong values; all of them at once.
        """
        allow_code(table)
        return parse_recipe(dict(table), "recipe")


def load_recipe(path: Path, overrides: Iterable[str] = (), trust_code: bool = False) -> Recipe:
    """The recipe in a TOML file, with `a.b=value` overrides. Classes that it names as `file:Class` may be imported.

    Args:
        path: the file.
        overrides: keys to change.
        trust_code: let a recipe that lies in a run directory name such classes, too.

    Raises:
        InputError: the file is missing or is not TOML, keys are unknown (the message suggests the nearest), or values
            are wrong. Reports all problems at once. Or a recipe in a run directory names code outside Transduce.
    """
    table = read_table(path, is_trusted=(lambda _: True) if trust_code else is_users_own)
    table.setdefault("name", path.stem)
    _check_name(table["name"], str(path))
    return _parse_changed(table, list(overrides), str(path))


def load_run_recipe(path: Path, overrides: Iterable[str] = (), trust_code: bool = False) -> Recipe:
    """The same of a recipe that a command found by itself, in a run directory or beside a model: it may be anybody's.

    Raises:
        InputError: as `load_recipe`; or it names code outside Transduce, and that is not trusted.
    """
    table = read_table(path, is_trusted=lambda _: trust_code)
    table.setdefault("name", path.stem)
    return _parse_changed(table, list(overrides), str(path))


def is_users_own(path: Path) -> bool:
    """Whether somebody wrote this recipe, and no training did, whose directory may come from anywhere."""
    return path.name != RESOLVED or not any((path.parent / each).exists() for each in BESIDE)


def _check_name(name: Any, where: str) -> None:
    try:
        checked_name(name if isinstance(name, str) else "model")  # no text at all is told later
    except ValueError as error:
        raise InputError(f"{where}: name: {error}.") from None


def _parse_changed(table: Table, overrides: list[str], where: str) -> Recipe:
    """The recipe with overrides. Errors tell what is wrong with the file from what an override makes wrong."""
    changed = apply_overrides(deepcopy(table), overrides)
    allow_code(apply_overrides({}, overrides))
    try:
        return parse_recipe(with_model_to_start_from(changed), where)
    except InputError as error:
        if not overrides:
            raise
        problems = [_of_other_kind(each, table, changed) for each in error.problems]
        before, named = _problems(table, where), f"{where} with {' '.join(overrides)}"
        raise InputError(each if each in before else each.replace(where, named, 1) for each in problems) from None


def _of_other_kind(problem: str, table: Table, changed: Table) -> str:
    """A problem; of a key that the file has for its own kind, and that an override's kind does not have, what to do."""
    for section in KINDS:
        old, new = _kind_of(table, section), _kind_of(changed, section)
        before, found, key = problem.partition(f"unknown key {section}.")
        key = key.partition(". ")[0].removesuffix(".")
        if old != new and found and key in table.get(section, {}):
            return (
                f'{before}{section}.{key}: {section}.kind = "{old}" has this key, "{new}" does not. Remove the key; or '
                f'write a recipe that names this one as its base and has its own [{section}] with kind = "{new}", '
                f"which replaces the base's."
            )
    return problem


def _problems(table: Table, where: str) -> list[str]:
    try:
        parse_recipe(with_model_to_start_from(table), where)
    except InputError as error:
        return error.problems
    return []


def with_model_to_start_from(table: Table) -> Table:
    """With the [model] of `training.start`, where the recipe says nothing of its own but of dropout.

    Raises:
        InputError: there is no such model.
    """
    training, model = table.get("training"), table.get("model", {})
    start = training.get("start") if isinstance(training, dict) else None
    if not isinstance(start, str) or start == UNSET or not isinstance(model, dict) or set(model) - INHERITS_BESIDE:
        return table
    path = find_model_file(start)
    config = parsed_tables(path, read_metadata(path))["config"]
    begun = config.get("model")
    if not isinstance(begun, dict) or foreign_code(begun):
        return table
    if _kind_of(config, "task") != _kind_of(table, "task") or model.get("kind", begun["kind"]) != begun["kind"]:
        begun = _what_reads(begun, _kind_of(table, "model"))
    return {**table, "model": {**begun, **model}}


def _what_reads(begun: Table, kind: str) -> Table:
    """The keys of a model to start from that another kind of model shares with it: those of an encoder of texts."""
    shared = getattr(resolve("models", kind), "SHARED", ())
    if begun["kind"] in STACKS:
        begun = {**begun, "encoder": "transformer", "layers": begun[STACKS[begun["kind"]]]}
    elif "encoder" not in begun:
        shared = ()
    return {key: value for key, value in begun.items() if key in shared} | {"kind": kind}


def parse_recipe(table: Table, where: str) -> Recipe:
    """The recipe in `table`, which errors call `where`. Raises the errors of `load_recipe`."""
    problems = [f"{where}: unknown section [{key}].{suggest(key, SECTIONS)}" for key in table if key not in SECTIONS]
    sections: dict[str, Any] = {"name": table.get("name", "")}
    if not isinstance(sections["name"], str):
        problems.append(f"{where}: name: expected text; got {sections['name']!r}.")
    for name, kind in _section_kinds(table, where, problems).items():
        value = table.get(name, {})
        if name == "search" and isinstance(value, dict) and (method := _only_method(table)):
            value = {"method": method, **value}
        try:
            sections[name] = kind.model_validate(value)
        except ValidationError as error:
            problems += [f"{where}: {problem}" for problem in explain(error, kind, name)]
    problems += [f"{where}: {problem}" for problem in _disagreements(sections)]
    if problems:
        raise InputError(problems)
    return Recipe(**sections)


def _disagreements(sections: dict[str, Any]) -> Iterator[str]:
    """Problems between sections. Sections with problems of their own are left out."""
    model, tokenizer, batch, training = (sections.get(each) for each in ("model", "tokenizer", "batch", "training"))
    if getattr(model, "pointer", False) and tokenizer and not tokenizer.joint:
        yield "model.pointer copies source words by their ids, which needs tokenizer.joint = true."
    if batch and batch.tokens == "auto" and training and training.accumulate > 1:
        yield 'batch.tokens = "auto" also decides training.accumulate: leave that out, and set batch.effective_tokens.'
    task, data = sections.get("task"), sections.get("data")
    if batch and hasattr(data, "batch_size") and batch != BatchConfig():
        yield "[batch]: examples of this task are generated in batches of data.batch_size: leave out the section."
    if getattr(task, "carry_state", False):
        yield from _not_carried(data, batch, training)
    hold_out = getattr(data, "hold_out", None)
    if isinstance(hold_out, Config):
        yield from _drawn_from_further_pairs(sections.get("teachers"), sections.get("backtranslation"))
    drawn = getattr(hold_out, "validation", 0)
    if task and training and ":" not in task.kind and (getattr(data, "validation", None) or drawn):
        metrics = getattr(task, "metrics", ()) if training.decode_sentences else ()
        if training.best not in (measured := ["loss", "perplexity", *metrics]):
            yield unmeasured(training.best, measured)


def _drawn_from_further_pairs(teachers: Any, backtranslation: Any) -> Iterator[str]:
    """Problems of stages with data.hold_out. Pairs with a tag are not drawn from."""
    would = "makes further training pairs, from which data.hold_out would draw others:"
    if teachers:
        yield f"[teachers] {would} name files for data.validation and data.test."
    if backtranslation and not backtranslation.tag:
        yield (
            f"[backtranslation] {would} a tag is missing. Set backtranslation.tag, such as <BT>, as pairs with a tag "
            "are not drawn from; or name files for data.validation and data.test."
        )


def _not_carried(data: Any, batch: BatchConfig | None, training: TrainingConfig | None) -> Iterator[str]:
    """Problems of settings with task.carry_state."""
    train = getattr(data, "train", ())
    if len(train) > 1 or any(file.weight != 1 for file in train):
        yield "task.carry_state reads one training text in order: name one file in data.train, without a weight."
    if batch and batch.tokens == "auto":
        yield 'task.carry_state: batch.tokens / context is the number of parallel streams: give a number, not "auto".'
    if training and training.r_drop:
        yield "task.carry_state: training.r_drop passes each batch twice, with two states: leave it out."


def unmeasured(best: str, measured: Iterable[str]) -> str:
    """The error for a training.best that validation does not measure."""
    names = list(measured)
    return (
        f'training.best = "{best}", but validation does not measure it.{suggest(best.lower(), names)} '
        f"Measured: {', '.join(names)}. To measure more, set task.metrics, and training.decode_sentences above 0."
    )


STAGES: dict[str, type[Config]] = {"teachers": Teachers, "backtranslation": Backtranslation, "replay": Replay}
SECTIONS = list(Recipe.model_fields)


def _section_kinds(table: Table, where: str, problems: list[str]) -> dict[str, type[Config]]:
    kinds: dict[str, type[Config]] = {
        "tokenizer": TokenizerConfig,
        "batch": BatchConfig,
        "training": TrainingConfig,
        "search": Search,
    }
    kinds |= {name: kind for name, kind in STAGES.items() if table.get(name, UNSET) != UNSET}
    for section, room in (("task", "tasks"), ("model", "models")):
        try:
            found = resolve(room, _kind_of(table, section))
        except InputError as error:
            problems += [f"{where}: [{section}] kind: {problem}" for problem in error.problems]
            continue
        kinds[section] = found.Config
        if section == "task":
            kinds["data"] = found.Data
    return kinds


KINDS = ("task", "model")  # sections whose keys depend on their kind


def _only_method(table: Table) -> str | None:
    """The one search for a model that writes all words at once, as none from token to token suits it."""
    try:
        return only_method(resolve("models", _kind_of(table, "model")))
    except InputError:  # told elsewhere
        return None


def _kind_of(table: Table, section: str) -> str:
    value = table.get(section, {})
    kind = value.get("kind") if isinstance(value, dict) else None
    return _default_kind(table, section) if kind is None else str(kind)


def _default_kind(table: Table, section: str) -> str:
    """Of a section that names none: translation, and the model that suits the task."""
    if section == "task":
        return "translation"
    try:
        return str(resolve("tasks", _kind_of(table, "task")).default_model)
    except InputError:  # told elsewhere
        return "transformer"


def read_table(path: Path, above: tuple[Path, ...] = (), is_trusted: Callable[[Path], bool] = is_users_own) -> Table:
    """The table of a recipe's file merged over its base, before validation.

    Args:
        path: the file.
        above: the files that use this one as a base.
        is_trusted: whether the code that is named in a file may be imported; asked of the file and of each base.

    Raises:
        InputError: a file is missing or is not TOML, or a recipe is its own base; code is named that is not trusted.
    """
    if any(path.resolve() == each.resolve() for each in above):
        chain = " -> ".join(map(str, (*above, path)))
        raise InputError(f"{path}: this recipe is its own base: {chain}. Remove one of these bases.")
    table = _read(path)
    check_code(table, str(path), is_trusted(path))
    base = table.pop("base", None)
    if base is None:
        return table
    if not isinstance(base, str):
        raise InputError(f"{path}: base: expected the name of one recipe file; got {base!r}.")
    return lay_over(read_table(path.parent / base, (*above, path), is_trusted), table)


def lay_over(base: Table, overrides: Table) -> Table:
    """`overrides` merged over `base`. A [model] or [task] of another kind replaces the one in `base`."""
    return merge({key: value for key, value in base.items() if not _other_kind(key, base, overrides)}, overrides)


def _other_kind(section: str, base: Table, overrides: Table) -> bool:
    """Whether `overrides` names a kind that differs from `base`'s. Without a kind, it only changes keys."""
    named = overrides.get(section)
    if section not in KINDS or not isinstance(named, dict) or "kind" not in named:
        return False
    return _kind_of(overrides, section) != _kind_of(base, section)


def merge(base: Table, overrides: Table) -> Table:
    """`overrides` merged over `base`, table by table. Lists and values are replaced as a whole."""
    merged = dict(base)
    for key, value in overrides.items():
        under = merged.get(key)
        merged[key] = merge(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
    return merged


def _read(path: Path) -> Table:
    try:
        return dict(in_run(toml_file(path), path.parent.absolute()))
    except FileNotFoundError:
        refuse_url(path, "recipes")
        near = suggest(path.name, [each.name for each in path.parent.glob("*.toml")]) if path.parent.is_dir() else ""
        raise InputError(f"{path}: there is no such recipe.{near}") from None
    except UnicodeDecodeError as error:
        raise InputError([_no_text(path), *_what_a_recipe_is(path)]) from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise InputError([f"{path}: not TOML: {error}", *_what_a_recipe_is(path)]) from error


def _no_text(path: Path) -> str:
    """What is wrong with a file that is not UTF-8."""
    if path.suffix == Path(NAME).suffix:
        return f"{path}: this is a model, not a recipe. To continue from it, add training.start={path} to a recipe."
    return f"{path}: {NO_MODELS.get(path.suffix, 'not UTF-8 text, so not a recipe.').format(path=path)}"


def _what_a_recipe_is(path: Path) -> list[str]:
    """For whoever names the text to learn from instead."""
    if path.suffix == ".toml":
        return []
    if told := told_of_foreign(path.name):
        return [f"{path.name}:{told}"]
    return [
        "Expected a recipe, which names the files to learn from; README.md, Your own data, shows a small one. To train "
        "without a recipe: transduce train --source FILE --target FILE."
    ]
