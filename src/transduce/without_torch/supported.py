"""Which model files can be used without torch: what they say is compared with what is supported here.

Transformers that translate, with self-attention or a recurrent unit (SSRU) in the decoder: those trained here, and
models of others as they are imported (Marian, Firefox, BART, mBART, M2M-100, NLLB, Pegasus). T5 is not among them: its
norms and relative positions are not supported here.

Shapes: D width, S source and V target vocabulary, F hidden width of the feed-forward.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transduce.core.earlier_names import current_names
from transduce.core.errors import InputError
from transduce.core.model_file import ColumnTables, check_weights
from transduce.core.tensor_file import TensorInfo
from transduce.data.tokenizers.framed_text import FramedText
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.kernels.native.decoder import FEED_FORWARDS, GATES
from transduce.kernels.sinusoids import BASE

WHOLE = "Install the whole package with torch to use it: pip install transduce."
EPSILON = 1e-5  # of the norms, as `transduce.layers.norms` has it
ADDED = ("sinusoidal", "tensor2tensor")  # positions that a formula gives
POSITIONS = ("none", *ADDED, "learned", "rotary")
KINDS = ("transformer", "ssru_transformer")
PARTS = {
    "score": "scaled_dot",
    "normalizer": "softmax",
    "norm_kind": "layer",
    "pattern": "full",
    "ctc_weight": 0,
    "head_width": None,
    "rotary_base": BASE,
    "rotary_scaling": None,
    "query_key_norm": False,
    "shared_layers": False,
    "encoder_positions": None,
    "encoder_max_length": None,
}
"""Settings of a model, with the one value that is supported here."""
SWITCHES = ("embedding_norm", "scale_embeddings", "output_bias", "zero_start", "decoder_positions", "pointer")


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a supported model is made of, as its file says it.

    pre: whether norms stand before the sub-layers. tied: which embeddings share a matrix.
    activation: of the feed-forward layers, of FEED_FORWARDS.
    recurrent: whether the decoder's blocks have SSRU in the place of self-attention. positions are the encoder's;
        decoder_positions those of the decoder.
    epsilon: of the norms. embedding_norm: whether there is one behind embeddings and positions; with `recurrent` the
        encoder's alone.
    scaled: whether embeddings are multiplied by sqrt(D). biased: whether each logit has a bias.
    zero_start: whether outputs begin with a vector of zeros.
    """

    width: int
    heads: int
    hidden: int
    encoder_layers: int
    decoder_layers: int
    positions: str
    max_length: int
    pre: bool
    tied: str
    activation: str
    recurrent: bool
    decoder_positions: str
    first_position: int
    epsilon: float
    embedding_norm: bool
    scaled: bool
    biased: bool
    zero_start: bool
    pointer: bool

    def positions_of(self, side: str) -> str:
        """Those of the encoder or the decoder."""
        return self.positions if side == "encoder" else self.decoder_positions

    def norms_embeddings(self, side: str) -> bool:
        """Whether a norm stands behind the embeddings of this side."""
        return self.embedding_norm and not (self.recurrent and side == "decoder")


def sizes_of(config: Mapping[str, Any], columns: ColumnTables) -> Sizes:
    """Those of the model that a file's config describes.

    Raises:
        InputError: the model, or what it is for, is not supported without torch; the settings are wrong.
    """
    model, task = current_names(section_of(config, "model"), PARTS), section_of(config, "task")
    problems = [*_unsupported(model, task, columns), *_wrong(model)]
    if problems:
        raise InputError(problems)
    recurrent, positions = model.get("kind") == "ssru_transformer", model["positions"]
    return Sizes(
        width=model["d_model"],
        heads=model["heads"],
        hidden=model["feed_forward"],
        encoder_layers=model["encoder_layers"],
        decoder_layers=model["decoder_layers"],
        positions=positions,
        max_length=model.get("max_length", 1024),
        pre=model["norm"] == "pre",
        tied=model["tied"],
        activation=model.get("activation", "relu"),
        recurrent=recurrent,
        decoder_positions="none" if recurrent and not model.get("decoder_positions") else positions,
        first_position=model.get("first_position", 0),
        epsilon=float(model.get("norm_epsilon", EPSILON)),
        embedding_norm=model.get("embedding_norm", False),
        scaled=model.get("scale_embeddings", True),
        biased=model.get("output_bias", False),
        zero_start=model.get("zero_start", False),
        pointer=model.get("pointer", False),
    )


def framed(columns: ColumnTables, tokenizers: Mapping[str, Tokenizer]) -> tuple[FramedText, FramedText]:
    """Source and target, as the file's columns describe them.

    Args:
        tokenizers: by side, or "joint".

    Raises:
        InputError: a side has no tokenizer; tokens around a text that are none of it; outputs whose first token is
            restricted, which needs a search that goes step by step.
    """
    if missing := [side for side in ("source", "target") if not {"joint", side} & tokenizers.keys()]:
        raise InputError(f"the model file has no {side} tokenizer, which its task needs." for side in missing)
    found = (
        FramedText.from_dict(columns[side], tokenizers.get("joint") or tokenizers[side])
        for side in ("source", "target")
    )
    source, target = found
    if target.never_first:
        raise InputError(f"its outputs may not begin with {', '.join(target.never_first)}. {WHOLE}")
    return source, target


def section_of(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A section of a recipe; empty where there is none."""
    found = config.get(name)
    return found if isinstance(found, dict) else {}


def max_source_length(config: Mapping[str, Any]) -> int:
    """The longest source, in tokens, that a model was trained on. Raises InputError where its file does not say it."""
    most = section_of(section_of(config, "data"), "filters").get("max_tokens")
    if type(most) is not int or most < 1:
        raise InputError(
            f"the model file's config: data.filters.max_tokens: expected a whole number of at least 1; got {most!r}."
        )
    return most


def _unsupported(model: Mapping[str, Any], task: Mapping[str, Any], columns: ColumnTables) -> Iterator[str]:
    kind = task.get("kind", "translation")
    if kind != "translation" or {side: each.get("kind") for side, each in columns.items()} != dict.fromkeys(
        ("source", "target"), "tokens"
    ):
        yield f'task.kind = "{kind}": without torch, Transduce only translates texts. {WHOLE}'
    if model.get("kind", "transformer") not in KINDS:
        yield f'model.kind = "{model.get("kind")}": without torch, Transduce only runs Transformers. {WHOLE}'
        return
    heads = model.get("heads")
    parts = {**PARTS, "key_value_heads": heads}
    if model.get("kind") == "ssru_transformer":
        parts["pointer"] = False
    for name, known in parts.items():
        if model.get(name, known) != known:
            yield f"model.{name} = {model[name]!r}: not available without torch. {WHOLE}"
    if model.get("positions") not in POSITIONS:
        known = ", ".join(POSITIONS)
        yield f"model.positions = {model.get('positions')!r}: without torch, it must be one of {known}. {WHOLE}"


def _wrong(model: Mapping[str, Any]) -> Iterator[str]:
    where = "the model file's config: model"
    for name in ("d_model", "heads", "feed_forward", "encoder_layers", "decoder_layers"):
        if type(model.get(name)) is not int or model[name] < 1:
            yield f"{where}.{name}: expected a whole number of at least 1; got {model.get(name)!r}."
            return
    for name in ("max_length", "first_position"):
        if type(model.get(name, 1)) is not int or model.get(name, 1) < 0:
            yield f"{where}.{name}: expected a whole number of at least 0; got {model[name]!r}."
    for name in SWITCHES:
        if type(model.get(name, False)) is not bool:
            yield f"{where}.{name}: expected true or false; got {model[name]!r}."
    epsilon = model.get("norm_epsilon", EPSILON)
    if type(epsilon) is not float or not 0 < epsilon < 1:
        yield f"{where}.norm_epsilon: expected a number between 0 and 1; got {epsilon!r}."
    activation = model.get("activation", "relu")
    if activation not in FEED_FORWARDS:
        yield f"{where}.activation: expected one of {', '.join(FEED_FORWARDS)}; got {activation!r}."
    for name, known in (("norm", ("pre", "post")), ("tied", ("all", "output", "input", "none"))):
        if model.get(name) not in known:
            yield f"{where}.{name}: expected one of {', '.join(known)}; got {model.get(name)!r}."
    per_head, left = divmod(model["d_model"], model["heads"])
    positions = model.get("positions")
    even = {**dict.fromkeys(ADDED, model["d_model"]), "rotary": per_head}.get(str(positions), 0)
    if left or even % 2:
        yield f"{where}.d_model = {model['d_model']} does not fit heads = {model['heads']} and {positions} positions."


def check_shapes(sizes: Sizes, vocabularies: tuple[int, int], weights: Mapping[str, TensorInfo]) -> None:
    """Compares the weights that a file has with those of its model, before any is read.

    Args:
        vocabularies: sizes of source and target.

    Raises:
        InputError: some are missing, of another shape or not in fp32, or there are others; the sizes are too large.
    """
    layers = sizes.encoder_layers + sizes.decoder_layers
    if layers > len(weights):
        raise InputError(f"the model file's config: {layers} layers, but the file has {len(weights)} weights.")
    apart = "source_embedding.weight" in weights
    check_weights(dict(_shapes(sizes, vocabularies, apart)), weights)
    wrong = [name for name, info in weights.items() if info.dtype != "F32"]
    if wrong:
        raise InputError(f'weight "{name}" is {weights[name].dtype} in the file; expected F32.' for name in wrong)


def _shapes(sizes: Sizes, vocabularies: tuple[int, int], separate: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of every weight; separate: vocabularies of one size are not the same."""
    width, (source, target) = sizes.width, vocabularies
    yield "target_embedding.weight", (target, width)
    if sizes.tied not in ("all", "input") or source != target or separate:
        yield "source_embedding.weight", (source, width)
    if sizes.tied in ("none", "input"):
        yield "output.weight", (target, width)
    if sizes.biased:
        yield f"{output_of(sizes)}.bias", (target,)
    if sizes.pointer:
        yield from _weight_and_bias("pointer.query", (width, width))
        yield from _weight_and_bias("pointer.generate", (1, 2 * width))
    for side, layers in (("encoder", sizes.encoder_layers), ("decoder", sizes.decoder_layers)):
        if sizes.positions_of(side) == "learned":
            yield f"{side}.positions.weight_TD", (sizes.max_length, width)
        if sizes.norms_embeddings(side):
            yield from _weight_and_bias(f"{side}.embedding_norm", (width,))
        for layer in range(layers):
            for name, shape in _block_shapes(sizes, cross=side == "decoder"):
                yield f"{side}.blocks.{layer}.{name}", shape
        if sizes.pre:
            yield from _weight_and_bias(f"{side}.norm", (width,))


def output_of(sizes: Sizes) -> str:
    """The name of the embedding that is the output layer."""
    return "output" if sizes.tied in ("none", "input") else "target_embedding"


def _block_shapes(sizes: Sizes, cross: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    width, recurrent = sizes.width, cross and sizes.recurrent
    if recurrent:
        yield from _weight_and_bias("unit.forget", (width, width))
        yield "unit.value.weight", (width, width)
    for attention in ["self_attention"] * (not recurrent) + ["cross_attention"] * cross:
        yield from _weight_and_bias(f"{attention}.query", (width, width))
        yield from _weight_and_bias(f"{attention}.key_value", (2 * width, width))
        yield from _weight_and_bias(f"{attention}.output", (width, width))
    yield from _weight_and_bias("feed_forward.inner", (sizes.hidden, width))
    if sizes.activation in GATES:
        yield from _weight_and_bias("feed_forward.linear", (sizes.hidden, width))
    yield from _weight_and_bias("feed_forward.outer", (width, sizes.hidden))
    first = "unit_residual" if recurrent else "self_residual"
    for residual in (first, *["cross_residual"] * cross, "feed_forward_residual"):
        yield from _weight_and_bias(f"{residual}.norm", (width,))


def _weight_and_bias(name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Weight and bias, which has a number for each row of the weight."""
    yield f"{name}.weight", shape
    yield f"{name}.bias", shape[:1]
