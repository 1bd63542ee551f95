"""Attention weights for the asking."""

import threading
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from transduce.attention import MultiHeadAttention, attention_weights, capture, scaled_dot_product
from transduce.attention.capture import active_record
from transduce.core.errors import InputError


class Two(nn.Module):
    """Two attentions, one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.first = MultiHeadAttention(8, 2)
        self.second = MultiHeadAttention(8, 2)

    def forward(self, x_BTD: Tensor) -> Tensor:
        x_BTD = self.first(x_BTD, self.first.keys_values(x_BTD))
        read: Tensor = self.second(x_BTD, self.second.keys_values(x_BTD))
        return read


@pytest.fixture
def model() -> Two:
    torch.manual_seed(0)
    return Two().eval()


X_BTD = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("fused_from", [0, 10**9])
def test_the_record_holds_the_explicit_weights_and_the_output_stays(
    model: Two, monkeypatch: pytest.MonkeyPatch, fused_from: int
) -> None:
    monkeypatch.setattr(scaled_dot_product, "FUSED_FROM_KEYS", fused_from)
    plain = model(X_BTD)
    with capture(model) as record:
        watched = model(X_BTD)
    torch.testing.assert_close(watched, plain, rtol=0, atol=1e-6)
    assert list(record) == ["first", "second"]
    (alpha_BHTT,) = record["first"]
    query_BHTE = model.first.query(X_BTD).view(3, 5, 2, 4).transpose(1, 2)
    assert torch.equal(alpha_BHTT, attention_weights(query_BHTE, model.first.keys_values(X_BTD).key))
    torch.testing.assert_close(alpha_BHTT.sum(-1), torch.ones(3, 2, 5))
    assert not alpha_BHTT.requires_grad


def test_one_entry_a_call_in_order(model: Two) -> None:
    with capture(model) as record:
        model(X_BTD)
        model(X_BTD[:1, :2])
    assert [tuple(alpha.shape) for alpha in record["second"]] == [(3, 2, 5, 5), (1, 2, 2, 2)]


def test_outside_nothing_is_kept(model: Two) -> None:
    model(X_BTD)
    with capture(model) as record:
        pass
    model(X_BTD)
    assert record == {}
    assert active_record() is None


def test_attention_outside_the_model_is_not_kept(model: Two) -> None:
    with capture(model.first) as record:
        model(X_BTD)
    assert list(record) == [""]  # the captured module itself, and nothing of its neighbour


def test_the_inner_capture_wins_and_the_outer_goes_on(model: Two) -> None:
    with capture(model) as outer:
        model(X_BTD)
        with capture(model) as inner:
            model(X_BTD)
        model(X_BTD)
    assert len(outer["first"]) == 2
    assert len(inner["first"]) == 1


def test_an_error_ends_the_capture(model: Two) -> None:
    with pytest.raises(RuntimeError, match="ours"), capture(model):
        raise RuntimeError("ours")
    assert active_record() is None


def test_threads_do_not_see_each_other(model: Two) -> None:
    ready, done = threading.Event(), threading.Event()
    seen: dict[str, object] = {}

    def other() -> None:
        ready.wait(10)
        seen["before"] = active_record()
        with capture(model) as record:
            model(X_BTD)
            seen["calls"] = len(record["first"])
        done.set()

    thread = threading.Thread(target=other)
    thread.start()
    with capture(model) as record:
        ready.set()
        assert done.wait(10)
        model(X_BTD)
    thread.join()
    assert seen == {"before": None, "calls": 1}
    assert len(record["first"]) == 1


def test_gradients_flow_through_a_watched_call(model: Two) -> None:
    def gradient() -> Tensor:
        model.zero_grad()
        model(X_BTD).square().sum().backward()
        assert model.first.query.weight.grad is not None
        return model.first.query.weight.grad.clone()

    plain = gradient()
    with capture(model):
        watched = gradient()
    torch.testing.assert_close(watched, plain)


class Counted(TorchDispatchMode):
    """The tensor operations that are done inside."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("fused_from", [0, 10**9])
def test_nothing_is_computed_for_it_while_nobody_asks(
    model: Two, monkeypatch: pytest.MonkeyPatch, fused_from: int
) -> None:
    monkeypatch.setattr(scaled_dot_product, "FUSED_FROM_KEYS", fused_from)
    attention = model.first

    def bare() -> Tensor:
        """The same without a place where one could ask."""
        memory = attention.keys_values(X_BTD)
        query_BHTE = torch.unflatten(attention.query(X_BTD), -1, (2, 4)).transpose(1, 2)
        read_BHTE = scaled_dot_product.attend(query_BHTE, memory.key, memory.value)
        joined: Tensor = attention.output(read_BHTE.transpose(1, 2).flatten(2))
        return joined

    with Counted() as able:
        attention(X_BTD, attention.keys_values(X_BTD))
    with Counted() as unable:
        bare()
    assert sorted(able.names) == sorted(unable.names)
    with Counted() as asked, capture(model):
        attention(X_BTD, attention.keys_values(X_BTD))
    assert fused_from or sorted(asked.names) != sorted(able.names)  # the count would see it


class Weighs(nn.Module):
    """Hands over uniform weights."""

    def forward(self, x_BTD: Tensor) -> Tensor:
        if (record := active_record()) is not None:
            record.take(self, torch.full((len(x_BTD), 1, 1, 2), 0.5))
        return x_BTD


class Slots(Weighs):
    role, side = "memory", "encoder"


def test_the_record_holds_what_each_says_that_it_looks_at(model: Two) -> None:
    model.first.role, model.first.side = "self", "encoder"
    parts = nn.Sequential(model, Weighs(), Slots())
    with capture(parts) as record:
        parts(X_BTD)
    assert record.roles == {
        "0.first": ("self", "encoder"),
        "0.second": ("other", "other"),
        "1": ("other", "other"),
        "2": ("memory", "encoder"),
    }
    assert record.of("self") == record.of("self", "encoder") == ["0.first"]
    assert record.of("self", "decoder") == record.of("cross") == []
    assert record.of("other") == ["0.second", "1"]


def test_a_role_that_there_is_not_is_refused_with_the_nearest(model: Two) -> None:
    model.first.role, model.first.side = "crossed", "encoders"  # type: ignore[assignment]
    with capture(model), pytest.raises(InputError) as error:
        model(X_BTD)
    assert (
        'first: expected role to be one of self, tape, cross, memory, edge, other; got "crossed". Did you mean "cross"?'
        in str(error.value)
    )
    assert 'expected side to be one of encoder, decoder, other; got "encoders". Did you mean "encoder"?' in str(
        error.value
    )


def test_a_role_is_no_part_of_what_is_saved() -> None:
    said, silent = MultiHeadAttention(8, 2, role="cross", side="decoder"), MultiHeadAttention(8, 2)
    assert list(said.state_dict()) == list(silent.state_dict())
