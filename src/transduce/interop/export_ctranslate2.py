"""Our Transformer as a CTranslate2 model, written by CTranslate2's own specification classes.

What goes: text to text; layer or RMS norm, before or after each sub-layer; sinusoidal, learned, rotary, Shaw's and T5's
positions, or none; relu, gelu, glu, geglu and swiglu; scores `scaled_dot` and `dot`; any number of key-value heads,
which are written out as one for each query head.

See `transduce.interop.transformer_parts.logit_bias` for the tokens that are never chosen.

Shapes: D model width, H heads, G heads of keys and values, E width of a head, V vocabulary.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from transduce.attention.positions import Learned, sinusoidal
from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.interop.ctranslate2_pipeline import write_settings
from transduce.interop.model_card import Languages
from transduce.interop.parity import BATCH, EngineOutput
from transduce.interop.transformer_parts import TransformerParts, key_value_heads_spread, logit_bias, parts_of

if TYPE_CHECKING:
    from transduce.attention import MultiHeadAttention
    from transduce.layers.block import Block
    from transduce.layers.residual import Residual
    from transduce.layers.stack import Stack
    from transduce.pipeline.pipeline import Pipeline

ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "gelu_tanh": "GELUTanh",
    "swish": "SWISH",
    "glu": "Sigmoid",
    "geglu": "GELU",
    "geglu_tanh": "GELUTanh",
    "swiglu": "SWISH",
}
GATED = {"glu", "geglu", "geglu_tanh", "swiglu"}
POSITIONS = ("none", "sinusoidal", "learned", "rotary", "shaw", "t5")


def export_ctranslate2(pipeline: "Pipeline", folder: Path, languages: Languages) -> Path:
    """Writes the model into `folder`, which exists and is empty, and returns it. With its tokenizers, so that
    `transduce serve --engine ctranslate2` can serve it.

    Raises:
        InputError: as `write_ctranslate2`.
    """
    write_ctranslate2(pipeline, folder)
    write_settings(pipeline, folder, languages)
    return folder


def write_ctranslate2(pipeline: "Pipeline", folder: Path) -> None:
    """Writes what CTranslate2 itself reads into `folder`.

    Raises:
        InputError: the library is missing; CTranslate2 has no such architecture, with all reasons.
    """
    specs = library("ctranslate2", "exporting to CTranslate2", "ctranslate2").specs
    parts = parts_of(pipeline, "CTranslate2")
    check_ctranslate2(parts)
    spec = specs.TransformerSpec(_encoder(specs, parts), _decoder(specs, parts))
    source, target = pipeline.task.tokenizers["source"], pipeline.task.tokenizers["target"]
    spec.register_source_vocabulary(vocabulary(source))
    spec.register_target_vocabulary(vocabulary(target))
    _configure(spec.config, source, target, parts.config.norm_epsilon)
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


def vocabulary(tokenizer: Tokenizer) -> list[str]:
    """The token of each id; an id without one gets a name that no text has."""
    names = [tokenizer._inner.id_to_token(index) for index in range(tokenizer.size)]
    return [f"<unused {index}>" if name is None else name for index, name in enumerate(names)]


def check_ctranslate2(parts: TransformerParts) -> None:
    """Raises InputError with everything that CTranslate2 cannot compute."""
    config, problems = parts.config, []
    if config.positions not in POSITIONS:
        why = "an encoder cannot have them" if config.positions == "alibi" else "it does not know them"
        problems.append(f'model.positions = "{config.positions}": {why}. It has {", ".join(POSITIONS)}.')
    if config.activation not in ACTIVATIONS:
        problems.append(f'model.activation = "{config.activation}": it has {", ".join(ACTIVATIONS)}.')
    if config.norm_kind == "batch":
        problems.append('model.norm_kind = "batch": it has layer and rms.')
    if config.score not in ("scaled_dot", "dot"):
        problems.append(f'model.score = "{config.score}": it has scaled_dot and dot.')
    if config.normalizer != "softmax":
        problems.append(f'model.normalizer = "{config.normalizer}": it has softmax.')
    if config.pattern != "full":
        problems.append(f'model.pattern = "{config.pattern}": it has full.')
    if parts.pointer:
        problems.append("model.pointer = true: it cannot copy from the source.")
    if problems:
        raise InputError([f"CTranslate2: {each}" for each in problems])


def _configure(config: Any, source: Tokenizer, target: Tokenizer, epsilon: float) -> None:
    start, end, unknown = target.tokens([target.start, target.end, target.unknown])
    config.bos_token, config.eos_token, config.unk_token = start, end, unknown
    config.decoder_start_token = start
    config.add_source_bos, config.add_source_eos = False, True
    config.layer_norm_epsilon = epsilon
    if source.tokens([source.end]) != [end]:
        raise InputError(f"CTranslate2: both tokenizers must call their end token {end}.")


def _encoder(specs: Any, parts: TransformerParts) -> Any:
    spec = specs.TransformerEncoderSpec(len(parts.encoder), parts.config.heads, **_settings(specs, parts))
    spec.embeddings[0].weight = parts.source_embedding
    _positions(spec, parts.model.encoder, parts)
    for layer, block in zip(spec.layer, parts.encoder, strict=True):
        _self_attention(layer.self_attention, block, parts)
        _feed_forward(layer.ffn, block)
    return spec


def _decoder(specs: Any, parts: TransformerParts) -> Any:
    spec = specs.TransformerDecoderSpec(len(parts.decoder), parts.config.heads, **_settings(specs, parts))
    spec.embeddings.weight = parts.target_embedding
    spec.projection.weight = parts.output
    spec.projection.bias = logit_bias(parts)
    _positions(spec, parts.model.decoder, parts)
    for layer, block in zip(spec.layer, parts.decoder, strict=True):
        _self_attention(layer.self_attention, block, parts)
        _cross_attention(layer.attention, block, parts)
        _feed_forward(layer.ffn, block)
    return spec


def _settings(specs: Any, parts: TransformerParts) -> dict[str, Any]:
    config = parts.config
    rotary = {"rotary_dim": config.d_model // config.heads, "rotary_interleave": True}
    return {
        "pre_norm": config.norm == "pre",
        "activation": getattr(specs.Activation, ACTIVATIONS[config.activation]),
        "ffn_glu": config.activation in GATED,
        "rms_norm": config.norm_kind == "rms",
        "relative_position": config.positions == "shaw",
        "relative_attention_bias": config.positions == "t5",
        **(rotary if config.positions == "rotary" else {}),
    }


def _positions(spec: Any, stack: "Stack", parts: TransformerParts) -> None:
    """Positions that are added, as a table; and the norm at the end."""
    kind, width = parts.config.positions, parts.config.d_model
    if kind == "sinusoidal":
        spec.position_encodings.encodings = sinusoidal(parts.longest, width)
    elif kind == "learned":
        spec.position_encodings.encodings = _learned(stack)
    elif kind == "none":
        spec.position_encodings.encodings = torch.zeros(parts.longest, width)
    if parts.config.norm == "pre":
        _norm(spec.layer_norm, stack.norm)


def _learned(stack: "Stack") -> Tensor:
    assert isinstance(stack.positions, Learned)
    return stack.positions.weight_TD.detach()


def _self_attention(spec: Any, block: "Block", parts: TransformerParts) -> None:
    attention = block.self_attention
    key, value = key_value_heads_spread(attention)
    _norm(spec.layer_norm, block.self_residual.norm)
    spec.linear[0].weight = torch.cat((attention.query.weight, key.weight, value.weight)).detach()
    spec.linear[0].bias = torch.cat((attention.query.bias, key.bias, value.bias)).detach()
    _linear(spec.linear[1], attention.output)
    _scale(spec, parts)
    _relative(spec, attention)


def _cross_attention(spec: Any, block: "Block", parts: TransformerParts) -> None:
    attention, residual = _cross(block)
    key, value = key_value_heads_spread(attention)
    _norm(spec.layer_norm, residual.norm)
    _linear(spec.linear[0], attention.query)
    spec.linear[1].weight = torch.cat((key.weight, value.weight)).detach()
    spec.linear[1].bias = torch.cat((key.bias, value.bias)).detach()
    _linear(spec.linear[2], attention.output)
    _scale(spec, parts)


def _cross(block: "Block") -> "tuple[MultiHeadAttention, Residual]":
    assert block.cross_attention is not None and block.cross_residual is not None
    return block.cross_attention, block.cross_residual


def _scale(spec: Any, parts: TransformerParts) -> None:
    if parts.config.score == "dot":
        spec.queries_scale = 1.0


def _relative(spec: Any, attention: "MultiHeadAttention") -> None:
    """Tables of relative positions. Those of a decoder lack the keys that come later, which nobody attends to."""
    positions: Any = attention.positions
    if hasattr(spec, "relative_position_keys"):
        rows = 2 * positions.clip + 1
        for name, table_KE in (("keys", positions.key_KE), ("values", positions.value_KE)):
            full_KE = torch.zeros(rows, table_KE.shape[1])
            full_KE[: len(table_KE)] = table_KE.detach()
            setattr(spec, f"relative_position_{name}", full_KE)
    if hasattr(spec, "relative_attention_bias"):
        import numpy as np

        spec.relative_attention_bias = positions.bias_KH.detach()
        spec.relative_attention_max_distance = np.dtype("int32").type(positions.far)


def _feed_forward(spec: Any, block: "Block") -> None:
    layer = block.feed_forward
    _norm(spec.layer_norm, block.feed_forward_residual.norm)
    _linear(spec.linear_0, layer.inner)
    _linear(spec.linear_1, layer.outer)
    if layer.linear is not None:
        _linear(spec.linear_0_noact, layer.linear)


def _linear(spec: Any, layer: Any) -> None:
    spec.weight, spec.bias = layer.weight.detach(), layer.bias.detach()


def _norm(spec: Any, norm: Any) -> None:
    spec.gamma = norm.weight.detach()
    if hasattr(spec, "beta"):
        spec.beta = norm.bias.detach()


class CTranslate2Engine:
    """Runs an exported model, with our tokenizers.

    Args:
        pipeline: of the model that was exported.
        folder: what `export_ctranslate2` wrote.
    """

    name = "CTranslate2"

    def __init__(self, pipeline: "Pipeline", folder: Path) -> None:
        self.source, self.target = pipeline.task.tokenizers["source"], pipeline.task.tokenizers["target"]
        ctranslate2 = library("ctranslate2", "exporting to CTranslate2", "ctranslate2")
        self.translator = ctranslate2.Translator(
            str(folder), compute_type="float32", intra_threads=torch.get_num_threads()
        )

    def greedy(self, texts: Sequence[str], longest: int) -> list[EngineOutput]:
        """See `transduce.interop.parity.Engine`. By default CTranslate2 writes one token at least; here it need not."""
        found = self.translator.translate_batch(
            self.cut(texts),
            beam_size=1,
            max_batch_size=BATCH,
            max_decoding_length=longest,
            min_decoding_length=0,
            length_penalty=0,
            return_scores=True,
        )
        return [self.output(each.hypotheses[0], each.scores[0]) for each in found]

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        return [self.source.tokens(ids) for ids in self.source.encode(texts)]

    def output(self, tokens: Sequence[str], score: float) -> EngineOutput:
        return EngineOutput(tuple(tokens), self.target.decode(self.target.ids(tokens)), score)


class ExportCtranslate2:
    """See `transduce.interop.exports.Export`."""

    write, engine = staticmethod(export_ctranslate2), CTranslate2Engine
