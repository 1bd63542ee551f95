"""One recipe in several languages: other files, the same settings; models, ensembles, and what is said of them."""

import json
import sys
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import transduce
from scripts import ROOT, loaded, page_of_results
from tiny_recipe import DIGITS, TINY_RECIPE

LANGUAGES = {"xx": 0, "arm_e": 3}  # by how many places the words for digits are turned
PARTS = {"train": range(60), "dev": range(60, 70), "test": range(20)}  # numbers; seen ones, as training is short


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe of the language xx; the folder's name holds the code, which is no file's name."""
    folder = tmp_path_factory.mktemp("in_xx_")
    for language, turn in LANGUAGES.items():
        for part, numbers in PARTS.items():
            lines = [(" ".join(str(n)), " ".join(DIGITS[(int(d) + turn) % 10] for d in str(n))) for n in numbers]
            text = "".join(f"{source}\t{target}\n" for source, target in lines)
            (folder / f"{language}_{part}.tsv").write_text(text, encoding="utf-8")
    head, _, rest = TINY_RECIPE.partition("[tokenizer]")
    files = (
        f'root = {json.dumps(str(folder))}\ntrain = [{{ tsv = "xx_train.tsv" }}]\n'
        'validation = { tsv = "xx_dev.tsv" }\ntest = { words = { tsv = "xx_test.tsv" } }\n'
    )
    assert "[data]" in head
    path = folder / "toy.toml"
    path.write_text(
        f'# Toy.\n# Published: 90 in xx,\n# 80 in arm_e.\n[task]\nmetrics = ["exact_match", "per"]\n[data]\n{files}'
        f"[tokenizer]{rest}".replace("updates = 24", "updates = 100"),
        encoding="utf-8",
    )
    return path


def main(monkeypatch: pytest.MonkeyPatch, records: Path, *words: object) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    languages = loaded("benchmarks/languages.py")
    monkeypatch.setattr(languages, "RECORDS", records)
    monkeypatch.setattr(sys, "argv", ["languages.py", *map(str, words)])
    languages.main()


@pytest.mark.slow
def test_every_language_has_its_models_an_ensemble_and_a_line(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs, records = tmp_path / "runs", tmp_path / "records"
    asked = [recipe, "--languages", "arm_e,xx", "--seeds", 2, "--runs", runs]
    main(monkeypatch, records, *asked, "--only", "xx")
    assert sorted(path.name for path in runs.iterdir()) == ["xx"]
    main(monkeypatch, records, *asked, "--record", "--commit", "abc")
    shown = capsys.readouterr().out
    exact: dict[str, list[float]] = {}
    ensembles = {}
    for language in LANGUAGES:
        members = [runs / language / f"seed-{seed}" for seed in (1, 2)]
        reports = [json.loads((each / "report.json").read_text()) for each in members]
        assert all(f"{language}_train.tsv" in json.dumps(each["data"]) for each in reports)
        assert [each["training"]["seed"] for each in reports] == [1, 2]
        exact[language] = [each["tests"]["words"]["scores"]["exact_match"]["value"] for each in reports]
        lines = (recipe.parent / f"{language}_test.tsv").read_text().splitlines()
        pairs = [line.split("\t") for line in lines]
        outputs = transduce.load(members).predict([source for source, _ in pairs])
        ensembles[language] = 100 * fmean(each.text == right for each, (_, right) in zip(outputs, pairs, strict=True))
        row = [language, *exact[language], fmean(exact[language]), ensembles[language]]
        assert "| " + " | ".join(f"{x:.2f}" if isinstance(x, float) else x for x in row) + " |" in shown
    single, several = fmean(map(fmean, exact.values())), fmean(ensembles.values())
    assert f"mean {100 - single:.2f}, {100 - several:.2f}.\n" in shown
    assert "word error rate (100 - exact match)" in shown.lower()

    [path] = records.iterdir()
    record = json.loads(path.read_text(encoding="utf-8"))
    assert (record["recipe"], record["commit"], record["seeds"]) == ("toy", "abc", [1, 2])
    assert {each["metric"] for each in record["scores"]} == {"exact_match", "per"}
    assert all(each["signature"] for each in record["scores"])
    page = page_of_results(monkeypatch, tmp_path, LANGUAGES=records)
    monkeypatch.setattr(page.language_tables, "RECIPES", recipe.parent)
    text = page.page()
    assert "\n### toy\n\nOn the test set words (beam 3, alpha 0.75), exact match (2):\n\n| language | seed 1 |" in text
    assert (
        f"| mean of single models | ensemble of 2 |\n| --- | --- | --- | --- | --- |\n| arm_e | {exact['arm_e'][0]:.2f}"
        in text
    )
    assert "\n\nPublished: 90 in xx,\n80 in arm_e.\n\n" in text
    assert "commit `abc`." in text

    before = {path: path.stat().st_mtime_ns for path in runs.rglob("model.safetensors")}
    main(monkeypatch, records, *asked)  # nothing is trained again
    assert before == {path: path.stat().st_mtime_ns for path in runs.rglob("model.safetensors")}
    assert shown.endswith(f"{capsys.readouterr().out}{path}\n")


@pytest.mark.parametrize(
    ("languages", "more", "wanted"),
    [
        (
            "fre,hun",
            (),
            "expected one of fre, hun in the names of all entries of files; got data.train, 1: xx_train.tsv",
        ),
        ("fre", ("--code", "x"), "expected x in the names"),
        ("xx,fre", (), "fre_train.tsv"),
        ("xx,fre", (), "fre_test.tsv"),
        ("fre", ("--code", "xx"), "fre_dev.tsv"),
        ("xx", ("--seeds", 1), "--seeds: expected 2 or more"),
        ("xx", ("--only", "fre"), "--only: expected one of xx; got fre"),
    ],
)
def test_what_cannot_be_trained_is_refused_first(
    recipe: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
    languages: str,
    more: tuple[object, ...],
    wanted: str,
) -> None:
    with pytest.raises(SystemExit) as left:
        main(monkeypatch, tmp_path, recipe, "--languages", languages, "--runs", tmp_path / "runs", *more)
    assert left.value.code == 2
    assert wanted in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_codes_are_whole_words_of_file_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    from transduce.recipe.recipe import load_recipe

    languages = loaded("benchmarks/languages.py")
    pronounced = load_recipe(ROOT / "recipes" / "g2p.toml")
    other = languages.of_language(pronounced, languages.found_code(pronounced, ["hun", "dut"], None), "arm_e")
    assert (other.data.train[0].file, other.data.validation.file) == ("arm_e_train.tsv.gz", "arm_e_dev.tsv.gz")
    assert other.data.root == pronounced.data.root
    translated = load_recipe(ROOT / "recipes" / "multi30k-en-de.toml")
    french = languages.of_language(translated, languages.found_code(translated, ["de", "fr"], None), "fr")
    assert (french.data.train[0].source, french.data.train[0].target) == ("raw/train.en.gz", "raw/train.fr.gz")
    assert (french.task.source, french.task.target) == ("en", "fr")
