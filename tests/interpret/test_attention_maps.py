"""What a model attended to: equal to its own equations, of every architecture, and beside the right words."""

import copy
import io
import pickle
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from rich.text import Text
from torch import Tensor

import transduce.explore
from pipelines import DECODERS, MODELS, TEXT, pipeline
from random_models import language_model, sentences, translator
from transduce.attention.capture import capture
from transduce.attention.heads import MultiHeadAttention
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.inference.prediction import Prediction
from transduce.interpret.attention import Attention, Layer
from transduce.interpret.layers import NAMES, attending
from transduce.interpret.words import words_in
from transduce.pipeline.pipeline import EnsemblePipeline, Pipeline


def attention_of(made: Pipeline, text: str = TEXT, **search: Any) -> tuple[Prediction, Attention]:
    [prediction] = made.predict([text], **search)
    found = prediction.attention()
    assert isinstance(found, Attention)
    return prediction, found


# ---- exact ------------------------------------------------------------------------------------------------


def eager(module: MultiHeadAttention, x_TD: Tensor, y_SD: Tensor, causal: bool) -> Tensor:
    """softmax(Q K^T / sqrt(E)) head by head, query by query, by the module's own projections and nothing else of it."""
    width = module.head_width
    query_TD = x_TD @ module.query.weight.T + module.query.bias
    key_SD = (y_SD @ module.key_value.weight.T + module.key_value.bias)[:, : module.key_value_heads * width]
    weights = torch.zeros(module.heads, len(x_TD), len(y_SD))
    for head in range(module.heads):
        group = head * module.key_value_heads // module.heads
        for t in range(len(x_TD)):
            seen = t + 1 if causal else len(y_SD)
            scores = [
                query_TD[t, head * width : (head + 1) * width] @ key_SD[s, group * width : (group + 1) * width]
                for s in range(seen)
            ]
            weights[head, t, :seen] = (torch.stack(scores) / width**0.5).softmax(0)
    return weights


@pytest.mark.parametrize("name", ["transformer", "grouped"])
@torch.inference_mode()
def test_weights_equal_eager_attention(name: str) -> None:
    made = pipeline(name)
    keys: dict[torch.nn.Module, Tensor] = {}
    inputs: dict[torch.nn.Module, Tensor] = {}
    for module in made.model.modules():
        if isinstance(module, MultiHeadAttention):  # what a projection is given is what attends
            module.query.register_forward_pre_hook(lambda m, given, own=module: inputs.__setitem__(own, given[0][0]))
            module.key_value.register_forward_pre_hook(lambda m, given, own=module: keys.__setitem__(own, given[0][0]))
    attending(made.model, made.task)  # sends a sentence of its own through the model, once
    _, found = attention_of(made)
    assert len(found.layers) == 6
    for layer in found.layers:
        module = made.model.get_submodule(layer.name)
        assert isinstance(module, MultiHeadAttention)
        expected = eager(module, inputs[module], keys[module], layer.part.causal)
        torch.testing.assert_close(layer.weights, expected, atol=1e-5, rtol=0)


STEPPED = [name for name in [*MODELS, *DECODERS] if name not in ("non_autoregressive", "ctc", "no_attention")]


@pytest.mark.parametrize("name", STEPPED)
def test_weights_are_those_of_going_token_by_token(name: str) -> None:
    made = pipeline(name)
    prediction, found = attention_of(made, method="greedy")
    target = made.task.tokenizers["target"]
    source = made.task.tokenizers.get("source")
    reads = torch.tensor([[*source.encode([TEXT])[0], source.end]]) if source else None
    rows: dict[str, list[Tensor]] = {}
    with torch.inference_mode(), capture(made.model) as record:
        memory, state = made.model.start(Padded(reads, torch.tensor([reads.shape[1]])) if source else None, 1)
        record.clear()
        for token in [made.task.start, *target.ids(prediction.tokens)]:
            _, state = made.model.step(torch.tensor([token]), memory, state)
    rows |= record
    layers = [*found.of("decoder"), *found.of("cross")]
    assert set(rows) == {layer.name for layer in layers}
    for layer in layers:
        for t, row in enumerate(rows[layer.name]):
            seen = row.shape[-1]
            torch.testing.assert_close(layer.weights[:, t, :seen], row[0, :, 0], atol=1e-5, rtol=1e-4)
            assert not layer.weights[:, t, seen:].any()


# ---- what looks at what ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*MODELS, *DECODERS])
def test_kinds_sizes_and_labels(name: str) -> None:
    made = pipeline(name)
    prediction, found = attention_of(made)
    expected = {
        "bahdanau": ["cross"],
        "luong": ["cross"],
        "monotonic": ["cross"],
        "no_attention": [],
        "convolution": ["cross"] * 2,
        "location_aware": ["cross"] * 2,
        "ssru_transformer": ["encoder"] * 2 + ["cross"] * 2,
        "pointer": ["encoder"] * 2 + ["decoder"] * 2 + ["cross"] * 3,
        **dict.fromkeys(DECODERS, ["decoder"] * 2),
    }
    usual = ["encoder"] * 2 + ["decoder"] * 2 + ["cross"] * 2
    assert [layer.part.kind for layer in found.layers] == expected.get(name, usual)
    for layer in found.layers:
        rows, columns = (
            found.labels(axis, size)
            for axis, size in zip((layer.part.rows, layer.part.columns), layer.weights.shape[1:], strict=True)
        )
        assert layer.weights.shape == (layer.part.heads, len(rows), len(columns))
        if layer.part.causal:
            assert not layer.weights.triu(1).any()
        if name not in ("bilinear", "monotonic"):  # whose weights may sum to less
            torch.testing.assert_close(layer.weights.sum(-1), torch.ones(layer.weights.shape[:2]), atol=1e-5, rtol=0)
    written = [token.piece for token in found.target.tokens]
    assert written == [*prediction.tokens, *([] if name in ("non_autoregressive", "ctc") else ["</s>"])]
    if found.source:
        before = name == "non_autoregressive"
        assert [token.text for token in found.source.tokens][before:] == [*TEXT.split(), "</s>"]


def test_kinds_hold_where_source_and_output_are_equally_long() -> None:
    made = pipeline("transformer")
    equal = 0
    for text in [" ".join(["ba"] * length) for length in range(1, 12)]:
        _, found = attention_of(made, text, method="greedy")
        assert found.source is not None
        source, target = len(found.source.tokens), len(found.target.tokens)
        equal += source == target
        sizes = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
        assert all(layer.weights.shape[1:] == sizes[layer.part.kind] for layer in found.layers)
        assert [len(found.of(kind)) for kind in sizes] == [2, 2, 2]
    assert equal


def test_the_length_token_is_read_by_the_encoder_alone() -> None:
    _, found = attention_of(pipeline("non_autoregressive"))
    assert found.source is not None
    assert found.source.tokens[0][:3] == ("<length>", 0, 0)
    assert found.of("encoder")[0].weights[:, :, 0].min() > 0
    assert not any(layer.weights[:, :, 0].any() for layer in found.of("cross"))


def test_what_a_model_is_made_of_is_asked_once() -> None:
    made = pipeline("transformer")
    assert attending(made.model, made.task) is attending(made.model, made.task)


def test_a_pooled_sequence_is_another_kind() -> None:
    from transduce.attention.pooling import AttentionPooling

    made = pipeline("transformer")
    pooling = AttentionPooling("dot", "softmax", 16, queries=2, side="encoder")
    made.model.add_module("pooling", pooling)

    def pool(module: torch.nn.Module, given: Any, states_BSD: Tensor) -> None:
        pooling(states_BSD)

    made.model.encoder.register_forward_hook(pool)
    _, found = attention_of(made)
    (other,) = found.of("other")
    assert (other.part.rows, other.part.columns, other.weights.shape[:2]) == ("other", "source", (1, 2))
    assert found.labels("other", 2) == ["1", "2"]


# ---- the object --------------------------------------------------------------------------------------------


def test_the_numbers_name_the_characters_of_the_texts() -> None:
    prediction, found = attention_of(pipeline("transformer"))
    told = found.to_dict()
    assert told["source"]["text"] == TEXT
    assert [TEXT[each["start"] : each["end"]] for each in told["source"]["tokens"]] == [*TEXT.split(), ""]
    assert told["source"]["tokens"][-1] == {"text": "</s>", "start": len(TEXT), "end": len(TEXT)}
    written = [prediction.text[each["start"] : each["end"]] for each in told["target"]["tokens"]]
    assert written == [*prediction.text.split(" "), ""]
    for layer, said in zip(found.layers, told["attention"], strict=True):
        assert said["shape"] == list(layer.weights.shape)
        np.testing.assert_array_equal(np.array(said["weights"], np.float32), layer.weights.numpy())


def test_it_draws_itself_and_shows_text_as_text() -> None:
    _, found = attention_of(pipeline("transformer"), "ba <script> de")
    drawn = found._repr_html_()
    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn
    assert drawn.count("<img") == 12
    assert "http" not in drawn.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert "no attention" in attention_of(pipeline("no_attention"))[1]._repr_html_()


SPLIT = ["The hams, qu'ils aujourd'hui 3.14", "L'animal n'a pas", "两只狗 GPT-4很好。", "ba ba-ba"]


@pytest.mark.parametrize("text", SPLIT)
@pytest.mark.parametrize("made", [lambda: translator("bpe"), lambda: translator("byte"), language_model])
def test_people_see_words_in_notebook_terminal_and_figure(made, text: str) -> None:
    """The words that the page shows, however the tokenizer cuts them: no ham|s, no qu|'."""
    [prediction] = made().predict([text], split="none")
    found = prediction.attention()
    for layer in found.layers:
        tokens = found.matrix(layer.name, 0)[2].double().numpy()
        rows, columns, weights, title = found.by_words(layer.name, 0)
        assert title == found.matrix(layer.name, 0)[3] and weights.shape == (len(rows), len(columns))
        np.testing.assert_allclose(weights.sum(1), tokens.sum() / len(tokens) * np.ones(len(rows)), atol=1e-5)
        if layer.part.columns == "source":
            assert columns[:-1] == [text[slice(*span)] for span in words_in(text)] and columns[-1] == "</s>"
            queries = found.source.words if layer.part.rows == "source" else found.target.words
            slow = [
                [
                    sum(tokens[q, k] for q in one.tokens for k in other.tokens) / len(one.tokens)
                    for other in found.source.words
                ]
                for one in queries
            ]
            np.testing.assert_allclose(weights, slow, atol=1e-6)
    if found.source:
        page, terminal = found._repr_html_(), str(Text.from_ansi(printed(found)))
        for word in (text[slice(*span)] for span in words_in(text)):
            assert escape(word, quote=False) in page.replace("&#39;", "'") and word[0] in terminal


def printed(shown: object) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(shown)
    return console.export_text()


def test_layers_and_heads_are_counted_from_1_as_on_the_page() -> None:
    _, found = attention_of(pipeline("transformer"))
    drawn = found._repr_html_()
    for kind in ("Encoder self-attention", "Decoder self-attention", "Cross-attention"):
        assert [drawn.count(f'alt="{kind}, layer {layer}, head {head}"') for layer in (1, 2) for head in (1, 2)] == [
            1
        ] * 4
    assert "layer 0" not in drawn and "head 0" not in drawn
    assert "Cross-attention, mean of all layers and heads" in drawn
    layer = found.of("cross")[1]
    assert found.matrix(layer.name, 1)[3] == "Cross-attention, layer 2, head 2"
    assert found.matrix(layer.name)[3] == "Cross-attention, layer 2, mean of heads"
    assert found.labels("other", 3) == ["1", "2", "3"]


def test_the_page_calls_the_kinds_the_same() -> None:
    texts = (Path(transduce.explore.__file__).parent / "page" / "text_en.js").read_text(encoding="utf-8")
    for kind, name in NAMES.items():
        assert f'"kind.{kind}": "{name}",' in texts


def test_it_plots_what_is_asked_for() -> None:
    pytest.importorskip("matplotlib")
    _, found = attention_of(pipeline("transformer"))
    layer = found.of("cross")[1]
    axes = found.plot(layer.name, 1).axes[0]
    np.testing.assert_allclose(axes.images[0].get_array(), layer.weights[1], rtol=1e-6)
    mean = torch.stack([each.weights for each in found.of("cross")]).mean((0, 1))
    np.testing.assert_allclose(found.plot().axes[0].images[0].get_array(), mean, rtol=1e-5)
    with pytest.raises(InputError, match="numbered from 0 to 1"):
        found.plot(layer.name, 2)
    with pytest.raises(InputError, match="no attention called"):
        found.plot("nowhere")


def test_the_mean_of_all_cross_attention_is_the_alignment() -> None:
    _, found = attention_of(pipeline("transformer"))
    slow = np.mean([layer.weights[head].numpy() for layer in found.of("cross") for head in range(2)], axis=0)
    alignment = found.alignment()
    assert alignment is not None
    np.testing.assert_allclose(alignment, slow, rtol=1e-5)
    assert attention_of(language(), "ba de")[1].alignment() is None


def language() -> Pipeline:
    return language_model()


# ---- predictions -------------------------------------------------------------------------------------------


def test_every_output_of_the_list_shows_its_own() -> None:
    [prediction] = pipeline("transformer").predict([TEXT], nbest=3, beam=3)
    pieces = [[token.piece for token in each.attention().target.tokens[:-1]] for each in prediction.alternatives]
    assert pieces == [list(each.tokens) for each in prediction.alternatives]


def test_knowing_the_model_is_no_part_of_a_prediction() -> None:
    made = pipeline("transformer")
    [prediction] = made.predict([TEXT])
    forgotten = pickle.loads(pickle.dumps(prediction))  # noqa: S301
    assert prediction == forgotten
    assert "look" not in prediction.to_dict()
    assert "look" not in repr(prediction)
    assert copy.copy(prediction) == prediction
    with pytest.raises(InputError, match="does not know the model"):
        forgotten.attention()
    torch.testing.assert_close(made.attention(forgotten).layers[0].weights, prediction.attention().layers[0].weights)


def test_what_has_none_says_why() -> None:
    made = pipeline("transformer")
    with pytest.raises(InputError, match="empty"):
        made.predict([""])[0].attention()
    [long] = made.predict([" ".join(sentences(60, longest=9))])
    with pytest.raises(InputError, match="several pieces"):
        long.attention()
    with pytest.raises(InputError, match="ensemble"):
        EnsemblePipeline([made, made]).predict([TEXT])[0].attention()


def test_a_prediction_keeps_its_model_alive() -> None:
    [prediction] = pipeline("transformer").predict([TEXT])
    assert isinstance(prediction.attention().layers[0], Layer)


# ---- nothing is guessed ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*MODELS, *DECODERS])
def test_what_is_declared_is_what_the_sizes_say(name: str) -> None:
    """A source of 3 and an output of 5 tokens tell apart what each part looks at, without asking it."""
    made = pipeline(name)
    at_once = name in ("non_autoregressive", "ctc")
    for part in attending(made.model, made.task):
        with capture(made.model) as record:
            if "source" in made.task.tokenizers:
                made.model.encode(Padded(torch.tensor([[4, 5, 2]]), torch.tensor([3])))
        reading = part.name in record
        assert reading == (part.kind == "encoder")
        assert (part.columns == "source") == (part.kind in ("encoder", "cross"))
        assert (part.columns == "decoder_input") == (part.kind == "decoder" and not at_once)


@pytest.mark.parametrize(("role", "side"), [("memory", "decoder"), ("other", "other"), ("self", "decoder")])
def test_what_is_no_cross_attention_is_not_taken_for_one(role: str, side: str) -> None:
    made = copy.deepcopy(pipeline("transformer"))
    odd = made.model.decoder.blocks[0].cross_attention
    odd.role, odd.side = role, side  # as of slots, as many as the source has tokens
    _, found = attention_of(made)
    assert [layer.name for layer in found.of("cross")] == ["decoder.blocks.1.cross_attention"]
    [other] = found.of("other")
    assert other.name == "decoder.blocks.0.cross_attention"
    assert found.matrix(other.name)[1] == [str(place + 1) for place in range(other.weights.shape[2])]
    assert other.to_dict()["kind"] == "other"
