"""The end-to-end memory network against loops written from its paper, and what every classifier of stories promises."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from transduce.attention import capture
from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile, lasting_tensors, load_model_file, save_model_file
from transduce.core.padded import Padded, map_tree, rows_of
from transduce.data.collate import Batch
from transduce.data.columns import ColumnSpec, Specs
from transduce.data.columns.story import Sentences
from transduce.models.memory_network import MemoryNetwork, MemoryNetworkConfig
from transduce.models.protocols import Classifies, FollowsUpdates
from transduce.objectives.label import LabelCrossEntropy
from transduce.pipeline.outline import load_weights

WORDS, LABELS = 11, ((4,), (5, 6), (7,))
SPECS = Specs(ColumnSpec("story", WORDS), ColumnSpec("label", len(LABELS), words=LABELS))
STORIES: list[tuple[list[list[int]], list[int]]] = [
    ([[4, 5, 6], [7], [5, 5]], [8, 9]),
    ([[9, 4]], [7, 8, 10, 4]),
    ([[4], [5], [6, 7], [], [8, 9, 10], [4, 4, 4, 4]], [5]),
    ([[4, 6], [7, 6], [8, 10], [9]], [6, 5, 4]),
]
VARIANTS: list[dict[str, Any]] = [
    {},
    {"tied": "layerwise"},
    {"encoding": "bag"},
    {"temporal": False},
    {"tied": "layerwise", "temporal": False, "encoding": "bag"},
    {"hops": 1},
    {"slots": 4},
]
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=lambda each: "-".join(map(str, each.values())) or "-")


def built(variant: dict[str, Any], seed: int = 0, **more: Any) -> MemoryNetwork:
    torch.manual_seed(seed)
    settings = {"d_model": 6, "hops": 3, "slots": 8, **variant, **more}
    model = MemoryNetwork(MemoryNetworkConfig.model_validate(settings), SPECS)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(std=0.5)
    return model.eval()


def inputs(stories: list[tuple[list[list[int]], list[int]]], rubbish: int = 3) -> Sentences:
    """Any ids behind the ends."""
    most, words = max(len(story) for story, _ in stories), max(len(s) for story, _ in stories for s in story)
    asked = max(len(question) for _, question in stories)
    story_BMW = torch.full((len(stories), most, words), rubbish)
    words_BM = torch.full((len(stories), most), 2)
    question_BQ = torch.full((len(stories), asked), rubbish)
    for row, (story, question) in enumerate(stories):
        question_BQ[row, : len(question)] = torch.tensor(question)
        for place, sentence in enumerate(story):
            words_BM[row, place] = len(sentence)
            story_BMW[row, place, : len(sentence)] = torch.tensor(sentence)
    lengths_B = torch.tensor([len(story) for story, _ in stories])
    asked_B = torch.tensor([len(question) for _, question in stories])
    return Sentences(Padded(story_BMW, lengths_B), Padded(words_BM, lengths_B), Padded(question_BQ, asked_B))


def slow_bag(model: MemoryNetwork, ids: list[int], table_VD: Tensor) -> Tensor:
    """Section 4.1, word by word and number by number; twice the paper's l, as in the authors' code."""
    width, count = table_VD.shape[1], len(ids)
    total_D = torch.zeros(width)
    for j, word in enumerate(ids, 1):
        for d in range(1, width + 1):
            weight = 2 * ((1 - j / count) - (d / width) * (1 - 2 * j / count))
            total_D[d - 1] += (weight if model.config.encoding == "position" else 1) * table_VD[word, d - 1]
    return total_D


def slow_logits(model: MemoryNetwork, story: list[list[int]], question: list[int]) -> tuple[Tensor, list[list[float]]]:
    """Equations 1 to 4 of one story, hop by hop and slot by slot; and the weights of its sentences."""
    config, e_VED = model.config, model.embedding_VED.detach()
    adjacent = config.tied == "adjacent"
    time_SED = None if model.time_SED is None else model.time_SED.detach()
    u_D = slow_bag(model, question, e_VED[:, 0 if adjacent else 2])
    hops = []
    for k in range(config.hops):
        keys, values = (k, k + 1) if adjacent else (0, 1)
        m, c = [], []
        for slot in range(config.slots):  # the last sentence first; slots behind the first sentence are empty
            if slot >= len(story):
                m.append(torch.zeros(config.d_model))
                c.append(torch.zeros(config.d_model))
                continue
            sentence = story[len(story) - 1 - slot]
            m.append(slow_bag(model, sentence, e_VED[:, keys]))
            c.append(slow_bag(model, sentence, e_VED[:, values]))
            if time_SED is not None:
                m[-1] = m[-1] + time_SED[slot, keys]
                c[-1] = c[-1] + time_SED[slot, values]
        exps = [float(torch.exp(u_D @ each)) for each in m]
        p = [each / sum(exps) for each in exps]
        o_D = sum((weight * each for weight, each in zip(p, c, strict=True)), torch.zeros(config.d_model))
        u_D = o_D + (u_D if adjacent else model.between.weight.detach() @ u_D)
        hops.append([p[len(story) - 1 - i] if len(story) - 1 - i < config.slots else 0.0 for i in range(len(story))])
    if not adjacent:
        return model.output.weight.detach() @ u_D, hops
    rows = [sum((e_VED[word, -1] for word in words), torch.zeros(config.d_model)) for words in LABELS]
    return torch.stack(rows) @ u_D, hops


@every_variant
def test_logits_and_weights_are_the_papers(variant: dict[str, Any]) -> None:
    model = built(variant)
    with capture(model) as record:
        logits_BC = model.classify(inputs(STORIES))
    assert record.of("memory", "encoder") == [f"hops.{k}" for k in range(model.config.hops)]
    for row, (story, question) in enumerate(STORIES):
        slow_C, hops = slow_logits(model, story, question)
        torch.testing.assert_close(logits_BC[row], slow_C, rtol=1e-4, atol=1e-5)
        for k, weights in enumerate(hops):
            found_M = record[f"hops.{k}"][0][row, 0, 0]
            torch.testing.assert_close(found_M[: len(story)], torch.tensor(weights), rtol=1e-4, atol=1e-5)
            assert not found_M[len(story) :].any()


@every_variant
def test_alone_and_in_a_batch_whatever_stands_behind_the_ends(variant: dict[str, Any]) -> None:
    model = built(variant)
    together_BC = model.classify(inputs(STORIES))
    assert torch.equal(together_BC, model.classify(inputs(STORIES, rubbish=9)))
    for row, story in enumerate(STORIES):
        torch.testing.assert_close(model.classify(inputs([story]))[0], together_BC[row], rtol=1e-5, atol=1e-6)


@every_variant
def test_gradients_reach_every_parameter(variant: dict[str, Any]) -> None:
    model = built(variant, noise=0.5).train()
    batch = Batch(inputs(STORIES), torch.tensor([0, 1, 2, 0]), 4)
    LabelCrossEntropy().loss(model, batch).minimised.backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None and weight.grad.isfinite().all() and weight.grad.any(), name


def test_linear_start_leaves_the_softmax_out_of_its_updates_alone() -> None:
    model = built({}, noise=0, linear_start=3)
    assert isinstance(model, FollowsUpdates) and isinstance(model, Classifies)
    soft_BC = model.classify(inputs(STORIES))
    story, question = STORIES[0]
    e_VED, time_SED = model.embedding_VED.detach(), model.time_SED.detach()
    u_D = slow_bag(model, question, e_VED[:, 0])
    for k in range(3):
        o_D = torch.zeros(6)
        for slot, sentence in enumerate(reversed(story)):
            m_D = slow_bag(model, sentence, e_VED[:, k]) + time_SED[slot, k]
            o_D += (u_D @ m_D) * (slow_bag(model, sentence, e_VED[:, k + 1]) + time_SED[slot, k + 1])
        u_D = u_D + o_D
    linear_C = torch.stack([e_VED[list(words), -1].sum(0) for words in LABELS]) @ u_D
    for update, expected_C in ((1, linear_C), (3, linear_C), (4, soft_BC[0]), (2, linear_C)):
        model.begin_update(update)
        torch.testing.assert_close(model.train().classify(inputs(STORIES))[0], expected_C, rtol=1e-4, atol=1e-5)
        assert torch.equal(model.eval().classify(inputs(STORIES)), soft_BC)  # validation always has it


def test_noise_puts_empty_slots_between_sentences_and_keeps_their_order() -> None:
    model = built({}, noise=0.5, slots=8).train()
    lengths_B = torch.tensor([4, 1, 8, 30])
    torch.manual_seed(1)
    seen = set()
    for _ in range(200):
        read = model._places(lengths_B)
        for row, kept, most in ((0, 4, 6), (1, 1, 2), (2, 8, 8), (3, 8, 8)):
            slots = read.slot[read.row == row].tolist()
            assert len(slots) == kept and sorted(set(slots)) == slots and slots[-1] < most
            newest = int(lengths_B[row]) - 1
            assert read.place[read.row == row].tolist() == [newest - back for back in range(kept)]
            seen.add((row, *slots))
    assert {each for each in seen if each[0] == 1} == {(1, 0), (1, 1)}
    assert len([each for each in seen if each[0] == 0]) == 15  # of 6 slots any 4
    assert built({}, noise=0.5)._places(lengths_B).slot.tolist()[:4] == [0, 1, 2, 3]


def test_a_batch_can_be_cut_into_rows() -> None:
    model, whole = built({}), inputs(STORIES)
    part: Any = map_tree(lambda each: rows_of(each, slice(1, 3)), whole)
    torch.testing.assert_close(model.classify(part), model.classify(whole)[1:3], rtol=1e-5, atol=1e-6)


@every_variant
def test_save_and_load_give_the_same_bits(variant: dict[str, Any], tmp_path: Path) -> None:
    model, other = built(variant), built(variant, seed=5)
    weights = {name: weight.detach() for name, weight in lasting_tensors(model).items()}
    save_model_file(tmp_path / "model.safetensors", ModelFile(weights, {}, {}, {}, {}))
    load_weights(other, load_model_file(tmp_path / "model.safetensors").weights)
    assert torch.equal(other.classify(inputs(STORIES)), model.classify(inputs(STORIES)))


def test_embeddings_of_words_that_nobody_says_are_not_read() -> None:
    model = built({})
    before = model.classify(inputs(STORIES))
    with torch.no_grad():
        model.embedding_VED[:4] = np.nan
    assert torch.equal(model.classify(inputs(STORIES)), before)


def test_other_columns_are_refused() -> None:
    for specs in (Specs.of_tokens(5, 6), Specs(ColumnSpec("tokens", 5), ColumnSpec("label", 2))):
        with pytest.raises(InputError, match="expected a task with stories and labels"):
            MemoryNetwork(MemoryNetworkConfig(), specs)
    for words in ((), ((4,), (4,))):
        specs = Specs(ColumnSpec("story", 9), ColumnSpec("label", 2, words=words))
        with pytest.raises(InputError, match="two answers are the same"):
            MemoryNetwork(MemoryNetworkConfig(), specs)
        assert MemoryNetwork(MemoryNetworkConfig(tied="layerwise"), specs).output is not None
