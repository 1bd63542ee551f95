"""What a model that fills is trained on, word by word and length by length."""

import hashlib
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from forked import UNHARMED, Fate, transduce
from random_models import language_model, sentences, translator
from text_columns import loss_of
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.collate import Batch, words
from transduce.data.encoding import open_pairs_store
from transduce.data.filters import FilterConfig
from transduce.data.pairs.pair_files import PairFiles
from transduce.inference.likelihood import Likelihood, dataset_likelihood
from transduce.objectives.masked_lm import MaskedLm, hide, hide_some
from transduce.recipe.training import TrainingConfig

FILLS = {"kind": "non_autoregressive", "tied": "none", "d_model": 16, "heads": 2, "feed_forward": 24, "dropout": 0.0}


def batch() -> Batch:
    torch.manual_seed(3)
    source = Padded(torch.randint(4, 60, (3, 5)), torch.tensor([5, 3, 4]))
    target = Padded(torch.randint(4, 60, (3, 8)), torch.tensor([8, 3, 6]))
    return Batch(source, target, 14)


def test_words_stand_between_start_and_end() -> None:
    target = Padded(torch.tensor([[1, 5, 6, 7, 2], [1, 8, 2, 0, 0]]), torch.tensor([5, 3]))
    found = words(target)
    assert [row[:length] for row, length in zip(found.values.tolist(), found.lengths.tolist(), strict=True)] == [
        [5, 6, 7],
        [8],
    ]


def test_every_number_and_every_choice_of_words_is_equally_likely() -> None:
    torch.manual_seed(0)
    rows = 30_000
    target = Padded(torch.zeros(rows, 4, dtype=torch.int64), torch.tensor([3, 4, 1]).repeat(rows // 3))
    hidden_BT = hide(target)
    assert not hidden_BT[~target.mask()].any()
    for length in (3, 4, 1):
        chosen = Counter(tuple(row[:length]) for row in hidden_BT[target.lengths == length].tolist())
        for choice, count in chosen.items():
            alike = sum(sum(each) == sum(choice) for each in chosen)
            assert count / 10_000 == pytest.approx(1 / length / alike, abs=0.015), choice
        assert len(chosen) == 2**length - 1


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_word_by_word(smoothing: float) -> None:
    model, given = translator(model=FILLS).model, batch()
    torch.manual_seed(8)
    loss, shown = loss_of(model, given, TrainingConfig(label_smoothing=smoothing))
    torch.manual_seed(8)
    target = words(given.targets)
    hidden_BT = hide(target)
    told, lengths, count = torch.zeros(()), torch.zeros(()), 0
    for row, length in enumerate(target.lengths.tolist()):
        assert given.inputs
        source = Padded(given.inputs.values[row : row + 1], given.inputs.lengths[row : row + 1])
        memory = model.remember(source)
        one = Padded(target.values[row : row + 1, :length], target.lengths[row : row + 1])
        logits_NV = model.fill(one, hidden_BT[row : row + 1, :length], memory)
        for logits_V, place in zip(logits_NV, hidden_BT[row].nonzero()[:, 0].tolist(), strict=True):
            told = told + F.cross_entropy(logits_V, target.values[row, place], label_smoothing=smoothing)
            count += 1
        lengths = lengths - model.lengths(memory, length)[0, length]
    torch.testing.assert_close(loss, told * 11 / count + lengths)
    assert shown == loss


def test_r_drop_is_refused() -> None:
    with pytest.raises(InputError, match=r"training\.r_drop"):
        loss_of(translator(model=FILLS).model, batch(), TrainingConfig(r_drop=5.0))


def test_without_a_source_there_is_nothing_to_fill_from() -> None:
    model = translator(model=FILLS).model
    with pytest.raises(InputError, match="needs a source"):
        MaskedLm(0.1).loss(model, Batch(None, batch().targets, 14), hide_some(batch()))  # type: ignore[arg-type]


def test_the_likelihood_is_of_all_words_hidden_and_of_the_length() -> None:
    pipeline, given = translator(model=FILLS), batch()
    model = pipeline.model
    found_BT = MaskedLm().log_probabilities(model.eval(), given)
    assert found_BT.shape == (3, 7)
    assert given.inputs
    for row, length in enumerate((given.targets.lengths - 2).tolist()):
        source = Padded(given.inputs.values[row : row + 1], given.inputs.lengths[row : row + 1])
        memory = model.remember(source)
        ids_1T = given.targets.values[row : row + 1, 1 : 1 + length]
        one = Padded(ids_1T, torch.tensor([length]))
        logits_TV = model.fill(one, torch.ones(1, length, dtype=torch.bool), memory).detach()
        each = [float(line.log_softmax(0)[ids_1T[0, place]]) for place, line in enumerate(logits_TV)]
        each.append(float(model.lengths(memory, length).detach()[0, length]))
        assert found_BT[row].tolist() == pytest.approx([*each, *[0.0] * (6 - length)], abs=1e-5)


def test_the_same_in_any_batch_with_empty_targets_among_them(tmp_path: Path) -> None:
    pipeline = translator(model=FILLS)
    pairs = list(zip(sentences(30), [*sentences(28, seed=5), "", ""], strict=True))
    together, alone = pipeline.score(pairs, batch_size=16), pipeline.score(pairs, batch_size=1)
    for one, other, (_, target) in zip(together, alone, pairs, strict=True):
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-4)
        assert one.tokens == len(target.split()) + 1
    kept = [pair for pair in pairs if all(pair)]
    for side, name in enumerate("ab"):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in kept))
    both = (pipeline.task.tokenizers["source"], pipeline.task.tokenizers["target"])
    store = open_pairs_store(PairFiles(source="a", target="b"), tmp_path, both, FilterConfig(max_ratio=99), tmp_path)
    found = dataset_likelihood(pipeline.model, pipeline.task, store)
    each = pipeline.score(kept)
    total = Likelihood(sum(one.log_probability for one in each), sum(one.tokens for one in each))
    assert found.loss == pytest.approx(total.loss, rel=1e-5)
    assert found == dataset_likelihood(pipeline.model, pipeline.task, store)


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_a_training_that_was_stopped_ends_in_the_same_bytes(tiny_recipe: Path, tmp_path: Path) -> None:
    hashes = []
    for name, fates in {"whole": [UNHARMED], "stopped": [Fate(signal=signal.SIGTERM, at=7), UNHARMED]}.items():
        for fate in fates:
            done = transduce(
                tmp_path, "train", tiny_recipe, "model.kind=non_autoregressive", "--run", tmp_path / name, fate=fate
            )
            assert done.code == (130 if fate.signal else 0), done.shown
        hashes.append(hashlib.sha256((tmp_path / name / "model.safetensors").read_bytes()).hexdigest())
    assert hashes[0] == hashes[1]


def test_a_language_model_goes_the_usual_way() -> None:
    model = language_model().model
    given = Batch(None, batch().targets, 14)
    torch.manual_seed(1)
    first, _ = loss_of(model.eval(), given, TrainingConfig(label_smoothing=0.1))
    second, _ = loss_of(model, given, TrainingConfig(label_smoothing=0.1))
    assert torch.equal(first, second)
