"""A chart parser: scores of spans by their ends, from which the best tree is found (Stern, Andreas and Klein 2017).

    f_n, b_n = the halves of the state of word n; f_0 and b_{N+1} are learnt
    v_{ij} = [f_j - f_{i-1}; b_i - b_{j+1}],   s_{ij} = W_2 relu(norm(W_1 v_{ij} + c_1)) + c_2

for the span of the words i .. j (Stern et al. 2017, section 4; of a Transformer Kitaev and Klein 2018, section 2).
p(tree | x) of these scores: see `transduce.layers.tree_crf`. Each word's tag is classified from its state.

Shapes: B batch, N words, H width of states, D width of the layer that scores spans, C labels, G tags, T spans.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.data.columns import ColumnSpec, Specs
from transduce.data.columns.words import WordPieces
from transduce.layers.norms import LayerNorm
from transduce.layers.word_encoder import WordEncoder, WordEncoderConfig


class ChartParserConfig(WordEncoderConfig):
    """What reads, and the sizes and parts of `StackConfig`, which are mostly a Transformer's."""

    kind: Literal["chart_parser"] = "chart_parser"
    span_width: int = Field(default=256, ge=1)
    """Width of the layer that scores spans."""


class ChartParser(WordEncoder):
    """Scores the spans of a sentence (see `ScoresSpans` in `transduce.models.protocols`).

    Raises:
        InputError: the columns are not words and their trees.
    """

    Config = ChartParserConfig

    def __init__(self, config: ChartParserConfig, specs: Specs) -> None:
        super().__init__(config, _words_of(specs))
        self.output = SpanScorer(config.width, config.span_width, specs.target.size, specs.target.tags)

    def word_states(self, inputs: WordPieces) -> Tensor:
        """(B, N, H)."""
        return self.dropout(self.words(inputs))

    def span_scores(self, states_BNH: Tensor, length_B: Tensor) -> Tensor:
        """(B, N, N, C)."""
        scores_BNNC: Tensor = self.output(states_BNH, length_B)
        return scores_BNNC

    def tag_scores(self, states_BNH: Tensor) -> Tensor:
        """(B, N, G)."""
        scores_BNG: Tensor = self.output.tags(states_BNH)
        return scores_BNG


class SpanScorer(nn.Module):
    """W_1, c_1, W_2, c_2, f_0 and b_{N+1}; and the scores of tags."""

    def __init__(self, width: int, inner: int, labels: int, tags: int) -> None:
        super().__init__()
        self.ends_H = nn.Parameter(torch.zeros(width))
        self.forward_width = width // 2
        self.spans = nn.Linear(width, inner)
        self.norm = LayerNorm(inner)
        self.labels = nn.Linear(inner, labels)
        self.tags = nn.Linear(width, tags)

    def forward(self, states_BNH: Tensor, length_B: Tensor) -> Tensor:
        """(B, N, N, C) by first and last word; 0 where the last stands before the first."""
        words = states_BNH.shape[1]
        between_BPD = self.spans(self._between(states_BNH, length_B))
        by_width = [between_BPD[:, width:] - between_BPD[:, :-width] for width in range(1, words + 1)]
        found_BTD = torch.cat(by_width, 1) + self.spans.bias
        scores_BTC = self.labels(self.norm(found_BTD).relu())
        chart_BNNC = scores_BTC.new_zeros(len(states_BNH), words, words, scores_BTC.shape[2])
        chart_BNNC[:, *_spans(words, states_BNH.device)] = scores_BTC
        return chart_BNNC

    def _between(self, states_BNH: Tensor, length_B: Tensor) -> Tensor:
        """[f_p; -b_{p+1}] for each place p before, between and behind the words (B, N + 1, H)."""
        end_B1H = self.ends_H.to(states_BNH.dtype).expand(len(states_BNH), 1, -1)
        forward_BPF = torch.cat([end_B1H, states_BNH], 1)[..., : self.forward_width]
        place_N = torch.arange(states_BNH.shape[1], device=states_BNH.device)
        inside_BN1 = (place_N < length_B[:, None])[..., None]
        backward_BPF = torch.cat([torch.where(inside_BN1, states_BNH, end_B1H), end_B1H], 1)[..., self.forward_width :]
        return torch.cat([forward_BPF, -backward_BPF], 2)


def _spans(words: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The first and the last word (T,) of each span, the shortest spans first."""
    first_T = torch.cat([torch.arange(words - width, device=device) for width in range(words)])
    width_T = torch.arange(words, device=device).repeat_interleave(torch.arange(words, 0, -1, device=device))
    return first_T, first_T + width_T


def _words_of(specs: Specs) -> ColumnSpec:
    """The column that is read. Raises InputError for another task."""
    if specs.source is None or specs.source.kind != "words" or specs.target.kind != "binary_trees":
        raise InputError('[model] kind = "chart_parser": expected a task with words and their trees; got another one.')
    return specs.source
