"""Marian's own files: written with numpy from a model of Hugging Face, and compared with that model.

Hugging Face's Marian has other positions and another epsilon than Marian; both are put right in the model here.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from converted import converted_file, logits_of_both
from foreign_models import marian
from random_models import sentences
from transduce.core.errors import InputError
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages

pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

SETTINGS = """type: transformer
dim-emb: 16
enc-depth: 2
dec-depth: 2
transformer-heads: 2
transformer-dim-ffn: 24
transformer-ffn-activation: swish
transformer-preprocess: ""
transformer-postprocess: dan
transformer-postprocess-emb: d
transformer-decoder-autoreg: self-attention
tied-embeddings-all: true
dim-vocabs:
  - 89
  - 89
"""


def as_marian(model: Any, settings: str = SETTINGS) -> dict[str, Any]:
    """The arrays of a model of Hugging Face, whose last token is `<pad>`, by Marian's names."""
    weights = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items()}
    arrays: dict[str, Any] = {
        "special:model.yml": np.frombuffer(settings.encode() + b"\0", np.uint8),
        "Wemb": weights["model.shared.weight"][:-1],
        "decoder_ff_logit_out_b": weights["final_logits_bias"][:, :-1],
    }
    for side in ("encoder", "decoder"):
        for layer in range(2):
            theirs, ours = f"model.{side}.layers.{layer}", f"{side}_l{layer + 1}"
            parts = [("self_attn", "self")] + [("encoder_attn", "context")] * (side == "decoder")
            for name, part in parts:
                for letter, projection in zip("qkvo", ("q_proj", "k_proj", "v_proj", "out_proj"), strict=True):
                    arrays[f"{ours}_{part}_W{letter}"] = weights[f"{theirs}.{name}.{projection}.weight"].T
                    arrays[f"{ours}_{part}_b{letter}"] = weights[f"{theirs}.{name}.{projection}.bias"][None]
                arrays[f"{ours}_{part}_Wo_ln_scale"] = weights[f"{theirs}.{name}_layer_norm.weight"][None]
                arrays[f"{ours}_{part}_Wo_ln_bias"] = weights[f"{theirs}.{name}_layer_norm.bias"][None]
            for number in (1, 2):
                arrays[f"{ours}_ffn_W{number}"] = weights[f"{theirs}.fc{number}.weight"].T
                arrays[f"{ours}_ffn_b{number}"] = weights[f"{theirs}.fc{number}.bias"][None]
            arrays[f"{ours}_ffn_ffn_ln_scale"] = weights[f"{theirs}.final_layer_norm.weight"][None]
            arrays[f"{ours}_ffn_ffn_ln_bias"] = weights[f"{theirs}.final_layer_norm.bias"][None]
    return arrays


def put_right(model: Any) -> None:
    """Positions as Marian's source has them, its epsilon, and zeros for `<pad>`."""
    length, width = model.model.encoder.embed_positions.weight.shape
    table_TD = np.zeros((length, width))
    for position in range(length):
        for place in range(width // 2):
            angle = position * np.exp(place * -np.log(10000.0) / (width / 2 - 1))
            table_TD[position, place], table_TD[position, width // 2 + place] = np.sin(angle), np.cos(angle)
    with torch.no_grad():
        for side in (model.model.encoder, model.model.decoder):
            side.embed_positions.weight.copy_(torch.from_numpy(table_TD))
        model.model.shared.weight[-1] = 0
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-6


def test_logits_are_those_of_the_same_model(tmp_path: Path) -> None:
    model = marian(tmp_path)
    put_right(model)
    np.savez(tmp_path / "model.npz", **as_marian(model))
    pipeline = converted_file(tmp_path / "model.npz")
    theirs, ours = logits_of_both(model, pipeline)
    torch.testing.assert_close(ours[:, :-1], theirs[:, :-1], rtol=1e-4, atol=1e-4)
    assert (ours[:, -1] < -1e8).all()
    outputs = pipeline.predict(sentences(10), method="greedy")
    assert all("<pad>" not in each.tokens for each in outputs)


def test_a_vocabulary_of_marian_is_read(tmp_path: Path) -> None:
    model = marian(tmp_path)
    arrays = as_marian(model)
    np.savez(tmp_path / "model.npz", **arrays)
    by_json = read_foreign(tmp_path / "model.npz", Languages(), "x").file
    ids = json.loads((tmp_path / "vocab.json").read_text(encoding="utf-8"))
    del ids["<pad>"]
    (tmp_path / "vocab.json").unlink()
    lines = [f'"{token}": {index}\n' for token, index in ids.items()]
    (tmp_path / "opus.vocab.yml").write_text("".join(lines), encoding="utf-8")
    assert read_foreign(tmp_path / "model.npz", Languages(), "x").file.tokenizers == by_json.tokenizers


REFUSED = {
    "an averaging decoder": ("autoreg: self-attention", "autoreg: average-attention", "'self-attention' or 'rnn'; got"),
    "another unit": (
        "autoreg: self-attention",
        "autoreg: rnn\ndec-cell: gru",
        "dec-cell: expected 'ssru'; got \"gru\"",
    ),
    "no unit": ("autoreg: self-attention", "autoreg: rnn", 'the tensor "decoder_l1_rnn_W" is missing'),
    "a norm": ("postprocess: dan", "postprocess: da", "is not supported"),
    "an old norm": (
        'preprocess: ""\ntransformer-postprocess: dan',
        "preprocess: n\ntransformer-postprocess: da\ntransformer-postprocess-top: n\nversion: v1.9.0 ba94c5b9",
        "did not norm the keys",
    ),
    "an activation": ("activation: swish", "activation: gelu", "expected 'relu' or 'swish'; got \"gelu\""),
    "a depth": ("enc-depth: 2", "enc-depth: 3", "is missing"),
    "a width": ("dim-emb: 16", "dim-emb: many", "dim-emb: expected a number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_converted_is_refused(name: str, tmp_path: Path) -> None:
    before, after, said = REFUSED[name]
    arrays = as_marian(marian(tmp_path), SETTINGS.replace(before, after))
    np.savez(tmp_path / "model.npz", **arrays)
    with pytest.raises(InputError, match=said):
        read_foreign(tmp_path / "model.npz", Languages(), "x")


def test_other_archives_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.zeros(3, np.float32))
    with pytest.raises(InputError, match="so it is no model of Marian"):
        read_foreign(tmp_path / "a.npz", Languages(), "x")
    (tmp_path / "b.npz").write_bytes(b"no zip")
    with pytest.raises(InputError, match=r"expected an \.npz of Marian"):
        read_foreign(tmp_path / "b.npz", Languages(), "x")
    np.savez(tmp_path / "c.npz", x=np.array([{}], object))
    with pytest.raises(InputError, match=r"expected an \.npz of Marian"):
        read_foreign(tmp_path / "c.npz", Languages(), "x")


def test_arrays_that_unpack_to_far_more_than_they_are_packed_as_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transduce.data.limits.REPETITIVE", 1_000_000)
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(500_000, np.float32))
    with pytest.raises(InputError, match=r"a\.npz.*unpacks to more than 200 times its size"):
        read_foreign(tmp_path / "a.npz", Languages(), "x")


def test_without_a_tokenizer_it_says_how_to_name_one(tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", **as_marian(marian(tmp_path)))
    for file in tmp_path.glob("*.spm"):
        file.unlink()
    with pytest.raises(InputError, match="--source-spm"):
        read_foreign(tmp_path / "model.npz", Languages(), "x")


def encrypted(path: Path) -> None:
    """The flag of encryption in both headers of each member."""
    content = bytearray(path.read_bytes())
    for magic, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = content.find(magic)
        while place >= 0:
            content[place + at] |= 1
            place = content.find(magic, place + 4)
    path.write_bytes(content)


def packed_otherwise(path: Path) -> None:
    """By a method that there is not."""
    content = path.read_bytes()
    for magic, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        parts = content.split(magic)
        content = magic.join([parts[0], *(part[: at - 4] + b"\x63\0" + part[at - 2 :] for part in parts[1:])])
    path.write_bytes(content)


def bit_turned(path: Path) -> None:
    """In what is packed."""
    content = bytearray(path.read_bytes())
    for place in range(60, 120):
        content[place] ^= 0xFF
    path.write_bytes(content)


def cut(path: Path) -> None:
    """To its half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("spoil", [encrypted, packed_otherwise, bit_turned, cut])
def test_an_npz_that_cannot_be_read_is_told(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    path = tmp_path / "model.npz"
    np.savez_compressed(path, **{"special:model.yml": np.zeros(500, np.uint8), "Wemb": np.ones((50, 8), np.float32)})
    spoil(path)
    with pytest.raises(InputError, match=r"model\.npz.*cannot be read"):
        read_foreign(path, Languages(), "m")
