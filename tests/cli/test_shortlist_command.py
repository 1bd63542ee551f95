"""`transduce shortlist` as a shell sees it: a trained model told its words, and translating with few of them."""

import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import tomli_w
import torch

import transduce
from forked import Run
from transduce.core.model_file import load_model_file
from transduce.data.files import fingerprint
from transduce.data.hold_out import TRAIN, VALIDATION
from transduce.data.pairs.pair_data import PairData
from transduce.recipe.recipe import load_recipe

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")


@pytest.fixture
def own_run(tiny_run: Path, tmp_path: Path) -> Path:
    """A copy of the finished run, which may be written into."""
    return Path(shutil.copytree(tiny_run, tmp_path / "own"))


def test_a_model_is_told_its_words_and_uses_them(run: Run, own_run: Path, tiny_corpus: Path) -> None:
    path = own_run / "model.safetensors"
    before = load_model_file(path)
    done = run("shortlist", own_run, "--candidates", 3)
    assert done.code == 0, done.err
    assert "All 300 pairs kept." in done.err
    assert "3 candidates a token and 3 frequent ones" in done.err
    assert re.search(
        r"--shortlist 3: \d of 24 words a sentence on average; they cover \d+\.\d% of the .* 30 val", done.err
    )
    after = load_model_file(path)
    assert all(torch.equal(after.weights[name], weight) for name, weight in before.weights.items())
    assert after.weights.keys() == before.weights.keys()
    assert (after.config, after.tokenizers, after.provenance, after.metrics) == (
        *(before.config, before.tokenizers, before.provenance, before.metrics),
    )
    pipeline = transduce.load(own_run)
    source, target = pipeline.task.tokenizers["source"], pipeline.task.tokenizers["target"]
    assert pipeline.lexicon is not None
    for digit, word in (("1", "one"), ("7", "seven"), ("0", "zero")):
        [[e]], [[f]] = source.encode([digit]), target.encode([word])
        assert pipeline.lexicon.candidates_SC[e, 0] == f, "each digit is spelt by one word"
    lines = (tiny_corpus / "test.digits").read_bytes()
    found = run("predict", own_run, "--shortlist", 2, given=lines)
    expected = pipeline.predict(lines.decode().splitlines(), shortlist=2)
    assert found.out.splitlines() == [each.text for each in expected]
    shown = run("info", own_run)
    assert "up to 3 candidates for each of 24 source tokens, 3 frequent ones" in re.sub(r"[\s│]+", " ", shown.out)
    facts = json.loads(run("info", own_run, "--json").out)
    assert facts["lexicon"] == {"source_tokens": 24, "candidates": 3, "frequent": 3, "bytes": 300}
    assert not any(tensor["name"].startswith("shortlist") for tensor in facts["tensors"])
    told = run("train", own_run).out  # which leaves it as it is
    assert fingerprint(own_run / "model.safetensors") in told.replace("\n", "")
    done = run("predict", own_run, "--shortlist", 4, given=lines)
    assert done.code == 2
    assert "holds 3 candidates a token" in done.err


def test_what_it_costs_is_told_by_evaluate(run: Run, own_run: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    assert run("shortlist", own_run, "--candidates", 3).code == 0
    sources = (tiny_corpus / "test.digits").read_text().splitlines()
    found = transduce.load(own_run, precision="int8").predict(sources, shortlist=1, prune=0.5)
    answers = tmp_path / "answers"
    answers.write_text("".join(f"{each.text}\n" for each in found))
    files = ("--source", tiny_corpus / "test.digits", "--reference", answers, "--metric", "exact_match", "--json")
    report = json.loads(run("evaluate", own_run, *files, "--shortlist", 1, "--prune", 0.5, "--precision", "int8").out)
    assert (report["search"]["shortlist"], report["search"]["prune"], report["precision"]) == (1, 0.5, "int8")
    assert report["scores"]["exact_match"]["value"] == 100
    refused = run("evaluate", own_run, *files, "--shortlist", 4)
    assert refused.code == 2
    assert "holds 3 candidates a token" in refused.err


def test_another_file_can_be_written_and_the_same_twice(run: Run, own_run: Path, tmp_path: Path) -> None:
    path, other = own_run / "model.safetensors", tmp_path / "other.safetensors"
    before = path.read_bytes()
    arguments = ("--recipe", own_run / "recipe.toml", "--candidates", 4, "--frequent", 9, "--output", other)
    done = run("shortlist", path, *arguments)
    assert done.code == 0, done.err
    assert path.read_bytes() == before
    once = other.read_bytes()
    assert run("shortlist", path, *arguments).code == 0
    assert other.read_bytes() == once
    assert [each.shape for each in load_model_file(other).lexicon or ()] == [(24, 4), (9,)]
    assert run("shortlist", other, "--recipe", own_run / "recipe.toml", "--candidates", 2).code == 0
    assert [each.shape for each in load_model_file(other).lexicon or ()] == [(24, 2), (2,)]


def test_nothing_is_learnt_from_held_out_pairs(run: Run, own_run: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "drawn.toml"
    drawn = ["data.validation=none", "data.test={}", "data.hold_out={validation=30, test=50}"]
    table = load_recipe(own_run / "recipe.toml", drawn).to_table()
    recipe.write_text(tomli_w.dumps(table), encoding="utf-8")
    data = load_recipe(recipe).data
    assert isinstance(data, PairData)
    split = data.split()
    assert split is not None
    kept, tried = split.count(TRAIN), split.count(VALIDATION)
    assert kept <= 220
    done = run("shortlist", own_run, "--recipe", recipe)
    assert done.code == 0, done.err
    assert f"All {kept} pairs kept." in done.err
    assert f"{kept} pairs." in done.err
    assert f"of {tried} validation pairs." in done.err


def test_what_is_wrong_is_said_and_nothing_is_written(
    run: Run, own_run: Path, tiny_recipe: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "alone.safetensors"
    shutil.copy(own_run / "model.safetensors", alone)
    before = alone.read_bytes()
    for arguments, said in [
        ([tmp_path / "nowhere"], "no such file or folder"),
        ([alone], "there is no recipe.toml beside it"),
        ([own_run, "--candidates", 9, "--frequent", 8], "must be at least --candidates"),
        ([own_run, "--output", tmp_path / "no" / "where"], "there is no folder"),
    ]:
        done = run("shortlist", *arguments)
        assert done.code == 2, done.shown
        assert said in done.err
    assert alone.read_bytes() == before
    tiny_recipe.write_text(tiny_recipe.read_text().replace("beam = 3", "beam = 3\nshortlist = 5"))
    done = run("train", tiny_recipe, "--run", tmp_path / "trained")
    assert done.code == 2, done.shown
    assert "needs a trained model" in done.err


def test_nothing_is_wrong_with_a_token_that_never_occurs(own_run: Path, run: Run) -> None:
    assert run("shortlist", own_run).code == 0
    pipeline = transduce.load(own_run)
    assert pipeline.lexicon is not None
    unknown = pipeline.task.tokenizers["source"].unknown
    assert np.all(pipeline.lexicon.candidates_SC[unknown] == -1)
    [found] = pipeline.predict(["x y z"], shortlist=1)
    assert found.ended or found.tokens
