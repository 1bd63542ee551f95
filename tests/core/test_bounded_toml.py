"""TOML of strangers is read in bounded time and memory."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from transduce.core.bounded_toml import DEEPEST, LARGEST, toml_file, toml_table
from transduce.core.errors import InputError
from transduce.core.overrides import apply_overrides
from transduce.recipe.recipe import load_recipe
from transduce.training.run_directory import resolved_table

DEEP = "a." * 20_000 + "a"


@pytest.mark.parametrize(
    "text",
    [
        f"{DEEP} = 1",
        DEEP,
        f"[{DEEP}]",
        f"x = {{{DEEP} = 1}}",
        "\"=\" . '='\t." * 20_000 + "a = 1",
        f"# a comment\n{'é' * 20_000}{DEEP}",
    ],
)
def test_deep_keys_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=rf"line [12]: expected keys with at most {DEEPEST} parts; got"):
        toml_table(text)


@pytest.mark.parametrize(
    "text", ["a" * LARGEST, '"' * LARGEST, "a" + " " * LARGEST, f'a = "{"a.b " * 200_000}', "a = " + "[" * 100_000]
)
def test_what_is_no_toml_is_known_at_once(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        toml_table(text)


def test_texts_with_points_are_read() -> None:
    text = "\ufeffa.b = 'x.y. z... " + "." * 100 + "'\r\n[c.d]\r\ne = 0xFFFF\r\n"
    assert toml_table(text[1:]) == {"a": {"b": "x.y. z... " + "." * 100}, "c": {"d": {"e": 65535}}}


@pytest.mark.parametrize("key", ["name", "base", "training.updates", "data.train", "tokenizer.kind", "task.kind"])
def test_long_hexadecimal_numbers_are_refused_in_words(tmp_path: Path, key: str) -> None:
    (tmp_path / "a.toml").write_text(f"{key} = [0x{'F' * 6000}]")
    with pytest.raises(InputError, match=r"a\.toml: not TOML: expected whole numbers of at most 64 bits"):
        load_recipe(tmp_path / "a.toml")
    assert isinstance(apply_overrides({}, [f"{key}=0x{'F' * 6000}"]), dict)


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_only_regular_files_are_recipes(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "recipe.toml")
    (tmp_path / "a.toml").write_text('base = "recipe.toml"')
    for name in ("recipe.toml", "a.toml"):
        with pytest.raises(InputError, match=r"recipe\.toml: cannot be read: "):
            load_recipe(tmp_path / name)
    with pytest.raises(InputError, match=r"recipe\.toml: the recipe of this run cannot be read: "):
        resolved_table(tmp_path)


def test_large_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("#" * (LARGEST + 1))
    with pytest.raises(ValueError, match="it has more than 1,000,000 bytes"):
        toml_file(tmp_path / "a.toml")
