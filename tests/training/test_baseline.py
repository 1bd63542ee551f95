"""A task's baseline: trained at the end, scored on the same tests as the model, and told apart from it everywhere."""

import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
from rich.console import Console

from tiny_recipe import TINY_RECIPE
from transduce.core.errors import InputError
from transduce.recipe.recipe import load_recipe
from transduce.tasks.protocols import Baseline
from transduce.tasks.translation import Translation, TranslationConfig
from transduce.training.display import Display
from transduce.training.report import score_baseline
from transduce.training.run import open_task, run_training
from transduce.training.summary import tell_summary


class AnyKind(TranslationConfig):
    """The kind is a class of this file."""

    kind: str = ""  # type: ignore[assignment]


class Repeats(Translation):
    """Its baseline writes the first training target for everything."""

    Config = AnyKind

    def baseline(self, data, tell):  # type: ignore[no-untyped-def]
        store = data.corpora[0][0]
        [first] = store.read("target", np.array([0]))
        text = self.columns["target"].decode(first.tolist())
        return Baseline("the first target", lambda texts: [text] * len(texts), {"text": text})


class Refuses(Translation):
    """Has none for these files."""

    Config = AnyKind

    def baseline(self, data, tell):  # type: ignore[no-untyped-def]
        raise InputError("nothing to count")


def trained(folder: Path, corpus: Path, task: str) -> tuple[dict[str, object], str]:
    recipe = folder / "recipe.toml"
    table = TINY_RECIPE.replace("[data]", f'[data]\nroot = "{corpus}"').replace("updates = 24", "updates = 2")
    recipe.write_text(table.replace('kind = "translation"', f'kind = "{__name__}:{task}"'), encoding="utf-8")
    shown = io.StringIO()
    display = Display(Console(file=shown, width=200))
    report = run_training(load_recipe(recipe), folder / "run", display)
    assert report == json.loads((folder / "run" / "report.json").read_text())
    tell_summary(load_recipe(recipe), folder / "run", report, display)
    return report, shown.getvalue()


def test_its_scores_stand_beside_the_models(tiny_corpus: Path, tmp_path: Path) -> None:
    report, shown = trained(tmp_path, tiny_corpus, "Repeats")
    baseline: dict = report["baseline"]  # type: ignore[assignment, type-arg]
    assert (baseline["name"], list(baseline["tests"])) == ("the first target", ["held_out"])
    sources = (tiny_corpus / "test.digits").read_text().splitlines()
    references = (tiny_corpus / "test.words").read_text().splitlines()
    exact = baseline["tests"]["held_out"]["scores"]["exact_match"]
    assert exact["value"] == pytest.approx(100 * references.count(baseline["settings"]["text"]) / len(sources))
    assert set(baseline["tests"]["held_out"]["scores"]) == set(report["tests"]["held_out"]["scores"])  # type: ignore[index]
    names = [line.split("  ")[0] for line in shown.splitlines()]
    assert names.index("held_out") < names.index("the first target (baseline)")
    assert "Baseline: the first target, trained on the same files" in shown


def test_one_that_cannot_be_trained_does_not_cost_the_report(tiny_corpus: Path, tmp_path: Path) -> None:
    report, shown = trained(tmp_path, tiny_corpus, "Refuses")
    assert "baseline" not in report
    assert "Baseline left out: nothing to count" in shown
    assert "exact_match" in report["tests"]["held_out"]["scores"]  # type: ignore[index]


def test_of_pairs_the_target_of_the_nearest_source_is_said(tiny_corpus: Path, tmp_path: Path) -> None:
    """As they are written in the files, and with other versions of each pair among the training examples."""
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(TINY_RECIPE.replace("[data]", f'[data]\nroot = "{tiny_corpus}"'), encoding="utf-8")
    pairs = [(tiny_corpus / f"train.{side}").read_text().splitlines() for side in ("digits", "words")]
    own = dict(zip(*pairs, strict=True))
    for more in ([], ["tokenizer.kind=bpe", "tokenizer.vocabulary=60", "data.bpe_dropout=0.5", "data.segmentations=3"]):
        task, data = open_task(load_recipe(recipe, more), Display(Console(quiet=True)))
        baseline = task.baseline(data, print)
        assert baseline is not None
        assert baseline.settings["examples"] == len(pairs[0])
        assert baseline.predict is not None
        assert baseline.predict(list(own)) == list(own.values())
        assert score_baseline(task, data, print) is not None
    task, data = open_task(load_recipe(recipe, ["task.baseline=false"]), Display(Console(quiet=True)))
    assert score_baseline(task, data, print) is None


def test_where_targets_stand_in_their_sources_the_source_is_said(tmp_path: Path) -> None:
    """As it is, without its tag; not where targets are as far from it as from any other source."""
    draw = random.Random(1)
    words = [f"{first}{rest}" for first in "bdfgklmnprst" for rest in ("an", "el", "ira", "om", "uk")]
    texts = [" ".join(draw.choices(words, k=8)) for _ in range(120)]

    def opened_with(targets: list[str]) -> tuple[Baseline, dict[str, Any]]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        rows = [f"{source}\t{target}\n" for source, target in zip(texts, targets, strict=True)]
        (folder / "train.tsv").write_text("".join(rows[:100]))
        (folder / "test.tsv").write_text("".join(rows[100:]))
        (folder / "own.toml").write_text(OF_TAGGED_PAIRS.format(root=folder))
        task, data = open_task(load_recipe(folder / "own.toml"), Display(Console(quiet=True)))
        baseline, scores = task.baseline(data, print), score_baseline(task, data, print)
        assert baseline is not None
        assert scores is not None
        return baseline, scores["tests"]["held_out"]["scores"]

    near = [text.replace("an", "on").replace("uk", "ok") for text in texts]
    baseline, scores = opened_with(near)
    assert baseline.name == "source as it is"
    assert baseline.predict is not None
    assert baseline.predict([">>xx<< banel kom", " >>xx<< a"]) == ["banel kom", "a"]
    with_tests = sacrebleu.corpus_chrf(texts[100:], [near[100:]]).score
    assert scores["chrf"]["value"] == pytest.approx(with_tests)
    assert opened_with([" ".join(draw.choices(words, k=8)) for _ in texts])[0].name == "nearest source"
    turned = [" ".join(word[::-1] for word in text.split()) for text in texts]
    assert opened_with(turned)[0].name == "nearest source"


OF_TAGGED_PAIRS = """
name = "own"
task = {{ kind = "translation", metrics = ["chrf"] }}
tokenizer = {{ kind = "bpe", vocabulary = 120 }}
model = {{ kind = "transformer", d_model = 16, heads = 2, encoder_layers = 1, decoder_layers = 1 }}

[data]
root = "{root}"
train = [{{ tsv = "train.tsv", to = "xx" }}]
test.held_out = {{ tsv = "test.tsv", to = "xx" }}
"""
