"""Model files that earlier versions wrote load, and say what they said then; see tests/formats/README.md."""

import json
from pathlib import Path

import pytest

import transduce
from transduce.core.model_file import VERSION, load_model_file
from transduce.core.model_summary import describe
from transduce.core.tensor_file import canonical_json, read_header

FOLDER = Path(__file__).parents[1] / "formats"
STORED = json.loads((FOLDER / "predictions.json").read_text(encoding="utf-8"))
SMALL = 40_000  # bytes that one may have
PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")


def file_of(name: str) -> Path:
    return FOLDER / f"{name}.safetensors"


def test_there_is_a_small_file_of_each_version() -> None:
    versions = [describe(file_of(name))["format_version"] for name in STORED]
    assert versions == list(range(1, VERSION + 1))
    assert all(file_of(name).stat().st_size < SMALL for name in STORED)


@pytest.mark.parametrize("name", STORED)
def test_it_gives_the_prediction_that_was_stored(name: str, either_way: None) -> None:
    model = transduce.load(file_of(name))
    for stored in STORED[name]:
        prediction = model.predict(stored["source"], beam=1)
        assert prediction.text == stored["output"]
        told = model.score(stored["source"], stored["output"]).log_probability
        assert told == pytest.approx(stored["log_probability"], abs=1e-4)


def test_a_file_of_format_1_has_the_columns_that_format_2_names() -> None:
    first, second = (load_model_file(file_of(name)) for name in STORED)
    assert "columns" not in read_header(file_of("format-1")).metadata
    assert first.columns == second.columns


@pytest.mark.parametrize("name", STORED)
def test_the_checksum_is_what_the_page_says(name: str) -> None:
    """Computed here from the file's bytes by the page's words, not by Transduce."""
    import hashlib

    content = file_of(name).read_bytes()
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    metadata = header.pop("__metadata__")
    checksum = metadata.pop("checksum")
    tensors = {}
    for tensor, entry in header.items():
        start, end = entry["data_offsets"]
        tensors[tensor] = [entry["dtype"], entry["shape"], hashlib.sha256(data[start:end]).hexdigest()]
    digested = {"metadata": metadata, "tensors": tensors}
    text = json.dumps(digested, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert text == canonical_json(digested)
    assert hashlib.sha256(text.encode("utf-8")).hexdigest() == checksum


@pytest.mark.parametrize("name", STORED)
def test_the_library_safetensors_reads_it(name: str) -> None:
    from safetensors import safe_open

    with safe_open(file_of(name), "pt") as opened:
        metadata, names = opened.metadata(), set(opened.keys())
    assert names == set(load_model_file(file_of(name)).weights)
    assert all(f"`{key}`" in PAGE for key in metadata)
