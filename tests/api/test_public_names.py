"""What `import transduce` offers: this list, each name with a docstring that says what a caller needs."""

import ast
import inspect
import re
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import transduce
from scripts import ROOT, loaded

PUBLIC = [
    "Evaluation",
    "ExplorerPage",
    "InputError",
    "Interrupted",
    "Pipeline",
    "Place",
    "Recipe",
    "Score",
    "TrainedRun",
    "TrainingUpdate",
    "TransduceError",
    "__version__",
    "capture",
    "evaluate",
    "explorer",
    "load",
    "train",
]
API = loaded("docs/make_api.py")
ENTRIES = {name: (thing, members) for _, entries in API.PAGES for name, thing, members in entries}
MEMBERS = [(name, each) for name, (_, members) in ENTRIES.items() for each in members]


def function_of(thing: Any) -> Any:
    """The function of a method or a property; None of a class."""
    if isinstance(thing, property):
        return thing.fget
    if isinstance(thing, cached_property):
        return thing.func
    if isinstance(thing, classmethod):
        return thing.__func__
    return inspect.unwrap(thing) if inspect.isfunction(thing) else None


def test_the_list() -> None:
    assert transduce.__all__ == PUBLIC
    assert {*PUBLIC} <= {*dir(transduce)}
    assert {*transduce.LATE} | {"InputError", "Interrupted", "TransduceError", "__version__"} == {*PUBLIC}
    tree = ast.parse(Path(str(transduce.__file__)).read_text(encoding="utf-8"))
    [typed] = [node for node in tree.body if isinstance(node, ast.If)]
    names = {alias.name for node in typed.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert names == {*transduce.LATE}  # type checkers see what is imported late
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = transduce.trian


def test_every_public_name_is_on_the_page() -> None:
    assert {f"transduce.{name}" for name in PUBLIC} - {"transduce.__version__"} <= {*ENTRIES}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_docstring_tells_arguments_errors_and_fields(name: str) -> None:
    thing, _ = ENTRIES[name]
    text = inspect.getdoc(thing) or ""
    assert len(text) > 20
    function = function_of(thing)
    if function is None:
        told = text + (inspect.getdoc(thing.__init__) or "")
        for field in getattr(thing, "__dataclass_fields__", {}):
            assert re.search(rf"\b{field}\b", told), f"{name}: its docstring does not say what {field} is"
    else:
        arguments = list(inspect.signature(function).parameters)
        assert [each for each in arguments if not re.search(rf"^ *{NAMES}{each}{NAMES}:", text, re.M)] == []
        assert "Raises:" in text


@pytest.mark.parametrize(("name", "member"), MEMBERS, ids=map(".".join, MEMBERS))
def test_a_method_tells_its_arguments(name: str, member: str) -> None:
    function = function_of(inspect.getattr_static(ENTRIES[name][0], member))
    text = inspect.getdoc(function) or ""
    assert len(text) > 8
    if "Args:" in text:
        arguments = {*inspect.signature(function).parameters} - {"self"}
        named = {each for line in re.findall(r"^    ((?:\w+, )*\w+):", text, re.M) for each in line.split(", ")}
        assert named - {"InputError"} <= arguments, f"{name}.{member} tells of arguments that it has not"


NAMES = r"(?:\w+, )*(?:, \w+)*"


def test_the_pages_examples_run(
    sentence_run: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "multi30k-en-de").symlink_to(sentence_run)
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    for block in blocks:
        exec(block, scope)
    told = capsys.readouterr().out
    assert "Training ended: all 20 updates done." in told
    assert "chrF" in told
    assert len(blocks) == 1
