"""Bulk jobs in blocks: what one call gives for all lines; the same from workers that know nothing of each other."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from random_models import language_model, model_file, sentences, translator
from transduce.bulk import blocks
from transduce.bulk.blocks import LineBlock, blocks_of
from transduce.bulk.engine import LocalEngine, engine_of
from transduce.bulk.job import Advance, BulkJob, Placement
from transduce.bulk.predicting import constraints_row, outputs
from transduce.bulk.scanning import scanner_on
from transduce.bulk.scoring import scored
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.data.corpus import TextFile
from transduce.distillation import translations
from transduce.doctor import examine
from transduce.inference.constraints import Constraints
from transduce.search.settings import search_settings

LINES = [*sentences(30), "", "ba ba\u2028de", "  ", "go " * 40]


class WorkerForEachBlock:
    """Stands in for a cluster: a new worker for each block, to which everything comes as JSON."""

    def answers(self, job: BulkJob, given: Iterable[LineBlock], advance: Advance) -> Iterator[Any]:
        for block in given:
            described = json.loads(json.dumps([job.kind, job.settings]))
            sent = LineBlock(*json.loads(json.dumps(block)))
            yield json.loads(json.dumps(BulkJob(*described, job.models).worker().answer(sent, advance)))


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LINES", 7)


def saved(folder: Path, pipeline: Any) -> Path:
    path = folder / "model.safetensors"
    save_model_file(path, model_file(pipeline))
    return path


def test_blocks_hold_every_row_once_in_order() -> None:
    found = list(blocks_of(({"text": line} for line in LINES), 7))
    assert [row["text"] for block in found for row in block.rows] == LINES
    assert [(block.number, block.first) for block in found] == [(number, 7 * number) for number in range(len(found))]


@pytest.mark.parametrize("options", [{"beam": 3}, {"method": "sample", "seed": 5}, {"nbest": 2, "beam": 2}])
def test_predictions_are_those_of_one_call(tmp_path: Path, options: dict[str, Any]) -> None:
    teacher, told, done = translator(), list[str](), list[int]()
    expected = teacher.predict(LINES, split="none", tell=told.append, **options)
    job = Placement(WorkerForEachBlock(), [saved(tmp_path, teacher)], {"device": "cpu"}).job(
        "predict", {"predict": {"split": "none", **options}, "form": "json"}
    )
    heard = list[str]()
    found = list(outputs(WorkerForEachBlock(), job, ({"text": line} for line in LINES), done.append, heard.append))
    assert [json.loads(each)["text"] for each in found] == [each.text for each in expected]
    assert [json.loads(each)["tokens"] for each in found] == [list(each.tokens) for each in expected]
    assert heard == told  # long lines, by their numbers in the file
    assert sum(done) == len(LINES)


def test_each_line_has_its_own_constraints(tmp_path: Path) -> None:
    teacher = translator()
    wanted = [Constraints(must=(("ba", "de"),)) if place % 3 == 1 else Constraints() for place in range(20)]
    lines = sentences(20)
    expected = teacher.predict(lines, split="none", constraints=wanted)
    rows = ({"text": line, "constraints": constraints_row(each)} for line, each in zip(lines, wanted, strict=True))
    job = BulkJob("predict", {"load": {}, "predict": {"split": "none"}, "form": "text"}, [saved(tmp_path, teacher)])
    assert list(outputs(WorkerForEachBlock(), job, rows, lambda lines: None, print)) == [each.text for each in expected]


def test_scores_are_those_of_one_call_bit_for_bit(tmp_path: Path) -> None:
    model = translator()
    pairs = [(line, other) for line, other in zip(sentences(20), sentences(20, seed=4), strict=True)]
    job = BulkJob("score", {"load": {}, "batch_size": 1}, [saved(tmp_path, model)])
    assert list(scored(WorkerForEachBlock(), job, pairs, lambda lines: None)) == model.score(pairs, batch_size=1)


def test_scores_of_a_language_model(tmp_path: Path) -> None:
    model = language_model()
    pairs = [("", line) for line in sentences(9)]
    job = BulkJob("score", {"load": {}, "batch_size": 1}, [saved(tmp_path, model)])
    assert list(scored(WorkerForEachBlock(), job, pairs, lambda lines: None)) == model.score(
        [text for _, text in pairs], batch_size=1
    )


def test_the_doctor_reports_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("transduce.doctor.scan", "transduce.bulk.scanning"):
        monkeypatch.setattr(f"{module}.LINES_AT_ONCE", 16)
    strange = [
        "я ba",
        "ba я",
        "零一二三四五六七八九",
        "привет всем друзья мои",
        "ba\tba",
        "\ufeffba",
        "абвгд abcde",
        "abcde абвгд",
    ]
    sources = [*sentences(100), *strange, *sentences(40), ""]
    targets = [*sentences(100, seed=4), *strange[::-1], *sentences(40), "ba"]
    paths = tmp_path / "a", tmp_path / "b"
    for path, lines in zip(paths, (sources, targets), strict=True):
        path.write_bytes("".join(f"{line}\n" for line in lines).encode() + b"caf\xe9\n")
    alone = examine(*paths, test_source=paths[0])
    spread = examine(*paths, test_source=paths[0], scanner=scanner_on(WorkerForEachBlock()))
    assert spread.to_dict() == alone.to_dict()
    assert {finding.kind for finding in alone.findings} >= {"invalid_utf8", "odd_character", "wrong_script"}


def test_a_distillation_elsewhere_leaves_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translations, "PART", 7)
    teacher, search = translator(), search_settings(translator().recipe.search, {"method": "sample", "seed": 3})
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8", newline="")
    placed = Placement(WorkerForEachBlock(), [saved(tmp_path, teacher)], {"device": "cpu"})
    reports = [
        translations.distil(
            teacher,
            "0" * 64,
            [TextFile(text="in.txt")],
            tmp_path,
            tmp_path / name,
            search,
            method=method,
            placement=where,
        )
        for method in (translations.DISTILLATION, translations.BACKTRANSLATION)
        for name, where in ((f"here-{method[:4]}", None), (f"there-{method[:4]}", placed))
    ]
    assert reports[0] == reports[1] and reports[2] == reports[3]
    assert reports[0]["sha256"]["target.gz"] != reports[2]["sha256"]["source.gz"]  # a seed for each part
    assert reports[0]["counts"]["long"] == reports[1]["counts"]["long"]


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(InputError, match=r"local.*ray"):
        engine_of("spark")  # type: ignore[arg-type]


def test_this_process_answers_with_the_worker_that_is_there() -> None:
    class Counts:
        def answer(self, block: LineBlock, advance: Advance) -> int:
            return len(block.rows)

    engine = LocalEngine(Counts())
    found = engine.answers(
        BulkJob("predict", {}), blocks_of(({"text": line} for line in LINES), 30), lambda lines: None
    )
    assert list(found) == [30, len(LINES) - 30]
