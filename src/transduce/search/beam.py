"""Beam search: of all continuations of the live hypotheses of a sentence, the likeliest few live on.

A continuation that ends keeps its slot: a sentence whose beam of K holds F finished hypotheses goes on with
K - F. What has ended leaves the model's batch, so that the work shrinks as sentences finish. The model's
tensors stay on its device; the bookkeeping, a few numbers a hypothesis, is done on the CPU in float64.

Shapes: B sentences, K slots of a beam, N live hypotheses of all sentences, C likeliest continuations of
each (no more than K of one hypothesis can be among the K likeliest of its sentence), X = K C, M
continuations taken, T tokens so far, V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.search.hypothesis import Hypothesis, hypothesis, rank
from transduce.search.job import Job, reordered
from transduce.search.length import upper_bound
from transduce.search.settings import Search
from transduce.search.top import top


def search(job: Job, settings: Search) -> list[list[Hypothesis]]:
    """The `nbest` best of each row's beam, best first; fewer where there are not as many."""
    memory, state = job.begin()
    live, finished = beginnings(job), Finished(job, settings)
    for time in range(max(job.limits)):
        if len(live.sentence) == 0:
            break
        log_probabilities_NV, state = job.step(live.tokens[:, -1], memory, state, time)
        value_NC, token_NC = top(job.permitted(log_probabilities_NV, live.sentence, time), settings.beam)
        parent_M, column_M, slot_M = likeliest(live, value_NC, finished.slots_B, settings.beam)
        token_M, value_M = token_NC[parent_M, column_M], value_NC[parent_M, column_M]
        grown = live.chosen(parent_M).extended(slot_M, token_M, value_M)
        going_N = finished.collect(grown)
        following, parent_N = grown.chosen(going_N), parent_M[going_N]
        if not torch.equal(following.sentence, live.sentence):
            memory = reordered(memory, parent_N, len(live.sentence), job.device)
        state = reordered(state, parent_N, len(live.sentence), job.device)
        live = following
    return [rank(found, settings.nbest) for found in finished.found]


@dataclass(frozen=True, slots=True)
class Live:
    """The hypotheses that may go on, ordered by sentence, then by slot.

    sentence, slot: (N,) int64. total: (N,) float64, the log-probability so far.
    tokens, values: (N, 1 + T) the start token and its 0, then the tokens and their log-probabilities.
    """

    sentence: Tensor
    slot: Tensor
    total: Tensor
    tokens: Tensor
    values: Tensor

    def chosen(self, row_M: Tensor) -> "Live":
        """The hypotheses `row_M`, in that order."""
        parts = (self.sentence, self.slot, self.total, self.tokens, self.values)
        return Live(*(part[row_M] for part in parts))

    def extended(self, slot_N: Tensor, token_N: Tensor, value_N: Tensor) -> "Live":
        """Each with one more token, in a new slot."""
        tokens_NT = torch.cat([self.tokens, token_N[:, None]], dim=1)
        values_NT = torch.cat([self.values, value_N[:, None]], dim=1)
        return Live(self.sentence, slot_N, self.total + value_N, tokens_NT, values_NT)


def beginnings(job: Job) -> Live:
    """One empty hypothesis for each sentence, in its first slot."""
    sentence_B = torch.arange(job.rows)
    zero_B1 = torch.zeros(job.rows, 1, dtype=torch.float64)
    start_B1 = torch.full((job.rows, 1), job.start)
    return Live(sentence_B, torch.zeros_like(sentence_B), zero_B1[:, 0], start_B1, zero_B1)


def likeliest(live: Live, value_NC: Tensor, slots_B: Tensor, beam: int) -> tuple[Tensor, Tensor, Tensor]:
    """The continuations that take each sentence's free slots: their parents, columns, new slots, (M,) each.

    Ordered by sentence, then likeliest first; of equal ones that of the lower slot, then of the lower token.
    """
    total_BKC = torch.full((len(slots_B), beam, value_NC.shape[1]), -torch.inf, dtype=torch.float64)
    total_BKC[live.sentence, live.slot] = live.total[:, None] + value_NC
    sorted_BX, place_BX = total_BKC.flatten(1).sort(dim=1, descending=True, stable=True)
    taken_BX = (torch.arange(sorted_BX.shape[1]) < slots_B[:, None]) & (sorted_BX > -torch.inf)
    sentence_M, slot_M = taken_BX.nonzero(as_tuple=True)
    place_M = place_BX[sentence_M, slot_M]
    row_BK = torch.zeros(len(slots_B), beam, dtype=torch.int64)
    row_BK[live.sentence, live.slot] = torch.arange(len(live.sentence))
    columns = value_NC.shape[1]
    return row_BK[sentence_M, place_M // columns], place_M % columns, slot_M


class Finished:
    """What each sentence has found, how many slots that leaves, and what a live hypothesis must still beat.

    slots_B: slots not held by ended hypotheses.
    worst_B: the score of the last of the `nbest` best ended hypotheses; -inf as long as there are fewer.
    """

    def __init__(self, job: Job, settings: Search) -> None:
        self.end, self.alpha, self.nbest = job.end, settings.alpha, settings.nbest
        self.limit_B = torch.tensor(job.limits)
        self.slots_B = torch.full((job.rows,), settings.beam)
        self.worst_B = torch.full((job.rows,), -torch.inf, dtype=torch.float64)
        self.found: list[list[Hypothesis]] = [[] for _ in range(job.rows)]

    def collect(self, grown: Live) -> Tensor:
        """Keeps the hypotheses that ended or reached their limit; the numbers (N,) of those that go on."""
        length = grown.tokens.shape[1] - 1
        ended_M = grown.tokens[:, -1] == self.end
        over_M = ended_M | (self.limit_B[grown.sentence] <= length)
        if bool(over_M.any()):
            self._keep(grown.chosen(over_M.nonzero()[:, 0]), ended_M[over_M].tolist())
        going_N = (~over_M).nonzero()[:, 0]
        return going_N[~self._beaten(grown.chosen(going_N))]

    def _keep(self, over: Live, ended: list[bool]) -> None:
        for sentence, tokens, values, has_ended in zip(
            over.sentence.tolist(),
            over.tokens[:, 1:].tolist(),
            over.values[:, 1:].tolist(),
            ended,
            strict=True,
        ):
            self.found[sentence].append(hypothesis(tokens, values, has_ended, self.alpha))
            if has_ended:
                self.slots_B[sentence] -= 1
                self.worst_B[sentence] = self._worst(sentence)

    def _worst(self, sentence: int) -> float:
        scores = sorted((found.score for found in self.found[sentence] if found.ended), reverse=True)
        return scores[self.nbest - 1] if len(scores) >= self.nbest else -torch.inf

    def _beaten(self, going: Live) -> Tensor:
        """(N,) bool: no live hypothesis of this one's sentence can still come among the `nbest`.

        The sentence goes on or stops as a whole: dropping single hypotheses would give their slots to others.
        """
        best_B = torch.full_like(self.worst_B, -torch.inf)
        best_B = best_B.scatter_reduce(0, going.sentence, going.total, "amax")
        beaten_B = upper_bound(best_B, self.limit_B.to(best_B), self.alpha) <= self.worst_B
        return beaten_B[going.sentence]
