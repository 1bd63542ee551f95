"""Whether a converted language model says the same as transformers does of the folder that it came from.

Both read the same ids: of the token that begins a text, the line and the end token.

Shapes: T positions, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.core.padded import Padded
from transduce.data.columns.tokens import Tokens
from transduce.interop.parity import Text

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

CLOSE = 1e-3  # a difference of log-probabilities of tokens, in nats, that rounding explains
MOST_NEW = 20  # tokens of a continuation
PLAIN: dict[str, Any] = {
    "num_beams": 1,
    "do_sample": False,
    "max_length": None,
    "min_length": 0,
    "no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "temperature": None,
    "top_k": None,
    "top_p": None,
}
"""Greedy search, whatever the folder says of generation."""


@dataclass(frozen=True)
class DecoderParity:
    """What a comparison found.

    tokens: lines that both cut alike. continued: lines with the same greedy continuation.
    difference: the largest of a token's log-probability, in nats.
    log_probability: of all lines together, ours and theirs, in nats.
    """

    text: str
    lines: int
    left_out: int
    tokens: int
    continued: int
    difference: float
    log_probability: tuple[float, float]

    @property
    def holds(self) -> bool:
        """Whether all lines are cut and continued alike, and log-probabilities are equal but for rounding."""
        return self.tokens == self.continued == self.lines and self.difference <= CLOSE

    @property
    def failure(self) -> str:
        """What to tell where it does not hold."""
        return "the converted model does not say what the original says."

    def report(self) -> list[str]:
        left_out = f"; {self.left_out:,} empty or too long and left out" if self.left_out else ""
        ours, theirs = self.log_probability
        return [
            f"transformers and Transduce on {self.lines:,} lines of {self.text}, fp32{left_out}:",
            f"  equal tokens          {self.tokens:,} of {self.lines:,}",
            f"  equal continuations   {self.continued:,} of {self.lines:,}, {MOST_NEW} tokens each, greedy",
            f"  log-probability       {ours:,.4f} nats by ours, {theirs:,.4f} by theirs",
            f"  largest difference of a token's log-probability: {self.difference:.2g}",
        ]


@torch.inference_mode()
def compare_decoder(pipeline: "Pipeline", folder: Path, text: Text) -> DecoderParity:
    """Ours and theirs on the lines of `text`, each by itself.

    Raises:
        InputError: transformers is not installed; no line can be compared.
    """
    transformers = library("transformers", "comparing with transformers", "huggingface")
    column: Any = pipeline.task.columns["target"]
    most = min(int(pipeline.task.max_source_length), pipeline.task.config.context - MOST_NEW - 1)
    encoded = zip(text.lines, column.encode(text.lines), strict=True)
    rows = [(line, ids) for line, ids in encoded if 0 < len(ids) <= most]
    if not rows:
        raise InputError(f"{text.name}: none of its {len(text.lines):,} lines can be compared: empty, or too long.")
    original = _Original(
        transformers.AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval(),
        transformers.AutoTokenizer.from_pretrained(str(folder)),
        column,
    )
    found = [_line(pipeline, original, line, ids) for line, ids in rows]
    return DecoderParity(
        text.name,
        len(rows),
        len(text.lines) - len(rows),
        sum(each.cut_alike for each in found),
        sum(each.continued_alike for each in found),
        max(float((each.ours_T - each.theirs_T).abs().max()) for each in found),
        (sum(float(each.ours_T.sum()) for each in found), sum(float(each.theirs_T.sum()) for each in found)),
    )


@dataclass(frozen=True)
class _Line:
    """ours_T, theirs_T: the log-probability of each token of a line and of the end token."""

    cut_alike: bool
    continued_alike: bool
    ours_T: Tensor
    theirs_T: Tensor


@dataclass(frozen=True)
class _Original:
    model: nn.Module
    tokenizer: Any
    column: Tokens

    def continued(self, ids: Sequence[int]) -> list[int]:
        """The prompt and its greedy continuation, without the tokens that our search does not choose either."""
        unwritten = self.column.unwritten
        generate: Any = self.model.generate
        read_1T = torch.tensor([[self.column.start, *ids]])
        written_1T = generate(
            input_ids=read_1T,
            attention_mask=torch.ones_like(read_1T),
            max_new_tokens=MOST_NEW,
            eos_token_id=self.column.end,
            pad_token_id=self.column.end,
            **({"suppress_tokens": unwritten} if unwritten else {}),
            **PLAIN,
        )
        found: list[int] = written_1T[0, 1:].tolist()
        return found[:-1] if found[-1] == self.column.end and len(found) > len(ids) else found

    def cuts_as(self, line: str, ids: Sequence[int]) -> bool:
        """Whether the library's tokenizer finds the same ids, and the same token before them where it puts one."""
        framed: list[int] = self.tokenizer(line)["input_ids"]
        bare: list[int] = self.tokenizer(line, add_special_tokens=False)["input_ids"]
        before = framed[: len(framed) - len(bare)] if framed[-len(bare) :] == bare else framed[:1]
        return bare == list(ids) and before in ([], [self.column.start])


def _line(pipeline: "Pipeline", original: _Original, line: str, ids: list[int]) -> _Line:
    column = original.column
    row_1T = torch.tensor([[column.start, *ids, column.end]])
    read = Padded(row_1T[:, :-1], torch.tensor([row_1T.shape[1] - 1]))
    ours_T = _chosen(pipeline.model(None, read), row_1T)
    theirs_T = _chosen(original.model(row_1T[:, :-1]).logits, row_1T)
    search: dict[str, Any] = {"method": "greedy", "min_length": 0, "no_repeat_ngram": None, "nbest": 1}
    [written] = pipeline.predict([line], split="none", max_length_offset=MOST_NEW, **search)
    continued = column.tokens(original.continued(ids)) == list(written.tokens)
    return _Line(original.cuts_as(line, ids), continued, ours_T, theirs_T)


def _chosen(logits_1TV: Tensor, row_1T: Tensor) -> Tensor:
    """(T,): the log-probability of each token after the first."""
    return logits_1TV[0].log_softmax(-1).gather(1, row_1T[0, 1:, None])[:, 0]
