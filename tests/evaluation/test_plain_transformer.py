"""The plain Transformer of benchmarks/plain_transformer.py: trained on a recipe's files, resumed, compared."""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from scripts import loaded, page_of_results
from transduce.cli.app import app


@pytest.fixture(scope="module")
def plain() -> ModuleType:
    return loaded("benchmarks/plain_transformer.py")


def run(plain: ModuleType, monkeypatch: pytest.MonkeyPatch, recipe: Path, folder: Path, *more: str) -> None:
    words = [str(recipe), "--folder", str(folder), "--epochs", "2", *more]
    monkeypatch.setattr(sys, "argv", ["plain_transformer.py", *words])
    plain.main()


@pytest.fixture(scope="module")
def finished(plain: ModuleType, tmp_path_factory: pytest.TempPathFactory, tiny_run: Path) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    with pytest.MonkeyPatch.context() as patch:
        run(plain, patch, tiny_run / "recipe.toml", folder)
    return folder


def test_its_outputs_are_compared_with_a_model_of_transduce(finished: Path, tiny_run: Path) -> None:
    files = [f"--{part}={finished / 'held_out'}.{part}" for part in ("source", "reference", "outputs")]
    done = CliRunner().invoke(app, ["evaluate", str(tiny_run), *files, "--json"])
    assert done.exit_code == 0, done.output
    compared = json.loads(done.stdout)
    scores = compared["systems"][str(finished / "held_out.outputs")]["scores"]
    report = json.loads((finished / "report.json").read_text(encoding="utf-8"))
    assert report["tests"]["held_out"].keys() == scores.keys()
    for name, score in report["tests"]["held_out"].items():
        assert (score["value"], score["signature"]) == (scores[name]["value"], scores[name]["signature"])
    assert {each["test"] for each in compared["comparisons"]} == {"paired bootstrap"}
    assert report["parameters"] > 1_000_000
    assert report["updates"] == 2 * -(-report["pairs"] // 64)
    assert {"machine", "versions", "commit", "training_minutes"} <= report.keys()


@pytest.mark.slow
def test_a_training_is_compared_with_it_on_record(
    plain: ModuleType, finished: Path, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(plain, "RECORDS", tmp_path / "records")
    with pytest.raises(SystemExit) as left:
        run(plain, monkeypatch, tiny_run / "recipe.toml", finished, "--record")
    assert left.value.code == 2
    run(plain, monkeypatch, tiny_run / "recipe.toml", finished, "--against", str(tiny_run), "--record")
    shown = capsys.readouterr().out
    [path] = (tmp_path / "records").iterdir()
    record = json.loads(path.read_text(encoding="utf-8"))
    theirs = json.loads((tiny_run / "report.json").read_text(encoding="utf-8"))["tests"]["held_out"]["scores"]
    for score in record["scores"]:
        one, other = theirs[score["metric"]]["value"], record["tests"]["held_out"][score["metric"]]["value"]
        assert (score["model"]["value"], score["plain"]["value"]) == (one, other)
        assert score["difference"]["value"] == pytest.approx(one - other)
    page = page_of_results(monkeypatch, tmp_path, PLAIN=tmp_path / "records")
    text = page.page()
    for score in record["scores"]:
        [row] = [line for line in text.splitlines() if f"| held_out | {score['name']} (" in line]
        figures = row.partition(f"{score['name']} (")[2].partition("| ")[2]
        assert figures.startswith(f"{score['model']['value']:.2f} | {score['plain']['value']:.2f} | ")
        assert figures in shown


@pytest.mark.slow
def test_a_stopped_training_ends_in_the_same_weights(
    plain: ModuleType, finished: Path, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    keep = plain.keep

    def kept_once(*given: Any) -> None:
        keep(*given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(plain, "keep", kept_once)
        run(plain, patch, tiny_run / "recipe.toml", tmp_path)
    assert not (tmp_path / "report.json").exists()
    run(plain, monkeypatch, tiny_run / "recipe.toml", tmp_path)
    one, other = (load_file(folder / "checkpoint.safetensors") for folder in (finished, tmp_path))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert (tmp_path / "held_out.outputs").read_text() == (finished / "held_out.outputs").read_text()
    shown = capsys.readouterr().out
    assert "epoch 2 of 2" in shown
    run(plain, monkeypatch, tiny_run / "recipe.toml", tmp_path)  # nothing is trained again
    again = capsys.readouterr().out
    assert "epoch" not in again.partition("epochs of")[2]
    assert shown.endswith(again)
    with pytest.raises(SystemExit) as left:
        run(plain, monkeypatch, tiny_run / "recipe.toml", tmp_path, "--seed", "2")
    assert left.value.code == 2
    assert "holds a training with other settings" in capsys.readouterr().err


def test_padding_changes_nothing_and_no_token_sees_the_next(plain: ModuleType) -> None:
    torch.manual_seed(0)
    model = plain.PlainTransformer(20, 30).eval()
    sources, targets = [[5, 6, 2], [7, 8, 9, 10, 11, 2]], [[1, 4, 5, 6, 7], [1, 9]]
    together = model(plain.padded(sources), plain.padded(targets))
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = model(torch.tensor([source]), torch.tensor([target]))
        torch.testing.assert_close(together[row, : len(target)], alone[0], atol=1e-5, rtol=1e-4)
        first = model(torch.tensor([source]), torch.tensor([target[:1]]))
        torch.testing.assert_close(alone[0, :1], first[0], atol=1e-5, rtol=1e-4)
    for source, found in zip(sources, plain.greedy(model, sources), strict=True):
        expected = [1]
        while expected[-1] != 2 and len(expected) <= len(found):
            expected.append(int(model(torch.tensor([source]), torch.tensor([expected]))[0, -1].argmax()))
        assert expected[1 : len(found) + 1] == found


@pytest.mark.parametrize(
    ("unit", "text"),
    [("bpe", "Ein Hund läuft, schnell."), ("words", "one two  three"), ("characters", "一只狗。 它 跑")],
)
def test_tokenizers_give_texts_back(plain: ModuleType, unit: str, text: str) -> None:
    tokenizer = plain.made_tokenizer([text] * 3, unit, 500)
    assert (tokenizer.decode(tokenizer.encode(text).ids)).strip() == (
        " ".join(text.split()) if unit == "words" else text
    )
    assert [tokenizer.token_to_id(each) for each in plain.SPECIAL] == [0, 1, 2, 3]
