"""A teacher's translations: all of them, in order, the same bytes however often it was stopped."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from random_models import language_model, model_file, sentences, translator
from trained import lines_of
from transduce.core.errors import InputError, Interrupted
from transduce.core.model_file import save_model_file
from transduce.data.corpus import TextFile
from transduce.data.pairs.pair_files import PairFiles
from transduce.distillation import translations as module
from transduce.distillation.translations import distil, training_sources
from transduce.inference.options import PredictionOptions
from transduce.pipeline.pipeline import Pipeline
from transduce.search.settings import search_settings

LINES = [*sentences(37), "", "ba ba\u2028de", "  ", "fi\r", "go " * 12]
COUNT = len(LINES)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART", 10)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8", newline="")
    return tmp_path


def run(folder: Path, output: str = "out", teacher: Pipeline | None = None, **options: Any) -> dict[str, Any]:
    teacher = teacher or translator()
    search = search_settings(teacher.recipe.search, options.pop("search", {"beam": 3}))
    sources = options.pop("sources", [TextFile(text="in.txt")])
    return distil(teacher, "0" * 64, sources, folder, folder / output, search, batch_size=4, **options)


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_every_line_has_the_teachers_translation_in_order(folder: Path) -> None:
    report = run(folder)
    expected = translator().predict(LINES, beam=3, split="none")
    assert lines_of(folder / "out" / "source.gz") == LINES
    assert lines_of(folder / "out" / "target.gz") == [each.text for each in expected]
    assert report["lines"] == COUNT
    assert report["counts"] == {
        "empty_sources": sum(not line.strip() for line in LINES),
        "empty_targets": sum(bool(line.strip()) and not each.text for line, each in zip(LINES, expected, strict=True)),
        "unfinished": sum(not each.ended for each in expected),
        "long": 0,
    }
    assert report["counts"]["empty_sources"] >= 2
    assert report["counts"]["unfinished"] > 0
    assert report["search"]["beam"] == 3
    assert report["sources"] == [
        {"file": "in.txt", "sha256": hashlib.sha256((folder / "in.txt").read_bytes()).hexdigest()}
    ]
    assert report["sha256"] == {name: hashes(folder / "out")[name] for name in ("source.gz", "target.gz")}
    assert sorted(hashes(folder / "out")) == ["distillation.json", "source.gz", "target.gz"]


def test_long_sources_are_counted(folder: Path) -> None:
    teacher = translator(data={"train": [{"source": "a", "target": "b"}], "filters": {"max_tokens": 10}})
    report = run(folder, teacher=teacher)
    assert report["counts"]["long"] == sum(len(line.split()) > 10 for line in LINES) > 0
    assert len(lines_of(folder / "out" / "target.gz")) == COUNT


def test_several_files_and_columns_follow_each_other(folder: Path) -> None:
    (folder / "pairs.tsv").write_text("ba\tde fi\nfi\tgo\n")
    sources = training_sources([PairFiles(tsv="pairs.tsv", source_column=1, target_column=0)])
    sources += training_sources([PairFiles(source="in.txt", target="never read")])
    report = run(folder, sources=sources)
    assert lines_of(folder / "out" / "source.gz") == ["de fi", "go", *LINES]
    assert report["lines"] == COUNT + 2
    assert [each.get("column") for each in report["sources"]] == [1, None]


@pytest.mark.parametrize("stops", [(4,), (12, 4, 23)])
def test_stopped_and_gone_on_with_it_translates_only_what_is_missing(folder: Path, stops: tuple[int, ...]) -> None:
    run(folder, "whole")
    translated = 0

    class Counting(Pipeline):
        def predict_all(self, texts: Any, options: PredictionOptions) -> Any:
            nonlocal translated
            translated += len(texts)
            return super().predict_all(texts, options)

    for stop in stops:
        done = 0

        def advance(lines: int, stop: int = stop) -> None:
            nonlocal done
            done += lines
            if done >= stop:
                raise Interrupted("stopped")

        with pytest.raises(Interrupted):
            run(folder, advance=advance, teacher=Counting(model_file(translator())))
        assert not (folder / "out" / "target.gz").exists()
    finished, translated = len(list((folder / "out" / "parts").glob("0*.json"))), 0
    told: list[int] = []
    run(folder, teacher=Counting(model_file(translator())), advance=told.append)
    assert translated == COUNT - 10 * finished
    assert sum(told) == COUNT
    assert hashes(folder / "out") == hashes(folder / "whole")
    translated = 0
    run(folder, teacher=Counting(model_file(translator())))
    assert translated == 0


@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with POSIX signals")
def test_killed_and_gone_on_with(folder: Path) -> None:
    run(folder, "whole")
    save_model_file(folder / "teacher.safetensors", model_file(translator()))
    script = f"""
import os, signal, sys
from pathlib import Path
import torch
from transduce import load
from transduce.distillation import translations
from transduce.data.corpus import TextFile
from transduce.search.settings import search_settings
torch.set_num_threads(1)
translations.PART = 10
done = 0
def advance(lines):
    global done
    done += lines
    if done >= 27:
        os.kill(os.getpid(), signal.SIGKILL)
teacher, folder = load({str(folder / "teacher.safetensors")!r}), Path({str(folder)!r})
search = search_settings(teacher.recipe.search, {{"beam": 3}})
translations.distil(teacher, "0" * 64, [TextFile(text="in.txt")], folder, folder / "out", search, 4, advance)
"""
    done = subprocess.run([sys.executable, "-c", script], env=os.environ, check=False)
    assert done.returncode == -signal.SIGKILL
    assert sorted(path.name for path in (folder / "out" / "parts").glob("0*")) == ["000000.json", "000001.json"]
    run(folder)
    assert hashes(folder / "out") == hashes(folder / "whole")


@pytest.mark.parametrize("finished", [False, True])
def test_another_distillation_is_not_continued(folder: Path, finished: bool) -> None:
    if finished:
        run(folder)
    else:
        with pytest.raises(ZeroDivisionError):
            run(folder, advance=lambda lines: 1 // 0)  # type: ignore[arg-type]
    before = hashes(folder / "out") if finished else None
    with pytest.raises(InputError, match=r"holds another distillation.*different: search"):
        run(folder, search={"beam": 2})
    with pytest.raises(InputError, match=r"different: precision\."):
        run(folder, teacher=Pipeline(model_file(translator()), "int8"))
    (folder / "in.txt").write_text("ba\n")
    with pytest.raises(InputError, match="different: lines, sources"):
        run(folder)
    assert before is None or hashes(folder / "out") == before


@pytest.mark.parametrize("content", ['{"sources": [', "[]", "\0", '{"sources": 5}', '{"sources": [5]}', "{}"])
def test_a_damaged_report_is_told_and_left_alone(folder: Path, content: str) -> None:
    run(folder)
    report = folder / "out" / "distillation.json"
    report.write_text(content)
    with pytest.raises(InputError, match=r"distillation\.json.*(--output|another distillation)"):
        run(folder)
    assert report.read_text() == content


@pytest.mark.parametrize("content", ["{", "[]", '{"long": 0, "targets": []}', '{"long": 0, "targets": 5}', "{}"])
def test_a_damaged_part_is_named_and_translated_again_without_it(folder: Path, content: str) -> None:
    expected = run(folder, "expected")["sha256"]
    (folder / "out" / "parts").mkdir(parents=True)
    plan = {key: value for key, value in run(folder, "expected").items() if key not in ("counts", "sha256", "versions")}
    (folder / "out" / "parts" / "plan.json").write_text(json.dumps(plan))
    part = folder / "out" / "parts" / "000001.json"
    part.write_text(content)
    with pytest.raises(InputError, match=r"000001\.json: damaged: .* Delete it"):
        run(folder)
    part.unlink()
    assert run(folder)["sha256"] == expected


def test_a_folder_with_other_files_is_left_alone(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        run(folder)
    assert sorted(hashes(folder / "out")) == ["thesis.txt"]


def test_a_language_model_is_no_teacher(folder: Path) -> None:
    with pytest.raises(InputError, match="must be a translation model"):
        run(folder, teacher=language_model())
    assert not (folder / "out").exists()


def test_a_part_that_was_left_behind_by_a_finished_run_is_swept(folder: Path) -> None:
    report = run(folder)
    (folder / "out" / "parts").mkdir()
    assert run(folder) == report == json.loads((folder / "out" / "distillation.json").read_text())
    assert not (folder / "out" / "parts").exists()


def test_files_with_tags_have_no_teacher() -> None:
    with pytest.raises(InputError, match=">>fr<<: a teacher translates files without tags"):
        training_sources([PairFiles(source="a", target="b", to="fr")])
