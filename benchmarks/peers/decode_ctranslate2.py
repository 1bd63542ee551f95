"""CTranslate2 on the weights of a Transduce model file.

    python decode_ctranslate2.py WORK MODEL [--compute float32|int8] [--beam 5] [--batch 64] [--outputs FILE]

Batches: two translators of one thread each on two cores, as it is fastest; one sentence at a time: one thread.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import ctranslate2
import model_file
import numpy as np
from ctranslate2.specs import common_spec
from ctranslate2.specs.transformer_spec import TransformerSpec

ALPHA, END = 0.75, 2


def main() -> None:
    """Convert, warm up, measure, report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--compute", default="float32")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--outputs", type=Path)
    asked = parser.parse_args()
    sources = test_sources(asked.work)[: asked.sentences]
    with tempfile.TemporaryDirectory() as folder:
        convert(asked.model, Path(folder) / "converted")
        alone = asked.batch == 1
        translator = ctranslate2.Translator(
            str(Path(folder) / "converted"),
            compute_type=asked.compute,
            inter_threads=1 if alone else os.cpu_count(),
            intra_threads=1,
        )
        print(json.dumps(measure(translator, sources, asked)))


def measure(translator: Any, sources: list[list[str]], asked: argparse.Namespace) -> dict[str, Any]:
    """Sentences a second, or milliseconds a sentence at the 50th and 95th percentile when they come alone."""
    options = {
        "beam_size": asked.beam,
        "length_penalty": ALPHA if asked.beam > 1 else 0,
        "max_decoding_length": 100,
    }
    translator.translate_batch(sources[:100], max_batch_size=asked.batch, **options)
    if asked.batch == 1:
        milliseconds = []
        for source in sources:
            begun = time.perf_counter()
            translator.translate_batch([source], **options)
            milliseconds.append(1000 * (time.perf_counter() - begun))
        figures = {"p50_ms": float(np.percentile(milliseconds, 50)), "p95_ms": float(np.percentile(milliseconds, 95))}
    else:
        begun = time.perf_counter()
        found = translator.translate_batch(sources, max_batch_size=asked.batch, **options)
        figures = {"sentences_per_second": len(sources) / (time.perf_counter() - begun)}
        if asked.outputs:
            lines = (" ".join(result.hypotheses[0]) for result in found)
            asked.outputs.write_text("".join(f"{line}\n" for line in lines))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {**figures, "peak_memory_gb": peak / 1e6}


def test_sources(work: Path) -> list[list[str]]:
    """Token ids as the names that they have in the converted vocabulary; each source with its end."""
    with np.load(work) as arrays:
        rows = np.split(arrays["test_values"], arrays["test_ends"][:-1])
    return [[str(token) for token in [*row.tolist(), END]] for row in rows]


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
