"""Restarts: a recipe trained with several seeds, the training of the lowest training loss, and what is said of all."""

import json
import random
import sys
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from scripts import ROOT, loaded

SEEDS = (1, 2, 3)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, chance = tmp_path_factory.mktemp("restarts"), random.Random(1)
    places = ("garden", "kitchen", "hall")
    for name in ("qa1_near", "qa2_far"):
        for part, count in (("train", 40), ("test", 10)):
            lines = []
            for _ in range(count):
                there = [chance.choice(places) for _ in range(2)]
                lines += [f"{number} Mary went to the {place}." for number, place in enumerate(there, 1)]
                lines.append(f"3 Where is Mary?\t{there[name == 'qa1_near']}\t2")
            (folder / f"{name}_{part}.txt").write_text("\n".join(lines) + "\n")
    path = folder / "toy.toml"
    path.write_text(
        f'[task]\nkind = "question_answering"\n[data]\nroot = {json.dumps(str(folder))}\n'
        'train = [{ file = "qa*_train.txt" }]\ntest = { toy = { file = "qa*_test.txt" } }\nbatch_size = 8\n'
        '[tokenizer]\nkind = "whitespace"\nmin_frequency = 1\n[model]\nkind = "memory_network"\nd_model = 4\nhops = 1\n'
        '[training]\nupdates = 30\noptimizer = "sgd"\nbetas = [0, 0]\nlearning_rate = 0.1\nprecision = "fp32"\n'
        "warmup = 0\naverage = 0\nlog_every = 5\nthreads = 1\n"
    )
    return path


@pytest.mark.slow
def test_the_training_of_the_lowest_training_loss_is_chosen(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    restarts, publish = loaded("benchmarks/restarts.py"), sys.modules["publish"]
    monkeypatch.setattr(publish, "RECORDS", tmp_path / "records")
    asked = ["--seeds", str(len(SEEDS)), "--runs", str(tmp_path / "runs"), "--record", "--commit", "abc"]
    monkeypatch.setattr(sys, "argv", ["restarts.py", str(recipe), *asked])
    restarts.main()
    shown = capsys.readouterr().out
    losses, errors = {}, {}
    for seed in SEEDS:
        run = tmp_path / "runs" / f"seed-{seed}"
        events = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
        trained = [each for each in events if each["event"] == "train"]
        losses[seed] = fmean(each["loss"] for each in trained if each["epoch"] == trained[-1]["epoch"])
        report = json.loads((run / "report.json").read_text())
        assert report["training"]["seed"] == seed
        errors[seed] = report["tests"]["toy"]["scores"]["error_mean"]["value"]
    best = min(SEEDS, key=losses.__getitem__)
    assert f"chosen: seed {best}," in shown
    [path] = (tmp_path / "records").iterdir()
    record = json.loads(path.read_text())
    assert (record["seed"], record["recipe"]) == (best, "toy")
    assert {int(seed): each["training_loss"] for seed, each in record["restarts"].items()} == pytest.approx(losses)
    assert list(record["groups"]["toy"]) == ["qa1_near", "qa2_far"]

    restarts.main()  # nothing is trained again
    assert capsys.readouterr().out == shown
    page = loaded("docs/make_results.py")
    monkeypatch.setattr(page, "RECORDS", tmp_path / "records")
    text = page.page()
    assert f"Seed {best} has the lowest training loss of {len(SEEDS)}" in text
    assert f"{fmean(errors.values()):.2f} ± {stdev(errors.values()):.2f}" in text
    for name, group in record["groups"]["toy"].items():
        [line] = [each for each in text.splitlines() if each.startswith(f"| {name} |")]
        assert f"{group['scores']['error']['value']:.2f}" in line


def test_one_seed_is_no_choice(recipe: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr(sys, "argv", ["restarts.py", str(recipe), "--seeds", "1", "--runs", "x"])
    with pytest.raises(SystemExit) as left:
        loaded("benchmarks/restarts.py").main()
    assert left.value.code == 2
    assert "--seeds: expected 2 or more; got 1" in capsys.readouterr().err
