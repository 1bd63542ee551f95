"""What the explorer computes, against slow loops that compute it again another way."""

import json
import math
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from base64_arrays import from_base64
from pipelines import DECODERS, MODELS, TEXT, pipeline
from transduce.attention.capture import capture
from transduce.attention.cross_attention import CrossAttention
from transduce.attention.heads import MultiHeadAttention
from transduce.attention.linear import LinearAttention
from transduce.attention.positions import sinusoidal
from transduce.attention.relative import slopes
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.explore.example import example
from transduce.explore.exploration import asked, explore
from transduce.interpret.capabilities import described
from transduce.interpret.importance import importance
from transduce.interpret.model_inputs import Given
from transduce.interpret.positions import placed
from transduce.interpret.rollout import rollout, rollout_dict
from transduce.interpret.steps import steps
from transduce.layers.stack import Stack, StackConfig
from transduce.models.protocols import writes_at_once
from transduce.pipeline.pipeline import EnsemblePipeline, Pipeline

EVERY = [*MODELS, *DECODERS]
SCORING = ("rotary", "alibi", "shaw", "t5", "learned", "cosine", "bilinear", "location_aware", "monotonic")
"""Models that differ from another one in how they score and weigh, which a head's part of the output does not see."""
HEADED = [pytest.param(name, marks=pytest.mark.slow) if name in SCORING else name for name in EVERY]


def given_of(made: Pipeline) -> Given:
    return asked(made, TEXT, None)


def written(made: Pipeline, given: Given) -> str:
    return made.task.tokenizers["target"].decode(given.target)


# ---- one sentence -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY)
def test_an_exploration_is_the_prediction_and_what_was_seen(name: str) -> None:
    made = pipeline(name)
    found = json.loads(json.dumps(explore(made, TEXT, "ours"), allow_nan=False))
    beam, several = made.recipe.search.method == "beam", made.recipe.search.method in ("beam", "ctc")
    [prediction] = made.predict([TEXT], nbest=made.recipe.search.beam) if several else made.predict([TEXT])
    assert (found["model"], found["text"], found["target"]["text"]) == ("ours", TEXT, prediction.text)
    assert [each["text"] for each in found["nbest"]] == [each.text for each in prediction.alternatives or (prediction,)]
    assert found["log_probability"] == pytest.approx(prediction.log_probability, abs=1e-5)  # by steps, and by kernels
    assert (found["lattice"] is not None) == beam
    attention = made.attention(prediction)
    for layer, said in zip(attention.layers, found["attention"], strict=True):
        np.testing.assert_allclose(from_base64(said["weights"], said["shape"]), layer.weights, atol=1e-6)
    assert len(found["alternatives"]) == len(found["target"]["tokens"])


@pytest.mark.parametrize("name", ["transformer", "pointer", "bahdanau", "convolution", "linear_decoder"])
def test_alternatives_are_the_likeliest_next_tokens(name: str) -> None:
    made = pipeline(name)
    found = explore(made, TEXT)
    target = made.task.tokenizers["target"]
    with torch.inference_mode():
        source = made.task.tokenizers.get("source")
        reads = [*source.encode([TEXT])[0], source.end] if source else None
        memory, state = made.model.start(
            Padded(torch.tensor([reads]), torch.tensor([len(reads)])) if reads else None, 1
        )
        before = [made.task.start, *target.ids(found["nbest"][0]["tokens"])]
        for token, listed in zip(before, found["alternatives"], strict=True):
            next_BV, state = made.model.step(torch.tensor([token]), memory, state)
            slow = sorted(next_BV[0].tolist(), reverse=True)[:10]
            np.testing.assert_allclose([each["log_probability"] for each in listed], slow, atol=1e-4)
            best = target.tokens([int(next_BV[0].argmax())])[0]
            assert listed[0]["token"] == best


def test_a_given_token_has_its_log_probability_among_the_alternatives() -> None:
    found = explore(pipeline("transformer"), TEXT, method="greedy")
    best = found["nbest"][0]
    for each, listed in zip(best["token_log_probabilities"], found["alternatives"], strict=False):
        assert any(math.isclose(each, other["log_probability"], abs_tol=1e-5) for other in listed)
    assert found["lattice"] is None


def test_the_beam_holds_what_was_found() -> None:
    found = explore(pipeline("transformer"), TEXT, beam=3)
    lattice = found["lattice"]["steps"]
    totals = [each["total"] for step in lattice for each in step if each["finished"]]
    for listed in found["nbest"]:
        assert any(math.isclose(listed["log_probability"], total, abs_tol=1e-5) for total in totals)


def test_what_cannot_be_explored_says_why() -> None:
    made = pipeline("transformer")
    with pytest.raises(InputError, match="empty"):
        explore(made, " ")
    with pytest.raises(InputError, match="reads at most 256"):
        explore(made, "ba " * 300)
    with pytest.raises(InputError, match="ensemble"):
        explore(EnsemblePipeline([made, made]), TEXT)
    with pytest.raises(InputError, match="attention weights; 100 at most"):
        explore(made, TEXT, max_weights=100)
    with pytest.raises(InputError, match="beam"):
        explore(made, TEXT, beam=0)
    with pytest.raises(InputError, match="not a token"):
        asked(made, TEXT, ["nowhere"])


@pytest.mark.parametrize("name", ["transformer", "non_autoregressive", "luong", "transformer_decoder"])
def test_the_count_of_weights_is_told_before_they_are_computed(name: str) -> None:
    made = pipeline(name)
    count = sum(np.prod(each["shape"]) for each in explore(made, TEXT)["attention"])
    explore(made, TEXT, max_weights=int(count))
    with pytest.raises(InputError, match=f"{count:,} attention weights"):
        explore(made, TEXT, max_weights=int(count) - 1)


def test_a_target_is_a_text_or_its_tokens() -> None:
    made = pipeline("transformer")
    tokens = explore(made, TEXT)["nbest"][0]["tokens"]
    assert asked(made, TEXT, tokens) == asked(made, TEXT, " ".join(tokens)) == asked(made, TEXT, None)
    assert asked(made, TEXT, "") == Given(asked(made, TEXT, None).source, [])


# ---- heads --------------------------------------------------------------------------------------------------


@contextmanager
def without_columns(module: nn.Module, head: int) -> Iterator[None]:
    """W^o with zeros in that head's columns; of a reader, whose context goes on as it is, zeros there."""
    if isinstance(module, MultiHeadAttention | LinearAttention):
        output = module.output
        kept, packed, width = output.weight.detach().clone(), output.packed, output.in_features // module.heads
        with torch.no_grad():
            output.packed = None
            output.weight[:, head * width : (head + 1) * width] = 0
            yield
            output.weight.copy_(kept)
            output.packed = packed
        return
    assert isinstance(module, CrossAttention)
    forward = module.forward

    def silent(*given: Any, **named: Any) -> tuple[Tensor, Tensor]:
        context, alpha = forward(*given, **named)
        width = context.shape[-1] // module.heads
        keep = torch.ones(context.shape[-1])
        keep[head * width : (head + 1) * width] = 0
        return context * keep, alpha

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "forward", silent)
        yield


@pytest.mark.parametrize("name", HEADED)
def test_a_heads_importance_is_what_its_columns_of_the_output_matrix_do(name: str) -> None:
    made = pipeline(name)
    given = given_of(made)
    found = importance(made.model, made.task, given)
    text = written(made, given)
    pair = (TEXT, text)
    [whole] = made.score([pair])
    assert math.isclose(found["log_probability"], whole.log_probability, abs_tol=1e-4)
    listed = {(each["name"], each["head"]): each["change"] for each in found["heads"]}
    layers = {} if name == "no_attention" else {layer.name: layer for layer in _attention(made, given).layers}
    assert set(listed) == {(layer.name, head) for layer in layers.values() for head in range(layer.part.heads)}
    for (part, head), change in listed.items():
        with without_columns(made.model.get_submodule(part), head):
            [cut] = made.score([pair])
        assert math.isclose(change, cut.log_probability - whole.log_probability, abs_tol=1e-4), (part, head)
    if listed:
        assert max(map(abs, listed.values())) > 1e-3


def test_long_sentences_go_in_smaller_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    from transduce.interpret import importance as room

    made = pipeline("transformer")
    given = given_of(made)
    at_once, checks = importance(made.model, made.task, given), []
    monkeypatch.setattr(room, "TOKENS", 20)
    one_by_one = importance(made.model, made.task, given, lambda: checks.append(1))
    assert len(checks) > 3
    for some, other in zip(at_once["heads"], one_by_one["heads"], strict=True):
        assert math.isclose(some.pop("change"), other.pop("change"), abs_tol=1e-5)
        assert some == other


def _attention(made: Pipeline, given: Given) -> Any:
    from transduce.interpret.attention import looked

    return looked(made.model, made.task, given, TEXT, written(made, given))[0]


# ---- roll-out -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["transformer", "pointer", "non_autoregressive", "ctc", "linear_transformer"])
def test_roll_out_is_the_product_of_halved_means(name: str) -> None:
    made = pipeline(name)
    attention = _attention(made, given_of(made))
    found = rollout(attention)
    for kind in ("encoder", "decoder"):
        size = attention.of(kind)[0].weights.shape[-1]
        rolled = [[float(s == t) for s in range(size)] for t in range(size)]
        for layer in attention.of(kind):
            heads = layer.weights.tolist()
            mean = [[sum(head[t][s] for head in heads) / len(heads) for s in range(size)] for t in range(size)]
            half = [[0.5 * mean[t][s] + 0.5 * (s == t) for s in range(size)] for t in range(size)]
            rolled = [[sum(half[t][u] * rolled[u][s] for u in range(size)) for s in range(size)] for t in range(size)]
        np.testing.assert_allclose(found[kind], rolled, atol=1e-5)  # type: ignore[arg-type]
        np.testing.assert_allclose(found[kind].sum(-1), 1, atol=1e-5)


def test_what_reaches_the_output_from_the_source_and_from_itself_is_all_there_is() -> None:
    """The flow through both kinds of blocks as one matrix over source and output together."""
    made = pipeline("transformer")
    attention = _attention(made, given_of(made))
    found = rollout(attention)
    source, target = (attention.of(kind)[0].weights.shape[-1] for kind in ("encoder", "decoder"))
    flow = np.eye(source + target)
    for layer in attention.of("encoder"):
        step = np.eye(source + target)
        step[:source, :source] = 0.5 * layer.weights.mean(0).numpy() + 0.5 * np.eye(source)
        flow = step @ flow
    for own, cross in zip(attention.of("decoder"), attention.of("cross"), strict=True):
        step = np.eye(source + target)
        step[source:, source:] = 0.5 * own.weights.mean(0).numpy() + 0.5 * np.eye(target)
        flow = step @ flow
        step = np.eye(source + target)
        step[source:, source:] = 0.5 * np.eye(target)
        step[source:, :source] = 0.5 * cross.weights.mean(0).numpy()
        flow = step @ flow
    np.testing.assert_allclose(found["cross"], flow[source:, :source], atol=1e-6)
    np.testing.assert_allclose(flow.sum(1), 1, atol=1e-5)


def test_only_what_exists_is_rolled_out() -> None:
    for name, kinds in {"bahdanau": set(), "convolution": set(), "transformer_decoder": {"decoder"}}.items():
        made = pipeline(name)
        assert set(rollout_dict(_attention(made, given_of(made)))) == kinds


# ---- steps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in EVERY if not name.startswith("linear") and name != "no_attention"])
def test_steps_end_in_the_captured_weights_and_in_the_modules_own_output(name: str) -> None:
    made = pipeline(name)
    given = given_of(made)
    texts = (TEXT, written(made, given))
    attention = _attention(made, given)
    outputs: dict[str, list[Tensor]] = {layer.name: [] for layer in attention.layers}
    with ExitStack() as hooks:
        for part, kept in outputs.items():
            hook = made.model.get_submodule(part).register_forward_hook(
                lambda m, args, out, kept=kept: kept.append((out[0] if isinstance(out, tuple) else out)[0])
            )
            hooks.callback(hook.remove)
        with capture(made.model):
            _attention(made, given)
    for layer in attention.layers:
        if name == "ctc" and layer.part.kind != "encoder":
            with pytest.raises(InputError, match="several of which make one token"):
                steps(made.model, made.task, given, texts, layer.name, 0, 0)
            continue
        own_TM = torch.cat(outputs[layer.name])
        last, heads = layer.weights.shape[1] - 1, layer.part.heads
        for query, head in {(0, 0), (last, heads - 1), *((last // 2, head) for head in range(heads))}:
            found = steps(made.model, made.task, given, texts, layer.name, head, query)
            _check_steps(found, layer.weights[head, query], own_TM[query])
            assert len(found["joined"]) == heads * len(found["head_output"])
            width = len(found["head_output"])
            assert found["joined"][head * width : (head + 1) * width] == found["head_output"]


def _check_steps(found: dict[str, Any], captured: Tensor, own: Tensor) -> None:
    weights = torch.tensor(found["weights"])
    torch.testing.assert_close(weights, captured[-len(weights) :], atol=1e-5, rtol=0)
    whole = found["joined"] if found["output"] is None else found["output"]
    torch.testing.assert_close(torch.tensor(whole), own, atol=1e-5, rtol=1e-5)
    read = np.array(found["weights"]) @ np.array(found["v"]) + np.array(found["read_besides"] or 0)
    np.testing.assert_allclose(found["head_output"], read, atol=1e-5)
    assert len(found["columns"]) == len(weights) == len(found["mask"])
    assert found["width"] == len(found["q"])
    if found["score"] in ("dot", "scaled_dot"):
        np.testing.assert_allclose(found["scores"], np.array(found["k"]) @ np.array(found["q"]), atol=1e-5)
        np.testing.assert_allclose(found["scaled"], np.array(found["scores"]) / (found["divisor"] or 1), atol=1e-5)
    if found["normalizer"] == "softmax":
        scores = np.array(found["scaled"]) + np.array(found["bias"] or 0)
        slow = np.where(found["mask"], np.exp(scores), 0)
        np.testing.assert_allclose(found["weights"], slow / slow.sum(), atol=1e-5)
    assert not any(weight for weight, seen in zip(found["weights"], found["mask"], strict=True) if not seen)


def test_the_queries_and_the_keys_are_named() -> None:
    made = pipeline("transformer")
    given = given_of(made)
    texts = (TEXT, written(made, given))
    words = texts[1].split()

    def names(part: str, query: int) -> tuple[str, list[str]]:
        found = steps(made.model, made.task, given, texts, part, 0, query)
        return found["query_token"], found["columns"]

    source = [*TEXT.split(), "</s>"]
    assert names("encoder.blocks.0.self_attention", 1) == ("de", source)
    assert names("decoder.blocks.1.self_attention", 1) == (words[0], ["<s>", *words])
    assert names("decoder.blocks.1.cross_attention", 1) == (words[1], source)


def test_what_has_no_steps_says_why() -> None:
    made = pipeline("linear_transformer")
    given = given_of(made)
    with pytest.raises(InputError, match="linear attention"):
        steps(made.model, made.task, given, (TEXT, written(made, given)), "encoder.blocks.0.self_attention", 0, 0)
    made = pipeline("transformer")
    given = given_of(made)
    for name, head, query in (("encoder", 0, 0), ("encoder.blocks.0.self_attention", 2, 99)):
        with pytest.raises(InputError, match=r"no attention called|head: expected 0 to 1; got 2"):
            steps(made.model, made.task, given, (TEXT, written(made, given)), name, head, query)


def test_thinking_machines() -> None:
    found = example()
    assert found["columns"] == ["Thinking", "Machines"]
    assert found["scores"] == [112, 96]
    assert (found["divisor"], found["scaled"]) == (8, [14, 12])
    assert [round(weight, 2) for weight in found["weights"]] == [0.88, 0.12]
    np.testing.assert_allclose(found["weights"], [0.880797, 0.119203], atol=1e-6)
    assert np.dot(found["q"], found["k"][0]) == 112
    np.testing.assert_allclose(found["head_output"][:2], [0.880797, 0.119203], atol=1e-6)
    assert found["example"] is True


# ---- positions and models -----------------------------------------------------------------------------------


def test_positions_of_every_kind() -> None:
    table = {name: placed(pipeline(name).model, 20) for name in ("transformer", "learned", "alibi", "rotary", "t5")}
    sinus = table["transformer"]
    np.testing.assert_allclose(from_base64(sinus["table"], [20, 16]), sinusoidal(20, 16))
    dots = from_base64(sinus["dots"], [20, 20])
    assert not dots.diagonal().any()
    assert math.isclose(dots[3, 5], float(sinusoidal(20, 16)[3] @ sinusoidal(20, 16)[5]), rel_tol=1e-5)
    assert from_base64(sinus["clock"], [20, 8])[1, 0] == 1.0
    learned = pipeline("learned").model.get_parameter("encoder.positions.weight_TD")[:20].detach()
    np.testing.assert_array_equal(from_base64(table["learned"]["table"], [20, 16]), learned)
    bias = from_base64(table["alibi"]["bias"], [2, 20, 20])
    np.testing.assert_allclose(bias[1, 2, 7], -5 * float(slopes(2)[1]), rtol=1e-6)
    assert table["t5"]["kind"] == "t5"
    assert len(from_base64(table["t5"]["bias"], [2, 20, 20])) == 2
    assert from_base64(table["rotary"]["clock"], [20, 4])[1, 0] == 1.0
    assert from_base64(placed(stretched(), 20)["clock"], [20, 2])[3].tolist() == [1.5, float(np.float32(0.03))]
    assert placed(pipeline("bahdanau").model, 20) == {"kind": "none", "length": 20}
    shaw = placed(pipeline("shaw").model, 20)
    assert from_base64(shaw["dots"], [shaw["length"]] * 2).shape == (33, 33)
    assert placed(None, 7, 5)["width"] == 6


def stretched() -> Stack:
    """With hands whose speeds are 1 and 1 / sqrt(2500), half of that."""
    scaling = {"kind": "linear", "factor": 2.0}
    table = {"positions": "rotary", "rotary_base": 2500.0, "rotary_scaling": scaling, "d_model": 8, "heads": 2}
    return Stack(StackConfig.model_validate(table), 1)


@pytest.mark.parametrize("name", EVERY)
def test_a_model_says_what_it_can_show(name: str) -> None:
    made = pipeline(name)
    found = described("ours", made.model, made.task, made.recipe, training=False, provenance=made.provenance)
    assert found["kind"] == made.recipe.to_table()["model"]["kind"]
    assert found["parameters"] == sum(each.numel() for each in made.model.parameters())
    layers = _attention(made, given_of(made)).layers
    assert [each["name"] for each in found["layers"]] == [layer.name for layer in layers]
    assert found["shows"]["beam"] != writes_at_once(made.model)
    assert found["shows"]["steps"] == (not name.startswith("linear") and name != "no_attention")
    assert found["shows"]["importance"] == (name != "no_attention")
    assert found["shows"]["training"] is False
