"""A task of one's own that states only what differs: everything else has a default in `tasks/base.py`."""

import sys
from pathlib import Path

import pytest

import forked
from transduce.core import trust
from transduce.core.errors import InputError
from transduce.core.registry import resolve
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.search.settings import Search
from transduce.tasks.base import ANY_LENGTH
from transduce.tasks.protocols import TaskData

CODE = '''
from transduce.core.config import Config
from transduce.data.columns.tokens import Tokens
from transduce.data.encoding import open_examples
from transduce.data.files import read_lines
from transduce.data.filters import FilterConfig
from transduce.data.tokenizers.tokenizer import train_tokenizer
from transduce.search.request import Request
from transduce.tasks.base import ExampleFile, Task, TextTask
from transduce.tasks.protocols import Dataset, TaskData


class OwnConfig(Config):
    kind: str = "own_task:Reverse"
    metrics: tuple[str, ...] = ("exact_match",)


class OwnData(Config):
    root: str = "."
    train: tuple[ExampleFile, ...]
    validation: ExampleFile | None = None
    test: dict[str, ExampleFile] = {}


def read(path):
    for number, line in enumerate(read_lines(path), 1):
        yield number, line, " ".join(reversed(line.split()))


class Reverse(TextTask):
    """The words of a line from the last to the first."""

    Config, Data = OwnConfig, OwnData
    kinds = {"source": "tokens", "target": "tokens"}

    @classmethod
    def learn_columns(cls, config, data):
        lines = (line for path in cls.training_files(data) for line in read_lines(path))
        tokenizer = train_tokenizer(config, lines)
        return {"source": Tokens(tokenizer, ends=True), "target": Tokens(tokenizer, starts=True, ends=True)}

    def request(self, ids, search):
        return Request(search.limit(len(ids)), self.columns["source"].closed(ids))

    def open(self, cache, tell):
        found = {name: self._dataset(file, cache) for name, file in self.held_out.items()}
        corpora = [(self._dataset(file, cache).store, 1.0) for file in self.data.train]
        noted = {"train": [{"file": file.file} for file in self.data.train]}
        return TaskData(corpora, found.pop("validation", None), found, noted)

    def _dataset(self, file, cache):
        [path] = file.paths(self.root)
        store = open_examples([path], lambda: read(path), self.columns, FilterConfig(), cache)
        return Dataset(store, [(line, turned) for _, line, turned in read(path)])


class Unfinished(Task):
    Config, Data, kinds = OwnConfig, OwnData, {"target": "label"}
'''
RECIPE = """
[task]
kind = "own_task:Reverse"
[data]
train = [{ file = "train.txt" }]
validation = { file = "valid.txt" }
test.new = { file = "valid.txt" }
[tokenizer]
kind = "whitespace"
[batch]
tokens = 100
[model]
kind = "rnn"
d_model = 16
hidden = 16
[training]
updates = 3
threads = 1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the task, its files and a recipe."""
    for name, text in {
        "own_task.py": CODE,
        "own.toml": RECIPE,
        "train.txt": "a b c\nb a\n",
        "valid.txt": "c a\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(trust, "_allowed", set())
    monkeypatch.delitem(sys.modules, "own_task", raising=False)
    trust.allow_code(["own_task:Reverse"])
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_it_trains_and_is_found_again_when_typed_twice(folder: Path) -> None:
    for _ in range(2):
        done = forked.transduce(folder, "train", "own.toml", "--run", "run")
        assert done.code == 0, done.err
        told = done.out.split("Next:")[1]
        assert "transduce predict run --trust-code" in told
        assert "transduce evaluate" not in told, "that command cannot read these files"
    assert "exact match" in done.out


def test_what_it_does_not_state_has_a_default(folder: Path) -> None:
    kind = resolve("tasks", "own_task:Reverse")
    data = kind.Data(train=[{"file": "train.txt"}])
    task = kind(kind.Config(), data, kind.learn_columns(tokenizer(), data))
    assert (task.max_source_length, task.context, task.drawing, task.explorable) == (ANY_LENGTH, "the input", "", True)
    assert kind.pairs(data) is kind.recordings(data) is kind.fingerprints(data) is None
    assert task.baseline(TaskData([], None, {}, {}), print) is task.confusion(["a"], ["a"]) is None
    assert task.evaluate(["b a"], ["b a"])["exact_match"].value == 100
    assert task.tallies(["b a"], ["b"], ["wer"])["wer"].value == 100
    assert task.costs([-1.0]) == {}


def test_it_is_advised_on_the_length_of_outputs(folder: Path) -> None:
    kind = resolve("tasks", "own_task:Reverse")
    data = kind.Data(train=[{"file": "train.txt"}], validation={"file": "valid.txt"})
    task = kind(kind.Config(), data, kind.learn_columns(tokenizer(), data))
    opened = task.open(folder / "cache", print)
    [told] = task.advise(opened, Search(max_length_factor=0.1, max_length_offset=0))
    assert told.startswith("1 of 1 targets for validation are longer than an output may be")


def test_what_is_missing_is_named(folder: Path) -> None:
    with pytest.raises(InputError) as error:
        resolve("tasks", "own_task:Unfinished")
    assert str(error.value).endswith(
        "is another kind of class: it has no learn_columns and no open and no objective and no predictor."
    )


def tokenizer() -> TokenizerConfig:
    return TokenizerConfig(kind="whitespace")
