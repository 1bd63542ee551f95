"""Exports to Marian, run by Marian itself and read back; and models that Marian itself has made, there and back."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import transduce
from converted import SHORT, converted_file
from foreign_models import LINES, train_spm
from forked import Run
from random_models import language_model, model_file, sentences, translator
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.core.padded import Padded
from transduce.interop.export_marian import MarianEngine, export_marian
from transduce.interop.model_card import Languages
from transduce.interop.parity import Text, compare
from transduce.pipeline.pipeline import Pipeline

HAS_WHEELS = sys.version_info < (3, 13) and sys.platform == "linux" and platform.machine() == "x86_64"
IS_REQUIRED = os.environ.get("TRANSDUCE_MARIAN") == "required" and HAS_WHEELS
runs_marian = pytest.mark.skipif(
    find_spec("pymarian") is None and not IS_REQUIRED,
    reason="pymarian is not installed, which has 600 MB: make test EXTRAS=ci"
    if HAS_WHEELS
    else "pymarian has wheels for Python 3.11 and 3.12 on Linux with x86-64 alone",
)

SIZES = {"d_model": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 24, "tied": "none"}
ATTENTION: dict[str, Any] = {**SIZES, "norm": "post", "positions": "tensor2tensor", "zero_start": True}
SSRU: dict[str, Any] = {**ATTENTION, "kind": "ssru_transformer", "decoder_positions": True}
GOES: dict[str, dict[str, Any]] = {
    "ssru": SSRU,
    "ssru, pre": {**SSRU, "norm": "pre"},
    "ssru, swish, all tied": {**SSRU, "activation": "swish", "tied": "all"},
    "ssru, gelu": {**SSRU, "activation": "gelu", "encoder_layers": 3, "decoder_layers": 1},
    "ssru, output tied": {**SSRU, "tied": "output", "norm_epsilon": 1e-6},
    "ssru, no positions": {**SSRU, "positions": "none", "decoder_positions": False},
    "ssru, shared layers": {**SSRU, "shared_layers": True, "decoder_layers": 2},
    "attention": ATTENTION,
    "attention, swish, all tied": {**ATTENTION, "activation": "swish", "tied": "all"},
    "attention, gelu, input tied": {**ATTENTION, "activation": "gelu", "tied": "input"},
    "attention, no positions, all tied": {**ATTENTION, "positions": "none", "tied": "all"},
    "attention, norm of embeddings": {**ATTENTION, "embedding_norm": True, "output_bias": True},
    "attention, shared keys": {**ATTENTION, "heads": 4, "key_value_heads": 2},
}


def random_translator(settings: dict[str, Any], kind: str = "unigram") -> Pipeline:
    return translator(kind, model=settings)


def exported(pipeline: Pipeline, folder: Path) -> Path:
    folder.mkdir()
    return export_marian(pipeline, folder, Languages())


@runs_marian
@pytest.mark.parametrize("name", GOES)
def test_marian_says_the_same(name: str, tmp_path: Path) -> None:
    pipeline = random_translator(GOES[name])
    folder = exported(pipeline, tmp_path / "a folder")
    found = compare(pipeline, MarianEngine(pipeline, folder), Text("random", sentences(60)))
    assert found.holds, found.report()


def sharing_nothing_out(settings: dict[str, Any]) -> Pipeline:
    """Padding, start and unknown are never likely here either."""
    pipeline = random_translator({**settings, "output_bias": True, "norm_epsilon": 1e-6})
    target = pipeline.task.tokenizers["target"]
    with torch.no_grad():
        pipeline.model.get_submodule("output").bias[[target.pad, target.start, target.unknown]] = -1e9  # type: ignore[index]
    return pipeline


@runs_marian
@pytest.mark.parametrize("settings", [SSRU, {**ATTENTION, "norm": "pre"}], ids=["ssru", "attention, pre"])
def test_marian_scores_given_outputs_the_same(settings: dict[str, Any], tmp_path: Path) -> None:
    """In one pass over the whole output, in which Marian norms all keys."""
    pipeline = sharing_nothing_out(settings)
    folder = exported(pipeline, tmp_path / "out")
    texts = [[line for line in sentences(60, seed) if line][:20] for seed in (1, 2)]
    for side, lines in zip(("source", "target"), texts, strict=True):
        (folder / side).write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = ["-v", folder / "source.spm", folder / "target.spm", "-t", folder / "source", folder / "target"]
    theirs = marian("score", "-m", folder / "model.npz", *files, "-w", 64).split()
    source, target = (pipeline.task.tokenizers[side] for side in ("source", "target"))
    ours = []
    for read, written in zip(source.encode(texts[0]), target.encode(texts[1]), strict=True):
        given = [*read, source.end], [target.start, *written]
        with torch.inference_mode():
            [logits_TV] = pipeline.model(*(Padded(torch.tensor([ids]), torch.tensor([len(ids)])) for ids in given))
        ours.append(float(logits_TV.log_softmax(-1).gather(1, torch.tensor([*written, target.end])[:, None]).sum()))
    torch.testing.assert_close(torch.tensor(list(map(float, theirs))), torch.tensor(ours), rtol=1e-4, atol=1e-4)


@runs_marian
def test_its_settings_are_those_of_a_decoder(tmp_path: Path) -> None:
    pipeline = translator("unigram", model=SSRU, search={"beam": 2, "length_rule": "power", "alpha": 0.5})
    folder = exported(pipeline, tmp_path / "out")
    (folder / "lines").write_text("ba be\nbi\nbo\n", encoding="utf-8")
    assert marian("decode", "-c", folder / "decoder.yml", "-i", folder / "lines", "-w", 64).count("\n") == 3
    assert "beam-size: 2\n" in (folder / "decoder.yml").read_text(encoding="utf-8")


def marian(*arguments: object) -> str:
    """What the command writes."""
    command = [sys.executable, "-m", "pymarian", *map(str, arguments), "--quiet", "--cpu-threads", "1"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@runs_marian
def test_scores_are_equal_where_nothing_is_shared_out(tmp_path: Path) -> None:
    pipeline = sharing_nothing_out(SSRU)
    folder = exported(pipeline, tmp_path / "out")
    found = compare(pipeline, MarianEngine(pipeline, folder), Text("random", sentences(60)))
    assert found.holds, found.report()
    assert found.difference is not None
    assert found.difference[0] < 1e-3  # Marian prints six digits


@pytest.mark.parametrize("name", [*GOES, "attention, pre"])
def test_what_is_written_is_read_as_the_same_model(name: str, tmp_path: Path) -> None:
    settings = {**ATTENTION, "norm": "pre"} if name == "attention, pre" else GOES[name]
    if settings["positions"] == "none" or settings.get("activation") == "gelu":
        settings = {**settings, "positions": "tensor2tensor", "activation": "relu"}
        settings |= {"decoder_positions": True} if "kind" in settings else {}
    pipeline = random_translator(settings)
    again = converted_file(exported(pipeline, tmp_path / "out") / "model.npz")
    source, target = (Padded(torch.randint(4, 30, (3, 6)), torch.tensor([6, 2, 5])) for _ in range(2))
    size = pipeline.task.tokenizers["target"].size
    with torch.inference_mode():
        expected, logits = pipeline.model(source, target), again.model(source, target)
    torch.testing.assert_close(logits[..., 4:size], expected[..., 4:], rtol=1e-3, atol=1e-3)
    assert again.task.tokenizers["source"].encode(LINES) == pipeline.task.tokenizers["source"].encode(LINES)


def test_a_vocabulary_without_padding_comes_back(tmp_path: Path) -> None:
    """Byte pairs: the file of pieces has no name for our padding, whose output is forbidden by its bias."""
    settings = {"positions": "tensor2tensor", "zero_start": True, "norm": "post", "tied": "all", "activation": "relu"}
    pipeline = translator("bpe", model={**SIZES, **settings})
    again, lines = converted_file(exported(pipeline, tmp_path / "out") / "model.npz"), sentences(20)
    how = {"method": "greedy", "max_length_factor": 1.0, "max_length_offset": 5}
    assert [each.text for each in again.predict(lines, **how)] == [each.text for each in pipeline.predict(lines, **how)]


def made_by_marian(folder: Path, options: str = "") -> Path:
    """A model that Marian has made, all of whose weights are random; and its vocabularies."""
    import pymarian

    folder.mkdir()
    special = {"pad_id": -1, "bos_id": -1, "eos_id": 0, "unk_id": 1}  # as Marian's own
    train_spm(folder / "source.spm", LINES, **special)
    train_spm(folder / "target.spm", [line[::-1] for line in LINES], 60 if "-all" in options else 50, **special)
    if "-all" in options:
        (folder / "target.spm").write_bytes((folder / "source.spm").read_bytes())
    (folder / "lines").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    sides = "lines lines", "source.spm target.spm"
    texts, vocabularies = (" ".join(str(folder / name) for name in side.split()) for side in sides)
    pymarian.Trainer(
        f"--type transformer --train-sets {texts} --vocabs {vocabularies} --model {folder / 'model.npz'} --after 1u "
        "--enc-depth 2 --dec-depth 2 --dim-emb 16 --transformer-dim-ffn 24 --transformer-heads 2 --cpu-threads 1 "
        f"--mini-batch 8 --workspace 64 --seed 1 --quiet {options}"
    ).train()
    draw, arrays = np.random.default_rng(1), arrays_of(folder / "model.npz")
    changed = {
        name: array + draw.normal(0, 0.3, array.shape).astype(np.float32) if array.dtype == np.float32 else array
        for name, array in arrays.items()
    }
    output = next(name for name in ("decoder_ff_logit_out_Wt", "decoder_Wemb", "Wemb") if name in changed)
    changed[output][0] *= 4  # so that some outputs end
    np.savez(folder / "model.npz", **changed)
    return folder


def arrays_of(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


PRE = "--transformer-preprocess n --transformer-postprocess da --transformer-postprocess-top n"
RNN = "--transformer-decoder-autoreg rnn --dec-cell ssru"
MADE = {
    "attention": "",
    "attention, relu, all tied": "--transformer-ffn-activation relu --tied-embeddings-all",
    "attention, pre": PRE,
    "attention, norm of embeddings, output tied": "--transformer-postprocess-emb nd --tied-embeddings",
    "ssru": RNN,
    "ssru, relu, all tied": f"{RNN} --transformer-ffn-activation relu --tied-embeddings-all",
    "ssru, pre": f"{RNN} {PRE}",
}


AS_MADE: dict[str, dict[str, Any]] = {
    "attention": {**ATTENTION, "activation": "swish"},
    "attention, relu, all tied": {**ATTENTION, "tied": "all"},
    "attention, pre": {**ATTENTION, "activation": "swish", "norm": "pre"},
    "attention, norm of embeddings, output tied": {
        **ATTENTION,
        "activation": "swish",
        "embedding_norm": True,
        "tied": "output",
    },
    "ssru": {**SSRU, "activation": "swish"},
    "ssru, relu, all tied": {**SSRU, "tied": "all"},
    "ssru, pre": {**SSRU, "activation": "swish", "norm": "pre"},
}
"""Our settings of the same models."""
NOT_SHARED = {"version", "dim-vocabs", "input-types", "transformer-tied-layers"}


def written_by_marian(name: str) -> Any:
    """What Marian 1.12.42 itself writes: the names of its weights, and its settings."""
    recorded = Path(__file__).with_name("marian-1.12.42.json")
    return json.loads(recorded.read_text(encoding="utf-8"))[name]


@runs_marian
@pytest.mark.parametrize("name", MADE)
def test_what_marian_writes_is_as_it_was_recorded(name: str, tmp_path: Path) -> None:
    arrays = arrays_of(made_by_marian(tmp_path / "theirs", MADE[name]) / "model.npz")
    settings = settings_of(arrays.pop("special:model.yml"))
    kept = {key: value for key, value in settings.items() if key not in NOT_SHARED}
    assert {"arrays": sorted(arrays), "settings": kept} == written_by_marian(name)


@pytest.mark.parametrize("name", MADE)
def test_what_is_written_is_what_marian_writes(name: str, tmp_path: Path) -> None:
    """Without Marian, too."""
    arrays = arrays_of(exported(random_translator(AS_MADE[name]), tmp_path / "ours") / "model.npz")
    settings, theirs = settings_of(arrays.pop("special:model.yml")), written_by_marian(name)
    assert sorted(arrays) == theirs["arrays"]
    unread = {"dec-cell"} if "rnn" not in MADE[name] else set()
    shared = settings.keys() & theirs["settings"].keys() - unread
    assert {key: settings[key] for key in shared} == {key: theirs["settings"][key] for key in shared}
    assert settings.keys() - shared - unread <= NOT_SHARED


@runs_marian
@pytest.mark.parametrize("name", MADE)
def test_a_model_of_marian_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    theirs = made_by_marian(tmp_path / "theirs", MADE[name])
    ours = exported(converted_file(theirs / "model.npz"), tmp_path / "ours")
    before, after = arrays_of(theirs / "model.npz"), arrays_of(ours / "model.npz")
    settings = [settings_of(arrays.pop("special:model.yml")) for arrays in (before, after)]
    assert {name: array.tolist() for name, array in after.items()} == {
        name: array.tolist() for name, array in before.items()
    }
    shared = settings[0].keys() & settings[1].keys() - {
        "version",
        "dim-vocabs",
        "input-types",
        "transformer-tied-layers",
    }
    kept = {key for key in shared if not ("rnn" not in MADE[name] and key == "dec-cell")}
    assert {key: settings[1][key] for key in kept} == {key: settings[0][key] for key in kept}


@runs_marian
@pytest.mark.parametrize("name", [name for name in MADE if name != "attention, pre"])
def test_a_model_of_marian_says_the_same_here_and_when_it_is_back(name: str, tmp_path: Path) -> None:
    theirs = made_by_marian(tmp_path / "theirs", MADE[name])
    pipeline = converted_file(theirs / "model.npz")
    for folder in (theirs, exported(pipeline, tmp_path / "ours")):
        found = compare(pipeline, MarianEngine(pipeline, folder), Text("random", sentences(60)))
        assert found.holds, found.report()
        assert found.difference is None or found.difference[0] < 1e-3


@runs_marian
def test_a_fine_tuned_model_goes_back(tmp_path: Path) -> None:
    theirs = made_by_marian(tmp_path / "theirs", MADE["ssru, relu, all tied"])
    model = converted_file(theirs / "model.npz").recipe.to_table()["model"]
    pairs = {"source": str(tmp_path / "source"), "target": str(tmp_path / "target")}
    for file, lines in zip(pairs.values(), (LINES[:100], LINES[100:200]), strict=True):
        Path(file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    recipe: dict[str, Any] = {
        "data": {"train": [pairs], "validation": pairs},
        "model": model,
        "training": {"start": str(theirs / "ours.safetensors"), "updates": 10, "learning_rate": 0.01},
        "search": SHORT,
    }
    transduce.train(recipe, run=tmp_path / "run", quiet=True)
    pipeline = transduce.load(tmp_path / "run", device="cpu")
    folder = exported(pipeline, tmp_path / "out")
    before, after = arrays_of(theirs / "model.npz"), arrays_of(folder / "model.npz")
    assert before.keys() == after.keys()
    assert not np.array_equal(before["Wemb"], after["Wemb"])
    found = compare(pipeline, MarianEngine(pipeline, folder), Text("random", sentences(60)))
    assert found.holds, found.report()


def settings_of(array: Any) -> dict[str, str]:
    lines = (line.partition(": ") for line in array.tobytes().rstrip(b"\0").decode().splitlines())
    return {key: value.strip('"') for key, colon, value in lines if colon}


def problems_of(pipeline: Pipeline, folder: Path) -> Sequence[str]:
    with pytest.raises(InputError) as raised:
        export_marian(pipeline, folder, Languages())
    assert not list(folder.iterdir())
    return raised.value.problems


def test_what_cannot_go_is_told_all_at_once(tmp_path: Path) -> None:
    other = {"positions": "learned", "activation": "geglu", "norm_kind": "rms", "score": "dot"}
    other |= {"norm_epsilon": 1e-3, "query_key_norm": True, "encoder_positions": "sinusoidal"}
    said = problems_of(
        random_translator({**SIZES, **other, "normalizer": "sparsemax", "scale_embeddings": False}), tmp_path
    )
    keys = [
        "norm_kind",
        "activation",
        "score",
        "normalizer",
        "positions",
        "query_key_norm",
        "encoder_positions",
        "scale_embeddings",
        "norm_epsilon",
        "zero_start",
    ]
    assert [each.split("model.")[1].split(" ")[0] for each in said] == keys
    assert 'Marian: model.positions = "learned": it has "tensor2tensor" and "none".' in said
    ssru = {**SSRU, "decoder_positions": False, "embedding_norm": True}
    said = problems_of(random_translator(ssru), tmp_path)
    assert [each.split("model.")[1].split(" ")[0] for each in said] == ["decoder_positions", "embedding_norm"]
    said = problems_of(random_translator(ATTENTION, "whitespace"), tmp_path)
    assert len(said) == 1
    assert "SentencePiece has no tokenizer of this kind" in said[0]
    said = problems_of(language_model(), tmp_path)
    assert "only models from text to text" in said[0]
    assert 'expected "transformer" or "ssru_transformer"' in said[1]


def test_a_start_token_that_is_zeros_needs_no_setting(tmp_path: Path) -> None:
    pipeline = random_translator({**ATTENTION, "zero_start": False})
    assert "this model with a vector" in problems_of(pipeline, tmp_path)[0]
    with torch.no_grad():
        pipeline.model.get_submodule("target_embedding").weight[pipeline.task.tokenizers["target"].start] = 0  # type: ignore[operator]
    export_marian(pipeline, tmp_path, Languages())
    assert {path.name for path in tmp_path.iterdir()} == {
        "model.npz",
        "source.spm",
        "target.spm",
        "decoder.yml",
        "README.md",
    }


def test_equal_models_are_equal_files(tmp_path: Path) -> None:
    one, other = (exported(random_translator(SSRU), tmp_path / name) for name in ("one", "other"))
    for file in one.iterdir():
        assert file.read_bytes() == (other / file.name).read_bytes(), file.name


@runs_marian
def test_the_command_compares_with_marian(run: Run, tmp_path: Path) -> None:
    path, lines = tmp_path / "model.safetensors", tmp_path / "lines.txt"
    save_model_file(path, model_file(translator("unigram", model=SSRU, search=SHORT)))
    lines.write_text("\n".join(sentences(30)) + "\n", encoding="utf-8")
    done = run("export", path, "--to", "marian", "--output", tmp_path / "out", "--check", lines)
    assert done.code == 0, done.err
    assert "Marian and Transduce on" in done.err
    assert "LOG(INFO)" not in done.err
