"""Comparisons as files: what variants are, and what makes a comparison unfair."""

from pathlib import Path

import pytest

from transduce.compare.config import UNLIMITED, ComparisonConfig, folder_name, load_comparison
from transduce.core.errors import InputError
from transduce.core.registry import known

RECIPES = Path(__file__).parents[2] / "recipes" / "compare"
BASE = '[data]\ntrain = [{ source = "a", target = "b" }]\n[data.test.one]\nsource = "a"\ntarget = "b"\n'
BASE += "[model]\nheads = 2\nd_model = 16\n[training]\npatience = 3\n"
TWO = '[variants.one]\n[variants.other]\nmodel = { norm = "post" }\n'


def written(folder: Path, text: str, base: str = BASE) -> Path:
    (folder / "base.toml").write_text(base)
    path = folder / "mine.toml"
    path.write_text(f'base = "base.toml"\n{text}')
    return path


def loaded(folder: Path, text: str, *overrides: str, budget: str | None = "5ktok") -> ComparisonConfig:
    return load_comparison(written(folder, text), overrides, budget)


def problem(folder: Path, text: str, budget: str | None = "5ktok") -> str:
    with pytest.raises(InputError) as caught:
        load_comparison(written(folder, text), [], budget)
    return str(caught.value)


def test_a_variant_is_the_base_with_what_all_say_and_what_it_says(tmp_path: Path) -> None:
    comparison = loaded(tmp_path, "[training]\nwarmup = 7\n" + TWO, "training.clip=2")
    one, other = comparison.variants["one"], comparison.variants["other"]
    assert (one.model.norm, other.model.norm) == ("pre", "post")  # type: ignore[attr-defined]
    for recipe in (one, other):
        assert (recipe.training.warmup, recipe.training.clip, recipe.model.heads) == (7, 2, 2)  # type: ignore[attr-defined]
    assert comparison.name == "mine"
    assert comparison.changes == {"one": {}, "other": {"model": {"norm": "post"}}}


def test_a_model_of_another_kind_replaces_the_one_below(tmp_path: Path) -> None:
    text = '[variants.one]\n[variants.other]\nmodel = { kind = "transformer_decoder", layers = 2 }\n'
    other = loaded(tmp_path, text).variants["other"]
    assert other.model.layers == 2  # type: ignore[attr-defined]
    assert other.model.d_model == 256  # type: ignore[attr-defined]


def test_the_base_may_have_a_base(tmp_path: Path) -> None:
    (tmp_path / "lowest.toml").write_text(BASE)
    path = written(tmp_path, TWO, base='base = "lowest.toml"\n[training]\nseed = 5\n')
    assert load_comparison(path, [], "5ktok").variants["one"].model.d_model == 16  # type: ignore[attr-defined]
    (tmp_path / "lowest.toml").write_text('base = "base.toml"\n' + BASE)
    with pytest.raises(InputError, match="is its own base"):
        load_comparison(path, [], "5ktok")


def test_trainings_are_ended_by_the_budget_alone(tmp_path: Path) -> None:
    comparison = loaded(tmp_path, TWO)
    bought = comparison.training("other", 4, 77)
    assert (bought.training.seed, bought.training.updates, bought.training.minutes) == (4, 77, None)
    assert bought.training.patience is None
    assert bought.name == "other"
    assert bought.data.test == {}  # type: ignore[attr-defined]
    patient = loaded(tmp_path, "[compare]\npatience = 2\n" + TWO).training("other", 4, 77)
    assert (patient.training.patience, patient.training.updates) == (2, 77)
    timed = loaded(tmp_path, '[training]\nschedule = "constant"\n' + TWO, budget="30s").training("one", 1, None)
    assert (timed.training.minutes, timed.training.updates) == (0.5, UNLIMITED)


def test_the_command_lines_budget_wins(tmp_path: Path) -> None:
    text = '[compare]\nbudget = "9ktok"\n' + TWO
    assert loaded(tmp_path, text, budget=None).budget.amount == 9000
    assert loaded(tmp_path, text, budget="1ktok").budget.amount == 1000


def test_searches_are_the_recipes_with_keys_replaced(tmp_path: Path) -> None:
    comparison = loaded(tmp_path, "[search]\nalpha = 0.3\n" + TWO)
    assert list(comparison.searches) == ["one", "other"]
    assert list(comparison.searches["one"]) == ["greedy", "beam"]
    assert comparison.searches["one"]["greedy"].method == "greedy"
    assert comparison.searches["one"]["beam"].alpha == 0.3


def test_a_variants_own_search_is_kept(tmp_path: Path) -> None:
    searches = loaded(tmp_path, "[variants.one]\n[variants.other]\nsearch = { alpha = 0.1 }\n").searches
    assert (searches["one"]["beam"].alpha, searches["other"]["beam"].alpha) == (0.75, 0.1)


AT_ONCE = '[variants.one]\n[variants.ctc.model]\nkind = "ctc"\n[variants.fills.model]\nkind = "non_autoregressive"\n'


def test_models_that_write_at_once_are_searched_their_own_way(tmp_path: Path) -> None:
    wide = '[compare.searches]\ngreedy = { method = "greedy" }\nwide = { beam = 8, prune = 2.0, alpha = 0.5 }\n'
    searches = loaded(tmp_path, wide + AT_ONCE).searches
    assert [searches["one"][name].method for name in ("greedy", "wide")] == ["greedy", "beam"]
    assert {(each.method, each.beam) for each in searches["ctc"].values()} == {("ctc", 1), ("ctc", 8)}
    assert searches["ctc"]["wide"].alpha == searches["one"]["wide"].alpha == 0.5
    assert {each.method for each in searches["fills"].values()} == {"mask_predict"}
    told = '[search]\nmethod = "beam"\n[compare.searches]\nbeam = {}\n'
    assert loaded(tmp_path, told + AT_ONCE).searches["ctc"]["beam"].method == "ctc"


def test_a_method_of_other_models_is_refused(tmp_path: Path) -> None:
    said = problem(tmp_path, '[compare.searches]\nx = { method = "ctc" }\n' + AT_ONCE)
    assert 'compare.searches.x: method "ctc" is for ctc models; one is not one.' in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "name at least one variant"),
        ("[variants]\none = 5\n", "variant one: expected a table"),
        ("[variants.one]\nmodel = { hads = 2 }\n", 'variant one: unknown key model.hads. Did you mean "heads"?'),
        ('[variants.one]\nmodel = { kind = "rnnn" }\n', 'variant one: [model] kind: models: there is no "rnnn"'),
        (
            TWO + "[variants.third]\nbatch = { tokens = 9 }\n",
            "one and third cannot be compared: these keys differ: batch",
        ),
        (TWO + "[variants.third]\ntokenizer = { vocabulary = 99 }\n", "these keys differ: tokenizer.vocabulary"),
        (TWO + "[variants.third]\ntraining = { accumulate = 2 }\n", "these keys differ: training.accumulate"),
        ('[batch]\ntokens = "auto"\n' + TWO, 'batch.tokens = "auto" can give each variant other batches'),
        ('[variants."../a"]\n', "variant ../a: its name: expected a name, such as my-model"),
        ('[compare.searches."../a"]\n[variants.a]\n', "expected a name, such as my-model"),
        ('[variants."a b"]\n[variants."a-b"]\n', "would share a folder"),
        ("[compare]\nbugdet = 1\n" + TWO, 'unknown key compare.bugdet. Did you mean "budget"?'),
        ("[compare]\nseeds = []\n" + TWO, "compare.seeds"),
        ('[compare]\nmetrics = ["blue"]\n' + TWO, 'compare.metrics: there is no "blue". Did you mean "bleu"?'),
        ("[compare.searches]\nx = { beem = 2 }\n" + TWO, "compare.searches.x: unknown key search.beem"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    assert said in problem(tmp_path, text)


def test_all_problems_come_at_once(tmp_path: Path) -> None:
    found = problem(tmp_path, "[variants.one]\nmodel = { a = 1 }\n[variants.other]\nmodel = { b = 1 }\n")
    assert "model.a" in found
    assert "model.b" in found


def test_time_needs_a_schedule_without_an_end(tmp_path: Path) -> None:
    assert 'ends at a known update, and a budget of 5m has none (one: "cosine", ' in problem(tmp_path, TWO, budget="5m")
    linear = '[training]\nschedule = "linear"\n'
    assert 'has none (one: "linear", ' in problem(tmp_path, linear + TWO, budget="5m")
    assert loaded(tmp_path, '[training]\nschedule = "inverse_sqrt"\n' + TWO, budget="5m").budget.unit == "minutes"


@pytest.mark.parametrize(
    ("name", "folder"), [("pre", "pre"), ("a, b", "a-b"), ("../x", "x"), ("无", "无"), ("!", "variant")]
)
def test_a_variants_folder_is_its_name_without_what_disturbs(name: str, folder: str) -> None:
    assert folder_name(name) == folder


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_the_comparisons_that_come_with_transduce_load(path: Path) -> None:
    comparison = load_comparison(path)
    kinds = {recipe.model.kind for recipe in comparison.variants.values()}  # type: ignore[attr-defined]
    assert kinds <= set(known("models"))
    assert len(comparison.variants) > 1
