"""Held-out pairs in the training data: counted as comparing all with all does, told before training, reported."""

import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from transduce.core.errors import InputError
from transduce.recipe.recipe import Recipe, load_recipe, parse_recipe
from transduce.training import overlap as module
from transduce.training.display import Display
from transduce.training.examination import examine_data
from transduce.training.overlap import overlap, warnings
from transduce.training.run import run_training

Pair = tuple[str, str]


def texts(count: int, seed: int) -> list[Pair]:
    drawn = random.Random(seed)
    return [
        (" ".join(f"a{drawn.randrange(9)}" for _ in range(3)), " ".join(f"b{drawn.randrange(3)}" for _ in range(2)))
        for _ in range(count)
    ]


def write(path: Path, pairs: list[Pair]) -> None:
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")


def recipe_of(folder: Path, **data: Any) -> Recipe:
    return parse_recipe({"data": {"root": str(folder), **data}}, "here")


@pytest.fixture
def named(tmp_path: Path) -> Callable[..., Recipe]:
    """A recipe with these training pairs, validation and test."""

    def made(train: list[Pair], validation: list[Pair], test: list[Pair], **more: Any) -> Recipe:
        for name, pairs in (("train", train), ("valid", validation), ("test", test)):
            write(tmp_path / f"{name}.tsv", pairs)
        held_out = {"validation": {"tsv": "valid.tsv"}, "test": {"late": {"tsv": "test.tsv"}}}
        return recipe_of(tmp_path, **{"train": [{"tsv": "train.tsv"}], **held_out, **more})

    return made


def test_counts_are_those_of_comparing_all_with_all(named: Callable[..., Recipe], tmp_path: Path) -> None:
    train, test = texts(400, 1), texts(200, 2)
    validation = [(f" {source.upper()}", target.replace(" ", "  ")) for source, target in train[:5]] + texts(50, 3)
    found = overlap(named(train, validation, test), tmp_path / "cache")
    for name, pairs in (("validation", validation), ("late", test)):
        plain = [(source.strip().lower(), target.replace("  ", " ")) for source, target in pairs]
        assert found[name] == {
            "pairs": len(pairs),
            "pairs_in_training": sum(pair in train for pair in plain),
            "sources_in_training": sum(any(source == one for one, _ in train) for source, _ in plain),
        }
    assert found["late"]["sources_in_training"] > found["late"]["pairs_in_training"] > 0


def test_they_are_told(named: Callable[..., Recipe], tmp_path: Path) -> None:
    train = [(f"source {at}", f"target {at}") for at in range(60)]
    test = [*train[:3], ("source 7", "another"), ("new", "new")]
    lines: list[str] = []
    examine_data(named(train, [("source 9", "other")], test), tmp_path / "cache", lines.append, force=True)
    assert [line for line in lines if line.startswith("data.")] == [
        "data.validation: 1 of its 1 sources are in the training data too, with other targets.",
        "data.test.late: 3 of its 5 pairs are in the training data too, and 4 of its sources; scores on them say "
        "nothing about new texts.",
    ]
    assert list(warnings(overlap(named(train, [("x", "y")], [("y", "x")]), tmp_path / "cache"))) == []


def test_the_same_files_are_read_once(
    named: Callable[..., Recipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = named(texts(40, 1), texts(4, 2), texts(4, 3))
    first = overlap(recipe, tmp_path / "cache")
    monkeypatch.setattr(module, "read_pairs", lambda *_: pytest.fail("it was read again"))
    assert overlap(recipe, tmp_path / "cache") == first


def test_a_pair_that_is_trained_on_in_the_other_direction_counts(tmp_path: Path) -> None:
    train, test = [(f"one {at}", f"un {at}") for at in range(30)], [("un 4", "one 4"), ("un 99", "one 99")]
    write(tmp_path / "train.tsv", train)
    write(tmp_path / "more.tsv", [("deux", "two")])
    write(tmp_path / "test.tsv", test)
    entries = [{"tsv": "train.tsv", "to": "fr"}, {"tsv": "more.tsv", "to": "en"}]
    found = overlap(recipe_of(tmp_path, train=entries, test={"t": {"tsv": "test.tsv", "to": "en"}}), tmp_path / "cache")
    assert found == {"t": {"pairs": 2, "pairs_in_training": 1, "sources_in_training": 0}}


def test_a_source_that_is_translated_into_another_language_is_new(tmp_path: Path) -> None:
    write(tmp_path / "train.tsv", [("one", "un"), ("two", "deux")])
    write(tmp_path / "test.tsv", [("one", "uno")])
    entries = [{"tsv": "train.tsv", "to": "fr"}]
    found = overlap(recipe_of(tmp_path, train=entries, test={"t": {"tsv": "test.tsv", "to": "it"}}), tmp_path / "cache")
    assert found["t"]["sources_in_training"] == 0


def test_pairs_that_are_held_out_are_not_trained_on(named: Callable[..., Recipe], tmp_path: Path) -> None:
    train = [(f"{at * 7919:b}".replace("0", "a ").replace("1", "b "), f"target {at}") for at in range(1, 200)]
    write(tmp_path / "pairs.tsv", train)
    files = {"tsv": "pairs.tsv"}
    recipe = recipe_of(tmp_path, train=[files], test={"late": files}, hold_out={"validation": 20})
    held = recipe.data.split().count(1)
    assert held >= 20
    assert overlap(recipe, tmp_path / "cache")["late"]["pairs_in_training"] == len(train) - held


def test_nothing_is_read_where_nothing_is_named(tmp_path: Path) -> None:
    assert overlap(recipe_of(tmp_path, train=[{"tsv": "gone.tsv"}], hold_out=5), tmp_path / "cache") == {}
    text = {"data": {"train": {"text": "gone"}}, "task": {"kind": "language_modelling"}}
    model = {"model": {"kind": "transformer_decoder"}}
    assert overlap(parse_recipe({**text, **model}, "here"), tmp_path / "cache") == {}


def test_files_that_cannot_be_read_are_an_error(named: Callable[..., Recipe], tmp_path: Path) -> None:
    recipe = named([("a", "b")], [("a", "b")], [("a", "b")])
    (tmp_path / "test.tsv").write_text("one column\n")
    with pytest.raises(InputError, match="column"):
        overlap(recipe, tmp_path / "cache")


def test_the_report_has_the_counts(tiny_recipe: Path, tmp_path: Path) -> None:
    overrides = ["training.updates=1", 'data.test.again={source="train.digits", target="train.words"}']
    display = Display(Console(file=io.StringIO()))
    report = run_training(load_recipe(tiny_recipe, overrides), tmp_path / "run", display)
    assert report["in_training"] == {
        "validation": {"pairs": 30, "pairs_in_training": 0, "sources_in_training": 0},
        "held_out": {"pairs": 20, "pairs_in_training": 0, "sources_in_training": 0},
        "again": {"pairs": 300, "pairs_in_training": 300, "sources_in_training": 300},
    }
