"""The recurrent encoder-decoder as a whole: it learns, it shows where it looks, and it says what does not fit."""

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from transduce.attention import capture
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.cross_entropy import smoothed_cross_entropy
from transduce.models.rnn import Rnn, RnnConfig
from transduce.search.dispatch import search
from transduce.search.request import Request
from transduce.search.settings import Search

SYMBOLS, START, END = 8, 8, 9


def pairs(rows: int, generator: torch.Generator) -> tuple[Padded, Tensor]:
    """Random sequences of 2 to 6 symbols, and the same reversed between START and END, as long as they are all."""
    length = int(torch.randint(2, 7, (1,), generator=generator))
    symbols_BS = torch.randint(SYMBOLS, (rows, length), generator=generator)
    edge_B1 = torch.ones(rows, 1, dtype=torch.int64)
    target_BT = torch.cat((START * edge_B1, symbols_BS.flip(1), END * edge_B1), 1)
    return Padded(symbols_BS, torch.full((rows,), length)), target_BT


def learned(updates: int, **settings: object) -> Rnn:
    torch.manual_seed(0)
    sizes = {"d_model": 24, "hidden": 48, "dropout": 0.0, **settings}
    model = Rnn(RnnConfig.model_validate(sizes), Specs.of_tokens(SYMBOLS + 2, SYMBOLS + 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(1)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, updates)
    for _ in range(updates):
        source, target_BT = pairs(64, generator)
        logits_BTV = model(source, Padded(target_BT[:, :-1], source.lengths + 1))
        loss = smoothed_cross_entropy(logits_BTV.flatten(0, 1), target_BT[:, 1:].flatten()) / target_BT[:, 1:].numel()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
    return model.eval()


def right(model: Rnn, rows: int = 200) -> float:
    """The share of unseen sequences that greedy search reverses without an error."""
    generator = torch.Generator().manual_seed(2)
    found = 0
    for _ in range(4):
        source, target_BT = pairs(rows // 4, generator)
        best = search(model, source, [Request(8)] * len(target_BT), Search(method="greedy"), start=START, end=END)
        wanted = target_BT[:, 1:].tolist()
        found += sum(list(one[0].tokens) == row for one, row in zip(best, wanted, strict=True))
    return found / rows


@pytest.fixture(scope="module", params=["bahdanau", "luong"])
def reverser(request: pytest.FixtureRequest) -> Rnn:
    """A model that has learned to reverse."""
    if request.param == "bahdanau":
        return learned(300, attention="bahdanau", direction="forward")
    return learned(300, attention="luong", cell="lstm", score="bilinear")


@pytest.mark.slow
def test_reversal_is_learned_completely(reverser: Rnn) -> None:
    assert right(reverser) == 1.0


@pytest.mark.slow
def test_attention_goes_backward_when_it_has_learned_to_reverse(reverser: Rnn) -> None:
    symbols_BS, target_BT = torch.tensor([[3, 1, 4, 1, 5]]), torch.tensor([[START, 5, 1, 4, 1, 3]])
    with capture(reverser) as record:
        reverser(Padded(symbols_BS, torch.tensor([5])), Padded(target_BT, torch.tensor([6])))
    alphas = record["decoder.reader"]
    assert [tuple(alpha_BHTS.shape) for alpha_BHTS in alphas] == [(1, 1, 1, 5)] * 6
    places = [int(alpha_BHTS.argmax()) for alpha_BHTS in alphas[:5]]
    assert places == sorted(places, reverse=True)
    assert places[0] == 4
    assert places[-1] <= 1  # the state of the second word has read the first as well


def test_without_feeding_luong_reads_for_all_positions_at_once() -> None:
    model = Rnn(RnnConfig(attention="luong", feeding=False, d_model=8, hidden=8), Specs.of_tokens(9, 9))
    source = Padded(torch.ones(2, 5, dtype=torch.int64), torch.tensor([5, 3]))
    with capture(model) as record:
        model(source, Padded(torch.ones(2, 4, dtype=torch.int64), torch.tensor([4, 4])))
    assert [tuple(alpha_BHTS.shape) for alpha_BHTS in record["decoder.reader"]] == [(2, 1, 4, 5)]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"cell": "ltsm"}, 'no "ltsm". Did you mean "lstm"?'),
        ({"score": "aditive"}, 'Did you mean "additive"?'),
        ({"normalizer": "sofmax"}, 'Did you mean "softmax"?'),
        ({"hidden": 10, "heads": 4}, "hidden (10) must be a multiple of heads (4)"),
        ({"hidden": 7}, "hidden, which must be even, not 7"),
        ({"attention": "bahdanau", "feeding": False}, "feeding cannot be off"),
        ({"bridge": "copy", "pooling": 1}, 'pooling = 1 computes u, but bridge = "copy" starts the decoder without it'),
        ({"bridge": "copy", "encoder_layers": 2}, "encoder_layers (2) and decoder_layers (1) must be equal"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_does_not_fit_is_said(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        RnnConfig.model_validate(settings)
    assert said in str(error.value)


def test_one_key_stands_for_monotonic_attention_and_a_pointer() -> None:
    short, long = ({"monotonic_copy": True}, {"normalizer": "monotonic", "pointer": True})
    one, other = (RnnConfig.model_validate(keys) for keys in (short, long))
    assert one.model_dump(exclude={"monotonic_copy"}) == other.model_dump(exclude={"monotonic_copy"})
    assert RnnConfig.model_validate(one.model_dump()) == one
    changed = RnnConfig.model_validate({**short, "pointer": False})
    assert (changed.normalizer, changed.pointer) == ("monotonic", False)
    assert not RnnConfig.model_validate({"monotonic_copy": False}).pointer
