"""The moving average of the weights against a loop of Python floats."""

import pytest
import torch
from torch import nn

from transduce.training.average import MovingAverage


def model() -> nn.Sequential:
    torch.manual_seed(0)
    tied = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 2), nn.Linear(3, 3, bias=False))
    tied[2].weight = tied[0].weight
    return tied


def train(trained: nn.Module, average: MovingAverage, updates: range) -> list[list[float]]:
    """The weights after each update, flat."""
    passed = []
    for update in updates:
        torch.manual_seed(update)
        with torch.no_grad():
            for parameter in trained.parameters():
                parameter.add_(torch.randn_like(parameter))
        average.update(update)
        passed.append(flat(trained))
    return passed


def flat(of: nn.Module) -> list[float]:
    return torch.cat([parameter.detach().flatten() for parameter in of.parameters()]).double().tolist()


@pytest.mark.parametrize("decay", [0.5, 0.999])
def test_equals_a_slow_loop(decay: float) -> None:
    trained = model()
    expected, average = flat(trained), MovingAverage(trained, decay)
    for update, weights in enumerate(train(trained, average, range(1, 31)), 1):
        now = min(decay, (1 + update) / (10 + update))
        expected = [now * old + (1 - now) * new for old, new in zip(expected, weights, strict=True)]
    with average.swapped_in():
        assert flat(trained) == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_swapped_in_and_out_again() -> None:
    trained = model()
    parameters = list(trained.parameters())
    average = MovingAverage(trained, 0.9)
    train(trained, average, range(1, 5))
    own, averaged = flat(trained), {name: value.clone() for name, value in average.tensors().items()}
    with average.swapped_in():
        assert flat(trained) != own
        assert all(torch.equal(value, averaged[name]) for name, value in trained.named_parameters())
        assert trained[2].weight is trained[0].weight
    assert flat(trained) == own
    assert all(torch.equal(average.tensors()[name], averaged[name]) for name in averaged)
    # The optimiser holds the parameters themselves: they are the same objects throughout.
    assert all(one is other for one, other in zip(trained.parameters(), parameters, strict=True))


def test_an_error_inside_gives_the_weights_back() -> None:
    trained = model()
    average = MovingAverage(trained, 0.9)
    train(trained, average, range(1, 3))
    own = flat(trained)
    with pytest.raises(RuntimeError, match="validation"), average.swapped_in():
        raise RuntimeError("validation")
    assert flat(trained) == own


def test_decay_0_is_the_model_itself() -> None:
    trained = model()
    average = MovingAverage(trained, 0.0)
    train(trained, average, range(1, 3))
    own = flat(trained)
    with average.swapped_in():
        assert flat(trained) == own
    assert average.tensors() == {}


def test_a_restored_average_goes_on_bit_for_bit() -> None:
    trained = model()
    average = MovingAverage(trained, 0.9)
    train(trained, average, range(1, 4))
    resumed = model()
    resumed.load_state_dict(trained.state_dict())
    restored = MovingAverage(resumed, 0.9)
    restored.restore({name: value.clone() for name, value in average.tensors().items()})
    train(trained, average, range(4, 7))
    train(resumed, restored, range(4, 7))
    mine, other = average.tensors(), restored.tensors()
    assert list(mine) == list(other) == [name for name, _ in trained.named_parameters()]
    assert all(torch.equal(mine[name], other[name]) for name in mine)
