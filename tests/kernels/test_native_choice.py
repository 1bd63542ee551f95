"""The kernel that chooses a beam's continuations, against the same with torch; equal totals included."""

import pytest
import torch

from transduce.kernels.native import left_out
from transduce.search.beam_selection import Live, Offered, likeliest

pytestmark = pytest.mark.usefixtures("kernels")
BEAM = 5


def drawn(seed: int) -> tuple[Live, Offered, torch.Tensor]:
    """Sentences with none to five hypotheses and free slots, totals and values of few kinds, some of them -inf."""
    torch.manual_seed(seed)
    there_BK = torch.rand(7, BEAM) < 0.6
    sentence_N, slot_N = there_BK.nonzero(as_tuple=True)
    rows = len(sentence_N)
    total_N = -torch.randint(4, (rows,)).double()
    value_NC = -torch.randint(4, (rows, 6)).double().sort(dim=1, descending=True).values
    value_NC[torch.rand(rows, 6) < 0.2] = -torch.inf
    tokens = torch.zeros(rows, 1, dtype=torch.int64)
    live = Live(sentence_N, slot_N, total_N, tokens, tokens.double())
    return live, Offered(value_NC, torch.randint(99, (rows, 6))), torch.randint(BEAM + 1, (7,))


@pytest.mark.parametrize("prune", [None, 0.0, 1.5])
@pytest.mark.parametrize("seed", range(20))
def test_it_takes_what_torch_takes(seed: int, prune: float | None) -> None:
    live, offered, slots_B = drawn(seed)
    found = likeliest(live, offered, slots_B, BEAM, prune)
    with left_out():
        expected = likeliest(live, offered, slots_B, BEAM, prune)
    assert all(map(torch.equal, found, expected))
    assert seed or len(found[0]) > 5, "there was something to choose"


def test_nothing_to_choose_from() -> None:
    live, offered, slots_B = drawn(1)
    none = torch.empty(0, dtype=torch.int64)
    for taken in likeliest(live.chosen(none), Offered(offered.value[:0], offered.token[:0]), slots_B, BEAM):
        assert taken.shape == (0,)
