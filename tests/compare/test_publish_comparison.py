"""From a comparison to its table on docs/results.md: what is put on record, and what is said of it."""

import json
import math
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest

from compared import compared_letters
from scripts import loaded


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model, wide and narrow, trained with two seeds and without validation, in this process."""
    variants = "[variants.narrow]\nmodel = { d_model = 4 }\n[variants.wide]\nmodel = { d_model = 32 }\n"
    return compared_letters(tmp_path_factory.mktemp("published"), "widths", variants)


def test_the_record_has_every_seed_its_signature_and_how_it_was_made(finished: Path) -> None:
    record = loaded("benchmarks/publish_comparison.py").recorded(finished, "abc123")
    [score] = record["scores"]
    assert (score["test"], score["metric"]) == ("letters", "perplexity")
    assert score["signature"].endswith("|context:the tokens before in rows of 16 that do not overlap")
    for name, found in score["variants"].items():
        assert found["mean"] == pytest.approx(mean(found["seeds"].values()))
        for seed, value in found["seeds"].items():
            measured = json.loads((finished / f"{name}-seed{seed}" / "measured.json").read_text())
            rows = measured["tests"]["letters"]["likelihood"]
            assert value == pytest.approx(math.exp(-sum(nats for nats, _ in rows) / sum(units for _, units in rows)))
    assert score["variants"]["narrow"]["difference"] is None
    assert 0 < score["variants"]["wide"]["difference"]["p_value"] <= 1
    wide = record["variants"]["wide"]
    assert wide["changes"] == {"model": {"d_model": 32}}
    assert [each["seed"] for each in wide["trainings"]] == record["seeds"] == [1, 2]
    assert all(each["target_tokens"] >= 1000 for each in wide["trainings"])
    assert (record["budget"], record["commit"], record["precision"]) == ("1ktok", "abc123", "fp32")
    assert record["settings"]["task"]["context"] == 16
    assert record["machine"]["threads"] == 1
    assert json.loads(json.dumps(record)) == record


def test_a_comparison_that_is_not_finished_is_not_published(finished: Path, tmp_path: Path) -> None:
    results = json.loads((finished / "compare.json").read_text())
    results["variants"]["wide"]["runs"][1] = {"seed": 2, "directory": "wide-seed2", "state": "waiting", "failed": ""}
    (tmp_path / "compare.json").write_text(json.dumps(results))
    recorded = loaded("benchmarks/publish_comparison.py").recorded
    with pytest.raises(SystemExit, match="not trained yet: wide, seed 2"):
        recorded(tmp_path)
    with pytest.raises(SystemExit, match="there is no such file"):
        recorded(tmp_path / "nowhere")


def test_the_sentence_says_what_the_figures_say() -> None:
    page = loaded("docs/make_results.py")
    seeds = {"a": [10.0, 12.0, 11.0], "b": [20.0, 22.0, 21.5], "c": [11.5, 12.5, 12.0]}
    score = {"name": "perplexity", "test": "t", "digits": 1, "lower_is_better": True}
    score["variants"] = {name: {"seeds": dict(enumerate(values))} for name, values in seeds.items()}
    said = page.answer(score)
    assert said.startswith("`a` has the best perplexity on t, 11.0, 1.0 below `c` and 10.2 below `b`, the last.")
    for name in ("a", "c"):
        half = 0.95 / math.sqrt(2 * 0.975 * 0.025) * stdev(seeds[name]) / math.sqrt(3)  # t of 2 degrees, in closed form
        assert f"[{mean(seeds[name]) - half:.1f}, {mean(seeds[name]) + half:.1f}]" in said
    assert said.endswith("overlap.")
    assert "do not" not in said
    del score["variants"]["c"]
    assert page.answer(score).endswith("do not overlap.")
    score["lower_is_better"] = False
    assert page.answer(score).startswith("`b` has the best perplexity on t, 21.2, 10.2 above `a`.")
    score["variants"]["a"]["seeds"] = dict(enumerate([21.1, 21.1, 21.29]))
    assert page.answer(score) == "No variant has the best perplexity on t: `b` and `a` both have 21.2."
    score["variants"] = {name: {"seeds": {1: values[0]}} for name, values in seeds.items()}
    assert page.answer(score).endswith("One seed does not say how far seeds differ.")


def test_the_quantiles_enclose_95_percent_of_students_t() -> None:
    for degrees, quantile in enumerate(loaded("benchmarks/intervals.py").QUANTILES, 1):
        x = np.linspace(-quantile, quantile, 200_001)
        scale = math.gamma((degrees + 1) / 2) / math.gamma(degrees / 2) / math.sqrt(degrees * math.pi)
        density = scale * (1 + x**2 / degrees) ** (-(degrees + 1) / 2)
        assert np.trapezoid(density, x) == pytest.approx(0.95, abs=1e-4)


def test_the_section_has_question_answer_table_and_published_figures(finished: Path, tmp_path: Path) -> None:
    page = loaded("docs/make_results.py")
    page.RECIPES = tmp_path
    (tmp_path / "widths.toml").write_text(
        "# Is wide better\n# than narrow?\n#\n#   a command\n#\n# Published perplexity: 3.\nbase = 1\n# no head\n"
    )
    record = loaded("benchmarks/publish_comparison.py").recorded(finished, "abc123")
    [score] = record["scores"]
    headings = {(score["name"], score["signature"]): "perplexity (7)"}
    section = page.comparison_section(record, [], headings)
    assert section.startswith("\n### widths\n\nIs wide better\nthan narrow?\n\n`")
    assert "\n\nPublished perplexity: 3.\n" in section
    assert "a command" not in section
    one, other = score["variants"]["wide"]["seeds"].values()
    row = f"| `wide` | {mean((one, other)):.2f} ± {stdev((one, other)):.2f} | {one:.2f}, {other:.2f} | "
    assert row in section
    assert "| variant | perplexity (7) | each seed | p | parameters | training tokens/s |" in section
    assert "Budget 1ktok a training" in section
    assert "commit `abc123`" in section
    record["variants"]["wide"]["trainings"][1] = {"seed": 2, "failed": "The loss is no number any more."}
    del score["variants"]["wide"]["seeds"]["2"]
    assert f"| {one:.2f}, failed | " in page.comparison_section(record, [], headings)
