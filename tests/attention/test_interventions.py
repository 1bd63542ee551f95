"""Weights that are changed inside the softmax, against loops over heads, queries and keys; and what follows of them."""

import math
from typing import Any

import pytest
import torch
from tests.pipelines import translator
from torch import Tensor

import transduce
from transduce.attention import KeyValue, MultiHeadAttention
from transduce.attention.ablation import without_head
from transduce.attention.interventions import Place
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.interpret.attention import looked
from transduce.interpret.model_inputs import given_of
from transduce.models.transformer import Transformer, TransformerConfig

HEADS, QUERIES, KEYS, WIDTH = 3, 4, 5, 12
SIZES = {"d_model": 12, "heads": 3, "feed_forward": 16, "encoder_layers": 2, "decoder_layers": 2}


class Attends(torch.nn.Module):
    """A model of one attention."""

    def __init__(self, normalizer: str = "softmax") -> None:
        super().__init__()
        torch.manual_seed(0)
        self.one = MultiHeadAttention(WIDTH, HEADS, normalizer=normalizer, role="cross", side="decoder")

    def forward(self, x_BTD: Tensor, y_BSD: Tensor, allowed: Tensor | None = None, offset: int = 0) -> Tensor:
        read: Tensor = self.one(x_BTD, self.one.keys_values(y_BSD), allowed, offset)
        return read


def drawn() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    allowed = torch.ones(2, 1, QUERIES, KEYS, dtype=torch.bool)
    allowed[1, :, :, 4] = False
    return torch.randn(2, QUERIES, WIDTH), torch.randn(2, KEYS, WIDTH), allowed


def at(place: Place | str, head: int, query: int, key: int | None = None) -> bool:
    """Whether a place holds this weight, number by number."""
    if isinstance(place, str):
        return True
    wanted = [(place.head, head), (place.query, query), (place.key, key)]
    return all(of is None or of == number for of, number in wanted)


def by_loops(scores_S: list[float], may_S: list[bool], head: int, query: int, change: dict[str, Any]) -> list[float]:
    """The weights of one query of one head, for the softmax."""
    may_S = [may and not any(at(p, head, query, s) for p in change.get("cut", ())) for s, may in enumerate(may_S)]
    if not any(may_S):
        return [0.0] * len(may_S)
    for place, value in change.get("temperature", {}).items():
        if at(place, head, query):
            scores_S = [score / value for score in scores_S]
    if any(at(place, head, query) for place in change.get("argmax", ())):
        best = max((score, -s) for s, score in enumerate(scores_S) if may_S[s])
        return [float(s == -best[1]) for s in range(len(scores_S))]
    if any(at(place, head, query) for place in change.get("uniform", ())):
        return [may / sum(may_S) for may in may_S]
    powers = [math.exp(score) if may else 0.0 for score, may in zip(scores_S, may_S, strict=True)]
    return [each / sum(powers) for each in powers]


CHANGES: dict[str, dict[str, Any]] = {
    "an edge of one head": {"cut": [Place("one", head=1, query=2, key=3)]},
    "two edges of all heads": {"cut": [Place("one", query=0, key=0), Place("one", query=3, key=1)]},
    "a key": {"cut": [Place("one", key=2)]},
    "a head": {"cut": [Place("one", head=2)]},
    "all": {"cut": ["one"]},
    "the last key that is left": {"cut": [Place("one", query=1, key=key) for key in range(4)]},
    "uniform": {"uniform": [Place("one", head=0)]},
    "uniform, of a query, with a cut": {"uniform": [Place("one", query=2)], "cut": [Place("one", key=1)]},
    "argmax": {"argmax": ["one"]},
    "argmax of what is left": {"argmax": [Place("one", head=1)], "cut": [Place("one", key=0), Place("one", key=3)]},
    "temperature": {"temperature": {"one": 2.5, Place("one", head=0): 0.1}},
    "hotter, and hard": {"temperature": {Place("one", query=1): 5.0}, "argmax": [Place("one", head=2, query=1)]},
}


@pytest.mark.parametrize("offset", [0, 2])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_weights_and_output_are_those_of_loops(change: dict[str, Any], offset: int) -> None:
    model = Attends().eval()
    x_BTD, y_BSD, allowed = drawn()
    with transduce.capture(model, **change) as record, torch.inference_mode():
        found_BTD = model(x_BTD, y_BSD, allowed, offset)
    (alpha_BHTS,) = record["one"]
    memory = KeyValue(*(each.detach() for each in model.one.keys_values(y_BSD)))
    query_BHTE = model.one.query(x_BTD).detach().unflatten(-1, (HEADS, -1)).transpose(1, 2)
    read_BHTE = torch.zeros(2, HEADS, QUERIES, WIDTH // HEADS)
    for b in range(2):
        for h in range(HEADS):
            for t in range(QUERIES):
                scores_S = [
                    float(query_BHTE[b, h, t] @ memory.key[b, h, s]) / math.sqrt(WIDTH // HEADS) for s in range(KEYS)
                ]
                weights = by_loops(scores_S, allowed[b, 0, t].tolist(), h, t + offset, change)
                torch.testing.assert_close(alpha_BHTS[b, h, t], torch.tensor(weights), rtol=1e-5, atol=1e-6)
                read_BHTE[b, h, t] = sum(weight * memory.value[b, h, s] for s, weight in enumerate(weights))
    expected_BTD = model.one.output(read_BHTE.transpose(1, 2).flatten(2))
    torch.testing.assert_close(found_BTD, expected_BTD, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("normalizer", ["sparsemax", "entmax", "hard"])
def test_what_is_cut_gets_nothing_from_any_normalizer(normalizer: str) -> None:
    model = Attends(normalizer).eval()
    x_BTD, y_BSD, allowed = drawn()
    with transduce.capture(model, cut=[Place("one", key=1), Place("one", head=2)]) as record:
        model(x_BTD, y_BSD, allowed)
    (alpha_BHTS,) = record["one"]
    assert not alpha_BHTS[..., 1].any()
    assert not alpha_BHTS[:, 2].any()
    torch.testing.assert_close(alpha_BHTS[:, :2].sum(-1), torch.ones(2, 2, QUERIES))


def made(**settings: Any) -> Transformer:
    torch.manual_seed(2)
    config = TransformerConfig.model_validate({**SIZES, **settings})
    return Transformer(config, Specs.of_tokens(20, 20)).eval()


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "alibi", "shaw", "t5"])
@torch.inference_mode()
def test_without_positions_the_order_of_words_is_lost(positions: str) -> None:
    """The states of a text in another order are the same states in that order, which no positions allow."""
    model, ids, order = made(positions=positions), torch.randint(20, (1, 6)), torch.randperm(6)
    for parameter in model.parameters():
        parameter.normal_(0, 0.5)
    length = torch.tensor([6])

    def states(row: Tensor) -> Tensor:
        return model.encode(Padded(row, length)).values

    with transduce.capture(model, positions=False):
        torch.testing.assert_close(states(ids[:, order]), states(ids)[:, order], rtol=1e-4, atol=1e-5)
    with transduce.capture(model):
        assert (states(ids[:, order]) - states(ids)[:, order]).abs().max() > 1e-3


@torch.inference_mode()
def test_a_head_whose_keys_are_all_cut_is_switched_off() -> None:
    model, source = made(), Padded(torch.randint(20, (2, 6)), torch.tensor([6, 4]))
    attention = model.encoder.blocks[1].self_attention  # type: ignore[index]
    with transduce.capture(model, cut=[Place("encoder.blocks.1.self_attention", head=1)]):
        found = model.encode(source).values
    with without_head(attention, 1):  # type: ignore[arg-type]
        expected = model.encode(source).values
    torch.testing.assert_close(found, expected)


CUT = [
    Place("decoder.blocks.1.cross_attention", query=1, key=0),
    Place("decoder.blocks.0.self_attention", query=2, key=0),
]


@pytest.mark.parametrize("kind", ["transformer", "ssru_transformer"])
@pytest.mark.parametrize("search", [{"method": "greedy"}, {"beam": 3}])
def test_a_search_step_by_step_gives_what_the_whole_pass_gives(search: dict[str, Any], kind: str) -> None:
    """Queries are counted by their place in the output, also where a cache holds the earlier ones."""
    pipeline = translator(model={**SIZES, "kind": kind})
    changes: dict[str, Any] = {
        "cut": CUT if kind == "transformer" else CUT[:1],
        "uniform": [Place("encoder.blocks.0.self_attention", head=2)],
        "temperature": {"decoder.blocks.0.cross_attention": 0.3},
    }
    plain = pipeline.predict("ba du ga", **search)
    with transduce.capture(pipeline, **changes):
        found = pipeline.predict("ba du ga", **search)
        given = given_of(pipeline.task, found)
        _, next_TV = looked(pipeline.model, pipeline.task, given, found.source, found.text)  # all queries at once
    said = [float(next_TV[place, token]) for place, token in enumerate(given.target)]
    assert said == pytest.approx(found.token_log_probabilities[: len(said)], abs=1e-4)
    assert found.token_log_probabilities != plain.token_log_probabilities


def test_an_inner_capture_only_looks_on() -> None:
    model = Attends().eval()
    x_BTD, y_BSD, allowed = drawn()
    with transduce.capture(model, cut=[Place("one", key=1)]), transduce.capture(model) as record:
        model(x_BTD, y_BSD, allowed)
    assert not record["one"][0][..., 1].any()
    with transduce.capture(model) as record:
        model(x_BTD, y_BSD, allowed)
    assert record["one"][0][0, :, :, 1].all(), "nothing is changed any more"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cut": ["two"]}, 'cut: there is no attention "two".* Known: one'),
        ({"uniform": [Place("one", head=3)]}, "uniform: one has heads 0 to 2; got 3"),
        ({"argmax": [Place("one", key=0)]}, "argmax: one: .* leave out the key 0"),
        ({"temperature": {"one": 0}}, "temperature: expected a number above 0; got 0"),
        ({"temperature": {"one": math.nan}}, "temperature: expected a number above 0; got nan"),
    ],
)
def test_what_cannot_be_changed_is_said(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said), transduce.capture(Attends(), **change):
        pass


def test_keys_of_the_cache_are_plain_then() -> None:
    """No hypotheses share caches while something is changed: each row has its own keys and values."""
    model, source = made(), Padded(torch.randint(20, (1, 4)), torch.tensor([4]))
    with torch.inference_mode(), transduce.capture(model, cut=["encoder.blocks.0.self_attention"]):
        memory, state = model.start(source, 1)
    assert all(isinstance(each, KeyValue) for each in (*memory.sources, *state))
