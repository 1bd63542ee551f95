"""benchmarks/joined_sentences.py finds no sentence lost by a toy model, and finds what is lost by one that reads on."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scripts import ROOT, loaded
from sentence_model import all_pairs
from transduce.core.model_file import load_model_file, save_model_file

WAYS = ("predict, lines", "predict --text", "/translate", "/v1/predict", "the page")


@pytest.fixture
def held_out(tmp_path: Path) -> Path:
    texts = [source for source, _ in all_pairs()[:40]]
    path = tmp_path / "held_out.tsv"
    path.write_text("".join(f"x\t{text}\n" for text in [*texts, "no sentence", texts[0]]), encoding="utf-8")
    return path


def shown(monkeypatch: pytest.MonkeyPatch, capsys: Any, *words: object) -> tuple[object, str]:
    """Exit code and output."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setattr(sys, "argv", ["joined_sentences.py", *map(str, words)])
    with pytest.raises(SystemExit) as left:
        loaded("benchmarks/joined_sentences.py").main()
    return left.value.code, capsys.readouterr().out


def test_every_way_is_asked_and_none_loses_a_sentence(
    sentence_run: Path, held_out: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    code, told = shown(monkeypatch, capsys, sentence_run, "--tsv", held_out, "--column", 1, "--pairs", 12)
    assert "41 different held-out texts; 1 that do not end as sentences are left out" in told
    for way in WAYS:
        assert f"{way}: 12 of 12 pairs as their sentences alone, 0 not\n" in told
    assert not code


def test_what_is_lost_is_counted_and_shown(
    sentence_run: Path, held_out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    file = load_model_file(sentence_run)
    model = tmp_path / "reads_on.safetensors"
    save_model_file(model, replace(file, provenance={**file.provenance, "sentences": {"single": False}}))
    code, told = shown(monkeypatch, capsys, model, "--tsv", held_out, "--column", 1, "--pairs", 4)
    assert "not trained on single sentences" in told
    assert told.count("pairs as their sentences alone, 0 not") == 0
    assert all(f"{way}: " in told for way in WAYS)
    assert "    expected  " in told
    assert code == 1
    code, told = shown(monkeypatch, capsys, model, "--tsv", held_out, "--column", 1, "--pairs", 500)
    assert "expected at least 1,000 sentences; got 40" in str(code)
