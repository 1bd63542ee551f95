"""The models of a server by name, each replaced when its file changes."""

import logging
import threading
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from transduce.core.errors import InputError
from transduce.core.model_file import NAME, find_model_file
from transduce.core.registry import suggest
from transduce.data.tags import languages_of
from transduce.runtime.event_log import NAME as LOG
from transduce.serve.datastores import datastores_of
from transduce.serve.kernels_model import opened as without_torch
from transduce.serve.served_model import ModelUse, ServedModel

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

UNSAID = "und"  # ISO 639-2: the recipe does not say which language
Stamp = tuple[int, int, int]  # what of a file changes when it does
PLAIN = ModelUse()

log = logging.getLogger("transduce.serve")


class Loaded(NamedTuple):
    """One version of a model. A request keeps its version to the end, even if a newer one is loaded.

    tagged: the languages that it writes if a tag before the source says so; see `transduce.data.tags`.
    """

    name: str
    served: ServedModel
    version: int
    source: str
    target: str
    tagged: tuple[str, ...] = ()

    @property
    def pipeline(self) -> "Pipeline":
        """What can be looked into. Raises InputError where only translations are to be had."""
        return self.served.pipeline

    @property
    def translates(self) -> bool:
        """Whether it reads a text and writes another."""
        return self.served.translates

    @property
    def targets(self) -> tuple[str, ...]:
        untagged = (self.target,) if not self.tagged or self.target != UNSAID else ()
        return tuple(dict.fromkeys((*self.tagged, *untagged)))

    @property
    def is_translator(self) -> bool:
        """Whether its task is translation. Other tasks may read a text and write another as well."""
        return self.translates and self.served.kind == "translation"

    def reads(self, source: str) -> bool:
        """Whether it may be given text in this language, or "auto". One that writes several may read several, too:
        where its recipe names none, any."""
        return source in (self.source, "auto") or (bool(self.tagged) and self.source == UNSAID)


class Model:
    """A model file that is checked for changes. `current` switches at once from one complete model to the next.

    run: the directory of its training, or None if it is not known.
    problem: why the current file is not in use, or None if it is.
    """

    def __init__(self, name: str, path: Path, use: ModelUse = PLAIN, run: Path | None = None) -> None:
        self.name = name
        self.path = path
        self.run = run or _run_of(path)
        self.problem: str | None = None
        self._use = use
        self._seen = self._stamp()
        self._tried: Stamp | None = self._seen
        self.current = self._load(1)

    def reload_if_changed(self) -> bool | None:
        """Load the file if it changed and then stayed as it is for one look. True: loaded; False: it is no good."""
        try:
            stamp = self._stamp()
        except (InputError, OSError) as error:
            return self._keep(f"{error}", None)
        settled, self._seen = stamp == self._seen, stamp
        if not settled or stamp == self._tried:
            return None
        self._tried = stamp
        try:
            self.current = self._load(self.current.version + 1)
        except Exception as error:  # whatever a file makes the loader do, the model in use stays
            return self._keep(f"{type(error).__name__}: {error}", stamp)
        self.problem = None
        log.info("%s: loaded version %d of %s.", self.name, self.current.version, self.path)
        return True

    def _keep(self, problem: str, stamp: Stamp | None) -> bool | None:
        if problem == self.problem and stamp is None:
            return None
        self._tried = stamp
        self.problem = problem
        log.error("%s: version %d stays in use: %s", self.name, self.current.version, problem)
        return False

    def _stamp(self) -> Stamp:
        status = self._file().stat()
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _file(self) -> Path:
        if self._use.engine == "ctranslate2":
            from transduce.interop.ctranslate2_pipeline import weights_of  # late: it needs torch

            return weights_of(self.path)
        return find_model_file(self.path)

    def _load(self, version: int) -> Loaded:
        served = self._opened()
        source, target = (code or UNSAID for code in served.languages)
        tokenizer = served.tokenizers.get("source")  # trees and graphs have none
        tagged = tuple(languages_of(tokenizer)) if served.translates and tokenizer else ()
        return Loaded(self.name, served, version, source, target, tagged)

    def _opened(self) -> ServedModel:
        use = self._use
        if use.datastore and (use.engine == "kernels" or find_spec("torch") is None):
            raise InputError(f"{self.name}: a datastore needs torch. Install it, and leave out --engine kernels.")
        if not use.datastore and use.engine in ("auto", "kernels"):
            helped = use.engine == "auto" and find_spec("torch") is not None
            found = without_torch(self.path, use, partial(self._same_with_torch, self._stamp()) if helped else None)
            if found:
                return found
        return _with_torch(self.path, use)

    def _same_with_torch(self, stamp: Stamp) -> ServedModel:
        """The version whose file had this stamp. Raises InputError where the file is another one by now."""
        if self._stamp() == stamp:
            log.info("%s: loading it with torch as well, for what the kernels do not do.", self.name)
            found = _with_torch(self.path, self._use)
            if self._stamp() == stamp:
                return found
        raise InputError(f"{self.name}: its file was replaced; ask again in a few seconds.")


def _with_torch(path: Path, use: ModelUse) -> ServedModel:
    from transduce.serve.pipeline_model import opened  # late: torch takes seconds, and may be missing

    found = opened(path, use)
    if use.threads:
        import torch

        torch.set_num_threads(use.threads)  # it may not have been there when the server's thread began
    return found


class Models:
    """All models of a server, in the order they were named; the first is the default."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = {model.name: model for model in models}
        if not models:
            raise InputError("no model to serve: name at least one run directory or model file.")
        if len(self._models) < len(models):
            raise InputError("two models have the same name; give them different ones: a=runs/one b=runs/two.")

    @classmethod
    def open(cls, asked: Sequence[str | PathLike[str]], use: ModelUse = PLAIN, run: Path | None = None) -> "Models":
        """From `path` or `name=path` each. Without a name a model is called as its file, or as its run's folder.

        Args:
            run: where the first one was trained, if not where its file lies.

        Raises:
            InputError: a file is missing or no good, or cannot be used so, or two have one name.
        """
        named = [named_model(str(each)) for each in asked]
        names = [name for name, _ in named]
        if len(set(names)) < len(names):
            raise InputError(
                f"two models have the same name among {', '.join(names)}; name them: a=runs/one b=runs/two."
            )
        runs, stores = [run] + [None] * len(named), datastores_of(use.datastores, names)
        uses = [use._replace(datastore=stores.get(name)) for name in names]
        return cls([Model(name, path, own, run) for (name, path), own, run in zip(named, uses, runs, strict=False)])

    def __iter__(self) -> Any:
        return iter(self._models.values())

    @property
    def default(self) -> Loaded:
        return next(iter(self._models.values())).current

    def asked(self, name: str | None) -> Loaded:
        """The current version of the model of this name; of the first for None.

        Raises:
            InputError: there is none of this name.
        """
        return self.default if name is None else self.named(name)

    def named(self, name: str) -> Loaded:
        """The current version of a model.

        Raises:
            InputError: there is none of this name.
        """
        if name not in self._models:
            near = suggest(name[:80], list(self._models))
            raise InputError(f'there is no model "{name[:80]}"; this server has {", ".join(self._models)}.{near}')
        return self._models[name].current

    @property
    def accepts_audio(self) -> bool:
        """Whether any of them is a model of speech."""
        return any(model.current.served.accepts_audio for model in self)

    def run(self, name: str) -> Path | None:
        """The directory of the training of the model of this name, which must be one."""
        return self._models[name].run

    def translating(self, source: str, target: str) -> list[Loaded]:
        """The models from `source`, or "auto", to `target`: those that name this source before those that take any."""
        pairs = [model.current for model in self if model.current.translates]
        fitting = [each for each in pairs if target in each.targets and each.reads(source)]
        return [each for each in fitting if each.source == source] or fitting

    def translator(self, source: str, target: str) -> Loaded:
        """The first model from `source` to `target`.

        Raises:
            InputError: none translates so.
        """
        fitting = self.translating(source, target)
        if not fitting:
            pairs = [model.current for model in self if model.current.translates]
            written = [f"{each.source} to {one}" for each in pairs for one in each.targets]
            known = ", ".join(dict.fromkeys(written)) or "nothing"
            raise InputError(f"{source[:20]} to {target[:20]} is not supported; this server translates {known}.")
        return fitting[0]

    def through(self, source: str, target: str) -> tuple[Loaded, Loaded, str] | None:
        """Two models that join in a third language, and its code; None where none do, or one model does it alone."""
        if source == target or self.translating(source, target):
            return None
        for first in [model.current for model in self if model.current.translates and model.current.reads(source)]:
            for pivot in first.targets:
                if pivot not in (UNSAID, source) and (second := self.translating(pivot, target)):
                    return first, second[0], pivot
        return None

    @property
    def pairs(self) -> dict[str, list[str]]:
        """Each language -> those that it is translated into, by one model or through a third language, and itself."""
        translators = [model.current for model in self if model.current.translates]
        found: dict[str, list[str]] = {}
        for each in translators:
            found.setdefault(each.source, []).extend(each.targets)
            for code in each.targets:
                found.setdefault(code, [])
        for source, targets in found.items():
            targets += [code for code in found if code != source and self.through(source, code)]
        return {source: list(dict.fromkeys([*targets, source])) for source, targets in found.items()}


class Watcher(threading.Thread):
    """Looks at the model files until it is told to stop.

    tell: told (name, whether the new file is in use) after every change.
    """

    def __init__(self, models: Models, seconds: float, tell: Any) -> None:
        super().__init__(name="transduce-watcher", daemon=True)
        self._models, self._seconds, self._tell = models, seconds, tell
        self._stopped = threading.Event()

    def run(self) -> None:
        while not self._stopped.wait(self._seconds):
            for model in self._models:
                done = model.reload_if_changed()
                if done is not None:
                    self._tell(model.name, done)

    def stop(self, patience: float) -> None:
        """Look no more; a file that is being loaded is not waited for longer than so many seconds."""
        self._stopped.set()
        self.join(patience)


def _run_of(path: Path) -> Path | None:
    """The run that a model file lies in, as its training left it."""
    folder = path if path.is_dir() else path.parent
    return folder if (folder / LOG).is_file() and find_model_file(path).name == NAME else None


def named_model(asked: str) -> tuple[str, Path]:
    """The name of a model and its path, from `path` or `name=path`."""
    name, equals, path = asked.partition("=")
    if equals and name and path and not Path(asked).exists():
        return name, Path(path)
    found = Path(asked).resolve()
    return found.parent.name if found.name == NAME else found.name.removesuffix(".safetensors"), Path(asked)
