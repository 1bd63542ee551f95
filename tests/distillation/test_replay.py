"""Fine-tuning with [replay]: which pairs are trained on, what is measured, and which weights are kept."""

import json
import shutil
import signal
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

import forked
import transduce
from tiny_recipe import DIGITS
from trained import sha256, shown
from transduce.core.errors import InputError
from transduce.core.model_file import load_model_file
from transduce.distillation.pipeline import finish_recipe, train_recipe
from transduce.recipe.recipe import Recipe, load_recipe
from transduce.runtime.event_log import read_log
from transduce.training.run import open_task, run_training
from transduce.training.start_data import start_data

Pairs = list[tuple[str, str]]


def spelt(number: int) -> str:
    """As the tiny corpus has it, with another word for 7."""
    return " ".join([*DIGITS[:7], "nine", *DIGITS[8:]][int(digit)] for digit in reversed(str(number)))


@pytest.fixture
def new_pairs(tmp_path: Path) -> list[str]:
    """Keys of a recipe that learns 40 pairs with a 7."""
    own = [each for each in range(7, 4000, 67) if "7" in str(each)]
    for part, numbers in (("train", own[:40]), ("valid", [71, 1071, 2070])):
        lines = [" ".join(str(each)) for each in numbers], [spelt(each) for each in numbers]
        for side, texts in zip(("digits", "words"), lines, strict=True):
            (tmp_path / f"{part}.{side}").write_text("".join(f"{text}\n" for text in texts))
    files = {
        part: f"{{source='{tmp_path}/{part}.digits', target='{tmp_path}/{part}.words'}}" for part in ("train", "valid")
    }
    return [f"data.train=[{files['train']}]", f"data.validation={files['valid']}", "data.test={}", "batch.tokens=300"]


def asked_for(recipe: Path, start: Path, new_pairs: list[str], *more: str) -> Recipe:
    brief = ["training.updates=6", "training.validate_every=2", "training.learning_rate=1e-3", "training.accumulate=1"]
    replay = ["replay.pairs=50", "replay.kept=16", "replay.share=0.75"]
    return load_recipe(recipe, [f"training.start={start}", *new_pairs, *brief, *replay, *more])


def pairs_in(folder: Path, part: str, sides: tuple[str, str] = ("source", "target")) -> Pairs:
    texts = [(folder / f"{part}.{side}").read_text().splitlines() for side in sides]
    return list(zip(*texts, strict=True))


def test_what_the_model_learnt_is_shown_again_and_measured_before_and_after(
    tiny_recipe: Path, tiny_run: Path, tiny_corpus: Path, new_pairs: list[str], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    report = train_recipe(asked_for(tiny_recipe, tiny_run, new_pairs, "training.best=exact_match"), run, shown())
    again, kept = pairs_in(run / "replay", "train"), pairs_in(run / "replay", "kept")
    own = {source for source, _ in pairs_in(tmp_path, "train", ("digits", "words"))}
    assert set(again) <= set(pairs_in(tiny_corpus, "train", ("digits", "words"))) and len(again) == 50
    assert set(kept) <= set(pairs_in(tiny_corpus, "valid", ("digits", "words"))) and len(kept) == 16
    assert own.isdisjoint(source for source, _ in [*again, *kept])
    assert (report["replay"]["kind"], report["replay"]["kept_are"]) == ("learnt", "of its validation")
    resolved = tomllib.loads((run / "recipe.toml").read_text())
    assert "replay" not in resolved and resolved["training"]["kept"] == "kept"
    _, data = open_task(load_recipe(run / "recipe.toml"), shown())
    batches = data.batches(load_recipe(run / "recipe.toml").batch, 1)
    shown_rows = np.bincount(np.concatenate([rows.stores for epoch in range(20) for rows in batches.epoch(epoch)]))
    assert shown_rows[1] / shown_rows.sum() == pytest.approx(0.75, abs=0.01)
    before, after = load_at(tiny_run, kept), load_at(run, kept)
    for found, wanted in ((report["start"], before), (report["validation"], after)):
        assert found["kept_loss"] == pytest.approx(wanted["loss"], rel=1e-4)
        assert found["kept_exact_match"] == pytest.approx(wanted["exact_match"])
    validations = [event for event in read_log(run / "log.jsonl") if event["event"] == "validation"]
    assert [each["update"] for each in validations] == [0, 2, 4, 6]
    mean = [each["exact_match"] + each["kept_exact_match"] for each in validations]
    assert report["validation"]["update"] == 2 * mean.index(max(mean))


def load_at(model: Path, pairs: Pairs) -> dict[str, float]:
    """Loss a token and share of exact matches of greedy outputs, without anything of training."""
    loaded = transduce.load(model)
    scores = loaded.score(pairs)
    tokens = sum(len(target.split()) + 1 for _, target in pairs)
    right = [
        found.text == target
        for found, (_, target) in zip(
            loaded.predict([source for source, _ in pairs], method="greedy"), pairs, strict=True
        )
    ]
    return {"loss": -sum(each.log_probability for each in scores) / tokens, "exact_match": 100 * float(np.mean(right))}


def test_a_model_alone_writes_its_pairs(tiny_recipe: Path, new_pairs: list[str], tmp_path: Path) -> None:
    run_training(load_recipe(tiny_recipe, ["search.min_length=2"]), tmp_path / "first", shown())
    alone = Path(shutil.move(tmp_path / "first" / "model.safetensors", tmp_path / "alone.safetensors"))
    assert start_data(str(alone)) is None
    recipe = asked_for(tiny_recipe, alone, new_pairs, "training.updates=2", "replay.pairs=24", "replay.kept=6")
    report = train_recipe(recipe, tmp_path / "run", shown())
    assert report["replay"]["kind"] == "generated"
    written = [*pairs_in(tmp_path / "run" / "replay", "train"), *pairs_in(tmp_path / "run" / "replay", "kept")]
    own = {source for source, _ in pairs_in(tmp_path, "train", ("digits", "words"))}
    assert own.isdisjoint(source for source, _ in written) and len({*written}) == len(written) > 20
    sources = [source for source, _ in written]
    found = transduce.load(alone).predict(sources, method="greedy", split="none", protect=False)
    assert [each.text for each in found] == [target for _, target in written]
    train_recipe(recipe, tmp_path / "again", shown())
    assert sha256(tmp_path / "again") == sha256(tmp_path / "run")
    with pytest.raises(InputError, match=r"replay\.kind"):
        train_recipe(asked_for(tiny_recipe, alone, new_pairs, "replay.kind=learnt"), tmp_path / "learnt", shown())


def test_a_model_that_says_nothing_is_trained_all_the_same(
    tiny_recipe: Path, tiny_run: Path, new_pairs: list[str], tmp_path: Path
) -> None:
    alone, display = Path(shutil.copy(tiny_run / "model.safetensors", tmp_path / "alone.safetensors")), shown()
    assert not any(each.text for each in transduce.load(alone).predict(["1 7", "2"], method="greedy"))
    report = train_recipe(asked_for(tiny_recipe, alone, new_pairs), tmp_path / "run", display)
    assert report["replay"]["pairs"] == 0 and "start" not in report
    assert "gives no pairs to replay" in display.console.file.getvalue()  # type: ignore[attr-defined]


def test_files_that_have_changed_are_not_replayed(tiny_run: Path, tmp_path: Path, tiny_corpus: Path) -> None:
    run, data = Path(shutil.copytree(tiny_run, tmp_path / "run")), Path(shutil.copytree(tiny_corpus, tmp_path / "data"))
    recipe = run / "recipe.toml"
    recipe.write_text(recipe.read_text().replace(str(tiny_corpus), str(data)))
    before = start_data(str(run))
    assert before is not None and len(list(before.pairs(before.train))) == 300
    with (data / "train.words").open("a") as file:
        file.write("one\n")
    after = start_data(str(run))
    assert after is not None and (after.train, len(after.validation)) == ((), 1)


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with POSIX signals")
def test_a_killed_fine_tuning_ends_with_the_same_bytes(
    tiny_recipe: Path, tiny_run: Path, new_pairs: list[str], tmp_path: Path
) -> None:
    recipe, run = asked_for(tiny_recipe, tiny_run, new_pairs), tmp_path / "run"
    whole = train_recipe(recipe, tmp_path / "whole", shown())
    path = tmp_path / "mine.toml"
    path.write_text(dumped(recipe))
    first = forked.transduce(
        tmp_path, "train", path, "--run", run, fate=forked.Fate(dies_once_there=run / "replay" / "train.source")
    )
    assert first.code == -signal.SIGKILL and not (run / "replay" / "replay.json").exists()
    second = forked.transduce(tmp_path, "train", path, "--run", run, fate=forked.Fate(dies_in_write=3))
    assert second.code == -signal.SIGKILL and not (run / "model.safetensors").exists()
    third = forked.transduce(tmp_path, "train", path, "--run", run)
    assert third.code == 0, third.shown
    assert sha256(run) == sha256(tmp_path / "whole")
    assert json.loads((run / "report.json").read_text())["start"] == whole["start"]
    assert "what it could do before" in third.out
    before = (run / "report.json").stat().st_mtime_ns
    train_recipe(recipe, run, shown())
    assert (run / "report.json").stat().st_mtime_ns == before


def dumped(recipe: Recipe) -> str:
    import tomli_w

    return tomli_w.dumps(recipe.to_table())


def test_a_model_that_only_gets_worse_stays_as_it_was(
    tiny_recipe: Path, tiny_run: Path, new_pairs: list[str], tmp_path: Path
) -> None:
    recipe = asked_for(tiny_recipe, tiny_run, new_pairs, "training.learning_rate=3.0", "training.average=0.0")
    report = train_recipe(recipe, tmp_path / "run", shown())
    assert report["validation"]["update"] == 0
    first, now = (load_model_file(each).weights for each in (tiny_run, tmp_path / "run"))
    assert all(torch.equal(first[name], now[name]) for name in first)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (["training.start=none"], "training.start"),
        (["data.test.kept={source='a', target='b'}"], "test set kept"),
        (["backtranslation.text=['a']"], "keep one"),
    ],
)
def test_what_does_not_go_together_is_refused(
    tiny_recipe: Path, tiny_run: Path, new_pairs: list[str], tmp_path: Path, keys: list[str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        train_recipe(asked_for(tiny_recipe, tiny_run, new_pairs, *keys), tmp_path / "run", shown())
    assert not (tmp_path / "run").exists()


def test_before_its_pairs_are_there_nothing_can_be_finished(
    tiny_recipe: Path, tiny_run: Path, new_pairs: list[str], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="has not begun"):
        finish_recipe(asked_for(tiny_recipe, tiny_run, new_pairs), tmp_path / "run", shown())
