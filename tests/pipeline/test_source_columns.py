"""A model of several source columns reads them with tabs between, as they lie in its training files."""

import json
import sys
from pathlib import Path

import pytest

import forked
import transduce
from tiny_recipe import DIGITS, TINY_RECIPE
from transduce.data.source_columns import ONE, SourceColumns, source_columns
from transduce.kernels import native
from transduce.without_torch import translator


def trained(folder: Path) -> Path:
    rows = ((str(n), " ".join(DIGITS[int(digit)] for digit in str(n)), f"N;{n % 2}") for n in range(60))
    (folder / "train.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    _, _, rest = TINY_RECIPE.partition("[tokenizer]")
    entry = '{ tsv = "train.tsv", source_column = [0, 2], target_column = 1, source_separator = " # " }'
    (folder / "a.toml").write_text(f'[data]\nroot = "{folder}"\ntrain = [{entry}]\n[tokenizer]{rest}', encoding="utf-8")
    done = forked.transduce(folder, "train", folder / "a.toml", "training.updates=6", "--run", folder / "run")
    assert done.code == 0, done.err
    return folder / "run"


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_tabs_are_read_as_the_separator(tmp_path: Path) -> None:
    run = trained(tmp_path)
    texts = ["12 # N;0", "12\tN;0", "12\tN;0\t"]
    without_torch = [translator.load(run)] if native.kernels() else []
    for model in (transduce.load(run), transduce.load([run, run]), *without_torch):
        first, second, third = (each.score for each in model.predict(texts, beam=2))
        assert first == second != third


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_a_file_of_pairs_is_read_as_in_training(tmp_path: Path) -> None:
    run, train = trained(tmp_path), tmp_path / "train.tsv"
    both = ("--tsv", train, "--source-column", 0, "--source-column", 2)
    reports = [
        json.loads(forked.transduce(tmp_path, "evaluate", run, *files, "--json", "--metric", "chrf").out)
        for files in (both, ("--source", train))
    ]
    assert reports[0]["scores"] == reports[1]["scores"]
    assert reports[0]["likelihood"] == reports[1]["likelihood"]
    found = transduce.evaluate(run, train, metrics="chrf")
    assert found.scores["chrf"].value == reports[0]["scores"]["chrf"]["value"]
    assert found.data.keys() == {str(train)}
    scored = [forked.transduce(tmp_path, "score", run, *files).out for files in (both, ("--source", train))]
    assert scored[0].count("\n") == 60
    assert scored[0] == scored[1]

    rows = [line.split("\t") for line in train.read_text(encoding="utf-8").splitlines()]
    (tmp_path / "lines.txt").write_text("".join(f"{number} # {tag}\n" for number, _, tag in rows), encoding="utf-8")
    (tmp_path / "same.csv").write_text(
        "source,target\n" + "".join(f"{number} # {tag},{words}\n" for number, words, tag in rows), encoding="utf-8"
    )
    engines = ["torch", "kernels"] if native.kernels() else ["torch"]
    outputs = [
        forked.transduce(tmp_path, "predict", run, "--source", tmp_path / name, "--engine", engine).out
        for name in ("lines.txt", "train.tsv", "same.csv")
        for engine in engines
    ]
    assert outputs[0].count("\n") == len(rows)
    assert {*outputs} == {outputs[0]}


@pytest.mark.parametrize(
    ("entries", "columns"),
    [
        ([{"source_column": [0, 2]}], SourceColumns(2, " | ")),
        ([{"source_column": ["lemma", "tags", "more"], "source_separator": "+"}] * 2, SourceColumns(3, "+")),
        ([{"source_column": [0, 2]}, {"source_column": 0}], ONE),
        ([{"source_column": 0}, {}], ONE),
        ([], ONE),
        (None, ONE),
        ([[], "x", {"source_column": "lemma"}], ONE),
    ],
)
def test_the_columns_are_those_of_the_recipe_in_the_file(entries: object, columns: SourceColumns) -> None:
    assert source_columns({"data": {"train": entries}}) == columns
    assert columns.joined(["a\tb", "a", "a\tb\tc"])[1] == "a"
