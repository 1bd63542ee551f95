"""The model that was converted, run by transformers with its own tokenizer.

Shapes: B batch, T positions, V vocabulary.
"""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from transduce.core.extras import library
from transduce.data.columns.tokens import Tokens
from transduce.interop.import_columns import TARGET
from transduce.interop.parity import EngineOutput, in_batches

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

BATCH = 16  # lines: the logits of all their positions are kept
PLAIN: dict[str, Any] = {
    "num_beams": 1,
    "do_sample": False,
    "max_length": None,
    "min_length": 0,
    "no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "forced_eos_token_id": None,
    "return_dict_in_generate": True,
    "output_logits": True,
}
"""Greedy search, whatever the folder says of generation, without the tokens that our search does not choose either."""


class OriginalEngine:
    """Compares a converted model with what it came from; see `transduce.interop.parity.Engine`.

    Args:
        pipeline: the converted model.
        folder: the original, a folder of Hugging Face.
        adapter: a folder with an adapter of it; one in `folder` is found by transformers itself.

    Raises:
        InputError: transformers is not installed.
    """

    name = "transformers"

    def __init__(self, pipeline: "Pipeline", folder: Path, adapter: Path | None = None) -> None:
        transformers = library("transformers", "comparing with transformers", "huggingface")
        source, target = pipeline.task.columns["source"], pipeline.task.columns["target"]
        assert isinstance(source, Tokens) and isinstance(target, Tokens)
        self.source, self.target = source, target
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
        own = folder / TARGET
        self.writes = transformers.AutoTokenizer.from_pretrained(str(own)) if own.is_dir() else self.tokenizer
        for side, column in (("src_lang", source), ("tgt_lang", target)):
            named = column.opening if column is target else tuple(column.tokenizer.ids([*column.before, *column.after]))
            code = _code(self.tokenizer, set(column.tokenizer.tokens(named)) | {*column.before})
            if code and hasattr(self.tokenizer, side):
                setattr(self.tokenizer, side, code)
        self.model: nn.Module = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            str(folder), dtype=torch.float32
        ).eval()
        if adapter not in (None, folder):
            self.model.load_adapter(str(adapter))

    def translate(self, texts: Sequence[str], beams: int | None = None) -> list[EngineOutput]:
        """As `model.generate` does by default; a model of many languages is told which to write.

        Where generation_config.json leaves out the start, the end or padding, it is given, as nothing goes without.

        beams: in the place of the model's own number.
        """
        asked: dict[str, Any] = {"num_return_sequences": 1}
        asked |= {} if beams is None else {"num_beams": beams, "do_sample": False}
        if hasattr(self.tokenizer, "tgt_lang"):
            asked["decoder_start_token_id"] = self.target.start
            if self.target.opening:
                asked["forced_bos_token_id"] = self.target.opening[0]
        settings: Any = self.model.generation_config
        needed = {"decoder_start_token_id": self.target.start, "eos_token_id": self.target.end}
        needed["pad_token_id"] = self.target.tokenizer.pad
        asked |= {key: token for key, token in needed.items() if getattr(settings, key) is None}
        return in_batches(texts, lambda batch: self._generated(batch, asked), BATCH)

    @torch.inference_mode()
    def _generated(self, texts: list[str], asked: dict[str, Any]) -> Iterator[EngineOutput]:
        generate: Any = self.model.generate
        read = self.tokenizer(texts, return_tensors="pt", padding=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about defaults, which `convert` tells in its own words
            written = generate(**read, **asked)
        for ids in written.tolist():
            text = self.writes.decode(ids, skip_special_tokens=True)
            yield EngineOutput(tuple(self.target.tokens(self._until_end(ids[1:]))), text, None)

    def _until_end(self, ids: list[int]) -> list[int]:
        """Without the padding behind shorter outputs of a batch, and what the model itself wrote of it."""
        ids = ids[: ids.index(self.target.end)] if self.target.end in ids else ids
        return [index for index in ids if index != self.target.tokenizer.pad]

    def greedy(self, texts: Sequence[str], longest: int) -> list[EngineOutput]:
        return in_batches(texts, lambda batch: self._batch(batch, longest), BATCH)

    @torch.inference_mode()
    def _batch(self, texts: list[str], longest: int) -> Iterator[EngineOutput]:
        read = self.tokenizer(texts, return_tensors="pt", padding=True)
        rules: dict[str, Any] = {"suppress_tokens": self.target.unwritten} if self.target.unwritten else {}
        if self.target.opening:
            rules["forced_bos_token_id"] = self.target.opening[0]
        generate: Any = self.model.generate
        written = generate(
            input_ids=read["input_ids"],
            attention_mask=read["attention_mask"],
            max_new_tokens=longest,
            decoder_start_token_id=self.target.start,
            eos_token_id=self.target.end,
            pad_token_id=self.target.tokenizer.pad,
            **PLAIN,
            **rules,
        )
        for row, ids in enumerate(written.sequences[:, 1:].tolist()):
            ended = ids.index(self.target.end) if self.target.end in ids else len(ids)
            total = _log_probability([logits_BV[row] for logits_BV in written.logits], ids[: ended + 1])
            text = self.writes.decode(ids[:ended], skip_special_tokens=True)
            yield EngineOutput(tuple(self.target.tokens(ids[:ended])), text, total)


def _log_probability(logits: Sequence[Tensor], ids: Sequence[int]) -> float:
    """Of these tokens, given their logits (V,), in nats."""
    each = (float(logits_V.log_softmax(-1)[index]) for logits_V, index in zip(logits, ids, strict=False))
    return sum(each)


def _code(tokenizer: Any, names: set[str]) -> str | None:
    """What the library calls the language that one of these tokens is of."""
    codes = getattr(tokenizer, "lang_code_to_token", None)
    if isinstance(codes, dict):
        return next((code for code, token in codes.items() if token in names), None)
    special = {*getattr(tokenizer, "all_special_tokens", []), *getattr(tokenizer, "lang_code_to_id", {})}
    basic = {tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token, tokenizer.unk_token}
    return next((name for name in sorted(names & special - basic)), None)
