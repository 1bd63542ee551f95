"""The model file: there and back, and everything it refuses."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, trainers

from transduce.core.errors import InputError
from transduce.core.model_file import (
    ModelFile,
    check_weights,
    find_model_file,
    load_model_file,
    save_model_file,
)
from transduce.core.model_summary import describe
from transduce.core.tensor_file import read_metadata, read_tensors, write_tensors
from transduce.core.trust import foreign_code


def tokenizer(words: str) -> str:
    trained = Tokenizer(models.BPE(unk_token="<unk>"))
    trained.train_from_iterator([words], trainers.BpeTrainer(special_tokens=["<unk>", "<s>"], vocab_size=40))
    return str(trained.to_str())


def a_model() -> ModelFile:
    torch.manual_seed(0)
    embedding = torch.nn.Embedding(7, 4)
    output = torch.nn.Linear(4, 7)
    output.weight = embedding.weight
    return ModelFile(
        weights={
            "output.weight": output.weight,
            "output.bias": output.bias,
            "embedding.weight": embedding.weight,
        },
        config={"model": {"kind": "transformer", "attention": {"score": "scaled_dot"}, "dropout": 0.1}},
        tokenizers={"source": tokenizer("ein kleines Haus"), "target": tokenizer("a small house")},
        provenance={"seed": 1, "updates": 100, "data": {"train.de": "sha256:00"}},
        metrics={"BLEU": {"value": 41.0, "interval": [40.0, 42.0]}},
    )


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    save_model_file(tmp_path / "model.safetensors", a_model())
    return tmp_path / "model.safetensors"


def with_metadata(path: Path, **changes: str | None) -> Path:
    """The same file with some metadata changed (None: removed), and a right checksum."""
    tensors, metadata = read_tensors(path)
    changed = {**metadata, **changes}
    write_tensors(path, tensors, {key: value for key, value in changed.items() if value is not None})
    return path


# ---- there and back


def test_a_model_file_comes_back_whole(saved: Path) -> None:
    loaded, model = load_model_file(saved), a_model()
    assert loaded.config == model.config
    assert loaded.tokenizers == model.tokenizers
    assert loaded.provenance == model.provenance
    assert loaded.metrics == model.metrics
    assert loaded.weights.keys() == model.weights.keys()
    assert all(torch.equal(loaded.weights[name], weight) for name, weight in model.weights.items())
    assert Tokenizer.from_str(loaded.tokenizers["source"]).encode("Haus").ids


def test_tied_weights_are_stored_once_and_come_back_tied(saved: Path) -> None:
    assert read_tensors(saved)[0].keys() == {"embedding.weight", "output.bias"}
    weights = load_model_file(saved).weights
    assert weights["output.weight"].data_ptr() == weights["embedding.weight"].data_ptr()


def test_equal_weights_that_are_not_one_tensor_are_not_tied(tmp_path: Path) -> None:
    model = dataclasses.replace(a_model(), weights={"a": torch.ones(3), "b": torch.ones(3)})
    save_model_file(tmp_path / "x", model)
    assert read_tensors(tmp_path / "x")[0].keys() == {"a", "b"}


def test_views_of_one_storage_are_tied_only_where_they_are_the_same(tmp_path: Path) -> None:
    both = torch.arange(8.0)
    weights = {
        "all": both,
        "first": both[:4],
        "second": both[4:],
        "again": both[:4],
        "square": both[:4].view(2, 2),
        "turned": both[:4].view(2, 2).T,
        "bits": both[:4].view(torch.int32),
    }
    save_model_file(tmp_path / "x", dataclasses.replace(a_model(), weights=weights))
    loaded = load_model_file(tmp_path / "x").weights
    assert all(torch.equal(loaded[name], weight) for name, weight in weights.items())
    assert json.loads(read_metadata(tmp_path / "x")["tied"]) == {"first": "again"}


def test_a_single_number_can_be_tied_and_nothing_at_all_cannot(tmp_path: Path) -> None:
    one = torch.tensor([3.0])
    weights = {"a": one, "b": one, "c": torch.empty(0, 2), "d": torch.empty(0, 2)}
    save_model_file(tmp_path / "x", dataclasses.replace(a_model(), weights=weights))
    assert json.loads(read_metadata(tmp_path / "x")["tied"]) == {"b": "a"}


def test_a_loaded_file_saved_again_is_the_same_file(saved: Path, tmp_path: Path) -> None:
    save_model_file(tmp_path / "again", load_model_file(saved))
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def test_no_clock_time_and_no_place_gets_into_the_file(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    save_model_file(tmp_path / "elsewhere" / "other_name", a_model())
    assert (tmp_path / "elsewhere" / "other_name").read_bytes() == saved.read_bytes()
    assert str(tmp_path).encode() not in saved.read_bytes()


def test_what_json_cannot_say_is_named(tmp_path: Path) -> None:
    model = dataclasses.replace(a_model(), metrics={"loss": float("nan")}, config={"x": object()})
    with pytest.raises(InputError) as caught:
        save_model_file(tmp_path / "x", model)
    assert [("config" in p, "metrics" in p) for p in caught.value.problems] == [(True, False), (False, True)]
    assert not list(tmp_path.iterdir())


def a_lexicon() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor([[3, 4], [5, -1]], dtype=torch.int32), torch.tensor([6, 1, 2], dtype=torch.int32)


def test_a_lexicon_comes_back_and_is_no_weight(saved: Path, tmp_path: Path) -> None:
    save_model_file(tmp_path / "x", dataclasses.replace(a_model(), lexicon=a_lexicon()))
    loaded = load_model_file(tmp_path / "x")
    assert loaded.lexicon is not None
    assert all(torch.equal(mine, other) for mine, other in zip(loaded.lexicon, a_lexicon(), strict=True))
    assert loaded.weights.keys() == a_model().weights.keys()
    facts, without = describe(tmp_path / "x"), describe(saved)
    assert facts["lexicon"] == {"source_tokens": 2, "candidates": 2, "frequent": 3, "bytes": 28}
    assert without["lexicon"] is None
    assert [facts[key] == without[key] for key in ("parameters", "dtypes", "tensors", "tied")] == [True] * 4
    save_model_file(tmp_path / "y", loaded)
    assert (tmp_path / "y").read_bytes() == (tmp_path / "x").read_bytes()
    save_model_file(tmp_path / "y", dataclasses.replace(loaded, lexicon=None))
    assert (tmp_path / "y").read_bytes() == saved.read_bytes()


def test_ngrams_come_back_and_are_no_weights(saved: Path, tmp_path: Path) -> None:
    ngrams = {"1.key": torch.arange(4), "1.share": torch.ones(4, dtype=torch.float64), "end": torch.tensor([2])}
    save_model_file(tmp_path / "x", dataclasses.replace(a_model(), ngrams=ngrams))
    seen: list[str] = []
    loaded = load_model_file(tmp_path / "x", check=lambda *tables: seen.extend(tables[-1]))
    assert {name: each.tolist() for name, each in loaded.ngrams.items()} == {
        name: each.tolist() for name, each in ngrams.items()
    }
    assert seen and not [name for name in (*seen, *loaded.weights) if name.startswith("ngrams.")]
    facts, without = describe(tmp_path / "x"), describe(saved)
    assert facts["ngrams"] == {"order": 1, "ngrams": 4, "bytes": 72}
    assert without["ngrams"] is None
    assert facts["parameters"] == without["parameters"]
    save_model_file(tmp_path / "y", dataclasses.replace(loaded, ngrams={}))
    assert (tmp_path / "y").read_bytes() == saved.read_bytes()
    with pytest.raises(InputError, match="cannot name a weight"):
        save_model_file(tmp_path / "x", dataclasses.replace(a_model(), weights={"ngrams.end": torch.zeros(1)}))


# ---- refusals


@pytest.mark.parametrize(
    "changed",
    [
        {"shortlist.candidates": None},
        {"shortlist.frequent": None},
        {"shortlist.candidates": torch.zeros(2, 2)},
        {"shortlist.candidates": torch.zeros(4, dtype=torch.int32)},
        {"shortlist.candidates": torch.full((2, 2), -2, dtype=torch.int32)},
        {"shortlist.candidates": torch.zeros(0, 2, dtype=torch.int32)},
        {"shortlist.frequent": torch.zeros(2, dtype=torch.int64)},
        {"shortlist.frequent": torch.tensor([1, -1], dtype=torch.int32)},
        {"shortlist.frequent": torch.tensor(1, dtype=torch.int32)},
    ],
    ids=str,
)
def test_a_lexicon_that_can_be_none_is_damage(tmp_path: Path, changed: dict[str, torch.Tensor | None]) -> None:
    save_model_file(tmp_path / "x", dataclasses.replace(a_model(), lexicon=a_lexicon()))
    tensors, metadata = read_tensors(tmp_path / "x")
    kept = {name: tensor for name, tensor in {**tensors, **changed}.items() if tensor is not None}
    write_tensors(tmp_path / "x", kept, metadata)
    with pytest.raises(InputError, match=r"damaged: .*shortlist\.(candidates|frequent)"):
        load_model_file(tmp_path / "x")
    describe(tmp_path / "x")


def test_a_weight_of_a_lexicons_name_is_refused(tmp_path: Path) -> None:
    model = dataclasses.replace(a_model(), weights={"shortlist.frequent": torch.ones(3)})
    with pytest.raises(InputError, match=r'"shortlist\.frequent" cannot name a weight'):
        save_model_file(tmp_path / "x", model)


def test_another_format_is_refused(saved: Path) -> None:
    with pytest.raises(InputError, match='should say "transduce-model", but says "pt"'):
        load_model_file(with_metadata(saved, format="pt"))
    with pytest.raises(InputError, match="does not name its format"):
        load_model_file(with_metadata(saved, format=None))


def test_a_newer_version_is_refused(saved: Path) -> None:
    with pytest.raises(InputError, match="newer Transduce: format_version 3, and this one reads up to 2"):
        load_model_file(with_metadata(saved, format_version="3"))


@pytest.mark.parametrize("version", ["", "0", "-1", "one", "1.5", "9" * 5000])
def test_a_version_that_is_no_number_is_damage(saved: Path, version: str) -> None:
    with pytest.raises(InputError, match="not a number"):
        load_model_file(with_metadata(saved, format_version=version))


def test_missing_keys_and_broken_json_are_all_named(saved: Path) -> None:
    broken = with_metadata(
        saved, config=None, metrics="{", provenance="[" * 100_000, tokenizer='{"source": 1, "target": ""}', tied="[]"
    )
    for read in (load_model_file, describe):
        with pytest.raises(InputError) as caught:
            read(broken)
        problems = "\n".join(caught.value.problems)
        assert len(caught.value.problems) == 5
        for said in (
            'no "config"',
            '"metrics" is not JSON',
            '"provenance" is not JSON',
            '"tokenizer" does not map',
        ):
            assert said in problems
        assert '"tied" is not a table' in problems


def test_a_tie_to_nothing_is_damage(saved: Path) -> None:
    with pytest.raises(InputError, match='"a" is tied to "nowhere"'):
        load_model_file(with_metadata(saved, tied='{"a": "nowhere"}'))


def test_a_changed_config_is_noticed(saved: Path) -> None:
    saved.write_bytes(saved.read_bytes().replace(b"transformer", b"transformed"))
    with pytest.raises(InputError, match="does not match its checksum"):
        load_model_file(saved)


@pytest.mark.parametrize(
    "config",
    [
        {"model": {"kind": "my_file:MyModel"}},
        {"model": {"kind": "os.path"}},
        {"model": {"kind": "../evil"}},
        {"model": {"score": "os.path"}},
        {"model": {"normalizer": "os.path"}},
        {"model": {"positions": "os.path"}},
        {"model": {"layers": [{"attention": {"score": "my_package.my_file:MyScore"}}]}},
        {"model": {"kind": ["transformer", "a:b"]}},
        {"model": {"kind": {"name": "evil.module"}}},
        {"optimizer": {"anything": "my_file:MyClass"}},
        {"names": ["größe.datei:Klasse"]},
    ],
)
def test_foreign_code_is_refused_unless_trusted(tmp_path: Path, config: dict[str, Any]) -> None:
    path = tmp_path / "x"
    save_model_file(path, dataclasses.replace(a_model(), config=config))
    with pytest.raises(InputError, match=r"names code outside Transduce: .*trust_code=True / --trust-code"):
        load_model_file(path)
    assert load_model_file(path, trust_code=True).config == config
    assert describe(path)["foreign_code"] == foreign_code(config)


@pytest.mark.parametrize(
    "config",
    [
        {"model": {"kind": "transformer", "attention": {"score": "scaled_dot"}}},
        {"data": {"train": "data/train.de", "pair": "de-en", "url": "https://example.org/a.b"}},
        {
            "note": "a ratio of 1:2, and: more",
            "share": "1:2",
            "seed": 1,
            "rate": 0.5,
            "on": True,
            "none": None,
        },
        {},
    ],
)
def test_ordinary_settings_are_not_code(config: dict[str, Any]) -> None:
    assert foreign_code(config) == []


def test_code_is_found_however_deep() -> None:
    config: Any = "my_file:MyModel"
    for _ in range(50_000):
        config = [config]
    assert foreign_code(config) == ["my_file:MyModel"]


# ---- finding


def test_a_run_folder_or_a_file_will_do(saved: Path) -> None:
    assert find_model_file(saved) == find_model_file(saved.parent) == saved
    assert load_model_file(saved.parent).config == a_model().config


def test_no_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder"):
        find_model_file(tmp_path / "absent")
    with pytest.raises(InputError, match=r"has no model\.safetensors, so it is not the directory"):
        find_model_file(tmp_path)
    for name in ("test.jsonl", "my.toml", "other.safetensors", "checkpoint.md"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"has no model\.safetensors, so it is not the directory"):
        find_model_file(tmp_path)
    (tmp_path / "log.jsonl").touch()
    with pytest.raises(InputError, match="this run is not finished"):
        find_model_file(tmp_path)


@pytest.mark.parametrize("suffix", ["pt", "pth", "bin", "ckpt", "pkl", "pickle"])
def test_a_pickle_is_refused_with_what_to_do(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"m.{suffix}").touch()
    with pytest.raises(InputError, match=r"is a pickle\. Opening one can run code.* a folder of Hugging Face that"):
        find_model_file(tmp_path / f"m.{suffix}")


def test_models_of_others_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "m.npz").touch()
    with pytest.raises(
        InputError, match=r"of Marian; convert it first: transduce convert \S+m\.npz model\.safetensors"
    ):
        find_model_file(tmp_path / "m.npz")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match=f"{tmp_path}: there is no model.safetensors"):
        find_model_file(tmp_path)


@pytest.mark.parametrize("url", ["https://example.org/a/m.safetensors", "s3://bucket/m", "hf://org/name"])
def test_a_url_is_told_from_a_missing_file(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=f"^{url}: this is a URL"):
        find_model_file(url)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / Path(url)
    path.parent.mkdir(parents=True)
    path.touch()
    assert find_model_file(url) == Path(url)  # a file is a file, however it is called


# ---- weights


def test_all_mismatches_of_weights_come_at_once() -> None:
    weights = {"a": torch.zeros(2, 3), "b": torch.zeros(4), "extra": torch.zeros(1)}
    with pytest.raises(InputError) as caught:
        check_weights({"a": (2, 3), "b": torch.Size([5]), "c": (1,)}, weights)
    assert caught.value.problems == [
        'weight "c" [1] is missing from the file.',
        'weight "extra" is in the file, but not in the model.',
        'weight "b" has shape [4] in the file and [5] in the model.',
    ]
    check_weights({"a": (2, 3), "b": (4,), "extra": (1,)}, weights)


# ---- describing


def test_describe_says_what_is_in_the_file(saved: Path) -> None:
    facts = describe(saved.parent)
    assert facts["parameters"] == 7 * 4 + 7  # the tied matrix once
    assert facts["tied"] == {"output.weight": "embedding.weight"}
    assert facts["tensors"][0] == {"name": "embedding.weight", "dtype": "F32", "shape": [7, 4]}
    assert facts["dtypes"] == {"F32": 2}
    assert facts["bytes"] == saved.stat().st_size
    sizes = {side: Tokenizer.from_str(text).get_vocab_size() for side, text in a_model().tokenizers.items()}
    assert facts["tokenizers"] == {side: {"kind": "BPE", "size": size} for side, size in sizes.items()}
    assert facts["metrics"] == a_model().metrics
    json.dumps(facts, allow_nan=False)


def test_describe_counts_unigram_vocabularies_and_survives_strange_ones(tmp_path: Path) -> None:
    unigram = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0), ("b", -2.0)], unk_id=0, byte_fallback=False))
    unigram.add_special_tokens(["<s>", "<unk>"])
    strange = {
        "not_json": "{",
        "no_model": "{}",
        "list": "[]",
        "odd": '{"model": {"vocab": [[]], "type": 1}}',
    }
    save_model_file(tmp_path / "x", dataclasses.replace(a_model(), tokenizers={"joint": unigram.to_str(), **strange}))
    tokenizers = describe(tmp_path / "x")["tokenizers"]
    assert tokenizers.pop("joint") == {"kind": "Unigram", "size": 4}
    assert all(entry == {"kind": "unknown", "size": None} for entry in tokenizers.values())
