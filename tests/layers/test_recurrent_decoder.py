"""The decoders against the papers' equations, one sentence and one token at a time, in fp64.

In the names below a matrix is what the paper multiplies a concatenation by; our two halves of it side by side.
"""

import math

import pytest
import torch
from torch import Tensor, nn

from transduce.layers.recurrent import Cell
from transduce.layers.recurrent_decoder import Bahdanau, DecoderConfig, Luong, NoAttention, RecurrentDecoder

D, H, S, T = 4, 6, 5, 3
GENERATOR = torch.Generator().manual_seed(0)
STATES_SH = torch.randn(S, H, dtype=torch.float64, generator=GENERATOR)
EMBEDDED_TD = torch.randn(T, D, dtype=torch.float64, generator=GENERATOR)
SIZES = {"d_model": D, "hidden": H, "cell": "lstm"}


def randomised(decoder: RecurrentDecoder) -> RecurrentDecoder:
    torch.manual_seed(2)
    for parameter in decoder.parameters():
        nn.init.normal_(parameter, std=0.5)
    return decoder.double().eval()


def config(**settings: object) -> DecoderConfig:
    return DecoderConfig.model_validate({**SIZES, **settings})


def run(decoder: RecurrentDecoder, states_SH: Tensor, embedded_TD: Tensor) -> Tensor:
    """(T, D): ours, for one sentence beside a shorter one."""
    states_BSH = torch.stack((torch.randn_like(states_SH), states_SH))
    real_BS = torch.tensor([[True, True] + [False] * (S - 2), [True] * S])
    last = ((states_BSH[:, 0], states_BSH[:, 1]),)  # any vectors
    memory, state = decoder.start(states_BSH, real_BS, last)
    read_BTD, _ = decoder.extend(torch.stack((torch.randn_like(embedded_TD), embedded_TD)), memory, state)
    return read_BTD[1]


def sigma(x: Tensor) -> Tensor:
    return 1 / (1 + (-x).exp())


def lstm(cell: Cell, feed: Tensor, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """Hochreiter & Schmidhuber 1997 with a forget gate; x is a concatenation."""
    matrix = torch.cat((cell.weight_ih, feed), 1)
    gates = matrix @ x + cell.weight_hh @ h + cell.bias_ih + cell.bias_hh
    i, f, g, o = gates[:H], gates[H : 2 * H], gates[2 * H : 3 * H], gates[3 * H :]
    c = sigma(f) * c + sigma(i) * g.tanh()
    return sigma(o) * c.tanh(), c


def start(decoder: RecurrentDecoder, u: Tensor) -> tuple[Tensor, Tensor]:
    linear = decoder.bridge.linear
    both = (linear.weight @ u + linear.bias).tanh()
    return both[:H], both[H:]


def softmax(scores: list[Tensor]) -> list[float]:
    mass = sum(math.exp(e) for e in scores)
    return [math.exp(e) / mass for e in scores]


@torch.no_grad()
def test_bahdanau() -> None:
    decoder = randomised(Bahdanau(config(attention="bahdanau", score="additive", readout="maxout")))
    score, (cell,), w_o = decoder.reader.score, decoder.stack.cells, decoder.readout.linear
    s, c = start(decoder, STATES_SH[0])
    expected = []
    for e_t in EMBEDDED_TD:
        scores = [score.reader_A @ (score.query.weight @ s + score.key.weight @ h).tanh() for h in STATES_SH]
        context = sum(a * h for a, h in zip(softmax(scores), STATES_SH, strict=True))
        s, c = lstm(cell, decoder.feed.weight, torch.cat((e_t, context)), s, c)
        deep = w_o.weight @ torch.cat((s, e_t, context)) + w_o.bias
        expected.append(torch.stack([max(deep[2 * j], deep[2 * j + 1]) for j in range(D)]))
    torch.testing.assert_close(run(decoder, STATES_SH, EMBEDDED_TD), torch.stack(expected))


@torch.no_grad()
@pytest.mark.parametrize("feeding", [True, False])
@pytest.mark.parametrize("score", ["dot", "bilinear"])
def test_luong(feeding: bool, score: str) -> None:
    decoder = randomised(Luong(config(attention="luong", score=score, feeding=feeding)))
    (cell,), w_c = decoder.stack.cells, decoder.readout.linear
    matrix = decoder.reader.score.weight_EF if score == "bilinear" else torch.eye(H, dtype=torch.float64)
    feed = decoder.feed.weight if feeding else torch.zeros(4 * H, D, dtype=torch.float64)
    h, c = start(decoder, STATES_SH[0])
    tilde, expected = torch.zeros(D, dtype=torch.float64), []
    for e_t in EMBEDDED_TD:
        h, c = lstm(cell, feed, torch.cat((e_t, tilde)), h, c)
        weights = softmax([h @ matrix @ h_s for h_s in STATES_SH])
        context = sum(a * h_s for a, h_s in zip(weights, STATES_SH, strict=True))
        tilde = (w_c.weight @ torch.cat((context, h)) + w_c.bias).tanh()
        expected.append(tilde)
    torch.testing.assert_close(run(decoder, STATES_SH, EMBEDDED_TD), torch.stack(expected))


@torch.no_grad()
@pytest.mark.parametrize("feeding", [True, False])
def test_without_attention(feeding: bool) -> None:
    decoder = randomised(NoAttention(config(attention="none", feeding=feeding)))
    (cell,), w_o, u = decoder.stack.cells, decoder.readout.linear, STATES_SH[0]
    feed = decoder.feed.weight if feeding else torch.zeros(4 * H, H, dtype=torch.float64)
    h, c = start(decoder, u)
    expected = []
    for e_t in EMBEDDED_TD:
        h, c = lstm(cell, feed, torch.cat((e_t, u)), h, c)
        given = torch.cat((h, e_t, u)) if feeding else h
        expected.append((w_o.weight @ given + w_o.bias).tanh())
    torch.testing.assert_close(run(decoder, STATES_SH, EMBEDDED_TD), torch.stack(expected))


@torch.no_grad()
def test_a_pooled_vector_is_the_self_attentive_embedding() -> None:
    # Lin et al. 2017, equations 5 to 7; the query of each row of W_s2 adds a bias inside the tanh.
    decoder = randomised(NoAttention(config(attention="none", pooling=2)))
    score, queries = decoder.pool.score, decoder.pool.query_RK
    real_BS = torch.tensor([[True] * S, [True] * 3 + [False] * 2])
    memory, state = decoder.start(torch.stack((STATES_SH, STATES_SH)), real_BS, ((STATES_SH[:2], STATES_SH[2:4]),))
    for row, length in ((0, S), (1, 3)):
        read = []
        for q in queries:
            e = [score.reader_A @ (score.query.weight @ q + score.key.weight @ h).tanh() for h in STATES_SH[:length]]
            read.append(sum(a * h for a, h in zip(softmax(e), STATES_SH, strict=False)))
        torch.testing.assert_close(memory.vector[row], torch.cat(read))
        both = start(decoder, torch.cat(read))
        torch.testing.assert_close([part_BH[row] for part_BH in state.cells[0]], list(both))


@torch.no_grad()
def test_copied_states_are_the_encoders_own() -> None:
    decoder = NoAttention(config(attention="none", bridge="copy")).double()
    last = ((STATES_SH[:2], STATES_SH[2:4]),)
    _, state = decoder.start(STATES_SH[None], torch.ones(1, S, dtype=torch.bool), last)
    assert state.cells == last


@torch.no_grad()
@pytest.mark.parametrize("kind", [Bahdanau, Luong])
def test_a_sequential_score_is_handed_the_weights_before(kind: type[Bahdanau] | type[Luong]) -> None:
    decoder = randomised(kind(config(attention=kind.__name__.lower(), score="location_aware")))
    assert isinstance(decoder, Bahdanau | Luong)
    real_BS = torch.ones(1, S, dtype=torch.bool)
    memory, state = decoder.start(STATES_SH[None], real_BS, ((STATES_SH[:1], STATES_SH[1:2]),))
    assert state.alpha is None
    _, first = decoder.extend(EMBEDDED_TD[None, :1], memory, state)
    assert first.alpha is not None
    assert first.alpha.shape == (1, 1, 1, S)
    assert first.position.tolist() == [1]
    moved = first._replace(alpha=first.alpha.flip(-1))
    here_BTD, _ = decoder.extend(EMBEDDED_TD[None, 1:2], memory, first)
    elsewhere_BTD, _ = decoder.extend(EMBEDDED_TD[None, 1:2], memory, moved)
    assert (here_BTD - elsewhere_BTD).abs().max() > 1e-3
