"""Points into a text by one encoder that reads question and text as one row (Devlin et al. 2019, section 4.2).

    h = encoder([question; text]),   start_t = w_1 . h_t,   end_t = w_2 . h_t

The last position of a text, its end token, says that the text holds no answer; in BERT's manner the first state of the
row says so in its place.

Shapes: B batch, Q positions of the question, S positions of the text, H width of states.
"""

from typing import Literal

import torch
from torch import Tensor

from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.data.columns.question_context import Passage, check_passage
from transduce.layers.attention_flow import SpanPointer
from transduce.layers.text_encoder import TextEncoder, TextEncoderConfig


class SpanReaderConfig(TextEncoderConfig):
    """What reads, and the sizes and parts of `StackConfig`, which are mostly a Transformer's."""

    kind: Literal["span_reader"] = "span_reader"
    no_answer: Literal["end", "first"] = "end"
    """Whose state says that the text holds no answer: that of its end token, or the first of the row, as in BERT."""


class SpanReader(TextEncoder):
    """Points into a text (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not questions with texts, and spans.
    """

    Config = SpanReaderConfig

    def __init__(self, config: SpanReaderConfig, specs: Specs) -> None:
        super().__init__(config, check_passage(specs.source, specs.target, "span_reader"))
        self.no_answer = config.no_answer
        self.pointer = SpanPointer(config.width)

    def point(self, inputs: Passage) -> tuple[Tensor, Tensor]:
        """Logits (B, S) of the first and the last token."""
        context_BSH = self.dropout(self._context(inputs))
        return self.pointer(context_BSH, context_BSH, inputs)

    def _context(self, inputs: Passage) -> Tensor:
        """The states (B, S, H) of the text."""
        question, context = inputs.question, inputs.context
        row = Padded(inputs.as_read(question.values, context.values), question.lengths + context.lengths)
        states_BNH = self.encode(row).values
        place_S = torch.arange(context.values.shape[1], device=states_BNH.device)
        place_BS = (question.lengths[:, None] + place_S).clamp(max=states_BNH.shape[1] - 1)
        states_BSH = states_BNH.gather(1, place_BS[..., None].expand(-1, -1, states_BNH.shape[2]))
        if self.no_answer == "end":
            return states_BSH
        is_end_BS = place_S == context.lengths[:, None] - 1
        return torch.where(is_end_BS[..., None], states_BNH[:, :1], states_BSH)
