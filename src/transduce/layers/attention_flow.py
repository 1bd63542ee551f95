"""Attention between a text and a question in both directions, and pointers into the text.

    s_tj = w . [c_t; q_j; c_t * q_j]                      trilinear similarity
    a_t  = sum_j softmax_j(s_tj) q_j                      context to query: the question as seen from token t
    b    = sum_t softmax_t(max_j s_tj) c_t                query to context, "max" (Seo et al. 2017, section 2.4)
    b_t  = sum_j softmax_j(s_tj) sum_u softmax_u(s_uj) c_u      query to context, "each" (Yu et al. 2018, section 2.2)
    g_t  = [c_t; a_t; c_t * a_t; c_t * b_t]

Shapes: B batch, S positions of the text, Q positions of the question, D width.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from transduce.attention.capture import Role, Side, active_record
from transduce.data.columns.question_context import Passage

Back = Literal["max", "each"]
"""Query to context: one vector for the whole text, or one for each of its tokens."""


class TrilinearSimilarity(nn.Module):
    """s_tj = w_c . c_t + w_q . q_j + (w_m * c_t) . q_j, which is w . [c_t; q_j; c_t * q_j]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight_3D = nn.Parameter(torch.empty(3, width))
        nn.init.xavier_uniform_(self.weight_3D)

    def forward(self, context_BSD: Tensor, question_BQD: Tensor) -> Tensor:
        """(B, S, Q)."""
        of_context_D, of_question_D, of_both_D = self.weight_3D
        both_BSQ = (context_BSD * of_both_D) @ question_BQD.transpose(1, 2)
        return both_BSQ + (context_BSD @ of_context_D)[..., None] + (question_BQD @ of_question_D)[:, None]


class AttentionFlow(nn.Module):
    """The equations above.

    A capture records one map over the tokens of question and text together: a token of the text attends to the question
    by softmax_j, a token of the question to the text by the softmax of query to context.
    """

    role: Role = "self"
    side: Side = "encoder"

    def __init__(self, width: int, back: Back) -> None:
        super().__init__()
        self.similarity = TrilinearSimilarity(width)
        self.back = back

    def forward(self, context_BSD: Tensor, question_BQD: Tensor, passage: Passage) -> Tensor:
        """(B, S, 4 D) of the states of a text and a question."""
        score_BSQ = self.similarity(context_BSD, question_BQD).float()
        real_BS, real_BQ = passage.context.mask(), passage.question.mask()
        seen_BSQ = score_BSQ.masked_fill(~real_BQ[:, None], -torch.inf)
        alpha_BSQ = seen_BSQ.softmax(-1).to(context_BSD.dtype)
        read_BSD = alpha_BSQ @ question_BQD
        if self.back == "max":
            most_BS = seen_BSQ.amax(-1).masked_fill(~real_BS, -torch.inf)
            beta_BQS = most_BS.softmax(-1).to(context_BSD.dtype)[:, None]
            back_BSD = beta_BQS @ context_BSD
        else:
            kept_BSQ = score_BSQ.masked_fill(~real_BS[..., None], -torch.inf)
            beta_BQS = kept_BSQ.softmax(1).to(context_BSD.dtype).transpose(1, 2)
            back_BSD = alpha_BSQ @ (beta_BQS @ context_BSD)
        if (record := active_record()) is not None:
            record.take(self, both_ways(alpha_BSQ, beta_BQS.expand(-1, alpha_BSQ.shape[-1], -1), passage)[:, None])
        return torch.cat((context_BSD, read_BSD, context_BSD * read_BSD, context_BSD * back_BSD), -1)


class SpanPointer(nn.Module):
    """Scores of where a span begins and where it ends. A capture records both distributions over question and text."""

    role: Role = "cross"
    side: Side = "decoder"

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, 1)
        self.last = nn.Linear(width, 1)

    def forward(self, first_BSD: Tensor, last_BSD: Tensor, passage: Passage) -> tuple[Tensor, Tensor]:
        """Logits (B, S) of the first and the last token, -inf behind the end of a text."""
        padding_BS = ~passage.context.mask()
        start_BS = self.first(first_BSD).squeeze(-1).float().masked_fill(padding_BS, -torch.inf)
        end_BS = self.last(last_BSD).squeeze(-1).float().masked_fill(padding_BS, -torch.inf)
        if (record := active_record()) is not None:
            alpha_B2S = torch.stack((start_BS, end_BS), 1).softmax(-1)
            nothing_B2Q = alpha_B2S.new_zeros(len(alpha_B2S), 2, passage.question.values.shape[1])
            record.take(self, passage.as_read(nothing_B2Q, alpha_B2S)[:, None])
        return start_BS, end_BS


def both_ways(alpha_BSQ: Tensor, beta_BQS: Tensor, passage: Passage) -> Tensor:
    """(B, Q + S, Q + S): the rows and columns of the question, then those of the text, then padding, row by row."""
    rows, places, asked = alpha_BSQ.shape
    weights_BNN = alpha_BSQ.new_zeros(rows, asked + places, asked + places)
    lengths = zip(passage.question.lengths.tolist(), passage.context.lengths.tolist(), strict=True)
    for row, (first, second) in enumerate(lengths):
        weights_BNN[row, :first, first : first + second] = beta_BQS[row, :first, :second]
        weights_BNN[row, first : first + second, :first] = alpha_BSQ[row, :second, :first]
    return weights_BNN
