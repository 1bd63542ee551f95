"""Beams as transformers has them: ended hypotheses are set aside, and K live ones go on.

Of the 2 K most likely continuations of a sentence, those among the first K that end are set aside, and the first K that
do not end go on. The K best of those set aside are kept, by score. One that reaches its limit counts as one that ended.
A sentence stops when K are set aside, and

    heuristic   the likeliest live hypothesis, scored as if it ended now, is no better than the worst of them
    never       the same, scored as if it had the greatest length
    complete    at once

These are `early_stopping` = False, "never" and True of `GenerationMixin._beam_search` in transformers 5. What an output
must begin with counts 0, as `forced_bos_token_id` does there.

Shapes: B sentences, K width of the beam, N live hypotheses, M continuations, T tokens.
"""

from dataclasses import replace

import torch
from torch import Tensor

from transduce.search.batch_request import BatchRequest
from transduce.search.beam_selection import Live, Offered, Taken, likeliest
from transduce.search.hypothesis import Hypothesis, hypothesis
from transduce.search.settings import Search


class SetAside:
    """The hypotheses of each sentence that ended; see `transduce.search.beam.FinishedHypotheses`, whose place it takes.

    offers: how many continuations of each hypothesis are looked at.
    """

    def __init__(self, batch: BatchRequest, settings: Search) -> None:
        self.end, self.settings, self.offers = batch.end, settings, 2 * settings.beam
        self.limit_B = torch.tensor(batch.limits)
        self.prefix_B = torch.tensor([len(request.prefix) for request in batch.requests])
        self.forces_end = settings.at_limit == "end"
        self.worst_B = torch.full((batch.rows,), -torch.inf, dtype=torch.float64)
        self.full_B = torch.zeros(batch.rows, dtype=torch.bool)
        self.found: list[list[Hypothesis]] = [[] for _ in range(batch.rows)]

    def take(self, live: Live, offered: Offered) -> Taken:
        """The continuations that are set aside or go on, each of those in a slot of its own."""
        beam = self.settings.beam
        both_B = torch.full((len(self.limit_B),), 2 * beam)
        parent_M, column_M, rank_M = likeliest(live, offered, both_B, beam, self.settings.prune)
        sentence_M, token_M = live.sentence[parent_M], offered.token[parent_M, column_M]
        over_M = self._over(sentence_M, token_M, live.tokens.shape[1])
        count_M = (~over_M).cumsum(0) - (~over_M).long()  # of those before it that go on, of all sentences
        slot_M = count_M - count_M[torch.searchsorted(sentence_M, sentence_M)]
        kept_M = torch.where(over_M, rank_M, slot_M) < beam
        return parent_M[kept_M], column_M[kept_M], slot_M[kept_M]

    def is_over(self, grown: Live) -> Tensor:
        """(M,) bool: whether a hypothesis ended or reached its limit."""
        return (grown.tokens[:, -1] == self.end) | self._at_limit(grown.sentence, grown.tokens.shape[1] - 1)

    def collect(self, grown: Live, penalty_M: Tensor) -> Tensor:
        """Set aside what ended or reached its limit, and return the indices (N,) of the others."""
        length = grown.tokens.shape[1] - 1
        over_M = self._over(grown.sentence, grown.tokens[:, -1], length)
        self._keep(grown, over_M, penalty_M, length)
        going_N = (~over_M).nonzero()[:, 0]
        going_N = going_N[~self._beaten(grown.only(going_N), length)]
        if not self.forces_end:
            return going_N
        last_N = self._at_limit(grown.sentence[going_N], length)
        last_M = torch.zeros_like(over_M)
        last_M[going_N[last_N]] = True
        self._keep(grown, last_M, penalty_M, length + 1)
        return going_N[~last_N]

    def ranked(self, nbest: int) -> list[list[Hypothesis]]:
        """The `nbest` best of each sentence, best first, whether they ended or not."""
        return [found[:nbest] for found in self.found]

    def _at_limit(self, sentence_M: Tensor, length: int) -> Tensor:
        return self.limit_B[sentence_M] <= length

    def _over(self, sentence_M: Tensor, token_M: Tensor, length: int) -> Tensor:
        """(M,) bool: whether these have their last token; with a forced end token, only it says so."""
        ended_M = token_M == self.end
        return ended_M if self.forces_end else ended_M | self._at_limit(sentence_M, length)

    def _keep(self, grown: Live, over_M: Tensor, penalty_M: Tensor, length: int) -> None:
        """Set hypotheses aside as if they had `length` tokens."""
        rule = self.settings.length
        score_M = self._counted(grown) / rule.divisor(float(length)) + penalty_M
        for place in over_M.nonzero()[:, 0].tolist():
            tokens, values = grown.tokens[place, 1:].tolist(), grown.values[place, 1:].tolist()
            made = hypothesis(tokens, values, tokens[-1] == self.end, rule)
            sentence = int(grown.sentence[place])
            best = sorted([*self.found[sentence], replace(made, score=float(score_M[place]))], key=lambda h: -h.score)
            self.found[sentence] = best[: self.settings.beam]
            self.worst_B[sentence] = self.found[sentence][-1].score
            self.full_B[sentence] = len(best) >= self.settings.beam

    def _counted(self, live: Live) -> Tensor:
        """(N,) the log-probabilities without those of what outputs must begin with."""
        longest = int(self.prefix_B.max())
        if not longest:
            return live.total
        given_NT = live.values[:, 1 : longest + 1]
        given_NT = given_NT * (torch.arange(given_NT.shape[1]) < self.prefix_B[live.sentence][:, None])
        return live.total - given_NT.sum(1)

    def _beaten(self, going: Live, length: int) -> Tensor:
        """(N,) bool: whether the hypothesis's sentence stops."""
        stopping = self.settings.stopping
        if stopping == "complete":
            return self.full_B[going.sentence]
        best_B = torch.full_like(self.worst_B, -torch.inf)
        best_B = best_B.scatter_reduce(0, going.sentence, self._counted(going), "amax")
        greatest_B = (self.limit_B + self.forces_end).double()
        length_B = greatest_B if stopping == "never" else torch.full_like(greatest_B, length)
        beaten_B = self.full_B & (self.settings.length.normalised(best_B, length_B) <= self.worst_B)
        return beaten_B[going.sentence]
