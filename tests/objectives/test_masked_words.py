"""Masked language modelling beside slow loops: what is hidden, what stands there, the loss and the likelihood."""

from collections import Counter

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import drawn_models
from transduce.core.padded import Padded
from transduce.data.collate import Batch, units_of_each
from transduce.data.columns.masked_text import LONGEST, MaskedText
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.objectives.masked_words import GROUPS, MaskedWords, hidden_words

TEXTS = ["ba de fi go ku", "ba", "de fi ba de fi go ku ba de go fi ku"]


def batch_of(texts: list[str], column: MaskedText, target: object) -> Batch:
    rows = [np.asarray(row, np.int32) for row in column.encode_plain(texts)]
    targets = target.collate([np.asarray(column.pieces_of(row), np.int32) for row in rows])  # type: ignore[attr-defined]
    return Batch(column.collate(rows), targets, int(units_of_each(targets).sum()))


def drawn() -> tuple[torch.nn.Module, MaskedWords, Batch]:
    pipeline = drawn_models.masked()
    objective = pipeline.task.objective(pipeline.model)
    columns = pipeline.task.columns
    return pipeline.model.eval(), objective, batch_of(TEXTS, columns["source"], columns["target"])


def subwords() -> MaskedText:
    """Pieces of words."""
    words = ["lower", "lowest", "newer", "newest", "wide", "widest"]
    texts = [" ".join(words[place:] + words[:place]) for place in range(6)]
    return MaskedText.of(train_tokenizer(TokenizerConfig(kind="bpe", vocabulary=30, min_frequency=1), texts))


def test_whole_words_are_hidden_and_each_row_has_its_share() -> None:
    column = subwords()
    text = column.collate([np.asarray(row, np.int32) for row in column.encode_plain(["newest wide lowest", "lower"])])
    words_BS, known_BS = text.words.values, text.known()
    assert len(set(words_BS[0][known_BS[0]].tolist())) == 3 < int(known_BS[0].sum())
    seen = Counter[tuple[int, ...]]()
    for seed in range(300):
        torch.manual_seed(seed)
        hidden_BS = hidden_words(text, 0.4)  # of 3 words 1.2, so one
        assert not hidden_BS[~known_BS].any()
        for row in range(2):
            whole = set(words_BS[row][hidden_BS[row]].tolist())
            again = known_BS[row] & torch.isin(words_BS[row], torch.tensor(sorted(whole)))
            assert torch.equal(hidden_BS[row], again) and len(whole) == 1
        seen[tuple(words_BS[0][hidden_BS[0]].unique().tolist())] += 1
    assert set(seen) == {(0,), (1,), (2,)} and min(seen.values()) > 60  # each equally likely: 100


def test_a_long_word_is_hidden_piece_by_piece() -> None:
    """A sentence of Chinese, say, which has no spaces."""
    column = subwords()
    [row] = column.encode_plain(["w" * (LONGEST + 1)])
    assert all(each >= column.tokenizer.size for each in row) and len(row) > LONGEST
    assert column.decode(row) == "w" * (LONGEST + 1)


def test_eight_of_ten_read_the_mask_one_any_piece_and_one_itself() -> None:
    objective = MaskedWords(mask=99, ordinary=tuple(range(4, 50)))
    torch.manual_seed(0)
    pieces_BS = torch.full((100, 200), 7)
    instead_BS = objective._instead(pieces_BS)
    shares = [float((instead_BS == each).double().mean()) for each in (99, 7)]
    assert shares == [pytest.approx(0.8, abs=0.01), pytest.approx(0.1 + 0.1 / 46, abs=0.01)]
    assert set(instead_BS.unique().tolist()) == {99, *range(4, 50)}


def test_the_loss_is_that_of_the_hidden_pieces_on_the_scale_of_all() -> None:
    model, objective, batch = drawn()
    torch.manual_seed(1)
    masks = objective.draw(model, batch)
    found = objective.loss(model, batch, masks)
    states_BSH = model.encode(Padded(masks.shown, batch.inputs.pieces.lengths)).values
    head, total = model.prediction, 0.0
    for row, place in masks.places.nonzero().tolist():
        vector = F.layer_norm(F.gelu(head.dense(states_BSH[row, place])), (8,), head.norm.weight, head.norm.bias, 1e-5)
        logits_V = model.source_embedding.weight @ vector + head.bias
        total -= float(logits_V.detach().log_softmax(-1)[batch.inputs.pieces.values[row, place]])
    scale = batch.units / int(masks.places.sum())
    assert float(found.minimised.detach()) == pytest.approx(scale * total, rel=1e-5)
    assert batch.units == 18  # all pieces, and no end token


def test_parts_of_a_batch_add_up_to_it() -> None:
    model, objective, batch = drawn()
    torch.manual_seed(2)
    masks = objective.draw(model, batch)
    whole = float(objective.loss(model, batch, masks).reported)
    parts = 0.0
    for place in (slice(0, 2), slice(2, 3)):
        part = batch.rows(place)
        parts += float(objective.loss(model, part, objective.rows(masks, place, part)).reported)
    assert parts == pytest.approx(whole, rel=1e-5)


def test_likelihood_hides_each_word_once_with_every_seventh() -> None:
    model, objective, batch = drawn()
    each_BN = objective.log_probabilities(model, batch)
    column = drawn_models.masked().task.columns["source"]
    for row, text in enumerate(TEXTS):
        ids = column.pieces_of(column.encode_plain([text])[0])  # a word a piece here
        for place, piece in enumerate(ids):
            shown = [objective.mask if other % GROUPS == place % GROUPS else each for other, each in enumerate(ids)]
            inputs = Padded(torch.tensor([column.closed(shown)]), torch.tensor([len(ids) + 1]))
            hidden_BS = torch.zeros(inputs.values.shape, dtype=torch.bool)
            hidden_BS[0, place] = True
            with torch.no_grad():
                wanted = float(model.predict_masked(inputs, hidden_BS)[0].log_softmax(-1)[piece])
            assert float(each_BN[row, place]) == pytest.approx(wanted, abs=1e-5)
        assert not each_BN[row, len(ids) :].any()


def test_a_row_alone_has_the_likelihood_that_it_has_in_a_batch() -> None:
    model, objective, batch = drawn()
    together = objective.log_probabilities(model, batch).sum(1)
    for row in range(len(TEXTS)):
        alone = objective.log_probabilities(model, batch.rows(slice(row, row + 1))).sum()
        assert float(alone) == pytest.approx(float(together[row]), abs=1e-5)
