"""A format of exports is one file, found by its name; what a new one lacks is named here."""

import sys
from pathlib import Path

import pytest

import forked
from transduce.core.errors import InputError
from transduce.interop.exports import export_format, export_names

ROOT = Path(__file__).parents[2]


def test_formats_are_found_by_their_files() -> None:
    assert export_names() == ["argos", "ctranslate2", "huggingface", "marian", "onnx"]
    with pytest.raises(InputError, match=r'there is no "export_onxn"\. Did you mean "export_onnx"'):
        export_format("onxn")


@pytest.mark.parametrize("name", export_names())
def test_each_says_how_it_is_written_and_what_runs_it_and_is_described_and_tested(name: str) -> None:
    found = export_format(name)
    assert callable(getattr(found, "write", None)), f"{found.__name__} lacks `write`"
    assert callable(getattr(found, "engine", None)), f"{found.__name__} lacks `engine`"
    table = (ROOT / "docs" / "interop.md").read_text(encoding="utf-8").partition("| `--to` |")[2]
    assert f"| `{name}` |" in table, f"docs/interop.md has no row for {name}"
    assert (ROOT / "tests" / "interop" / f"test_export_{name}.py").is_file(), f"there is no test_export_{name}.py"


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_the_command_takes_these(tmp_path: Path) -> None:
    done = forked.transduce(tmp_path, "export", "runs/my", "--to", "tflite")
    assert done.code == 2
    assert all(f"'{name}'" in done.err for name in export_names())
