"""What every model of vectors promises; and the Neural Turing Machine against loops written from its paper."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from memory_by_loops import addressed, heads_of
from transduce.attention import capture
from transduce.core.errors import InputError
from transduce.core.model_file import lasting_tensors
from transduce.core.registry import known, resolve
from transduce.data.columns import ColumnSpec, Specs
from transduce.layers.external_memory import MemoryTrace
from transduce.layers.memory_unroll import unroll
from transduce.models.neural_turing_machine import NeuralTuringMachine, NeuralTuringMachineConfig
from transduce.models.protocols import Processes, map_tree, select

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from plain_ntm import plain_copy

WIDTHS = 5, 4
SPECS = Specs(ColumnSpec("vectors", WIDTHS[0]), ColumnSpec("vectors", WIDTHS[1]))
NTM: dict[str, Any] = {"kind": "neural_turing_machine", "hidden": 7, "slots": 6, "width": 3}
TRANSFORMER = {"kind": "vector_decoder", "network": "transformer", "d_model": 8, "heads": 2, "feed_forward": 12}
MODELS: dict[str, dict[str, Any]] = {
    "ntm": NTM,
    "ntm, feed-forward": {**NTM, "controller": "feed_forward"},
    "ntm, many heads": {**NTM, "read_heads": 2, "write_heads": 3, "shift": 2},
    "ntm, feed-forward, many heads": {**NTM, "controller": "feed_forward", "read_heads": 3, "write_heads": 2},
    "ntm, no shift": {**NTM, "shift": 0},
    **{f"recurrent {cell}": {"kind": "vector_decoder", "d_model": 8, "cell": cell} for cell in ("lstm", "gru")},
    **{f"transformer {each}": {**TRANSFORMER, "positions": each} for each in ("sinusoidal", "rotary", "alibi")},
}
NTMS = [name for name in MODELS if name.startswith("ntm")]
every_model = pytest.mark.parametrize("name", MODELS)
every_ntm = pytest.mark.parametrize("name", NTMS)


def built(name: str, **more: Any) -> Any:
    torch.manual_seed(0)
    kind = resolve("models", MODELS[name]["kind"])
    model: nn.Module = kind(kind.Config.model_validate({**MODELS[name], **more}), SPECS)
    with torch.no_grad():
        for tensor in lasting_tensors(model).values():
            tensor.add_(0.2 * torch.randn_like(tensor))
    return model.eval()


def inputs(rows: int = 3, steps: int = 6) -> Tensor:
    return torch.randn(rows, steps, WIDTHS[0], generator=torch.Generator().manual_seed(1))


# ---- the contract ------------------------------------------------------------------------------------------


def test_every_model_of_vectors_is_here() -> None:
    kinds = {name for name in known("models") if issubclass(resolve("models", name), Processes)}
    assert {each["kind"] for each in MODELS.values()} == kinds


@every_model
def test_a_sequence_may_be_processed_in_parts(name: str) -> None:
    model, x_BTF = built(name), inputs()
    whole, last = model.process(x_BTF, model.initial(3))
    assert whole.shape == (3, 6, WIDTHS[1])
    state, parts = model.initial(3), []
    for part in (x_BTF[:, :1], x_BTF[:, 1:4], x_BTF[:, 4:]):
        logits_BTO, state = model.process(part, state)
        parts.append(logits_BTO)
    torch.testing.assert_close(torch.cat(parts, 1), whole, rtol=1e-4, atol=1e-5)
    leaves: list[Tensor] = []
    map_tree(last, leaves.append)
    assert all(len(leaf) == 3 for leaf in leaves)


@every_model
def test_what_comes_later_and_other_rows_change_nothing(name: str) -> None:
    model, x_BTF = built(name), inputs()
    together, _ = model.process(x_BTF, model.initial(3))
    for row in range(3):
        alone, _ = model.process(x_BTF[row : row + 1, :4], model.initial(1))
        torch.testing.assert_close(alone[0], together[row, :4], rtol=1e-4, atol=1e-5)


@every_model
def test_a_state_can_be_reordered_by_selecting_rows(name: str) -> None:
    model, x_BTF = built(name), inputs()
    order = torch.tensor([2, 0, 0, 1])
    _, state = model.process(x_BTF[:, :3], model.initial(3))
    chosen, _ = model.process(x_BTF[order, 3:], select(state, order))
    straight, _ = model.process(x_BTF[:, 3:], state)
    torch.testing.assert_close(chosen, straight[order], rtol=1e-5, atol=1e-6)


@every_model
def test_gradients_reach_every_parameter_and_only_earlier_inputs(name: str) -> None:
    model, x_BTF = built(name), inputs().requires_grad_()
    logits_BTO, _ = model.process(x_BTF, model.initial(3))
    (gradient,) = torch.autograd.grad(logits_BTO[1, 3].square().sum(), x_BTF, retain_graph=True)
    assert (gradient[1, :4].abs().sum(-1) > 0).all()
    assert not gradient[1, 4:].any()
    assert not gradient[[0, 2]].any()
    logits_BTO.square().sum().backward()
    without = [key for key, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    assert not without


@pytest.mark.parametrize("kind", ["neural_turing_machine", "vector_decoder"])
def test_other_columns_are_refused(kind: str) -> None:
    model = resolve("models", kind)
    with pytest.raises(InputError, match="expected a task with vectors in and out"):
        model(model.Config(), Specs.of_tokens(5, 6))


def test_models_of_tokens_refuse_vectors() -> None:
    with pytest.raises(InputError, match="neural_turing_machine"):
        _ = SPECS.sizes


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"network": "transformer", "cell": "gru"}, "cell: not read with this network"),
        ({"heads": 2}, "heads: not read with this network"),
        ({"network": "transformer", "norm_kind": "batch"}, "later vectors"),
        ({"cell": "lst"}, 'Did you mean "lstm"'),
    ],
)
def test_settings_of_the_other_network_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        resolve("models", "vector_decoder").Config.model_validate(settings)


# ---- the Neural Turing Machine -----------------------------------------------------------------------------


def test_its_state_is_constant_at_first() -> None:
    model = built("ntm, many heads")
    state = model.initial(2)
    assert torch.equal(state.memory.memory, torch.full((2, 6, 3), 1e-6))
    torch.testing.assert_close(state.memory.weighting.sum(-1), torch.ones(2, 5))
    assert torch.equal(state.memory.weighting[0], state.memory.weighting[1])


@every_ntm
def test_it_says_and_learns_what_plain_torch_does(name: str) -> None:
    model = built(name).double()
    plain, x_BTF = plain_copy(model), inputs(steps=9).double()
    logits_BTO, _ = model.process(x_BTF, model.initial(3))
    expected = plain(x_BTF)
    torch.testing.assert_close(logits_BTO, expected, rtol=1e-9, atol=1e-10)
    (logits_BTO.square().sum() + expected.square().sum()).backward()
    heads: Any = plain.heads
    keys = model.memory.heads.weight.grad[: len(heads) * 3].chunk(len(heads))
    for key, head in zip(keys, heads, strict=True):
        torch.testing.assert_close(key, head.key.weight.grad, rtol=1e-7, atol=1e-9)
    for ours, theirs in (
        (model.memory.weighting, plain.weighting),
        (model.memory.read, plain.read),
        (model.output.weight, plain.output.weight),
    ):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-7, atol=1e-9)


@every_ntm
def test_its_memory_and_weightings_are_the_papers_slot_by_slot(name: str) -> None:
    """Equations 2 to 9, with every sum written out."""
    model, x_BTF = built(name).double(), inputs(rows=1).double()
    with capture(model) as record, torch.no_grad():
        _, state = model.process(x_BTF, model.initial(1))
    with torch.no_grad():
        first = model.initial(1)
        hidden_BTD, read_BTRM, *_ = unroll(
            model.input(x_BTF), model.recurrent, model.memory, first.controller, first.memory
        )
        drawn = MemoryTrace(*(each[0].numpy() for each in model.trace(x_BTF)))
    sizes = model.memory.sizes
    memory = first.memory.memory[0].numpy().copy()
    weightings = [row.detach().numpy() for row in first.memory.weighting[0]]
    names = [f"memory.read_head.{each}" for each in range(sizes.read)]
    names += [f"memory.write_head.{each}" for each in range(sizes.write)]
    assert list(record) == names == record.of("memory", "decoder")
    for step in range(x_BTF.shape[1]):
        said = model.memory.heads(hidden_BTD[0, step]).detach().numpy()
        heads = heads_of(said, sizes)
        weightings = [
            addressed(head, memory, before, sizes.reach) for head, before in zip(heads, weightings, strict=True)
        ]
        for number, weighting in enumerate(weightings):
            np.testing.assert_allclose(record[names[number]][0][0, 0, step], weighting, rtol=1e-7, atol=1e-12)
        for number in range(sizes.read):
            read = sum(weightings[number][slot] * memory[slot] for slot in range(sizes.slots))
            np.testing.assert_allclose(read_BTRM[0, step, number], read, rtol=1e-7, atol=1e-12)
        writers = list(zip(heads, weightings, strict=True))[sizes.read :]
        for slot in range(sizes.slots):
            for head, weighting in writers:
                memory[slot] = memory[slot] * (1 - weighting[slot] * head["erase"])
            for head, weighting in writers:
                memory[slot] = memory[slot] + weighting[slot] * head["add"]
        added = [head["add"] for head in heads[sizes.read :]]
        for found, expected in zip(drawn, (added, read_BTRM[0, step], weightings, memory), strict=True):
            np.testing.assert_allclose(found[step], expected, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(state.memory.memory[0], memory, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("name", ["ntm", "ntm, feed-forward, many heads"])
def test_its_gradients_are_those_of_finite_differences(name: str) -> None:
    """Through the logits and through each part of the state that a part of a sequence hands on."""
    model = built(name, hidden=3, slots=4, width=2).double()
    weights = dict(model.named_parameters())

    def said(x_BTF: Tensor, *values: Tensor) -> tuple[Tensor, ...]:
        named = dict(zip(weights, values, strict=True))

        class Whole(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = model

            def forward(self, x_BTF: Tensor) -> tuple[Tensor, ...]:
                _, state = self.inner.process(x_BTF[:, :2], self.inner.initial(2))
                logits_BTO, state = self.inner.process(x_BTF[:, 2:], state)
                leaves: list[Tensor] = []
                map_tree(state, leaves.append)
                return logits_BTO, *leaves

        called = {f"inner.{key}": value for key, value in named.items()}
        answer: tuple[Tensor, ...] = torch.func.functional_call(Whole(), called, (x_BTF,))
        return answer

    x_BTF = inputs(rows=2, steps=3).double().requires_grad_()
    values = [value.detach().clone().requires_grad_() for value in weights.values()]
    # the memory is nearly 0 at first, and bends there within 1e-4: differences must be smaller
    assert torch.autograd.gradcheck(said, (x_BTF, *values), eps=1e-7, atol=1e-4, rtol=1e-3)


@every_ntm
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e4, 1e18])
def test_nothing_becomes_nan(name: str, scale: float) -> None:
    model, x_BTF = built(name), inputs(steps=12)
    with torch.no_grad():
        model.memory.heads.weight.mul_(scale)
        model.memory.heads.bias.mul_(scale)
    logits_BTO, state = model.process(x_BTF, model.initial(3))
    assert logits_BTO.isfinite().all()
    map_tree(state, lambda leaf: torch.testing.assert_close(leaf.isfinite().all(), torch.tensor(True)))
    if scale <= 1e4:
        logits_BTO.square().sum().backward()
        assert all(weight.grad.isfinite().all() for weight in model.parameters())


def test_under_bf16_addressing_is_in_fp32() -> None:
    model, x_BTF = built("ntm"), inputs()
    with torch.autocast("cpu", torch.bfloat16):
        logits_BTO, state = model.process(x_BTF, model.initial(3))
    assert {leaf.dtype for leaf in (state.memory.memory, state.memory.weighting)} == {torch.float32}
    expected, _ = model.process(x_BTF, model.initial(3))
    torch.testing.assert_close(logits_BTO.float(), expected, rtol=0.1, atol=0.1)
    logits_BTO.float().square().sum().backward()
    assert model.recurrent.grad.isfinite().all()


@every_ntm
def test_captured_it_says_the_same(name: str) -> None:
    model, x_BTF = built(name), inputs()
    plain, state = model.process(x_BTF, model.initial(3))
    with capture(model) as record:
        captured, _ = model.process(x_BTF, model.initial(3))
    assert torch.equal(plain, captured)
    for number, weights in enumerate(record.values()):
        assert torch.equal(weights[0][:, 0, -1], state.memory.weighting[:, number])


@pytest.mark.parametrize("key", [key for key in NeuralTuringMachineConfig.model_fields if key != "kind"])
def test_every_setting_of_it_matters(key: str) -> None:
    other = {"controller": "feed_forward", "constant": 0.5}

    def said(settings: dict[str, Any]) -> Tensor:
        torch.manual_seed(3)
        model = NeuralTuringMachine(NeuralTuringMachineConfig.model_validate(settings), SPECS)
        return torch.as_tensor(model.process(inputs(), model.initial(3))[0])

    now = getattr(NeuralTuringMachineConfig.model_validate(NTM), key)
    assert not torch.equal(said(NTM), said({**NTM, key: other.get(key, now + 1 if isinstance(now, int) else now)}))
