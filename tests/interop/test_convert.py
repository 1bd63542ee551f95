"""`transduce convert`: what it writes, what can be done with that, and what it refuses."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import typer
from rich.console import Console

from converted import converted
from foreign_models import bart, marian, nllb
from random_models import sentences, translator
from transduce.cli.convert import convert
from transduce.core.errors import InputError
from transduce.core.model_file import lasting_tensors, load_model_file
from transduce.core.model_summary import describe
from transduce.data.batches import Rows
from transduce.data.collate import collate
from transduce.interop.export_huggingface import export_huggingface
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.interop.original_engine import OriginalEngine
from transduce.interop.parity import Text, compare
from transduce.recipe.recipe import load_recipe
from transduce.training.display import Display
from transduce.training.initialization import new_training
from transduce.training.run import open_task

transformers = pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")


RECIPE = """
[data]
train = [{ source = "s", target = "t" }]
[training]
updates = 2
threads = 1
[batch]
tokens = 100
"""


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def folder_of(tmp_path: Path) -> Path:
    (folder := tmp_path / "theirs").mkdir()
    return folder


def test_a_model_is_written_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marian(folder := folder_of(tmp_path), tie_word_embeddings=False)
    generation = {"num_beams": 4, "length_penalty": 0.6, "max_length": 40}
    (folder / "generation_config.json").write_text(json.dumps(generation), encoding="utf-8")
    lines, output = written(tmp_path / "lines", ["ba be", "", "ka le mo"]), tmp_path / "ours.safetensors"
    convert(folder, output, lines, source_language="en", target_language="fr")
    told = capsys.readouterr().err
    assert f"{output}: written, from Hugging Face marian." in told
    assert "transformers and Transduce on 2 lines" in told
    assert "with a beam of 4, by default" in told and "with greedy search" in told
    assert told.count("equal texts      2 of 2") == 2
    facts = describe(output)
    assert facts["provenance"]["converted"]["kind"] == "marian"
    assert str(tmp_path) not in json.dumps([facts["provenance"], facts["config"]])
    assert [facts["config"]["search"][key] for key in ("method", "beam", "alpha")] == ["beam", 4, 0.6]
    with pytest.raises(InputError, match="there already"):
        convert(folder, output)
    with pytest.raises(InputError, match=r"a model file is called \.safetensors"):
        convert(folder, tmp_path / "ours.bin")


def test_fine_tuning_starts_from_it(tmp_path: Path) -> None:
    """A recipe without [model] has that of the model; tokenizers, tokens around a text and weights are kept."""
    bart(folder := folder_of(tmp_path))
    before = converted(folder)
    recipe = written(tmp_path / "my.toml", RECIPE.splitlines())
    lines = [line for line in sentences(40, 2) if line]
    written(tmp_path / "s", lines)
    written(tmp_path / "t", [line[::-1] for line in lines])
    start = folder / "ours.safetensors"
    tuned = load_recipe(recipe, [f"training.start={start}", f"data.root={tmp_path}", "model.dropout=0.2"])
    assert tuned.model.model_dump() == {**before.recipe.model.model_dump(), "dropout": 0.2}
    task, data = open_task(tuned, Display(Console(file=io.StringIO())))
    assert task.columns["target"].to_dict() == before.task.columns["target"].to_dict()
    trained = new_training(tuned, task)
    weights = load_model_file(start).weights
    assert all(torch.equal(each, weights[name]) for name, each in lasting_tensors(trained.model).items())
    store, _ = data.corpora[0]
    batch = collate([store], Rows(np.array([0]), np.array([0])), task.columns)
    source, target = task.columns["source"], task.columns["target"]
    [read], [wrote] = source.encode(lines[:1]), target.encode([lines[0][::-1]])
    assert batch.inputs.values.tolist() == [source.closed(read)]
    assert batch.targets.values.tolist() == [[target.start, *target.closed(wrote)]]
    trained.objective.loss(trained.model, batch, trained.objective.draw(trained.model, batch)).minimised.backward()


def test_without_lines_nothing_is_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    marian(folder := folder_of(tmp_path))
    convert(folder, tmp_path / "ours.safetensors")
    assert "nothing was compared: name lines of text with --check" in capsys.readouterr().err


def test_a_difference_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """transformers finds "</s>" in a line and takes it for the end of a sentence; to ours it is text."""
    marian(folder := folder_of(tmp_path), tie_word_embeddings=False)
    lines = written(tmp_path / "lines", ["ba </s> be", "ba be"])
    with pytest.raises(typer.Exit) as left:
        convert(folder, tmp_path / "one.safetensors", lines)
    assert left.value.exit_code == 1
    said = (
        "texts differ, 1 of 2 with greedy search, by default, 1 of 2 with a beam of 4: the converted model does not say"
    )
    assert said in capsys.readouterr().err
    assert (tmp_path / "one.safetensors").is_file()
    convert(folder, tmp_path / "two.safetensors", lines, allow_differences=True)


def test_tags_choose_the_language(tmp_path: Path) -> None:
    marian(tmp_path, tags=[">>fra<<", ">>deu<<"], tie_word_embeddings=False)
    pipeline = converted(tmp_path)
    lines = [f">>{code}<<ba be bi" for code in ("fra", "deu")] + [">>fra<< ka le mo"]
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    source = pipeline.task.columns["source"]
    assert [source.closed(ids) for ids in source.encode(lines)] == theirs(lines)["input_ids"]
    one, other = (pipeline.predict("ba be bi", to=code).tokens for code in ("fra", "deu"))
    assert one == pipeline.predict(">>fra<< ba be bi").tokens
    assert one != other


def test_pieces_that_the_vocabulary_lacks_are_read_as_unknown(tmp_path: Path) -> None:
    """They are tokens of their own here, behind all others, and are never written."""
    from foreign_models import LINES, pieces_of, train_spm

    lacking = [piece for piece in pieces_of(train_spm(tmp_path / "other.spm", LINES)) if piece[1:].isalpha()][:4]
    model = marian(tmp_path, without=lacking, tie_word_embeddings=False)
    pipeline = converted(tmp_path)
    tokenizer = pipeline.task.tokenizers["source"]
    assert tokenizer.size == model.config.vocab_size + len(lacking)
    encoded = tokenizer.encode(sentences(60, 9))
    assert any(index >= model.config.vocab_size for ids in encoded for index in ids), lacking
    found = compare(pipeline, OriginalEngine(pipeline, tmp_path), Text("random", sentences(60, 9)))
    assert found.holds, found.report()


def test_attention_is_captured_with_what_stands_around_a_text(tmp_path: Path) -> None:
    bart(tmp_path)
    (tmp_path / "generation_config.json").write_text('{"forced_bos_token_id": 0}', encoding="utf-8")
    prediction = converted(tmp_path).predict("ba be bi")
    attention = prediction.attention()
    assert (attention.source.tokens[0].piece, attention.source.tokens[-1].piece) == ("<s>", "</s>")
    assert prediction.tokens[0] == "<s>"
    assert "<s>" not in prediction.text
    assert attention.layers


def test_what_was_exported_comes_back(tmp_path: Path) -> None:
    """The export's biases forbid unknown tokens. If they came back, texts that hold one could not be learnt."""
    sizes: dict[str, Any] = {"d_model": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 1, "feed_forward": 24}
    for norm in ("post", "pre"):
        (folder := tmp_path / norm).mkdir()
        ours = translator("unigram", model={**sizes, "tied": "none", "norm": norm})
        export_huggingface(ours, folder, Languages())
        back = converted(folder)
        lines = sentences(20)
        wanted = [each.tokens for each in ours.predict(lines, method="greedy")]
        assert [each.tokens for each in back.predict(lines, method="greedy")] == wanted
        unknown = ours.task.tokenizers["target"].encode(["\u263a ba"])
        assert ours.task.tokenizers["target"].unknown in unknown[0]
        found, expected = (each.score(lines[0], "\u263a ba").log_probability for each in (back, ours))
        assert 0 <= found - expected < 1  # the share of padding, which its bias still forbids


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.ckpt"])
def test_pickles_are_refused_with_a_way_out(name: str, tmp_path: Path) -> None:
    marian(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / name)
    with pytest.raises(InputError, match="this is a pickle") as raised:
        read_foreign(tmp_path, Languages(), "x")
    assert "save_pretrained" in str(raised.value)


def test_checkpoints_of_other_programs_are_refused(tmp_path: Path) -> None:
    torch.save({}, tmp_path / "checkpoint_best.pt")
    with pytest.raises(InputError, match="fairseq, OpenNMT-py, JoeyNMT"):
        read_foreign(tmp_path / "checkpoint_best.pt", Languages(), "x")


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "kind": ({"model_type": "marain"}, 'Did you mean "marian"'),
    "activation": ({"activation_function": "mish"}, "activation_function: expected one of relu"),
    "heads": ({"decoder_attention_heads": 4}, "decoder_attention_heads: expected 2, as in the encoder"),
    "type": ({"d_model": "16"}, "d_model: expected a whole number; got '16'"),
    "width": ({"d_model": 32}, "has shape"),
    "missing": ({"decoder_layers": 3}, "is missing"),
    "unknown": ({"decoder_layers": 1}, "nothing is known of the tensor"),
    "huge": ({"encoder_layers": 10**9}, "encoder_layers = 1000000000, but there are"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_settings_that_do_not_fit_are_refused(name: str, tmp_path: Path) -> None:
    changes, said = CHANGES[name]
    marian(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**config, **changes}), encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_foreign(tmp_path, Languages(), "x")


def test_a_model_of_many_languages_asks_for_codes(tmp_path: Path) -> None:
    nllb(tmp_path)
    with pytest.raises(InputError, match="--source-language, one of ace_Arab"):
        read_foreign(tmp_path, Languages(), "x")
    with pytest.raises(InputError, match=r'got "eng_Latm"\. Did you mean "eng_Latn"'):
        read_foreign(tmp_path, Languages("eng_Latm", "fra_Latn"), "x")


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    bart(tmp_path)
    for file in ("tokenizer.json", "merges.txt", "vocab.json"):
        (tmp_path / file).unlink(missing_ok=True)
    with pytest.raises(InputError, match="there is no tokenizer that can be read"):
        read_foreign(tmp_path, Languages(), "x")
