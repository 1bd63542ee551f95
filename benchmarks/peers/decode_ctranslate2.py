"""CTranslate2 on the weights of a Transduce model file; arguments in `decoding`, and --compute float32 or int8.

Batches: two translators of one thread each on two cores, as it is fastest; one sentence at a time: one thread.
"""

import tempfile
from pathlib import Path
from typing import Any

import ctranslate2
import model_file
import numpy as np
from ctranslate2.specs import common_spec
from ctranslate2.specs.transformer_spec import TransformerSpec
from decoding import ALPHA, END, LONGEST, WORKERS, Rows, arguments, measure


def main() -> None:
    """Convert, measure. It sorts by length and makes batches by itself."""
    asked = arguments(("--compute", "float32"))
    with tempfile.TemporaryDirectory() as folder:
        convert(asked.model, Path(folder) / "converted")
        translator = ctranslate2.Translator(
            str(Path(folder) / "converted"),
            compute_type=asked.compute,
            inter_threads=1 if asked.batch == 1 else WORKERS,
            intra_threads=1,
        )

        def translate(sources: Rows) -> Rows:
            found = translator.translate_batch(
                [[str(token) for token in [*source, END]] for source in sources],
                max_batch_size=asked.batch,
                beam_size=asked.beam,
                length_penalty=ALPHA if asked.beam > 1 else 0,
                max_decoding_length=LONGEST,
            )
            return [[int(token) for token in result.hypotheses[0]] for result in found]

        measure(asked, translate)


def convert(path: Path, folder: Path) -> None:
    """Write the model in CTranslate2's form."""
    weights, config = model_file.read(path)
    layers = (config["encoder_layers"], config["decoder_layers"])
    pre = config["norm"] == "pre"
    spec = TransformerSpec.from_config(layers, config["heads"], pre_norm=pre, activation=common_spec.Activation.RELU)
    embedding = weights["target_embedding.weight"]
    positions = model_file.sinusoids(512, config["d_model"])
    spec.encoder.embeddings[0].weight = embedding
    spec.decoder.embeddings.weight = embedding
    spec.decoder.projection.weight = embedding
    for side, part in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        part.position_encodings.encodings = positions
        if pre:
            _norm(part.layer_norm, weights, f"{side}.norm")
        for number, layer in enumerate(part.layer):
            _layer(layer, weights, f"{side}.blocks.{number}", cross=side == "decoder")
    names = ["<blank>", "<s>", "</s>", *map(str, range(3, len(embedding)))]
    names = [name if place != END else str(END) for place, name in enumerate(names)]
    spec.register_source_vocabulary(names)
    spec.register_target_vocabulary(names)
    spec.config.bos_token, spec.config.eos_token = "<s>", str(END)
    spec.config.unk_token, spec.config.decoder_start_token = "3", "<s>"
    spec.validate()
    spec.optimize(quantization=None)
    folder.mkdir()
    spec.save(str(folder))


def _layer(layer: Any, weights: dict[str, np.ndarray], name: str, cross: bool) -> None:
    own = layer.self_attention
    query, both = _linear(weights, f"{name}.self_attention.query"), _linear(weights, f"{name}.self_attention.key_value")
    own.linear[0].weight, own.linear[0].bias = (np.concatenate(pair) for pair in zip(query, both, strict=True))
    own.linear[1].weight, own.linear[1].bias = _linear(weights, f"{name}.self_attention.output")
    _norm(own.layer_norm, weights, f"{name}.self_residual.norm")
    if cross:
        for place, part in enumerate(("query", "key_value", "output")):
            linear = layer.attention.linear[place]
            linear.weight, linear.bias = _linear(weights, f"{name}.cross_attention.{part}")
        _norm(layer.attention.layer_norm, weights, f"{name}.cross_residual.norm")
    layer.ffn.linear_0.weight, layer.ffn.linear_0.bias = _linear(weights, f"{name}.feed_forward.inner")
    layer.ffn.linear_1.weight, layer.ffn.linear_1.bias = _linear(weights, f"{name}.feed_forward.outer")
    _norm(layer.ffn.layer_norm, weights, f"{name}.feed_forward_residual.norm")


def _linear(weights: dict[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    return weights[f"{name}.weight"], weights[f"{name}.bias"]


def _norm(spec: Any, weights: dict[str, np.ndarray], name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]


if __name__ == "__main__":
    main()
