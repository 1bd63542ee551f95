"""Recipes: bases, overrides, and errors that say everything at once."""

from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from transduce.core.errors import InputError
from transduce.core.overrides import apply_overrides
from transduce.recipe.recipe import Recipe, load_recipe, merge, parse_recipe

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
LEAST = '[data]\ntrain = [{ source = "a", target = "b" }]\n'


def written(folder: Path, text: str, name: str = "mine.toml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def problems(folder: Path, text: str, *overrides: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_recipe(written(folder, text), overrides)
    return caught.value.problems


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_recipe_of_the_repository_is_resolved(path: Path, tmp_path: Path) -> None:
    recipe = load_recipe(path)
    assert recipe.name == path.stem
    assert getattr(recipe.data, "train", None) or recipe.data.file  # type: ignore[attr-defined]
    assert load_recipe(written(tmp_path, tomli_w.dumps(recipe.to_table()))) == recipe


def test_a_recipe_of_data_alone_takes_every_default_from_the_classes(tmp_path: Path) -> None:
    recipe = load_recipe(written(tmp_path, LEAST))
    assert recipe.name == "mine"
    for section in ("task", "tokenizer", "batch", "model", "training", "search"):
        config = getattr(recipe, section)
        assert config == type(config)(), section
    table = recipe.to_table()
    assert (table["task"]["kind"], table["model"]["kind"]) == ("translation", "transformer")


def test_the_kinds_decide_the_keys(tmp_path: Path) -> None:
    text = '[task]\nkind = "language_modelling"\n[model]\nkind = "transformer_decoder"\n'
    recipe = load_recipe(written(tmp_path, text + '[data]\ntrain = [{ text = "a", unit = "stream" }]\n'))
    assert recipe.task.context == 128  # type: ignore[attr-defined]
    assert recipe.data.train[0].unit == "stream"  # type: ignore[attr-defined]
    [problem] = problems(tmp_path, text + LEAST.replace("target", "text").replace("source = ", "unt = "))
    assert "unknown key data.train.0.unt." in problem
    assert '"unit"' in problem


@pytest.mark.parametrize("kind", ["transformer", "convolution"])
def test_a_pointer_takes_one_vocabulary(tmp_path: Path, kind: str) -> None:
    # Two vocabularies of one size look alike to a model; the recipe knows better.
    text = LEAST + f'[model]\nkind = "{kind}"\npointer = true\n'
    assert load_recipe(written(tmp_path, text)).model.pointer  # type: ignore[attr-defined]
    [problem] = problems(tmp_path, text, "tokenizer.joint=false")
    assert "needs tokenizer.joint = true" in problem


def test_a_base_is_laid_under_table_by_table(tmp_path: Path) -> None:
    written(tmp_path, LEAST + "[training]\nupdates = 7\nseed = 3\nbetas = [0.5, 0.6]\n", "below.toml")
    recipe = load_recipe(written(tmp_path, 'base = "below.toml"\n[training]\nupdates = 9\nbetas = [0.9, 0.99]\n'))
    assert (recipe.training.updates, recipe.training.seed, recipe.training.betas) == (9, 3, (0.9, 0.99))
    assert recipe.name == "mine"


def test_a_base_may_have_a_base(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    written(tmp_path / "deep", LEAST + "[training]\nupdates = 5\nseed = 5\nkeep = 5\n", "lowest.toml")
    written(tmp_path, 'base = "deep/lowest.toml"\n[training]\nupdates = 6\nseed = 6\n', "below.toml")
    recipe = load_recipe(written(tmp_path, 'base = "below.toml"\n[training]\nupdates = 7\n'))
    assert (recipe.training.updates, recipe.training.seed, recipe.training.keep) == (7, 6, 5)


@pytest.mark.parametrize("below", ['base = "mine.toml"\n', 'base = "./lowest.toml"\n'], ids=["of two", "of one"])
def test_a_recipe_that_is_its_own_base_is_refused(tmp_path: Path, below: str) -> None:
    written(tmp_path, below, "lowest.toml")
    [problem] = problems(tmp_path, 'base = "lowest.toml"\n')
    assert "this recipe is its own base: " in problem
    assert problem.count(" -> ") == 2
    assert "lowest.toml -> " in problem


def test_what_may_be_left_out_can_be_unset(tmp_path: Path) -> None:
    below = """
        [data]
        train = [{ source = "a", target = "b" }]
        validation = { source = "c", target = "d" }
        [data.test]
        one = { source = "e", target = "f" }
        other = { source = "g", target = "h" }
        [training]
        minutes = 5
        patience = 3
        start = "runs/a"
        [model]
        d_model = 64
        [teachers]
        seeds = [4]
        [search]
        length_rule = "gnmt"
    """
    written(tmp_path, below, "below.toml")
    above = written(tmp_path, 'base = "below.toml"\n[training]\nminutes = "none"\n[data.test]\none = "none"\n')
    unset = ["training.patience=none", "training.start=none", "data.validation=none", "teachers=none"]
    recipe = load_recipe(above, [*unset, "search.length_rule=none"])
    assert (recipe.training.minutes, recipe.training.patience, recipe.training.start) == (None, None, None)
    assert (recipe.data.validation, [*recipe.data.test]) == (None, ["other"])  # type: ignore[attr-defined]
    assert recipe.teachers is None
    assert recipe.search.length_rule == "none"  # a choice that is called so stays one
    assert load_recipe(above, ["data.test=none"]).data.test == {}  # type: ignore[attr-defined]
    [problem] = problems(tmp_path, LEAST, "training.updates=none")
    assert "training.updates: expected a whole number; got 'none'." in problem


def test_a_list_of_one_can_be_written_without_brackets(tmp_path: Path) -> None:
    text = '[task]\nmetrics = "chrf"\n[data]\ntrain = { source = "a", target = "b" }\n[teachers]\nseeds = 3\n'
    listed = '[task]\nmetrics = ["chrf"]\n[data]\ntrain = [{ source = "a", target = "b" }]\n[teachers]\nseeds = [3]\n'
    assert load_recipe(written(tmp_path, text)) == load_recipe(written(tmp_path, listed))
    of_text = '[task]\nkind = "language_modelling"\n[model]\nkind = "transformer_decoder"\n[data.train]\ntext = "a"\n'
    assert [file.text for file in load_recipe(written(tmp_path, of_text)).data.train] == ["a"]  # type: ignore[attr-defined]


def test_a_single_test_set_needs_no_name(tmp_path: Path) -> None:
    for files in ('source = "a", target = "b"', 'tsv = "c", target_column = 2'):
        [alone, named] = [
            load_recipe(written(tmp_path, f"{LEAST}{written_so}"))
            for written_so in (f"test = {{ {files} }}\n", f"test.test = {{ {files} }}\n")
        ]
        assert alone == named
        assert [*alone.data.test] == ["test"]  # type: ignore[attr-defined]
    text = '[task]\nkind = "language_modelling"\n[model]\nkind = "transformer_decoder"\n[data]\ntrain.text = "a"\n'
    assert load_recipe(written(tmp_path, text + 'test.text = "b"\n')).data.test["test"].text == "b"  # type: ignore[attr-defined]
    assert load_recipe(written(tmp_path, text + 'test.text.text = "b"\n')).data.test["text"].text == "b"  # type: ignore[attr-defined]


def test_a_text_in_the_place_of_a_recipe_is_told_so(tmp_path: Path) -> None:
    [_, advice] = _problems_of(written(tmp_path, "A dog runs.\n", "train.en"))
    assert "Expected a recipe" in advice
    assert len(_problems_of(written(tmp_path, "A dog runs.\n"))) == 1


def _problems_of(recipe: Path) -> list[str]:
    with pytest.raises(InputError, match="not TOML") as caught:
        load_recipe(recipe)
    return caught.value.problems


def test_a_byte_order_mark_is_no_part_of_a_recipe(tmp_path: Path) -> None:
    (tmp_path / "marked.toml").write_bytes(b"\xef\xbb\xbf" + LEAST.encode())
    assert load_recipe(tmp_path / "marked.toml") == load_recipe(written(tmp_path, LEAST)).model_copy(
        update={"name": "marked"}
    )


def test_wrong_values_are_told_in_our_words(tmp_path: Path) -> None:
    wrong = {
        "training": {
            "updates": "x", "seed": -1, "keep": 1.5, "average": 1, "learning_rate": 0, "betas": 3, "start": 4,
            "tensorboard": "maybe", "minutes": "x", "optimizer": "mun",
        },
        "batch": 5,
        "task": {"metrics": [3]},
        "teachers": {"seeds": [], "search": 3},
        "data": {"train": [5, {"source": 1, "target": "b"}], "filters": 3, "test": [1]},
        "model": {"dropout": "x"},
    }  # fmt: skip
    with pytest.raises(InputError) as caught:
        parse_recipe(wrong, "here")
    assert sorted(caught.value.problems) == sorted(
        f"here: {said}."
        for said in (
            "training.updates: expected a whole number; got 'x'",
            "training.seed: expected a number of at least 0; got -1",
            "training.keep: expected a whole number; got 1.5",
            "training.average: expected a number below 1; got 1",
            "training.learning_rate: expected a number above 0; got 0",
            "training.betas: expected a list; got 3",
            "training.start: expected text; got 4",
            "training.tensorboard: expected true or false; got 'maybe'",
            "training.minutes: expected a number; got 'x'",
            'training.optimizer: expected "adamw", "muon", "sgd" or "rmsprop"; got \'mun\'',
            "batch: expected a table of keys; got 5",
            "task.metrics.0: expected text; got 3",
            "teachers.seeds: expected a list of length at least 1; got []",
            "teachers.search: expected a table of keys; got 3",
            "data.train.0: expected a table of keys; got 5",
            "data.train.1.source: expected text; got 1",
            "data.filters: expected a table of keys; got 3",
            "data.test: expected a table of keys; got [1]",
            "model.dropout: expected a number; got 'x'",
        )
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('base = "bellow.toml"\n', 'bellow.toml: there is no such recipe. Did you mean "below.toml"?'),
        ("base = 5\n", "base: expected the name of one recipe file; got 5."),
        ("name = 5\n" + LEAST, "name: expected text; got 5."),
        ("[training\n", "not TOML"),
        ("a = " + "[" * 100_000, "not TOML"),
        ("seed = " + "9" * 5000, "not TOML"),
        ("training = 5\n" + LEAST, "training: expected a table of keys; got 5."),
        ('[task]\nkind = "translatoin"\n', 'there is no "translatoin". Did you mean "translation"?'),
        ("[data]\ntrain = []\n", "data: name at least one pair of training files"),
        ('[data]\ntrain = [{ source = "a" }]\n', "name either source and target (two files) or file"),
        ("[data]\n", "data.train is missing."),
        (LEAST + "[model]\nd_model = 30\n", "d_model (30) must be a multiple of heads (4)"),
        (LEAST + "[search]\nnbest = 9\n", "search: nbest = 9 is more than beam = 5"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, text: str, said: str) -> None:
    written(tmp_path, LEAST, "below.toml")
    assert any(said in problem for problem in problems(tmp_path, text))


def test_all_problems_are_said_at_once_with_the_nearest_key(tmp_path: Path) -> None:
    text = """
        [trainnig]
        [training]
        update = 5
        learning_rate = "fast"
        optimizer = "mun"
        [batch]
        tokens = 0
        [model]
        headz = 3
        [data]
        train = [{ sorce = "a", target = "b" }]
        [data.filters]
        max_token = 3
    """
    found = "\n".join(problems(tmp_path, text))
    for said in (
        'unknown section [trainnig]. Did you mean "training"?',
        'unknown key training.update. Did you mean "updates"?',
        "training.learning_rate: expected a number",
        "'fast'",
        'training.optimizer: expected "adamw", "muon", "sgd" or "rmsprop"; got \'mun\'.',
        'batch.tokens: expected a number of at least 1, or "auto"; got 0.',
        'unknown key model.headz. Did you mean "heads"?',
        'unknown key data.train.0.sorce. Did you mean "source"?',
        'unknown key data.filters.max_token. Did you mean "max_tokens"?',
    ):
        assert said in found
    assert found.count(str(tmp_path / "mine.toml")) == len(found.splitlines())


def test_overrides_win_and_are_read_as_toml(tmp_path: Path) -> None:
    path = written(tmp_path, LEAST)
    recipe = load_recipe(
        path,
        [
            "training.updates=12",
            "training.learning_rate=4e-3",
            "training.betas=[0.1, 0.2]",
            "training.tensorboard=true",
            "training.optimizer=muon",
            'task.source="en"',
            "data.filters.max_tokens=9",
            "data.root=../x=y",
            "name=another",
        ],
    )
    training = recipe.training
    assert (training.updates, training.learning_rate, training.betas) == (12, 4e-3, (0.1, 0.2))
    assert (training.tensorboard, training.optimizer, recipe.name) == (True, "muon", "another")
    assert recipe.to_table()["data"]["filters"]["max_tokens"] == 9
    assert recipe.to_table()["data"]["root"] == "../x=y"
    assert recipe.to_table()["task"]["source"] == "en"


def test_bad_overrides_are_all_named(tmp_path: Path) -> None:
    found = problems(tmp_path, LEAST + "[training]\nupdates = 3\n", "training.updates", "=3", "training.updates.x=1")
    assert len(found) == 3
    assert '"training.updates": expected key=value' in found[0]
    assert '"training.updates.x=1": training.updates is not a section.' in found[2]
    assert problems(tmp_path, LEAST, "training.sed=3") == [
        f'{tmp_path / "mine.toml"} with training.sed=3: unknown key training.sed. Did you mean "seed"?'
    ]


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 5000], ids=["brackets", "digits"])
def test_a_value_that_is_too_much_is_named(tmp_path: Path, value: str) -> None:
    assert "training.seed: " in problems(tmp_path, LEAST, f"training.seed={value}")[0]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.pkl", b"\x80\x04\x95\x05\x00", "this looks like a PyTorch checkpoint, which is a pickle"),
        ("x.safetensors", b"\xf0\x00", "this is a model, not a recipe\\. To continue from it, add training\\.start"),
        ("x.dat", b"\x80\x00", "not UTF-8 text, so not a recipe"),
    ],
)
def test_a_binary_file_is_no_recipe(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=rf"{name}: {said}") as refused:
        load_recipe(tmp_path / name)
    assert "codec" not in str(refused.value)


def test_keys_of_another_kind_are_called_so(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("[model]\nfeed_forward = 64\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a\.toml with .* has this key, .rnn. does not"):
        load_recipe(tmp_path / "a.toml", ["model.kind=rnn"])


def test_a_recipe_is_read_from_a_file() -> None:
    with pytest.raises(InputError, match=r"^https://example\.org/a\.toml: this is a URL, and recipes are"):
        load_recipe(Path("https://example.org/a.toml"))


def test_a_missing_recipe_suggests_its_neighbour(tmp_path: Path) -> None:
    written(tmp_path, LEAST)
    with pytest.raises(InputError, match=r'minne.toml: there is no such recipe. Did you mean "mine.toml"'):
        load_recipe(tmp_path / "minne.toml")
    with pytest.raises(InputError, match="cannot be read"):
        load_recipe(tmp_path)


def test_a_recipe_is_frozen(tmp_path: Path) -> None:
    recipe = load_recipe(written(tmp_path, LEAST))
    with pytest.raises(ValueError, match="frozen"):
        recipe.training.updates = 5  # type: ignore[misc]


VALUES = st.one_of(
    st.integers(-9, 9), st.booleans(), st.text("ab", max_size=2), st.lists(st.integers(0, 3), max_size=2)
)
KEYS = st.sampled_from("abc")
SECTIONS = st.dictionaries(KEYS, VALUES, max_size=3)
TABLES = st.dictionaries(KEYS, VALUES | SECTIONS | st.dictionaries(KEYS, SECTIONS, max_size=2), max_size=3)


@given(TABLES, TABLES)
def test_merging_keeps_what_is_above_and_only_adds_from_below(below: dict, above: dict) -> None:  # type: ignore[type-arg]
    def check(merged: dict, below: dict, above: dict) -> None:  # type: ignore[type-arg]
        assert merged.keys() == below.keys() | above.keys()
        for key, value in merged.items():
            if key not in above:
                assert value == below[key]
            elif isinstance(above[key], dict) and isinstance(below.get(key), dict):
                check(value, below[key], above[key])
            else:
                assert value == above[key]

    check(merge(below, above), below, above)


@given(VALUES)
def test_any_toml_value_can_be_an_override(value: object) -> None:
    line = tomli_w.dumps({"value": value}).removeprefix("value = ").strip()
    assert apply_overrides({}, [f"a.b={line}"]) == {"a": {"b": value}}


def test_the_table_of_a_recipe_is_the_recipe(tmp_path: Path) -> None:
    recipe = load_recipe(written(tmp_path, LEAST), ["training.minutes=3", "search.method=sample", "search.top_k=4"])
    again = parse_recipe(recipe.to_table(), "table")
    assert isinstance(again, Recipe)
    assert again == recipe


def test_what_an_override_makes_wrong_is_not_said_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "base.toml"
    text = '[data]\ntrain = { source = "a", target = "b" }\n[model]\nkind = "transformer"\nfeed_forward = 32\n'
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        load_recipe(path, ["model.kind=rnn", "training.updates=-1"])
    assert len(raised.value.problems) == 2
    assert all(each.startswith(f"{path} with model.kind=rnn training.updates=-1: ") for each in raised.value.problems)
    path.write_text(text + "[training]\nwarmup = -1\n")
    with pytest.raises(InputError) as raised:
        load_recipe(path, ["model.kind=rnn"])
    assert sorted(each.partition(": ")[0] for each in raised.value.problems) == [
        str(path),
        f"{path} with model.kind=rnn",
    ]
