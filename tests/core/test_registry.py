"""A name is a file name."""

import sys
from pathlib import Path

import pytest

from transduce.attention.scores import AttentionScore, LocationAware
from transduce.core import registry, trust
from transduce.core.errors import InputError
from transduce.core.registry import check, known, resolve, suggest
from transduce.core.trust import allow_code
from transduce.models.transformer import Transformer


def test_known_are_the_files_of_a_room() -> None:
    assert {"transformer", "transformer_decoder"} <= set(known("models"))
    assert not {"protocols", "__init__"} & set(known("models"))
    assert {
        "algorithmic",
        "translation",
        "language_modelling",
        "classification",
        "masked_language_modelling",
        "graph_classification",
        "node_classification",
        "extractive_qa",
        "parsing",
        "question_answering",
        "speech_recognition",
        "tagging",
        "text_encoding",
        "tree_classification",
    } == set(known("tasks"))


@pytest.mark.parametrize("room", ["models", "tasks"])
def test_every_known_name_resolves_to_a_class_with_a_config_of_that_kind(room: str) -> None:
    for name in known(room):
        assert resolve(room, name).Config.model_fields["kind"].default == name


def test_a_name_is_the_class_of_its_file() -> None:
    assert resolve("models", "transformer") is Transformer


@pytest.mark.parametrize(
    ("wrong", "meant"), [("transfomer", "transformer"), ("Transformer", "transformer"), ("decoder", None)]
)
def test_an_unknown_name_suggests_the_nearest(wrong: str, meant: str | None) -> None:
    with pytest.raises(InputError) as raised:
        resolve("models", wrong)
    message = str(raised.value)
    assert f'there is no "{wrong}"' in message
    assert "Known: " in message
    assert "my_package.my_file:MyClass" in message
    if meant:
        assert f'Did you mean "{meant}"?' in message


def test_nothing_near_suggests_nothing() -> None:
    assert suggest("xyzzy", ["transformer", "translation"]) == ""
    assert suggest("model", []) == ""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder, and the interpreter as it was afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setattr(trust, "_allowed", {"my_own_file", "my_own_package.inside", "my_other_file"})
    monkeypatch.setattr(registry, "NEEDED", {})  # which these classes are too small for
    allow_code([f"{name}:MyModel" for name in ("no_such_file", "my_broken_file")])
    return tmp_path


def test_a_users_own_class_is_found_from_the_working_folder(here: Path) -> None:
    (here / "my_own_file.py").write_text("class MyModel:\n    x = 42\n")
    assert resolve("models", "my_own_file:MyModel").x == 42


def test_a_users_own_class_in_a_package(here: Path) -> None:
    (here / "my_own_package").mkdir()
    (here / "my_own_package" / "inside.py").write_text("class MyTask:\n    x = 43\n")
    assert resolve("tasks", "my_own_package.inside:MyTask").x == 43


def test_a_missing_class_and_a_missing_file_are_told_apart(here: Path) -> None:
    (here / "my_other_file.py").write_text("class MyModel:\n    pass\n")
    with pytest.raises(InputError, match=r'models: "my_other_file" has no class "YourModel"'):
        resolve("models", "my_other_file:YourModel")
    with pytest.raises(InputError, match=r'models: "no_such_file:MyModel" cannot be imported: .*no_such_file'):
        resolve("models", "no_such_file:MyModel")


def test_a_mistake_inside_a_users_file_is_shown_as_it_is(here: Path) -> None:
    (here / "my_broken_file.py").write_text("import math\nmath.no_such_function()\n\nclass MyModel:\n    pass\n")
    with pytest.raises(AttributeError, match="no_such_function"):
        resolve("models", "my_broken_file:MyModel")


@pytest.mark.parametrize("name", [":MyModel", "my_file:", ":", ".my_file:MyModel", "my file:X", "a:b:C"])
def test_half_a_name_is_wrong_input(here: Path, name: str) -> None:
    (here / "my_file.py").write_text("")
    with pytest.raises(InputError, match="does not name a class"):
        resolve("models", name)


def test_where_a_room_is_one_file_a_name_is_a_class_of_it() -> None:
    assert list(known("attention.scores")) == ["additive", "bilinear", "cosine", "dot", "location_aware", "scaled_dot"]
    assert resolve("attention.scores", "location_aware") is LocationAware
    for name in known("attention.scores"):
        assert issubclass(resolve("attention.scores", name), AttentionScore)


def test_a_config_checks_a_name_before_anything_is_imported() -> None:
    assert check("attention.scores", "dot") == "dot"
    assert check("attention.scores", "my_file:MyScore") == "my_file:MyScore"
    with pytest.raises(ValueError, match=r'there is no "aditive"\. Did you mean "additive"'):
        check("attention.scores", "aditive")
