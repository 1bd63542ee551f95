"""Comparisons whose trainings run in the test's own process: budgets in operations, language models, several tests."""

from base64 import b64encode
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from compared import measured_briefly, without_curves
from scores import perplexity
from transduce.compare.config import load_comparison
from transduce.compare.page import page
from transduce.compare.run import run_comparison
from transduce.core.errors import InputError
from transduce.inference.likelihood import dataset_likelihood
from transduce.pipeline.pipeline import load
from transduce.training.display import Display
from transduce.training.run import open_task

QUIET = Display(Console(quiet=True))


@pytest.fixture(autouse=True)
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same work, without processes of its own."""
    measured_briefly(monkeypatch)


@pytest.fixture
def no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are looked at where a budget of operations is spent."""
    without_curves(monkeypatch)


def test_a_budget_in_operations_buys_a_smaller_model_more_updates(tiny_recipe: Path, tmp_path: Path) -> None:
    path = tiny_recipe.with_name("sizes.toml")
    path.write_text(
        'base = "tiny.toml"\n[compare]\nlengths = [4, 8]\n[compare.searches]\ngreedy = { method = "greedy" }\n'
        "[variants.small]\n[variants.large]\nmodel = { feed_forward = 512 }\n"
    )
    results = run_comparison(load_comparison(path, [], "150Mflop"), tmp_path / "run", QUIET)
    small, large = (results["variants"][name] for name in ("small", "large"))
    assert small["operations_a_token"] < large["operations_a_token"]
    assert small["runs"][0]["updates"] > large["runs"][0]["updates"] > 1
    for variant in (small, large):
        [run] = variant["runs"]
        an_update = run["operations"] / run["updates"]
        assert 150e6 <= run["operations"] < 150e6 + 2 * an_update
        assert [point["flops"] for point in run["curve"]][-1] == run["operations"]
    assert [figure["metric"] for figure in results["quality"]] == ["bleu", "exact_match", "perplexity"]
    check_page(tmp_path / "run")
    hostile = "<script>alert(1)</script>"
    html = page({**results, "name": hostile, "variants": {hostile: results["variants"]["small"]}}, {})
    assert hostile not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def check_page(folder: Path) -> None:
    """It needs nothing but itself, and shows what lies in figures/."""
    page = (folder / "compare.html").read_text()
    assert "http" not in page
    assert page.count("src=") == page.count("<img ") == 2
    for name in ("learning-curves", "growth"):
        assert f"figures/{name}.svg" in (folder / "compare.md").read_text()
        figure = (folder / "figures" / f"{name}.svg").read_bytes()
        assert {"small", "large"} <= {element.text for element in ElementTree.fromstring(figure).iter()}
        assert f'src="data:image/svg+xml;base64,{b64encode(figure).decode()}"' in page


def test_directions_are_compared_with_a_carried_state(tiny_corpus: Path, tmp_path: Path, no_curves: None) -> None:
    path = tmp_path / "directions.toml"
    path.write_text(
        '[task]\nkind = "language_modelling"\ncontext = 8\ncarry_state = true\n'
        f'[data]\nroot = "{tiny_corpus}"\ntrain = [{{ text = "train.words" }}]\n'
        'validation = { text = "valid.words" }\n'
        '[data.test]\none = { text = "test.words" }\n[tokenizer]\nkind = "whitespace"\n[batch]\ntokens = 32\n'
        '[model]\nkind = "rnn_decoder"\nd_model = 16\nlayers = 1\n[training]\nthreads = 1\nprecision = "fp32"\n'
        '[compare]\nbudget = "2ktok"\nlengths = [4, 8]\n'
        '[variants.forth]\n[variants.back]\ntask = { direction = "right_to_left" }\n'
    )
    results = run_comparison(load_comparison(path), tmp_path / "run", QUIET)
    [figure] = results["quality"]
    assert "carried between rows of 8" in figure["signature"]
    for name in ("forth", "back"):
        loaded = load(tmp_path / "run" / f"{name}-seed1")
        task, data = open_task(load_comparison(path).variants[name], QUIET)
        likelihood = dataset_likelihood(loaded.model, task, data.tests["one"].store)
        assert figure["variants"][name]["value"] == pytest.approx(likelihood.perplexity)
    assert figure["variants"]["forth"]["value"] != figure["variants"]["back"]["value"]


def test_language_models_are_compared_by_perplexity(tiny_corpus: Path, tmp_path: Path, no_curves: None) -> None:
    (tmp_path / "text.toml").write_text(
        f'[task]\nkind = "language_modelling"\ncontext = 8\n[data]\nroot = "{tiny_corpus}"\n'
        'train = [{ text = "train.words" }]\nvalidation = { text = "valid.words" }\n'
        '[data.test]\none = { text = "test.words" }\nother = { text = "valid.words" }\n'
        '[tokenizer]\nkind = "whitespace"\n[batch]\ntokens = 128\n'
        '[model]\nkind = "transformer_decoder"\nd_model = 16\nheads = 2\nlayers = 1\nfeed_forward = 16\n'
        '[training]\nthreads = 1\nprecision = "fp32"\nlabel_smoothing = 0\n'
    )
    path = tmp_path / "compared.toml"
    path.write_text(
        'base = "text.toml"\n[compare]\nbudget = "2ktok"\nlengths = [4, 8]\n'
        "[variants.one]\n[variants.two]\nmodel = { layers = 2 }\n"
    )
    comparison = load_comparison(path)
    results = run_comparison(comparison, tmp_path / "run", QUIET)
    assert [(each["test"], each["metric"]) for each in results["quality"]] == [
        ("one", "perplexity"), ("other", "perplexity")
    ]  # fmt: skip
    task, data = open_task(comparison.any_recipe, QUIET)
    for figure in results["quality"]:
        for name in comparison.variants:
            model = load(tmp_path / "run" / f"{name}-seed1").model
            likelihood = dataset_likelihood(model, task, data.tests[figure["test"]].store)
            expected = perplexity(-likelihood.log_probability, likelihood.tokens)
            assert figure["variants"][name]["value"] == pytest.approx(expected)
        assert figure["lower_is_better"]
        assert "rows of 8" in figure["signature"]
    markdown = (tmp_path / "run" / "compare.md").read_text()
    assert "perplexity one" in markdown
    assert "perplexity other" not in markdown.split("## In words")[0]  # the first test decides


def test_a_metric_that_the_task_cannot_count_is_refused_before_any_training(tiny_recipe: Path, tmp_path: Path) -> None:
    path = tiny_recipe.with_name("metrics.toml")
    path.write_text('base = "tiny.toml"\n[compare]\nmetrics = ["bleu-lc-moses"]\nbudget = "1ktok"\n[variants.one]\n')
    with pytest.raises(InputError, match="name the target's"):
        run_comparison(load_comparison(path), tmp_path / "run", QUIET)
    assert not list((tmp_path / "run").glob("*-seed1"))


def test_models_that_write_all_words_at_once_are_compared_with_one_that_does_not(
    tiny_recipe: Path, tmp_path: Path, no_curves: None
) -> None:
    path = tiny_recipe.with_name("kinds.toml")
    sizes = "d_model = 16\nheads = 2\nencoder_layers = 1\ndecoder_layers = 1\nfeed_forward = 16\n"
    kinds = ("transformer", "ctc", "non_autoregressive")
    path.write_text(
        'base = "tiny.toml"\n[compare]\nbudget = "600tok"\nlengths = [4, 8]\n'
        + "".join(f'[variants.{kind}.model]\nkind = "{kind}"\n{sizes}' for kind in kinds)
    )
    results = run_comparison(load_comparison(path), tmp_path / "run", QUIET)
    for figure in results["quality"]:
        assert list(figure["variants"]) == list(kinds)
    for kind, variant in results["variants"].items():
        assert [run["state"] for run in variant["runs"]] == ["finished"]
        assert variant["operations_a_token"] > 0
        assert all(speed is not None for speed in variant["decoding_tokens_a_second"].values())
        methods = {"transformer": {"greedy", "beam"}, "ctc": {"ctc"}, "non_autoregressive": {"mask_predict"}}[kind]
        assert {search["method"] for search in variant["searches"].values()} == methods
