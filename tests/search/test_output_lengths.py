"""Outputs that a search cuts off are told: before the training, at its end, and by an evaluation."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forked
import transduce
from encoded import store_of
from transduce.recipe.recipe import load_recipe
from transduce.search.output_lengths import too_long
from transduce.search.settings import Search


@pytest.mark.parametrize("factor", [0.0, 1.5, 3.0])
def test_targets_that_are_too_long_are_counted_and_the_factor_named_has_room(tmp_path: Path, factor: float) -> None:
    lengths: list[tuple[int, int]] = np.random.default_rng(1).integers(1, 60, (500, 2)).tolist()
    store = store_of(tmp_path / "a.arrow", lengths)
    search = Search(max_length_factor=factor, max_length_offset=7)
    longer = sum(target + 1 > search.limit(source) for source, target in lengths)
    [told] = too_long(store, search)
    assert told.startswith(f"{longer} of 500 targets for validation are longer")
    match = re.search(r"max_length_factor = (\d+) leaves room", told)
    assert match
    enough = int(match[1])
    assert all(target + 1 <= Search(max_length_factor=enough, max_length_offset=7).limit(s) for s, target in lengths)
    less = Search(max_length_factor=enough - 1, max_length_offset=7)
    assert any(target + 1 > less.limit(source) for source, target in lengths)


def test_where_the_source_says_nothing_of_the_length_the_offset_is_named(tmp_path: Path) -> None:
    [told] = too_long(store_of(tmp_path / "a.arrow", [(1, 4000), (2, 30)]), Search())
    match = re.search(r"search\.(max_length_\w+) = (\d+) leaves room for all", told)
    assert match and match[1] == "max_length_offset"
    assert Search.model_validate({match[1]: int(match[2])}).limit(1) >= 4001


def test_one_in_a_hundred_may_be_longer(tmp_path: Path) -> None:
    search = Search(max_length_factor=1.0, max_length_offset=0)
    assert too_long(store_of(tmp_path / "a.arrow", [(9, 9), *[(9, 8)] * 99]), search) == []
    assert len(too_long(store_of(tmp_path / "b.arrow", [(9, 9)] * 2 + [(9, 8)] * 98), search)) == 1
    assert too_long(store_of(tmp_path / "c.arrow", []), search) == []


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_training_and_evaluation_tell_what_was_cut_off(tiny_recipe: Path, tmp_path: Path) -> None:
    run, short = tmp_path / "run", ["search.max_length_factor=0", "search.max_length_offset=2"]
    trained = forked.transduce(tmp_path, "train", tiny_recipe, "training.updates=3", *short, "--run", run)
    assert trained.code == 0, trained.err
    told = " ".join(trained.out.split())
    assert "longer than an output may be: search.max_length_factor = 0 times" in told
    data: Any = load_recipe(tiny_recipe).data
    sources = (Path(data.root) / "test.digits").read_text().splitlines()
    cut = sum(not each.ended for each in transduce.load(run).predict(sources, split="none"))
    assert cut > 1
    assert json.loads((run / "report.json").read_text())["tests"]["held_out"]["unfinished"] == cut
    assert f"held_out: {cut} outputs were cut off" in told
    [command] = [line.split() for line in trained.out.splitlines() if line.startswith("  transduce evaluate")]
    evaluated = forked.transduce(tmp_path, *command[1:])
    assert evaluated.code == 0, evaluated.err
    assert f"{cut} outputs were cut off: search.max_length_factor" in evaluated.out
