"""Our Transformer as a folder that Hugging Face transformers loads: weights, settings, tokenizer and model card.

    norm = "post"   MarianMTModel
    norm = "pre"    PegasusForConditionalGeneration, which has one more norm after each stack, as ours

Both add a table of positions that stands in the file: ours. `AutoTokenizer` loads the tokenizer of the source; that of
the target, where it is another one, lies in the folder `target`.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from transduce.attention.positions import Learned, sinusoidal
from transduce.core.atomic import write_json, write_text
from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.core.tensor_file import write_tensors
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.interop.model_card import Languages, model_card
from transduce.interop.parity import EngineOutput, in_batches
from transduce.interop.transformer_parts import TransformerParts, key_value_heads_spread, logit_bias, parts_of
from transduce.layers.norms import EPSILON

if TYPE_CHECKING:
    from transduce.attention import MultiHeadAttention
    from transduce.layers.stack import Stack
    from transduce.pipeline.pipeline import Pipeline

CLASSES = {"post": ("MarianMTModel", "marian"), "pre": ("PegasusForConditionalGeneration", "pegasus")}


def export_huggingface(pipeline: "Pipeline", folder: Path, languages: Languages) -> Path:
    """Writes the model into `folder`, which exists and is empty, and returns it.

    Raises:
        InputError: neither class computes what the model does, with all reasons.
    """
    parts = parts_of(pipeline, "Hugging Face")
    check_huggingface(parts)
    write_tensors(folder / "model.safetensors", dict(_weights(parts)), {"format": "pt"})
    write_json(folder / "config.json", _config(parts))
    write_json(folder / "generation_config.json", _generation(parts))
    _write_tokenizer(parts.source, folder)
    if not _joint(parts):
        (folder / "target").mkdir()
        _write_tokenizer(parts.target, folder / "target")
    codes = "".join(f"- {code}\n" for code in languages if code)
    head = f"---\nlibrary_name: transformers\n{f'language:{chr(10)}{codes}' if codes else ''}---\n"
    write_text(folder / "README.md", model_card(pipeline, languages, head))
    return folder


def check_huggingface(parts: TransformerParts) -> None:
    """Raises InputError with everything that the classes cannot compute."""
    config = parts.config
    allowed: dict[str, Sequence[Any]] = {
        "positions": ("sinusoidal", "learned", "none"),
        "activation": ("relu", "gelu", "swish"),
        "norm_kind": ("layer",),
        "norm_epsilon": (EPSILON,),
        "score": ("scaled_dot",),
        "normalizer": ("softmax",),
        "pattern": ("full",),
        "pointer": (False,),
    }
    name = CLASSES[config.norm][0]
    problems = [
        f"Hugging Face: model.{key} = {json.dumps(getattr(config, key))}: {name} has "
        f"{', '.join(json.dumps(each) for each in values)}."
        for key, values in allowed.items()
        if getattr(config, key) not in values
    ]
    if config.norm == "pre" and not _joint(parts):
        problems.append(f"Hugging Face: {name} has one vocabulary; this model has two (tokenizer.joint = false).")
    if (parts.source.pad, parts.source.end) != (parts.target.pad, parts.target.end):
        problems.append("Hugging Face: padding and end must have the same ids in both vocabularies.")
    if problems:
        raise InputError(problems)


def _joint(parts: TransformerParts) -> bool:
    return parts.source.equals(parts.target)


def _config(parts: TransformerParts) -> dict[str, Any]:
    config, (name, kind) = parts.config, CLASSES[parts.config.norm]
    table: dict[str, Any] = {
        "architectures": [name],
        "model_type": kind,
        "vocab_size": parts.source.size,
        "d_model": config.d_model,
        "activation_function": config.activation,
        "scale_embedding": True,
        "max_position_embeddings": len(_positions(parts.model.encoder, parts)),
        "pad_token_id": parts.target.pad,
        "bos_token_id": parts.target.start,
        "eos_token_id": parts.target.end,
        "decoder_start_token_id": parts.target.start,
        "forced_eos_token_id": None,
        "is_encoder_decoder": True,
        "tie_word_embeddings": False,
        "dtype": "float32",
    }
    for side, blocks in (("encoder", parts.encoder), ("decoder", parts.decoder)):
        table |= {f"{side}_layers": len(blocks), f"{side}_attention_heads": config.heads}
        table |= {f"{side}_ffn_dim": config.feed_forward}
    if kind == "marian":
        table |= {"share_encoder_decoder_embeddings": _joint(parts), "decoder_vocab_size": parts.target.size}
    return table


def _generation(parts: TransformerParts) -> dict[str, Any]:
    return {
        "pad_token_id": parts.target.pad,
        "bos_token_id": parts.target.start,
        "eos_token_id": parts.target.end,
        "decoder_start_token_id": parts.target.start,
        "max_length": len(_positions(parts.model.decoder, parts)),
    }


def _write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """With the end token behind every text, as our models read it."""
    table = json.loads(tokenizer.to_json())
    pad, start, end, unknown = tokenizer.tokens((tokenizer.pad, tokenizer.start, tokenizer.end, tokenizer.unknown))
    one = [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": end, "type_id": 0}}]
    table["post_processor"] = {
        "type": "TemplateProcessing",
        "single": one,
        "pair": [*one, {"Sequence": {"id": "B", "type_id": 0}}, {"SpecialToken": {"id": end, "type_id": 0}}],
        "special_tokens": {end: {"id": end, "ids": [tokenizer.end], "tokens": [end]}},
    }
    write_json(folder / "tokenizer.json", table)
    named = {"pad_token": pad, "bos_token": start, "eos_token": end, "unk_token": unknown}
    same = {"clean_up_tokenization_spaces": False, "split_special_tokens": True}
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", **named, **same})


def _weights(parts: TransformerParts) -> Iterator[tuple[str, Tensor]]:
    """Names as both classes have them; no tensor is shared, so that every name stands in the file."""
    sides = (
        ("encoder", parts.model.encoder, parts.source_embedding),
        ("decoder", parts.model.decoder, parts.target_embedding),
    )
    for side, stack, embedding in sides:
        yield f"model.{side}.embed_tokens.weight", embedding.clone()
        yield f"model.{side}.embed_positions.weight", _positions(stack, parts).clone()
        for number, block in enumerate(stack.blocks):
            name = f"model.{side}.layers.{number}"
            yield from _attention(f"{name}.self_attn", block.self_attention)
            yield from _affine(f"{name}.self_attn_layer_norm", block.self_residual.norm)
            if block.cross_attention and block.cross_residual:
                yield from _attention(f"{name}.encoder_attn", block.cross_attention)
                yield from _affine(f"{name}.encoder_attn_layer_norm", block.cross_residual.norm)
            yield from _affine(f"{name}.fc1", block.feed_forward.inner)
            yield from _affine(f"{name}.fc2", block.feed_forward.outer)
            yield from _affine(f"{name}.final_layer_norm", block.feed_forward_residual.norm)
        if parts.config.norm == "pre":
            yield from _affine(f"model.{side}.layer_norm", stack.norm)
    if _joint(parts):
        yield "model.shared.weight", parts.target_embedding.clone()
    yield "lm_head.weight", parts.output.clone()
    yield "final_logits_bias", logit_bias(parts)[None]


def _positions(stack: "Stack", parts: TransformerParts) -> Tensor:
    """(T, D): what is added to the embeddings."""
    if isinstance(stack.positions, Learned):
        return stack.positions.weight_TD.detach()
    table_TD = sinusoidal(parts.longest, parts.config.d_model) if parts.config.positions == "sinusoidal" else None
    return torch.zeros(parts.longest, parts.config.d_model) if table_TD is None else table_TD


def _attention(name: str, attention: "MultiHeadAttention") -> Iterator[tuple[str, Tensor]]:
    key, value = key_value_heads_spread(attention)
    yield from _affine(f"{name}.q_proj", attention.query)
    yield from _affine(f"{name}.k_proj", key)
    yield from _affine(f"{name}.v_proj", value)
    yield from _affine(f"{name}.out_proj", attention.output)


def _affine(name: str, layer: Any) -> Iterator[tuple[str, Tensor]]:
    yield f"{name}.weight", layer.weight.detach().clone()
    yield f"{name}.bias", layer.bias.detach().clone()


class HuggingFaceEngine:
    """Runs an exported model with transformers, by its own tokenizer.

    Args:
        pipeline: of the model that was exported.
        folder: what `export_huggingface` wrote.
    """

    name = "transformers"

    def __init__(self, pipeline: "Pipeline", folder: Path) -> None:
        transformers = library("transformers", "comparing with transformers", "huggingface")
        self.target = pipeline.task.tokenizers["target"]
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder))
        self.model: nn.Module = transformers.AutoModelForSeq2SeqLM.from_pretrained(str(folder)).eval()

    def greedy(self, texts: Sequence[str], longest: int) -> list[EngineOutput]:
        return in_batches(texts, lambda batch: self._batch(batch, longest))

    @torch.inference_mode()
    def _batch(self, texts: list[str], longest: int) -> Iterator[EngineOutput]:
        read = self.tokenizer(texts, return_tensors="pt", padding=True)
        generate: Any = self.model.generate
        written_BT = generate(
            input_ids=read["input_ids"],
            attention_mask=read["attention_mask"],
            num_beams=1,
            do_sample=False,
            max_length=None,
            max_new_tokens=longest,
        )
        for ids in written_BT[:, 1:].tolist():
            kept = ids[: ids.index(self.target.end)] if self.target.end in ids else ids
            yield EngineOutput(tuple(self.target.tokens(kept)), self.target.decode(kept), None)


class ExportHuggingface:
    """See `transduce.interop.exports.Export`."""

    write, engine = staticmethod(export_huggingface), HuggingFaceEngine
