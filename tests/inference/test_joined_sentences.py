"""benchmarks/joined_sentences.py finds no sentence lost by a toy model, and finds what is lost by one that reads on."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import forked
from scripts import ROOT, loaded
from sentence_model import all_pairs
from served import serving
from transduce.core.model_file import load_model_file, save_model_file

WAYS = ("predict, lines", "predict --text", "/translate", "/v1/predict", "the page")


@pytest.fixture
def held_out(tmp_path: Path) -> Path:
    texts = [source for source, _ in all_pairs()[:40]]
    path = tmp_path / "held_out.tsv"
    path.write_text("".join(f"x\t{text}\n" for text in [*texts, "no sentence", texts[0]]), encoding="utf-8")
    return path


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script, which starts the command and a server as processes."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return loaded("benchmarks/joined_sentences.py")


@pytest.fixture
def quick_script(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The same, whose commands are forked and whose server is a thread: neither loads torch again."""

    def predicted(model: Path, *words: str, input: str | None = None) -> str:
        done = forked.transduce(tmp_path, "predict", model, *words, given=(input or "").encode())
        assert done.code == 0, done.err
        return done.out

    @contextmanager
    def started(model: Path, *_: int) -> Iterator[tuple[None, str]]:
        with serving([model]) as server:
            yield None, server.address

    monkeypatch.setattr(script, "predicted", predicted)
    monkeypatch.setattr(script, "started", started)
    return script


def shown(script: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any, *words: object) -> tuple[object, str]:
    """Exit code and output."""
    monkeypatch.setattr(sys, "argv", ["joined_sentences.py", *map(str, words)])
    with pytest.raises(SystemExit) as left:
        script.main()
    return left.value.code, capsys.readouterr().out


@pytest.mark.parametrize("which", ["quick_script", pytest.param("script", marks=pytest.mark.slow)])
def test_every_way_is_asked_and_none_loses_a_sentence(
    which: str, sentence_run: Path, held_out: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, request: Any
) -> None:
    script = request.getfixturevalue(which)
    code, told = shown(script, monkeypatch, capsys, sentence_run, "--tsv", held_out, "--column", 1, "--pairs", 12)
    assert "41 different held-out texts; 1 that do not end as sentences are left out" in told
    for way in WAYS:
        assert f"{way}: 12 of 12 pairs as their sentences alone, 0 not\n" in told
    assert not code


def test_what_is_lost_is_counted_and_shown(
    quick_script: Any, sentence_run: Path, held_out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    file = load_model_file(sentence_run)
    model = tmp_path / "reads_on.safetensors"
    save_model_file(model, replace(file, provenance={**file.provenance, "sentences": {"single": False}}))
    words = (monkeypatch, capsys, model, "--tsv", held_out, "--column", 1, "--pairs")
    code, told = shown(quick_script, *words, 4)
    assert "not trained on single sentences" in told
    assert told.count("pairs as their sentences alone, 0 not") == 0
    assert all(f"{way}: " in told for way in WAYS)
    assert "    expected  " in told
    assert code == 1
    code, told = shown(quick_script, *words, 500)
    assert "expected at least 1,000 sentences; got 40" in str(code)
