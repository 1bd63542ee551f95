"""Lengths against their definition, and a model that learns to write all words at once.

That the whole is padding-proof, equal in any batch and differentiable everywhere, `test_contracts.py` shows.
"""

import math

import torch

from transduce.data.collate import Batch
from transduce.models.non_autoregressive import NonAutoregressive, NonAutoregressiveConfig
from transduce.models.protocols import Padded, Sizes
from transduce.search.run import search
from transduce.search.settings import Search
from transduce.training.masked_words import masked_loss

SIZES = {"d_model": 32, "heads": 2, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}


def tiny(reach: int) -> NonAutoregressive:
    torch.manual_seed(4)
    return NonAutoregressive(NonAutoregressiveConfig.model_validate({**SIZES, "reach": reach}), Sizes(12, 12))


def test_lengths_by_their_definition() -> None:
    # A weight for every length from 0 to 400, one after the other: that of its difference's class, halved for every
    # token out of reach; then divided by their sum.
    for reach in (1, 2, 9):
        model = tiny(reach)
        source = Padded(torch.randint(3, 12, (3, 7)), torch.tensor([7, 1, 4]))
        with torch.no_grad():
            memory = model.remember(source)
        found_BL = model.lengths(memory, 25)
        for row, length in enumerate(source.lengths.tolist()):
            weights = []
            for target in range(400):
                difference = target - length
                nearest = max(-reach, min(reach, difference))
                chosen = float(memory.length_class[row, nearest + reach])
                weights.append(math.exp(chosen) * 0.5 ** abs(difference - nearest))
            expected = [math.log(weight / math.fsum(weights)) for weight in weights[:26]]
            torch.testing.assert_close(found_BL[row], torch.tensor(expected), rtol=1e-5, atol=1e-5)


def test_it_learns_lengths_and_words() -> None:
    # A source of digits; the target repeats each odd token, so that its length must be told from the tokens.
    generator = torch.Generator().manual_seed(0)

    def pairs(count: int) -> tuple[Padded, list[list[int]]]:
        values_BS = torch.randint(4, 12, (count, 5), generator=generator)
        targets = [[t for token in row for t in [token] * (1 + token % 2)] for row in values_BS.tolist()]
        return Padded(values_BS, torch.full((count,), 5)), targets

    model = tiny(6)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    for _ in range(400):
        source, targets = pairs(48)
        lengths_B = torch.tensor([len(each) + 2 for each in targets])
        values_BT = torch.zeros(48, int(lengths_B.max()), dtype=torch.int64)
        for row, each in enumerate(targets):
            values_BT[row, : len(each) + 2] = torch.tensor([1, *each, 2])
        loss, _ = masked_loss(model, Batch(source, Padded(values_BT, lengths_B), 0), 0.0)
        optimizer.zero_grad()
        (loss / lengths_B.sum()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    source, targets = pairs(100)
    asked = Search(method="mask_predict")
    found = search(model, source, 100, asked, start=1, end=2, limits=[20] * 100, forbidden=[0, 1])
    right = [list(hypothesis.tokens) == [*target, 2] for [hypothesis], target in zip(found, targets, strict=True)]
    assert sum(right) >= 90, sum(right)
