"""Fitted exponents, layers, and that measured operations grow as the textbooks say."""

import itertools
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.compare.complexity import COMPLEXITIES, complexity_of
from transduce.compare.growth import fitted_exponent, layer_count, measure_growth
from transduce.core.registry import known, resolve
from transduce.recipe.recipe import Recipe, parse_recipe


@pytest.fixture(autouse=True)
def timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here are operations, which are counted; seconds are only looked at for being there."""
    monkeypatch.setattr("transduce.compare.growth.REPEATS", 1)
    monkeypatch.setattr("transduce.compare.growth.ENOUGH_SECONDS", 0.0)


def recipe(**model: object) -> Recipe:
    data = {"train": [{"source": "a", "target": "b"}]}
    return parse_recipe({"data": data, "model": {"d_model": 16, "heads": 2, "feed_forward": 16, **model}}, "test")


@settings(max_examples=25)
@given(st.floats(-2, 3), st.floats(0.001, 1000))
def test_a_power_is_found_again(power: float, factor: float) -> None:
    lengths = [32, 64, 128, 256]
    assert fitted_exponent(lengths, [factor * n**power for n in lengths]) == pytest.approx(power, abs=1e-9)


def test_nothing_is_fitted_to_one_point_or_to_zeros() -> None:
    assert fitted_exponent([32], [1.0]) is None
    assert fitted_exponent([32, 64], [0.0, 1.0]) is None


def test_layers_of_all_parts_are_counted() -> None:
    assert layer_count(recipe(encoder_layers=2, decoder_layers=3)) == 5
    decoder = {"kind": "transformer_decoder", "layers": 4}
    text = {"task": {"kind": "language_modelling"}, "data": {"train": [{"text": "a"}]}, "model": decoder}
    assert layer_count(parse_recipe(text, "test")) == 4


def test_growth_is_measured_at_every_length() -> None:
    found = measure_growth(recipe(encoder_layers=1, decoder_layers=1), [4, 8, 16, 32])
    assert found["lengths"] == [4, 8, 16, 32]
    assert (found["layers"], found["fitted_from"]) == (2, 16)
    assert all(seconds > 0 for seconds in found["seconds_a_layer"])
    assert found["exponent"] is not None
    # projections and feed-forward grow with n, the mixing of positions with its square: between the two
    assert 1 < found["exponent_of_operations"] < 2


def test_self_attention_grows_with_the_square_where_sequences_are_long() -> None:
    short = measure_growth(recipe(encoder_layers=1, decoder_layers=1), [2, 4])["exponent_of_operations"]
    long = measure_growth(recipe(encoder_layers=1, decoder_layers=1), [256, 512])["exponent_of_operations"]
    assert short < 1.2
    assert long > 1.8


@pytest.mark.parametrize(("kind", "power", "lengths"), [("bidaf", 1, [32, 64]), ("qanet", 2, [256, 512])])
def test_operations_of_models_that_point_grow_as_the_table_says(kind: str, power: int, lengths: list[int]) -> None:
    table = {"task": {"kind": "extractive_qa"}, "data": {"train": [{"file": "a.json"}]}}
    sizes = {"heads": 2, "blocks": 1} if kind == "qanet" else {"hidden": 16}
    model = {"kind": kind, "d_model": 16, "character_filters": 0, **sizes}
    found = measure_growth(parse_recipe(table | {"model": model}, "test"), lengths)
    assert found["exponent_of_operations"] == pytest.approx(power, abs=0.3)


@pytest.mark.parametrize("task", ["node_classification", "graph_classification"])
@pytest.mark.parametrize("kind", ["graph_attention", "graph_transformer"])
def test_attention_along_edges_grows_as_a_graph_does(task: str, kind: str) -> None:
    data = {"nodes": "a.tsv", "edges": "b.tsv"} if task == "node_classification" else {"file": "a.jsonl"}
    table = {"task": {"kind": task}, "data": data, "model": {"kind": kind, "layers": 2}}
    found = measure_growth(parse_recipe(table, "test"), [64, 128])
    assert found["unit"] == "node"
    assert found["exponent_of_operations"] == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("model", "power"),
    [
        ({"kind": "tree_lstm", "cell": "binary", "hidden": 16}, 1),
        ({"kind": "tree_lstm", "cell": "child_sum", "hidden": 16}, 1),
        ({"kind": "tree_transformer", "layers": 1, "feed_forward": 12, "d_model": 12}, 2),
        ({"kind": "tree_transformer", "layers": 1, "feed_forward": 12, "d_model": 12, "attention": "flat"}, 2),
    ],
)
def test_operations_on_trees_grow_as_the_table_says(model: dict[str, object], power: int) -> None:
    table = {"task": {"kind": "tree_classification"}, "data": {"train": [{"file": "a.trees"}]}, "model": model}
    found = measure_growth(parse_recipe(table, "test"), [64, 128])
    assert (found["unit"], found["layers"]) == ("word", 1)
    assert found["exponent_of_operations"] == pytest.approx(power, abs=0.3)


def test_a_language_model_reads_no_source() -> None:
    decoder = {"kind": "transformer_decoder", "layers": 1, "d_model": 16, "heads": 2}
    text = {"task": {"kind": "language_modelling"}, "data": {"train": [{"text": "a"}]}, "model": decoder}
    assert len(measure_growth(parse_recipe(text, "test"), [4, 8])["seconds_a_layer"]) == 2


@pytest.mark.parametrize("kind", ["transformer", "rnn", "ctc"])
def test_lengths_of_speech_are_frames(kind: str) -> None:
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1}
    sizes |= {"hidden": 16} if kind == "rnn" else {"heads": 2, "feed_forward": 16}
    data = {"train": [{"file": "train.tsv"}]}
    table = {"task": {"kind": "speech_recognition"}, "data": data, "model": {"kind": kind, **sizes}}
    found = measure_growth(parse_recipe(table, "test"), [16, 32, 64])
    assert (found["unit"], found["lengths"], found["layers"]) == ("frame", [16, 32, 64], 2)
    assert all(after > before for before, after in itertools.pairwise(found["operations_a_layer"]))
    assert measure_growth(recipe(), [4, 8])["unit"] == "token"


OF_TEXTS = {  # kinds of models whose encoder is chosen, with a task and a file of each
    "chart_parser": ("parsing", "a.mrg"),
    "classifier": ("classification", "a.tsv"),
    "masked_language_model": ("masked_language_modelling", "a.txt"),
    "sentence_encoder": ("text_encoding", "a.txt"),
    "span_reader": ("extractive_qa", "a.json"),
    "tagger": ("tagging", "a.bio"),
}


def test_the_table_of_the_textbooks() -> None:
    assert [(row.name, row.layer, row.sequential) for row in COMPLEXITIES[:3]] == [
        ("CNN", "O(k n d²)", "O(1)"),
        ("RNN", "O(n d²)", "O(n)"),
        ("Transformer", "O(n² d)", "O(1)"),
    ]
    paths = {row.name: row.path for row in COMPLEXITIES}
    assert "O(log_k n) dilated" in paths["CNN"]
    assert paths["RNN"] == "O(n)"
    assert paths["Transformer"] == "O(1)"
    assert complexity_of("transformer_decoder") == complexity_of("transformer")
    assert complexity_of("my_file:MyModel") is None
    assert all(complexity_of(kind) for kind in known("models") if kind not in {*OF_TEXTS, "vector_decoder"})
    assert complexity_of("vector_decoder", "recurrent") == complexity_of("rnn")
    assert complexity_of("tree_transformer", "flat") == complexity_of("transformer")
    assert complexity_of("classifier", "recurrent") == complexity_of("rnn")
    assert complexity_of("classifier", "transformer") == complexity_of("transformer")


@given(st.integers(1, 5000), st.integers(1, 5000), st.integers(2, 9))
def test_self_attention_is_the_cheapest_where_sequences_are_shorter_than_vectors_are_wide(
    n: int, d: int, k: int
) -> None:
    def operations(kind: str) -> int:
        """The order as a number: "O(k n d²)" is k n d d."""
        row = complexity_of(kind)
        assert row
        powers = row.layer.removeprefix("O(").removesuffix(")").split()
        return math.prod({"n": n, "d": d, "k": k}[power[0]] ** (2 if power.endswith("²") else 1) for power in powers)

    assert (operations("transformer") < operations("rnn")) == (n < d)
    assert (operations("transformer") < operations("convolution")) == (n < k * d)


@pytest.mark.parametrize("kind", sorted(known("models")))
def test_growth_of_every_kind_of_model_is_measured(kind: str) -> None:
    fields = resolve("models", kind).Config.model_fields
    sizes = {"d_model": 16, "heads": 2, "feed_forward": 16, "hidden": 16, "layers": 1}
    model = {key: value for key, value in sizes.items() if key in fields} | {"kind": kind}
    model |= {key: 1 for key in ("encoder_layers", "decoder_layers") if key in fields}
    if kind in OF_TEXTS:
        task, file = OF_TEXTS[kind]
        files = {"text" if file.endswith(".txt") and "masked" in task else "file": file}
        unread = ("hidden",) if "masked" in task else ("heads", "feed_forward")
        model = {key: value for key, value in model.items() if key not in unread}
    elif kind in ("bidaf", "qanet"):
        task, files = "extractive_qa", {"file": "a.json"}
        model = {key: value for key, value in model.items() if key != "feed_forward"}
    elif kind == "memory_network":
        task, files = "question_answering", {"file": "a.txt"}
    elif kind in ("neural_turing_machine", "vector_decoder"):
        task, files = "algorithmic", {}
        model = {key: value for key, value in model.items() if key not in ("heads", "feed_forward")}
    elif kind in ("graph_attention", "graph_transformer"):
        task, files = "graph_classification", {}
    elif "tree" in kind:
        task, files = "tree_classification", {"file": "a.trees"}
        model |= {"relations": ("parent", "children")} if "relations" in fields else {}
    elif "layers" in fields:
        task, files = "language_modelling", {"text": "a"}
    else:
        task, files = "translation", {"source": "a", "target": "b"}
    data: dict[str, Any] = {"file": "a.jsonl"} if task == "graph_classification" else {"train": [files]}
    table = {"task": {"kind": task}, "data": {} if task == "algorithmic" else data, "model": model}
    found = measure_growth(parse_recipe(table, "test"), [4, 8])
    assert all(seconds > 0 for seconds in found["seconds_a_layer"])
    first, second = found["operations_a_layer"]
    assert 0 < first < second or kind == "memory_network"  # which has one product, of its output: the rest are sums
