"""A model file is compared with itself before memory is taken for what it asks for."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import transduce
from random_models import model_file, translator
from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile, save_model_file
from transduce.pipeline.pipeline import Pipeline

FILE = model_file(translator())


def with_model(**settings: Any) -> ModelFile:
    return replace(FILE, config={**FILE.config, "model": {**FILE.config["model"], **settings}})


def saved(tmp_path: Path, file: ModelFile) -> Path:
    save_model_file(tmp_path / "model.safetensors", file)
    return tmp_path / "model.safetensors"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"encoder_layers": 10**9}, "model.encoder_layers = 1000000000, but the file has 79 weights"),
        ({"decoder_layers": 70}, "a model of more than 178 weights"),
        ({"d_model": 10**6, "heads": 1}, r"6.4e\+07 numbers in one piece"),
        ({"feed_forward": 2**31}, "numbers in one piece"),
        ({"d_model": 10**15}, "model.d_model = 1000000000000000 is larger than any size"),
        ({"positions": "learned", "max_length": 2**30}, "numbers in one piece"),
        ({"feed_forward": 25}, r'weight "encoder.blocks.0.feed_forward.inner.weight" has shape \[24, 16\] in the file'),
        ({"encoder_layers": 1}, '"encoder.blocks.1.self_attention.query.weight" is in the file, but not in the model'),
    ],
)
def test_settings_of_another_size_than_the_weights(tmp_path: Path, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        transduce.load(saved(tmp_path, with_model(**settings)))
    with pytest.raises(InputError, match=said):
        Pipeline(with_model(**settings))


def test_they_are_compared_before_the_weights_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, with_model(encoder_layers=1))
    monkeypatch.setattr("transduce.core.model_file.read_tensors", lambda path: pytest.fail("the weights were read"))
    with pytest.raises(InputError, match="not in the model"):
        transduce.load(path)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int8])
def test_weights_of_another_type_are_named(tmp_path: Path, dtype: torch.dtype) -> None:
    names = ("output.weight", "decoder.norm.bias")
    weights = {name: each.to(dtype) if name in names else each for name, each in FILE.weights.items()}
    with pytest.raises(InputError) as caught:
        transduce.load(saved(tmp_path, replace(FILE, weights=weights)))
    found = str(dtype).removeprefix("torch.")
    wanted = {f'weight "{name}" is {found} in the file and float32 in the model: convert it first.' for name in names}
    assert set(caught.value.problems) == wanted


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_no_numbers_are_named(tmp_path: Path, wrong: float, precision: Any) -> None:
    weights = {name: each.clone() for name, each in FILE.weights.items()}
    weights["output.weight"][3, 4:6] = weights["encoder.norm.bias"][2] = wrong
    with pytest.raises(InputError) as caught:
        transduce.load(saved(tmp_path, replace(FILE, weights=weights)), precision=precision)
    assert 'weight "encoder.norm.bias": 1 of its 16 numbers are NaN or infinite.' in caught.value.problems
    assert any('"output.weight": 2 of its' in each for each in caught.value.problems)


def test_large_numbers_are_numbers(tmp_path: Path) -> None:
    weights = {name: each.clone() for name, each in FILE.weights.items()}
    weights["encoder.norm.bias"][:] = 3e38  # their sum is none
    transduce.load(saved(tmp_path, replace(FILE, weights=weights)))


def test_a_task_without_its_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no source tokenizer"):
        transduce.load(saved(tmp_path, replace(FILE, tokenizers={"target": FILE.tokenizers["joint"]})))


@pytest.mark.parametrize(
    "search",
    [
        {"beam": 10**9},
        {"max_length_offset": 10**8},
        {"max_length_factor": 1e308},
        {"method": "sample", "nbest": 10**7},
        {"method": "sample", "seed": 2**64},
        {"min_length": 2**63},
    ],
)
def test_searches_that_hardly_end_are_no_settings(tmp_path: Path, search: dict[str, Any]) -> None:
    file = replace(FILE, config={**FILE.config, "search": {**FILE.config["search"], **search}})
    with pytest.raises(InputError, match=r"a number (of at most|below)"):
        transduce.load(saved(tmp_path, file))
    transduce.load(saved(tmp_path, FILE)).predict(["ba"], max_length_offset=1000)  # who asks for it gets it


@pytest.mark.parametrize("missing", ["source", "target"])
def test_a_file_without_a_column_that_its_task_needs(tmp_path: Path, missing: str) -> None:
    columns = {side: column for side, column in FILE.columns.items() if side != missing}
    path = saved(tmp_path, replace(FILE, columns=columns))
    with pytest.raises(InputError, match=f"the model file has no {missing} column, which its task needs"):
        transduce.load(path)


@pytest.mark.parametrize("kind", [5, None, [], {}, [[]], {"a": 1}])
@pytest.mark.parametrize("part", ["normalizer", "pre_tokenizer", "decoder", "post_processor", "model"])
def test_a_tokenizer_with_a_part_of_a_wrong_type(tmp_path: Path, part: str, kind: Any) -> None:
    [(side, text), *_] = FILE.tokenizers.items()
    for table in ({"type": kind}, {"type": "Sequence", f"{part}s": [{"type": kind}]}, kind):
        spoilt = json.dumps({**json.loads(text), part: table})
        path = saved(tmp_path, replace(FILE, tokenizers={**FILE.tokenizers, side: spoilt}))
        try:
            transduce.load(path)
        except InputError as error:
            assert "tokenizer" in str(error)
