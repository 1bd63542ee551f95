"""Beam search: at each step, keep the most likely continuations of a sentence's live hypotheses.

A finished hypothesis keeps its slot: a sentence whose beam of K contains F finished hypotheses continues with K - F
(Sutskever et al. 2014, section 3.2). With other settings of `stopping`, see `transduce.search.set_aside`. Finished
hypotheses leave the model's batch, so the work shrinks as sentences finish. The model's tensors stay on its device. The
bookkeeping, a few numbers per hypothesis, uses float64 on the CPU.

Shapes: B sentences, G groups of slots, N live hypotheses of all sentences, C most likely continuations of each (at most
    K
of one hypothesis can be among the best K of its sentence), M selected continuations, T tokens so far, V vocabulary.
"""

import torch
from torch import Tensor

from transduce.search import fused_search
from transduce.search.batch_request import BatchRequest, reordered
from transduce.search.beam_selection import Live, Offered, Taken, add_banks, in_groups, likeliest
from transduce.search.hypothesis import Hypothesis, hypothesis, rank
from transduce.search.request import Step
from transduce.search.set_aside import SetAside
from transduce.search.settings import Search
from transduce.search.topk import top


def search(batch: BatchRequest, settings: Search) -> list[list[Hypothesis]]:
    """The `nbest` best hypotheses of each row's beam, best first, or fewer if the beam found fewer."""
    started = batch.begin()
    if (found := fused_search.search(batch, settings, settings.beam, started[0])) is not None:
        return found
    live, finished = beginnings(batch, settings), _finished(batch, settings)
    memory, state = (reordered(tree, live.sentence, batch.rows, batch.device) for tree in started)
    for time in range(max(batch.limits)):
        if len(live.sentence) == 0:
            break
        log_probabilities_NV, state = batch.step(live.tokens[:, -1], memory, state, time)
        offered = _offered(batch, finished.offers, live, log_probabilities_NV)
        parent_M, column_M, slot_M = finished.take(live, offered)
        token_M, value_M = offered.token[parent_M, column_M], offered.value[parent_M, column_M]
        grown = live.chosen(parent_M).extended(slot_M, token_M, value_M)
        if batch.on_step:
            batch.on_step(Step(grown.sentence, grown.tokens[:, 1:], grown.total))
        going_N = finished.collect(grown, batch.penalty(memory, state, len(live.sentence))[parent_M])
        if batch.lattices:
            over_M = finished.is_over(grown)
            taken = (parent_M, column_M)
            batch.lattices.note(live.sentence, live.total, offered.value, offered.token, taken, over_M, going_N)
        following, parent_N = grown.only(going_N), parent_M[going_N]
        if not torch.equal(following.sentence, live.sentence):
            memory = reordered(memory, parent_N, len(live.sentence), batch.device)
        state = reordered(state, parent_N, len(live.sentence), batch.device)
        live = following
    return finished.ranked(settings.nbest)


def _finished(batch: BatchRequest, settings: Search) -> "FinishedHypotheses | SetAside":
    """Phrases that must appear share out the slots of a beam, so such a search keeps ended hypotheses in theirs."""
    shares = settings.beam == 1 or (batch.rules is not None and batch.rules.must)
    return FinishedHypotheses(batch, settings) if settings.stopping == "slots" or shares else SetAside(batch, settings)


def beginnings(batch: BatchRequest, settings: Search) -> Live:
    """One empty hypothesis for each group of each sentence, in the group's first slot."""
    sentence_N = torch.arange(batch.rows).repeat_interleave(settings.groups)
    slot_N = torch.arange(settings.groups).repeat(batch.rows) * (settings.beam // settings.groups)
    zero_N1 = torch.zeros(len(sentence_N), 1, dtype=torch.float64)
    start_N1 = torch.full((len(sentence_N), 1), batch.start)
    return Live(sentence_N, slot_N, zero_N1[:, 0], start_N1, zero_N1)


def _offered(batch: BatchRequest, count: int, live: Live, log_probabilities_NV: Tensor) -> Offered:
    """`count` continuations of each hypothesis, and those that phrases need."""
    if batch.is_free(live.tokens.shape[1] - 1):
        return Offered(*top(log_probabilities_NV, count, batch.forbidden))
    permitted_NV = batch.permitted(log_probabilities_NV, live.sentence, live.tokens[:, 1:])
    offered = Offered(*top(permitted_NV, count))
    if batch.rules is not None and any(request.constraint for request in batch.requests):
        return add_banks(batch.rules, live, permitted_NV, offered)
    return offered


class FinishedHypotheses:
    """The finished hypotheses of each sentence, the slots that are left, and the score that others must beat.

    offers: how many continuations of each hypothesis are looked at.
    slots_BG: slots of each group that are not held by finished hypotheses.
    worst_B: the score of the worst of the `nbest` best finished hypotheses; -inf while there are fewer.
    """

    def __init__(self, batch: BatchRequest, settings: Search) -> None:
        self.end, self.rule, self.nbest, self.rules = batch.end, settings.length, settings.nbest, batch.rules
        self.settings, self.offers = settings, settings.beam
        self.limit_B = torch.tensor(batch.limits)
        self.width = settings.beam // settings.groups
        self.slots_BG = torch.full((batch.rows, settings.groups), self.width)
        self.worst_B = torch.full((batch.rows,), -torch.inf, dtype=torch.float64)
        self.found: list[list[Hypothesis]] = [[] for _ in range(batch.rows)]
        self._someone_ended = False

    def take(self, live: Live, offered: Offered) -> Taken:
        """The continuations that take free slots."""
        settings, slots_BG = self.settings, self.slots_BG
        if settings.groups > 1:
            return in_groups(live, offered, slots_BG, settings.beam, settings.diversity, settings.prune)
        return likeliest(live, offered, slots_BG[:, 0], settings.beam, settings.prune)

    def ranked(self, nbest: int) -> list[list[Hypothesis]]:
        """The `nbest` best of each sentence, best first."""
        return [rank(found, nbest) for found in self.found]

    def collect(self, grown: Live, penalty_M: Tensor) -> Tensor:
        """Store the hypotheses that ended or reached their limit, and return the indices (N,) of the others.

        penalty_M: see `BatchRequest.penalty`.
        """
        over_M = self.is_over(grown)
        if bool(over_M.any()):
            self._keep(grown.chosen(over_M.nonzero()[:, 0]), penalty_M[over_M].tolist())
        going_N = (~over_M).nonzero()[:, 0]
        return going_N[~self._beaten(grown.only(going_N))] if self._someone_ended else going_N

    def is_over(self, grown: Live) -> Tensor:
        """(M,) bool: whether a hypothesis ended or reached its limit."""
        return (grown.tokens[:, -1] == self.end) | (self.limit_B[grown.sentence] <= grown.tokens.shape[1] - 1)

    def _keep(self, over: Live, penalties: list[float]) -> None:
        for sentence, slot, tokens, values, penalty in zip(
            over.sentence.tolist(),
            over.slot.tolist(),
            over.tokens[:, 1:].tolist(),
            over.values[:, 1:].tolist(),
            penalties,
            strict=True,
        ):
            ended = tokens[-1] == self.end
            distance = self.rules.distance(sentence, tokens) if self.rules and not ended else 0
            found = hypothesis(tokens, values, ended, self.rule, penalty, distance)
            self.found[sentence].append(found)
            if found.ended:
                self._someone_ended = True
                self.slots_BG[sentence, slot // self.width] -= 1
                self.worst_B[sentence] = self._worst(sentence)

    def _worst(self, sentence: int) -> float:
        scores = sorted((found.score for found in self.found[sentence] if found.ended), reverse=True)
        return scores[self.nbest - 1] if len(scores) >= self.nbest else -torch.inf

    def _beaten(self, going: Live) -> Tensor:
        """(N,) bool: whether no live hypothesis of the same sentence can still be among the `nbest`.

        A sentence continues or stops as a whole, because dropping single hypotheses would free their slots for others.
        """
        best_B = torch.full_like(self.worst_B, -torch.inf)
        best_B = best_B.scatter_reduce(0, going.sentence, going.total, "amax")
        beaten_B = self.rule.upper_bound(best_B, self.limit_B.to(best_B)) <= self.worst_B
        return beaten_B[going.sentence]
