"""Models that are changed after they were packed, or hold more than the kernels know: what they hold now counts."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from random_models import model_file, sentences, translator
from transduce.attention.heads import MultiHeadAttention
from transduce.fused.pack import pack_all
from transduce.layers.block import Block
from transduce.pipeline.pipeline import Pipeline

TEXTS = [text for text in sentences(30, seed=4) if text][:3]
SEARCHES: list[dict[str, Any]] = [{"method": "greedy"}, {"beam": 3}, {"beam": 2, "coverage": 0.2}]  # the last in steps


def said(pipeline: Pipeline) -> list[tuple[str, float]]:
    """What it predicts by several searches, in one call and in steps, and how likely it finds that."""
    found = [each for search in SEARCHES for each in pipeline.predict(TEXTS, **search)]
    scored = pipeline.score([(text, " ".join(reversed(text.split()))) for text in TEXTS])
    return [(each.text, each.log_probability) for each in found] + [("", each.log_probability) for each in scored]


def expected(pipeline: Pipeline) -> list[tuple[str, float]]:
    """What its model says where nothing was ever packed."""
    plain = copy.copy(pipeline)
    plain.model = copy.deepcopy(pipeline.model)
    for module in plain.model.modules():
        if hasattr(module, "packed"):
            module.packed = None
    return said(plain)


def assert_same(found: list[tuple[str, float]], wanted: list[tuple[str, float]]) -> None:
    assert [text for text, _ in found] == [text for text, _ in wanted]
    assert [number for _, number in found] == pytest.approx([number for _, number in wanted], abs=1e-4)


def block_of(pipeline: Pipeline, side: str = "decoder") -> Block:
    block: Block = pipeline.model.get_submodule(f"{side}.blocks.1")  # type: ignore[assignment]
    return block


def in_place(pipeline: Pipeline) -> None:
    with torch.no_grad():
        for parameter in pipeline.model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))


def one_weight_inside_inference_mode(pipeline: Pipeline) -> None:
    with torch.inference_mode():
        block_of(pipeline).feed_forward.outer.weight.mul_(-2)


def one_embedding_in_place(pipeline: Pipeline) -> None:
    with torch.no_grad():
        pipeline.model.get_parameter("output.weight")[5:40] *= -1.5


def other_memory_for_norm_and_bias(pipeline: Pipeline) -> None:
    for side in ("encoder", "decoder"):
        norm = block_of(pipeline, side).self_residual.norm
        norm.weight.data = torch.randn(16)
        block_of(pipeline, side).feed_forward.inner.bias.data = torch.randn(24)


def through_data(pipeline: Pipeline) -> None:
    for parameter in pipeline.model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)


def one_head_through_data(pipeline: Pipeline) -> None:
    block_of(pipeline).self_attention.key_value.weight.data[16 + 5] = 3.0  # one row of the values


def one_column_through_data(pipeline: Pipeline) -> None:
    block_of(pipeline, "encoder").feed_forward.outer.weight.data[:, 7] *= -9


def one_word_through_numpy(pipeline: Pipeline) -> None:
    pipeline.model.get_parameter("output.weight").detach().numpy()[9] *= -3


def norms_of_every_second_number(pipeline: Pipeline) -> None:
    for side in ("encoder", "decoder"):
        norm = block_of(pipeline, side).self_residual.norm
        norm.weight, norm.bias = (nn.Parameter(torch.randn(32)[::2]) for _ in range(2))


def a_bias_of_every_second_number_in_place(pipeline: Pipeline) -> None:
    layer = block_of(pipeline).feed_forward.inner
    layer.bias = nn.Parameter(torch.randn(48)[::2])
    said(pipeline)
    with torch.no_grad():
        layer.bias.mul_(-2)


def another_parameter(pipeline: Pipeline) -> None:
    block_of(pipeline, "encoder").self_attention.query.weight = nn.Parameter(torch.randn(16, 16))
    block_of(pipeline).cross_attention.output.weight = nn.Parameter(torch.randn(16, 16))  # type: ignore[union-attr]


def a_state_assigned(pipeline: Pipeline) -> None:
    state = {name: tensor + 0.1 * torch.randn_like(tensor) for name, tensor in pipeline.model.state_dict().items()}
    pipeline.model.load_state_dict(state, assign=True)


class Adapted(nn.Module):
    """A linear map with another of rank 1 beside it, as fine-tuning adds it."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.linear = linear
        self.down, self.up = nn.Linear(linear.in_features, 1), nn.Linear(1, linear.out_features)

    def forward(self, x: Tensor) -> Tensor:
        """As the linear map."""
        summed: Tensor = self.linear(x) + self.up(self.down(x))
        return summed


def a_module_wrapped(pipeline: Pipeline) -> None:
    for side in ("encoder", "decoder"):
        block = block_of(pipeline, side)
        block.feed_forward.inner = Adapted(block.feed_forward.inner)  # type: ignore[assignment]


def another_forward(pipeline: Pipeline) -> None:
    layer = block_of(pipeline).feed_forward
    before = layer.forward
    layer.forward = lambda x: -before(x)  # type: ignore[method-assign]
    pack_all(pipeline.model)


def another_activation(pipeline: Pipeline) -> None:
    block_of(pipeline).feed_forward.activation = torch.tanh
    pack_all(pipeline.model)


CHANGES: list[Callable[[Pipeline], None]] = [
    in_place,
    through_data,
    one_head_through_data,
    one_column_through_data,
    one_word_through_numpy,
    one_weight_inside_inference_mode,
    one_embedding_in_place,
    other_memory_for_norm_and_bias,
    norms_of_every_second_number,
    a_bias_of_every_second_number_in_place,
    another_parameter,
    a_state_assigned,
    a_module_wrapped,
    another_forward,
    another_activation,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.usefixtures("either_way")
def test_a_change_counts_from_then_on(change: Callable[[Pipeline], None]) -> None:
    counts_from_then_on(change, used=True)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_before_the_first_use_counts(change: Callable[[Pipeline], None]) -> None:
    counts_from_then_on(change, used=False)


def counts_from_then_on(change: Callable[[Pipeline], None], used: bool) -> None:
    torch.manual_seed(3)
    pipeline = translator()
    before = said(pipeline) if used else expected(pipeline)
    change(pipeline)
    wanted = expected(pipeline)
    assert wanted != before
    assert_same(said(pipeline), wanted)
    assert_same(said(pipeline), wanted)


@pytest.mark.parametrize("place", ["self_attention", "cross_attention", "feed_forward"])
@pytest.mark.parametrize("used", [True, False], ids=["used before", "not used before"])
def test_a_parameter_that_the_kernels_do_not_know_is_not_left_out(
    place: str, used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = translator()
    before = said(pipeline)
    part = getattr(block_of(pipeline), place)
    plain = type(part).forward

    def gated(self: nn.Module, *given: Any, **named: Any) -> Any:
        output = plain(self, *given, **named)
        return output * self.gate if hasattr(self, "gate") else output

    if not used:
        pipeline = Pipeline(model_file(pipeline))
        part = getattr(block_of(pipeline), place)
    monkeypatch.setattr(type(part), "forward", gated)
    part.gate = nn.Parameter(torch.tensor(-1.5))
    wanted = expected(pipeline)
    assert wanted != before
    assert_same(said(pipeline), wanted)


def test_a_copy_is_a_model_of_its_own() -> None:
    pipeline = translator()
    before = said(pipeline)
    other = copy.copy(pipeline)
    other.model = copy.deepcopy(pipeline.model)
    in_place(other)
    wanted = expected(other)
    assert_same(said(other), wanted)
    assert said(pipeline) == before
    del pipeline
    assert_same(said(other), wanted)


def test_weights_given_for_one_call_are_used_for_that_call() -> None:
    pipeline = translator()
    model = pipeline.model
    before = said(pipeline)
    swapped = {name: -each for name, each in model.named_parameters() if "self_attention" in name}

    def call() -> list[tuple[str, float]]:
        class Asks(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self) -> list[tuple[str, float]]:
                return said(pipeline)

        with torch.no_grad():
            given = {f"model.{name}": each for name, each in swapped.items()}
            answer: list[tuple[str, float]] = torch.func.functional_call(Asks(), given, ())
        return answer

    swapped_pipeline = translator()
    with torch.no_grad():
        for name, each in swapped.items():
            swapped_pipeline.model.get_parameter(name).copy_(each)
    assert_same(call(), expected(swapped_pipeline))
    assert said(pipeline) == before


def test_weights_changed_in_8_bits() -> None:
    from transduce.kernels.native.tensors import can_pack

    if not can_pack(torch.zeros(1, 1), int8=True):
        pytest.skip("no 8-bit products in kernels on this processor")
    torch.manual_seed(3)
    pipeline = Pipeline(model_file(translator()), "int8")
    said(pipeline)
    in_place(pipeline)
    assert said(pipeline) == said(Pipeline(model_file(pipeline), "int8"))


def test_one_attention_type_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attention of a class of its own goes through its own forward."""
    pipeline = translator()
    said(pipeline)

    class Louder(MultiHeadAttention):
        def forward(self, *given: Any, **named: Any) -> Tensor:
            return 2 * super().forward(*given, **named)

    block_of(pipeline).self_attention.__class__ = Louder
    pack_all(pipeline.model)
    assert_same(said(pipeline), expected(pipeline))
