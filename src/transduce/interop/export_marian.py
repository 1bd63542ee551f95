"""A Transformer as a model of Marian, for marian-decoder and for what makes models for browsers out of its files.

    model.npz     weights under Marian's names (`transduce.interop.import_marian_npz`), and the settings
    source.spm    the vocabularies, as models of SentencePiece
    target.spm
    decoder.yml   settings of marian-decoder: `marian-decoder -c decoder.yml`
    README.md     the model card

Decoders with self-attention or SSRU. Marian begins an output with a vector of zeros, and adds the positions of
Tensor2Tensor to what encoder and decoder read, also with SSRU. A model has to be made like that: `zero_start`,
`positions = "tensor2tensor"`, `decoder_positions`. Without positions it goes too, by a setting of Marian 1.12.

Padding behind all other tokens, as converted models have it, is left out: Marian has none.

Shapes: D model width, V vocabulary.
"""

import io
import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.core.atomic import write_text, writing
from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.interop.import_marian_npz import NORMS, SETTINGS
from transduce.interop.model_card import Languages, model_card
from transduce.interop.parity import BATCH, EngineOutput
from transduce.interop.sentencepiece import sentencepiece_model
from transduce.interop.text_to_text import positions_of, target_of, text_problems
from transduce.interop.transformer_parts import biases, key_value_heads_spread
from transduce.models.ssru_transformer import SsruTransformer
from transduce.models.transformer import Transformer
from transduce.version import __version__

if TYPE_CHECKING:
    from transduce.attention import MultiHeadAttention
    from transduce.pipeline.pipeline import Pipeline

TIME = (1980, 1, 1, 0, 0, 0)  # of every file, so that equal models are equal files
WIDEST_EPSILON = 1e-5  # of norms: ten times Marian's own, and about as much as the rounding of fp32
SIDES = ("source", "target")
Named = Iterator[tuple[str, Tensor]]
HAS: dict[str, tuple[Any, ...]] = {
    "norm_kind": ("layer",),
    "activation": ("relu", "gelu", "swish"),
    "score": ("scaled_dot",),
    "normalizer": ("softmax",),
    "pattern": ("full",),
    "positions": ("tensor2tensor", "none"),
    "query_key_norm": (False,),
    "first_position": (0,),
    "encoder_positions": (None,),
    "encoder_max_length": (None,),
    "scale_embeddings": (True,),
    "pointer": (False,),
}


def export_marian(pipeline: "Pipeline", folder: Path, languages: Languages) -> Path:
    """Writes the model into `folder`, which exists and is empty, and returns it.

    Raises:
        InputError: Marian or SentencePiece cannot do what the model does, with all reasons.
    """
    problems, vocabularies = list(_problems(pipeline)), {}
    for side, tokenizer in pipeline.task.tokenizers.items():
        try:
            vocabularies[side] = sentencepiece_model(tokenizer, kept(tokenizer))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(dict.fromkeys(f"Marian: {problem}" for problem in problems))
    for side, content in vocabularies.items():
        with writing(folder / f"{side}.spm") as file:
            file.write(content)
    arrays = {name: tensor.detach().float().numpy() for name, tensor in marian_tensors(pipeline)}
    _write_npz(folder / "model.npz", arrays, _lines({**OTHER_SETTINGS, **_settings(pipeline)}))
    write_text(folder / "decoder.yml", _lines(_decoding(pipeline)))
    write_text(folder / "README.md", model_card(pipeline, languages))
    return folder


def _problems(pipeline: "Pipeline") -> Iterator[str]:
    yield from text_problems(pipeline)
    model, config = pipeline.model, pipeline.recipe.model
    if type(model) not in (Transformer, SsruTransformer):
        yield f'model.kind = "{config.kind}" cannot be exported; expected "transformer" or "ssru_transformer".'  # type: ignore[attr-defined]
        return
    assert isinstance(config, (Transformer.Config, SsruTransformer.Config))
    for key, values in HAS.items():
        if (value := getattr(config, key, values[0])) not in values:
            yield f"model.{key} = {_toml(value)}: it has {' and '.join(map(_toml, values))}."
    if config.width_of_head * config.heads != config.d_model:
        yield f"model.head_width = {config.head_width}: it divides d_model among the heads."
    if config.norm_epsilon > WIDEST_EPSILON:
        yield f"model.norm_epsilon = {config.norm_epsilon}: it has 1e-06; {WIDEST_EPSILON} at most is near enough."
    if isinstance(config, SsruTransformer.Config):
        if config.positions == "tensor2tensor" and not config.decoder_positions:
            yield "model.decoder_positions = false: it adds positions to what SSRU reads. Train with true."
        if config.embedding_norm:
            yield "model.embedding_norm = true: it norms what SSRU reads, too."
    if not (config.zero_start or _starts_with_zeros(model, pipeline)):
        yield "model.zero_start = false: it begins outputs with zeros, this model with a vector. Train with true."


def _toml(value: Any) -> str:
    return json.dumps(value)


def _starts_with_zeros(model: Any, pipeline: "Pipeline") -> bool:
    target = pipeline.task.columns["target"]
    start = getattr(target, "start", None)
    return start is not None and not model.target_embedding.weight[start].any()


def kept(tokenizer: Tokenizer) -> int:
    """How many of its tokens go: all, or all but padding if that is the last one."""
    return tokenizer.size - (tokenizer.pad == tokenizer.size - 1)


def marian_tensors(pipeline: "Pipeline") -> Named:
    """Every weight by Marian's name: matrices as (inputs, outputs), vectors as (1, outputs)."""
    model: Any = pipeline.model
    yield from _embeddings(pipeline)
    for side in ("encoder", "decoder"):
        stack = getattr(model, side)
        if getattr(stack, "embedding_norm", None) is not None:
            yield from _norm(f"{side}_emb", stack.embedding_norm, "_pre")
        if pipeline.recipe.model.norm == "pre":  # type: ignore[attr-defined]
            yield from _norm(f"{side}_top", stack.norm, "")
        for number, block in enumerate(stack.blocks, 1):
            yield from _block(f"{side}_l{number}", block)


def _embeddings(pipeline: "Pipeline") -> Named:
    """Marian multiplies by sqrt(D) with positions, and without them leaves embeddings as they are."""
    model: Any = pipeline.model
    source, target = (kept(pipeline.task.tokenizers[side]) for side in SIDES)
    tied = _tied(pipeline)
    scale = 1.0 if _placed(pipeline) else model.target_embedding.weight.shape[1] ** 0.5
    embedding = model.target_embedding.weight[:target] * scale
    yield "Wemb" if tied in ("all", "input") else "decoder_Wemb", embedding
    if tied in ("output", "none"):
        yield "encoder_Wemb", model.source_embedding.weight[:source] * scale
    if tied in ("input", "none"):
        yield "decoder_ff_logit_out_Wt", model.output.weight[:target]
    yield "decoder_ff_logit_out_b", biases(model.output, target_of(pipeline).unwritten)[None, :target]


def _placed(pipeline: "Pipeline") -> bool:
    return pipeline.recipe.model.positions != "none"  # type: ignore[attr-defined]


def _tied(pipeline: "Pipeline") -> str:
    """As `transduce.layers.embedding.Tied`; a matrix that is read with another scale is one of its own."""
    model: Any = pipeline.model
    one_input = model.source_embedding is model.target_embedding
    if model.output is model.target_embedding and _placed(pipeline):
        return "all" if one_input else "output"
    return "input" if one_input else "none"


def _block(name: str, block: Any) -> Named:
    if unit := getattr(block, "unit", None):
        yield f"{name}_rnn_W", unit.value.weight.T
        yield from _linear(f"{name}_rnn", "f", unit.forget)
        behind = block.unit_residual.placement == "post"
        yield from _norm(f"{name}_rnn_ffn" if behind else f"{name}_rnn", block.unit_residual.norm, _suffix(block))
    else:
        yield from _attention(f"{name}_self", block.self_attention)
        yield from _norm(f"{name}_self_Wo", block.self_residual.norm, _suffix(block))
    if block.cross_attention is not None:
        yield from _attention(f"{name}_context", block.cross_attention)
        yield from _norm(f"{name}_context_Wo", block.cross_residual.norm, _suffix(block))
    yield from _linear(f"{name}_ffn", "1", block.feed_forward.inner)
    yield from _linear(f"{name}_ffn", "2", block.feed_forward.outer)
    yield from _norm(f"{name}_ffn_ffn", block.feed_forward_residual.norm, _suffix(block))


def _suffix(block: Any) -> str:
    return "_pre" if block.feed_forward_residual.placement == "pre" else ""


def _attention(name: str, attention: "MultiHeadAttention") -> Named:
    key, value = key_value_heads_spread(attention)
    for letter, layer in (("q", attention.query), ("k", key), ("v", value), ("o", attention.output)):
        yield from _linear(name, letter, layer)


def _linear(name: str, letter: str, layer: Any) -> Named:
    yield f"{name}_W{letter}", layer.weight.T
    yield f"{name}_b{letter}", layer.bias[None]


def _norm(name: str, norm: Any, suffix: str) -> Named:
    yield f"{name}_ln_scale{suffix}", norm.weight[None]
    yield f"{name}_ln_bias{suffix}", norm.bias[None]


def _settings(pipeline: "Pipeline") -> dict[str, Any]:
    config: Any = pipeline.recipe.model
    recurrent, tied = isinstance(pipeline.model, SsruTransformer), _tied(pipeline)
    before, after, top = next(operations for operations, norm in NORMS.items() if norm == config.norm)
    return {
        "dim-vocabs": [kept(pipeline.task.tokenizers[side]) for side in SIDES],
        "dim-emb": config.d_model,
        "enc-depth": config.encoder_layers,
        "dec-depth": config.decoder_layers,
        "dec-cell": "ssru" if recurrent else "gru",
        "tied-embeddings-all": tied == "all",
        "tied-embeddings": tied == "output",
        "tied-embeddings-src": tied == "input",
        "transformer-heads": config.heads,
        "transformer-dim-ffn": config.feed_forward,
        "transformer-ffn-activation": config.activation,
        "transformer-preprocess": before,
        "transformer-postprocess": after,
        "transformer-postprocess-top": top,
        "transformer-postprocess-emb": "nd" if config.embedding_norm else "d",
        "transformer-decoder-autoreg": "rnn" if recurrent else "self-attention",
        "transformer-disable-position-embeddings": not _placed(pipeline),
        "version": f"v1.12.42 Transduce {__version__}",
    }


def _decoding(pipeline: "Pipeline") -> dict[str, Any]:
    search = pipeline.recipe.search
    return {
        "relative-paths": True,
        "models": ["model.npz"],
        "vocabs": [f"{side}.spm" for side in SIDES],
        "beam-size": 1 if search.method == "greedy" else search.beam,
        "normalize": search.alpha if search.length_rule == "power" else 0,
    }


def _lines(settings: Mapping[str, Any]) -> str:
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in sorted(settings.items()))


def _write_npz(path: Path, arrays: dict[str, NDArray[np.float32]], settings: str) -> None:
    text = np.frombuffer(settings.encode() + b"\0", np.int8)
    with writing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as packed:
        for name, array in {**arrays, SETTINGS: text}.items():
            content = io.BytesIO()
            np.lib.format.write_array(content, np.ascontiguousarray(array), allow_pickle=False)
            packed.writestr(zipfile.ZipInfo(f"{name}.npy", TIME), content.getvalue())


OTHER_SETTINGS: dict[str, Any] = {
    "type": "transformer",
    "dec-cell-base-depth": 2,
    "dec-cell-high-depth": 1,
    "dim-rnn": 1024,
    "enc-cell": "gru",
    "enc-cell-depth": 1,
    "enc-type": "bidirectional",
    "factors-combine": "sum",
    "factors-dim-emb": 0,
    "input-types": [],
    "layer-normalization": False,
    "lemma-dependency": "",
    "lemma-dim-emb": 0,
    "output-omit-bias": False,
    "right-left": False,
    "skip": False,
    "transformer-attention-mask": "default",
    "transformer-decoder-dim-ffn": 0,
    "transformer-decoder-ffn-depth": 0,
    "transformer-ffn-depth": 2,
    "transformer-guided-alignment-layer": "last",
    "transformer-no-affine": False,
    "transformer-no-bias": False,
    "transformer-no-projection": False,
    "transformer-pool": False,
    "transformer-rnn-projection": False,
    "transformer-tied-layers": [],
    "transformer-train-position-embeddings": False,
    "ulr": False,
}
"""What is the same in all, as Marian itself writes it."""


if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

LEAST_FACTOR = 3.0  # Marian's default
BETWEEN = " ||| "  # the fields of a list of hypotheses: line, tokens, what each model says, their sum
WORKSPACE = 256  # megabytes for each thread


class MarianEngine:
    """Runs an exported model with Marian, which cuts texts by its own SentencePiece.

    Args:
        pipeline: of the model that was exported.
        folder: what `transduce.interop.export_marian` wrote.
    """

    name = "Marian"

    def __init__(self, pipeline: "Pipeline", folder: Path) -> None:
        self._library = library("pymarian", "comparing with Marian", "marian")
        self._folder, self._most = folder.absolute(), positions_of(pipeline)
        self._source, self._target = (pipeline.task.tokenizers[side] for side in ("source", "target"))
        self._translators: dict[float, Any] = {}

    def greedy(self, texts: Sequence[str], longest: int) -> list[EngineOutput]:
        """See `transduce.interop.parity.Engine`. Marian's limit grows with the source; longer outputs are cut off."""
        shortest = min(len(ids) + 1 for ids in self._source.encode(texts))
        found = self._translator(max(LEAST_FACTOR, longest / shortest)).translate(list(texts))
        outputs = dict(self._output(line, longest) for line in found)
        return [outputs.get(place, EngineOutput((), "", None)) for place in range(len(texts))]

    def _output(self, line: str, longest: int) -> tuple[int, EngineOutput]:
        """The place of a text, and what was written of it."""
        place, _, rest = line.partition(BETWEEN)
        written, _, score = rest.rsplit(BETWEEN, 2)
        tokens = written.split(" ") if written else []
        cut = tuple(tokens[:longest])
        text = self._target.decode(self._target.ids(cut))
        return int(place), EngineOutput(cut, text, float(score) if len(tokens) < longest else None)

    def _translator(self, factor: float) -> Any:
        """One for each limit of lengths, which Marian takes only when it is made."""
        if factor not in self._translators:
            with tempfile.TemporaryDirectory() as folder:
                settings = Path(folder, "settings.yml")
                write_text(settings, json.dumps(self._settings(factor)))
                with _no_standard_error():
                    self._translators[factor] = self._library.Translator(f"--config {settings}")
        return self._translators[factor]

    def _settings(self, factor: float) -> dict[str, Any]:
        return {
            "models": [str(self._folder / "model.npz")],
            "vocabs": [str(self._folder / f"{side}.spm") for side in ("source", "target")],
            "beam-size": 1,
            "n-best": True,
            "no-spm-decode": True,
            "allow-unk": True,  # where our search may choose it too; else its bias forbids it
            "mini-batch": BATCH,
            "max-length": self._most,
            "max-length-factor": factor,
            "cpu-threads": torch.get_num_threads(),
            "workspace": WORKSPACE,
            "log-level": "error",
            "quiet-translation": True,
        }


@contextmanager
def _no_standard_error() -> Iterator[None]:
    """Also of C++: the SentencePiece in Marian tells everyone that it changes no characters."""
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


class ExportMarian:
    """See `transduce.interop.exports.Export`."""

    write, engine = staticmethod(export_marian), MarianEngine
