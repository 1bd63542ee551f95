"""The models of a server by name, each replaced when its file changes."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from transduce.core.errors import InputError
from transduce.core.model_file import NAME, find_model_file
from transduce.core.registry import suggest
from transduce.data.columns.frames import Frames
from transduce.data.tags import languages_of
from transduce.interop.ctranslate2_folder import weights_of
from transduce.kernels.matmul import Precision, make_programs
from transduce.pipeline.pipeline import Pipeline, load
from transduce.runtime.event_log import NAME as LOG
from transduce.search.settings import search_settings

UNSAID = "und"  # ISO 639-2: the recipe does not say which language
Stamp = tuple[int, int, int]  # what of a file changes when it does
Engine = Literal["transduce", "ctranslate2"]

log = logging.getLogger("transduce.serve")


class Loaded(NamedTuple):
    """One version of a model. A request keeps its version to the end, even if a newer one is loaded.

    tagged: the languages that it writes if a tag before the source says so; see `transduce.data.tags`.
    """

    name: str
    pipeline: Pipeline
    version: int
    source: str
    target: str
    translates: bool
    tagged: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """All languages that it writes."""
        untagged = (self.target,) if not self.tagged or self.target != UNSAID else ()
        return tuple(dict.fromkeys((*self.tagged, *untagged)))

    def reads(self, source: str) -> bool:
        """Whether it may be given text in this language, or "auto". One that writes several may read several, too:
        where its recipe names none, any."""
        return source in (self.source, "auto") or (bool(self.tagged) and self.source == UNSAID)


class ModelUse(NamedTuple):
    """How models are used. search: keys of `transduce.search.settings.Search` in place of each recipe's.

    seconds: models of speech hear uploads of at most so long.
    files: they also hear files of this machine, by name, where only the machine's own user asks.
    engine: what computes. "ctranslate2" runs folders of CTranslate2; see `transduce.interop.ctranslate2_pipeline`.
    threads: of an engine with threads of its own; None = as many as torch has.
    """

    trust_code: bool = False
    precision: Precision = "fp32"
    device: str = "auto"
    search: Mapping[str, Any] = MappingProxyType({})
    seconds: float | None = 120.0
    files: bool = False
    engine: Engine = "transduce"
    threads: int | None = None


PLAIN = ModelUse()


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

    def look(self) -> bool | None:
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
        file = weights_of(self.path) if self._use.engine == "ctranslate2" else find_model_file(self.path)
        status = file.stat()
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _load(self, version: int) -> Loaded:
        pipeline = self._opened()
        search = search_settings(pipeline.recipe.search, dict(self._use.search))
        pipeline.recipe = pipeline.recipe.model_copy(update={"search": search})
        source = pipeline.task.columns.get("source")
        if isinstance(source, Frames):
            hears = replace(source, seconds=self._use.seconds, files=self._use.files)
            pipeline.task.columns = {**pipeline.task.columns, "source": hears}
        if pipeline.searches:
            pipeline.predict([""])  # settings that this model cannot be searched by are told of now
        task = pipeline.recipe.task
        translates = "source" in pipeline.task.columns and not isinstance(source, Frames)
        reads, writes = (str(getattr(task, side, "") or UNSAID) for side in ("source", "target"))
        tokenizer = pipeline.task.tokenizers.get("source")  # trees and graphs have none
        tagged = tuple(languages_of(tokenizer)) if translates and tokenizer else ()
        return Loaded(self.name, pipeline, version, reads, writes, translates, tagged)

    def _opened(self) -> Pipeline:
        use = self._use
        if use.engine == "transduce":
            pipeline = load(self.path, trust_code=use.trust_code, precision=use.precision, device=use.device)
            make_programs(pipeline.model)
            return pipeline
        from transduce.interop.ctranslate2_pipeline import CTranslate2Pipeline  # late: few servers need it

        return CTranslate2Pipeline(self.path, use.precision, use.device, use.threads)


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
        named = [_named(str(each)) for each in asked]
        names = [name for name, _ in named]
        if len(set(names)) < len(names):
            raise InputError(
                f"two models have the same name among {', '.join(names)}; name them: a=runs/one b=runs/two."
            )
        runs = [run] + [None] * len(named)
        return cls([Model(name, path, use, run) for (name, path), run in zip(named, runs, strict=False)])

    def __iter__(self) -> Any:
        return iter(self._models.values())

    @property
    def default(self) -> Loaded:
        """The first."""
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
    def hear(self) -> bool:
        """Whether any of them is a model of speech."""
        columns = (model.current.pipeline.task.columns for model in self)
        return any(isinstance(each.get("source"), Frames) for each in columns)

    def run(self, name: str) -> Path | None:
        """The directory of the training of the model of this name, which must be one."""
        found: Path | None = self._models[name].run
        return found

    def translator(self, source: str, target: str) -> Loaded:
        """The first model from `source`, or "auto", to `target`.

        Raises:
            InputError: none translates so, or "auto" could mean several languages.
        """
        pairs = [model.current for model in self if model.current.translates]
        fitting = [each for each in pairs if target in each.targets and each.reads(source)]
        fitting = [each for each in fitting if each.source == source] or fitting
        if not fitting:
            written = [f"{each.source} to {one}" for each in pairs for one in each.targets]
            known = ", ".join(dict.fromkeys(written)) or "nothing"
            raise InputError(f"{source[:20]} to {target[:20]} is not supported; this server translates {known}.")
        if len({each.source for each in fitting}) > 1:
            sources = ", ".join(dict.fromkeys(each.source for each in fitting))
            raise InputError(
                f"source: name one of {sources}: several models translate to {target}, and auto does not detect "
                "languages."
            )
        return fitting[0]


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
                done = model.look()
                if done is not None:
                    self._tell(model.name, done)

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def _run_of(path: Path) -> Path | None:
    """The run that a model file lies in, as its training left it."""
    folder = path if path.is_dir() else path.parent
    return folder if (folder / LOG).is_file() and find_model_file(path).name == NAME else None


def _named(asked: str) -> tuple[str, Path]:
    name, equals, path = asked.partition("=")
    if equals and name and path and not Path(asked).exists():
        return name, Path(path)
    found = Path(asked).resolve()
    return found.parent.name if found.name == NAME else found.name.removesuffix(".safetensors"), Path(asked)
