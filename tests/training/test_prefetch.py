"""Batches that a thread makes ahead: the same ones in the same order, its errors, and an end."""

import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from trained import sha256
from transduce.recipe.recipe import load_recipe
from transduce.training import loop
from transduce.training.prefetch import prefetch


def threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name == "prefetch"]


def test_items_come_in_their_order_and_end() -> None:
    with prefetch(iter(range(50))) as items:
        assert list(items) == list(range(50))
    assert not threads()


def test_no_more_are_made_than_may_lie_ready() -> None:
    made, enough = [], threading.Event()

    def numbers() -> Iterator[int]:
        for each in count():
            made.append(each)
            if each == 4:
                enough.set()
            yield each

    with prefetch(numbers(), count=3) as items:
        assert next(items) == 0
        assert enough.wait(60)
        assert len(made) == 5  # one taken, three that lie ready, one in hand
    assert not threads()


def test_an_error_is_raised_where_the_item_would_have_been() -> None:
    def numbers() -> Iterator[int]:
        yield 1
        raise ValueError("row 7 is damaged")

    with prefetch(numbers()) as items:
        assert next(items) == 1
        with pytest.raises(ValueError, match="row 7"):
            next(items)
    assert not threads()


def test_the_block_may_be_left_in_any_way() -> None:
    with pytest.raises(KeyError), prefetch(count()) as items:
        next(items)
        raise KeyError
    assert not threads()


def test_a_training_that_reads_ahead_ends_with_the_same_bytes(
    tiny_recipe: Path, tmp_path: Path, tiny_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    from transduce.training.display import Display
    from transduce.training.run import run_training

    recipe, asked = load_recipe(tiny_recipe), []
    monkeypatch.setattr(loop, "worth_prefetching", lambda device: asked.append(device) or True)
    run_training(recipe, tmp_path / "run", Display(Console(quiet=True)))
    assert asked
    assert sha256(tmp_path / "run") == sha256(tiny_run)
    assert not threads()
