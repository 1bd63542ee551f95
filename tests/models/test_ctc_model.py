"""More places where they are asked for, and a model that learns what stands where without being told.

That the whole is padding-proof, equal in any batch and differentiable everywhere, `test_contracts.py` shows.
"""

import torch

from transduce.data.collate import Batch
from transduce.models.ctc import Ctc, CtcConfig
from transduce.models.protocols import Padded, Sizes
from transduce.search.run import search
from transduce.search.settings import Search
from transduce.training.alignment import alignment_loss

SIZES = {"d_model": 32, "heads": 2, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}


def tiny(places: int) -> Ctc:
    torch.manual_seed(4)
    return Ctc(CtcConfig.model_validate({**SIZES, "places": places}), Sizes(12, 12))


@torch.inference_mode()
def test_a_row_has_as_many_places_as_its_source_gives_or_a_target_needs() -> None:
    model = tiny(3).eval()
    source = Padded(torch.randint(3, 12, (3, 5)), torch.tensor([5, 1, 2]))
    own = model.align(source)
    assert own.lengths.tolist() == [15, 3, 6]
    assert own.values.shape == (3, 15, 12)
    enough = model.align(source, torch.tensor([2, 3, 1]))
    assert torch.equal(enough.values, own.values)
    more = model.align(source, torch.tensor([17, 9, 2]))
    assert more.lengths.tolist() == [17, 9, 6]
    torch.testing.assert_close(more.values[2, :6], own.values[2, :6])
    alone = model.align(Padded(source.values[1:2, :1], source.lengths[1:2]), torch.tensor([9]))
    torch.testing.assert_close(more.values[1, :9], alone.values[0])


def test_it_learns_how_many_and_which_words() -> None:
    # A source of digits; the target repeats each odd token, so that it needs up to four places: one a word,
    # and a blank between equal ones.
    generator = torch.Generator().manual_seed(0)

    def pairs(count: int) -> tuple[Padded, list[list[int]]]:
        values_BS = torch.randint(4, 12, (count, 5), generator=generator)
        targets = [[t for token in row for t in [token] * (1 + token % 2)] for row in values_BS.tolist()]
        return Padded(values_BS, torch.full((count,), 5)), targets

    model = tiny(4)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    for _ in range(400):
        source, targets = pairs(48)
        lengths_B = torch.tensor([len(each) + 2 for each in targets])
        values_BT = torch.zeros(48, int(lengths_B.max()), dtype=torch.int64)
        for row, each in enumerate(targets):
            values_BT[row, : len(each) + 2] = torch.tensor([1, *each, 2])
        loss, _ = alignment_loss(model, Batch(source, Padded(values_BT, lengths_B), 0), 0.0)
        optimizer.zero_grad()
        (loss / lengths_B.sum()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    source, targets = pairs(100)
    for beam in (1, 3):
        asked = Search(method="ctc", beam=beam)
        found = search(model, source, 100, asked, start=1, end=2, limits=[20] * 100, forbidden=[0, 1])
        right = [list(hypothesis.tokens) == [*target, 2] for [hypothesis], target in zip(found, targets, strict=True)]
        assert sum(right) >= 90, sum(right)
