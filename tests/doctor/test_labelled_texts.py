"""Texts with labels: what the doctor finds in a table, and between the tables of a folder."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from transduce.cli.app import app
from transduce.data.labelled import LabelledFile, LabelledFiles
from transduce.doctor import Severity, examine_labelled


def table(path: Path, rows: list[tuple[str, str]]) -> Path:
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf-8")
    return path


GOOD = [(f"text number {n}", "ab"[n % 2]) for n in range(40)]


def found(root: Path, **files: Path) -> dict[tuple[str, str], tuple[int, list[int], Severity]]:
    named = {role.replace("_", " "): LabelledFile(file=path.name) for role, path in files.items()}
    report = examine_labelled(LabelledFiles(named, root))
    return {(each.kind, each.side): (each.count, each.lines, each.severity) for each in report.findings}


def test_a_sound_table_has_no_findings(tmp_path: Path) -> None:
    test = table(tmp_path / "test.tsv", [("another", "a")])
    assert found(tmp_path, train=table(tmp_path / "train.tsv", GOOD), test_x=test) == {}


def test_what_is_wrong_is_found_with_its_lines(tmp_path: Path) -> None:
    """Lines are counted with the header."""
    wrong = [("Text  NUMBER 0", "b"), ("text number 1", "b"), ("", "a"), ("no label", " "), ("once", "c")]
    train = table(tmp_path / "train.tsv", [*GOOD, *wrong])
    test = table(tmp_path / "test.tsv", [("text  number 5", "b"), ("new", "d")])
    assert found(tmp_path, train=train, test_x=test) == {
        ("no_label", "train"): (1, [45], Severity.ERROR),
        ("leak", "test x"): (1, [2], Severity.ERROR),
        ("no_text", "train"): (1, [44], Severity.WARNING),
        ("contradiction", "train"): (2, [2, 42], Severity.WARNING),
        ("unseen_label", "test x"): (1, [3], Severity.WARNING),
        ("rare_label", "train"): (2, [45, 46], Severity.WARNING),
        ("repeated", "train"): (2, [3, 43], Severity.NOTE),
    }


@pytest.mark.parametrize("named", ["folder", "test source", "recipe"])
def test_the_command_examines_labels_as_training_takes_them(tmp_path: Path, named: str) -> None:
    train, test = table(tmp_path / "train.tsv", GOOD), table(tmp_path / "test.tsv", GOOD[:3])
    arguments = [str(tmp_path)] if named == "folder" else [str(train), "--test-source", str(test)]
    if named == "recipe":
        data = f'root = "{tmp_path}"\ntrain = [{{ file = "train.tsv" }}]\ntest = {{ test = {{ file = "test.tsv" }} }}'
        (tmp_path / "my.toml").write_text(f'[task]\nkind = "classification"\n[data]\n{data}\n')
        arguments = [str(tmp_path / "my.toml")]
    result = CliRunner().invoke(app, ["doctor", *arguments, "--json"])
    assert result.exit_code == 1, result.output
    report = json.loads(result.stdout)
    assert report["lines"] == {"train": 40, "test test": 3}
    assert [(each["kind"], each["count"]) for each in report["findings"]] == [("leak", 3)]
