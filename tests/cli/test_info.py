"""`transduce info`, run as a program runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

from transduce.cli.info import flat, info
from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile, save_model_file
from transduce.core.model_summary import describe

app = typer.Typer()
app.command()(info)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    model = ModelFile(
        weights={"layer.weight": torch.zeros(12, 100)},
        config={"model": {"kind": "my_file:MyModel", "dropout": 0.1}},
        tokenizers={"joint": '{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}}}'},
        provenance={"seed": 7, "note": "\x1b[31mred\x9b[bold]"},
        metrics={"BLEU": 41.4972},
    )
    save_model_file(tmp_path / "model.safetensors", model)
    return tmp_path


def test_json_is_all_there_is_on_stdout(saved: Path) -> None:
    result = CliRunner().invoke(app, [str(saved), "--json"])
    assert result.exit_code == 0
    assert json.loads(result.stdout) == describe(saved)


def test_tables_show_the_facts(saved: Path) -> None:
    result = CliRunner().invoke(app, [str(saved)], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    for fact in ("1,200 in 1 tensors (1 F32)", "dropout 0.1", "BPE, 2 entries", "41.5 "):
        assert fact in result.stdout
    assert "my_file:MyModel (needs --trust-code)" in result.stdout


def test_tensors_are_listed_when_asked_for(saved: Path) -> None:
    assert "layer.weight" not in CliRunner().invoke(app, [str(saved)], env={"COLUMNS": "200"}).stdout
    listed = CliRunner().invoke(app, [str(saved), "--tensors"], env={"COLUMNS": "200"}).stdout
    assert "layer.weight" in listed
    assert "F32 [12, 100]" in listed


def test_what_a_trained_model_is_fits_a_page(tiny_run: Path) -> None:
    shown = CliRunner().invoke(app, [str(tiny_run)], env={"COLUMNS": "100"}).stdout
    assert shown.count("\n") <= 70
    for fact in ("d_model 16", "updates 24", "kind transformer", "seed", "train.digits"):
        assert fact in shown


def test_a_file_cannot_steer_the_terminal(saved: Path) -> None:
    result = CliRunner().invoke(app, [str(saved)], env={"COLUMNS": "200"})
    assert "\x1b[31m" not in result.stdout
    assert "\x9b" not in result.stdout
    assert r"\x1b[31mred\x9b[bold]" in result.stdout


def test_a_wrong_path_is_an_input_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [str(tmp_path / "absent")])
    assert isinstance(result.exception, InputError)


def test_information_needs_no_torch(saved: Path) -> None:
    script = (
        "import sys; from pathlib import Path; import transduce.cli.info; "
        "light = set(sys.modules); transduce.cli.info.info(Path(sys.argv[1]), as_json=True); "
        "print(*({'torch', 'numpy', 'rich.console', 'transduce.core.tensor_file'} & light), file=sys.stderr); "
        "sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(saved)], capture_output=True, text=True, check=True)
    assert "transduce.core.tensor_file" not in done.stderr
    assert json.loads(done.stdout)["metrics"] == {"BLEU": 41.4972}


def test_nested_tables_become_dotted_names() -> None:
    assert flat({"a": {"b": 1, "c": {"d": [2]}}, "e": {}}) == {"a.b": "1", "a.c.d": "[2]", "e": "{}"}
