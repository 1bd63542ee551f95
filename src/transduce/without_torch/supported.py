"""Which model files can be used without torch: what they say is compared with what the kernels do.

Shapes: D width, S source and V target vocabulary, F hidden width of the feed-forward.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from transduce.core.earlier_names import current_names
from transduce.core.errors import InputError
from transduce.core.model_file import ColumnTables, check_weights
from transduce.core.tensor_file import TensorInfo
from transduce.kernels.native.decoder import FEED_FORWARDS, GATES
from transduce.kernels.sinusoids import BASE

WHOLE = "Install the whole package with torch to use it: pip install transduce."
EPSILON = 1e-5  # of the norms, as `transduce.layers.norms` has it
POSITIONS = ("none", "sinusoidal", "learned", "rotary")
TOKENS = ("before", "after", "never", "never_first", "roles")  # keys of a column with tokens of its own
PARTS = {
    "score": "scaled_dot",
    "normalizer": "softmax",
    "norm_kind": "layer",
    "pattern": "full",
    "pointer": False,
    "ctc_weight": 0,
    "head_width": None,
    "norm_epsilon": EPSILON,
    "embedding_norm": False,
    "first_position": 0,
    "rotary_base": BASE,
    "rotary_scaling": None,
    "query_key_norm": False,
    "encoder_positions": None,
    "encoder_max_length": None,
    "scale_embeddings": True,
    "output_bias": False,
    "zero_start": False,
}
"""Settings of a model, with the one value that the kernels know."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a supported model is made of, as its file says it.

    pre: whether norms stand before the sub-layers. tied: which embeddings share a matrix.
    activation: of the feed-forward layers, of FEED_FORWARDS.
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


def sizes_of(config: Mapping[str, Any], columns: ColumnTables) -> Sizes:
    """Those of the model that a file's config describes.

    Raises:
        InputError: the model, or what it is for, is not supported without torch; the settings are wrong.
    """
    model, task = current_names(section_of(config, "model"), PARTS), section_of(config, "task")
    problems = [*_unsupported(model, task, columns), *_wrong(model)]
    if problems:
        raise InputError(problems)
    return Sizes(
        width=model["d_model"],
        heads=model["heads"],
        hidden=model["feed_forward"],
        encoder_layers=model["encoder_layers"],
        decoder_layers=model["decoder_layers"],
        positions=model["positions"],
        max_length=model.get("max_length", 1024),
        pre=model["norm"] == "pre",
        tied=model["tied"],
        activation=model.get("activation", "relu"),
    )


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
    if model.get("kind", "transformer") != "transformer":
        yield f'model.kind = "{model.get("kind")}": without torch, Transduce only runs Transformers. {WHOLE}'
        return
    heads = model.get("heads")
    parts = {**PARTS, "key_value_heads": heads}
    for name, known in parts.items():
        if model.get(name, known) != known:
            yield f"model.{name} = {model[name]!r}: the kernels do not have it. {WHOLE}"
    if model.get("positions") not in POSITIONS:
        yield f"model.positions = {model.get('positions')!r}: the kernels have {', '.join(POSITIONS)}. {WHOLE}"
    if model.get("tied") == "input":
        yield f'model.tied = "input": without torch, Transduce shares no matrix like that. {WHOLE}'
    for side, column in columns.items():
        if found := [key for key in TOKENS if column.get(key) is not None]:
            yield f"the {side} has tokens of its own ({', '.join(found)}), as models of others do. {WHOLE}"


def _wrong(model: Mapping[str, Any]) -> Iterator[str]:
    where = "the model file's config: model"
    for name in ("d_model", "heads", "feed_forward", "encoder_layers", "decoder_layers"):
        if type(model.get(name)) is not int or model[name] < 1:
            yield f"{where}.{name}: expected a whole number of at least 1; got {model.get(name)!r}."
            return
    if type(model.get("max_length", 1)) is not int:
        yield f"{where}.max_length: expected a whole number; got {model['max_length']!r}."
    activation = model.get("activation", "relu")
    if activation not in FEED_FORWARDS:
        yield f"{where}.activation: expected one of {', '.join(FEED_FORWARDS)}; got {activation!r}."
    for name, known in (("norm", ("pre", "post")), ("tied", ("all", "output", "input", "none"))):
        if model.get(name) not in known:
            yield f"{where}.{name}: expected one of {', '.join(known)}; got {model.get(name)!r}."
    per_head, left = divmod(model["d_model"], model["heads"])
    positions = model.get("positions")
    even = {"sinusoidal": model["d_model"], "rotary": per_head}.get(str(positions), 0)
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
    if sizes.tied != "all" or source != target or separate:
        yield "source_embedding.weight", (source, width)
    if sizes.tied == "none":
        yield "output.weight", (target, width)
    for side, layers in (("encoder", sizes.encoder_layers), ("decoder", sizes.decoder_layers)):
        if sizes.positions == "learned":
            yield f"{side}.positions.weight_TD", (sizes.max_length, width)
        for layer in range(layers):
            for name, shape in _block_shapes(sizes, cross=side == "decoder"):
                yield f"{side}.blocks.{layer}.{name}", shape
        if sizes.pre:
            yield from _weight_and_bias(f"{side}.norm", (width,))


def _block_shapes(sizes: Sizes, cross: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    width = sizes.width
    for attention in ("self_attention", "cross_attention")[: 1 + cross]:
        yield from _weight_and_bias(f"{attention}.query", (width, width))
        yield from _weight_and_bias(f"{attention}.key_value", (2 * width, width))
        yield from _weight_and_bias(f"{attention}.output", (width, width))
    yield from _weight_and_bias("feed_forward.inner", (sizes.hidden, width))
    if sizes.activation in GATES:
        yield from _weight_and_bias("feed_forward.linear", (sizes.hidden, width))
    yield from _weight_and_bias("feed_forward.outer", (width, sizes.hidden))
    for residual in ("self_residual", "cross_residual", "feed_forward_residual"):
        if cross or residual != "cross_residual":
            yield from _weight_and_bias(f"{residual}.norm", (width,))


def _weight_and_bias(name: str, shape: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Weight and bias, which has a number for each row of the weight."""
    yield f"{name}.weight", shape
    yield f"{name}.bias", shape[:1]
