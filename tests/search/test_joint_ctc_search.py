"""Joint decoding: scores by torch's ctc_loss and by all alignments; search against all outputs."""

import itertools
import math
from collections import defaultdict
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from forced_decoding import forced
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.columns import ColumnSpec, Specs
from transduce.models.rnn import Rnn, RnnConfig
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.search.dispatch import search
from transduce.search.joint_ctc import JointlyDecoded
from transduce.search.request import Request
from transduce.search.settings import Search

PAD, START, END = 0, 1, 2
WORDS = [3, 4, 5]
SPECS = Specs(ColumnSpec("frames", 4), ColumnSpec("tokens", 6))
KINDS = ["transformer", "rnn"]


def tiny(kind: str, ctc_weight: float = 0.5) -> Any:
    torch.manual_seed(5)
    joint = {"ctc_weight": ctc_weight, "subsampling": 2, "dropout": 0.0}
    if kind == "rnn":
        model: Any = Rnn(RnnConfig(d_model=8, hidden=12, **joint), SPECS)
    else:
        sizes = {"d_model": 8, "heads": 2, "feed_forward": 12, "encoder_layers": 1, "decoder_layers": 1}
        model = Transformer(TransformerConfig.model_validate({**sizes, **joint}), SPECS)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.7)  # so that outputs differ
    return model.eval()


def heard() -> Padded:
    torch.manual_seed(6)
    return Padded(torch.randn(2, 8, 4), torch.tensor([8, 5]))


def outputs(longest: int) -> list[tuple[int, ...]]:
    return [said for length in range(longest + 1) for said in itertools.product(WORDS, repeat=length)]


def normed(model: Any) -> Padded:
    with torch.no_grad():
        places = model.align_encoder(heard())
    return Padded(places.values.double().log_softmax(-1), places.lengths)


@pytest.mark.parametrize("kind", KINDS)
def test_a_finished_output_has_the_scores_of_both(kind: str) -> None:
    model, weight = tiny(kind), 0.4
    places = normed(model)
    for said in outputs(2):
        both = [[*said, END]] * 2
        found = forced(JointlyDecoded(model, weight, START, END), heard(), both, start=START, end=END)
        alone = forced(model, heard(), both, start=START, end=END)
        for row in range(2):
            count = int(places.lengths[row])
            ctc = -F.ctc_loss(
                places.values[row, :count, None],
                torch.tensor([said]),
                [count],
                [len(said)],
                blank=START,
                reduction="sum",
            )
            expected = (1 - weight) * alone[row].log_probability + weight * float(ctc)
            assert found[row].log_probability == pytest.approx(expected, abs=1e-4), said


@pytest.mark.parametrize("kind", KINDS)
def test_prefixes_are_the_sums_over_all_alignments(kind: str) -> None:
    model = tiny(kind)
    places = normed(model)
    model.step = lambda token, memory, state: (torch.zeros(len(token), 6), state)  # CTC's part alone
    for row in range(2):
        begins: dict[tuple[int, ...], float] = defaultdict(float)
        own = places.values[row, : int(places.lengths[row])]
        for path in itertools.product(range(6), repeat=len(own)):
            chance = math.exp(sum(float(own[place, token]) for place, token in enumerate(path)))
            said = tuple(token for token, _ in itertools.groupby(path) if token != START)
            for length in range(len(said) + 1):
                begins[said[:length]] += chance
        for said in outputs(3)[1:]:
            if said in begins:
                joint = JointlyDecoded(model, 0.5, START, END)
                [*_, found] = forced(joint, heard(), [list(said)] * 2, start=START, end=END)[row : row + 1]
                assert found.log_probability / 0.5 == pytest.approx(math.log(begins[said]), abs=1e-4), said


@pytest.mark.parametrize("kind", KINDS)
def test_a_wide_beam_finds_the_best_of_all_outputs(kind: str) -> None:
    model = tiny(kind)
    settings = Search(beam=60, nbest=5, ctc_weight=0.5, length_rule="none", alpha=0)
    forbidden = [PAD, START]
    found = search(model, heard(), [Request(4)] * 2, settings, start=START, end=END, forbidden=forbidden)
    joint = JointlyDecoded(model, 0.5, START, END)
    every = [forced(joint, heard(), [[*said, END]] * 2, start=START, end=END) for said in outputs(3)]
    for row in range(2):
        best = sorted((each[row] for each in every), key=lambda each: -each.log_probability)[:5]
        assert [each.tokens for each in found[row]] == [each.tokens for each in best]
    one = Padded(heard().values[1:, :5], heard().lengths[1:])
    [alone] = search(model, one, [Request(4)], settings, start=START, end=END, forbidden=forbidden)
    assert [each.tokens for each in alone] == [each.tokens for each in found[1]]
    for each, other in zip(alone, found[1], strict=True):
        assert each.log_probability == pytest.approx(other.log_probability, abs=1e-4)


def test_what_cannot_be_joined_is_told() -> None:
    given = {"start": START, "end": END}
    with pytest.raises(InputError, match="this model has no CTC on its encoder"):
        search(tiny("rnn", ctc_weight=0.0), heard(), [Request(4)] * 2, Search(ctc_weight=0.3), **given)
    with pytest.raises(InputError, match="it takes no coverage"):
        search(tiny("rnn"), heard(), [Request(4)] * 2, Search(ctc_weight=0.3, coverage=0.2), **given)
