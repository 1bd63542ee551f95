"""Reports on files: figures with signatures, or an error before any work is done."""

import json
from pathlib import Path

import pytest

from random_models import language_model, sentences, translator
from transduce.data.files import fingerprint
from transduce.errors import InputError
from transduce.evaluation import evaluate_files
from transduce.metrics.bleu import bleu
from transduce.pipeline import Pipeline


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return translator()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    source, reference = tmp_path / "source.txt", tmp_path / "reference.txt"
    source.write_text("".join(f"{line}\n" for line in sentences(12)))
    reference.write_text("".join(f"{line}\n" for line in sentences(12, seed=5)))
    return source, reference


def nothing(count: int) -> None:
    pass


def test_a_report_holds_every_figure_with_how_it_came_about(pipeline: Pipeline, files: tuple[Path, Path]) -> None:
    source, reference = files
    report = evaluate_files(pipeline, source, reference, ["bleu", "chrf"], 5, nothing, {"beam": 2})
    assert json.loads(json.dumps(report)) == report
    outputs = [each.text for each in pipeline.predict(sentences(12), beam=2)]
    assert report["scores"]["bleu"] == bleu(outputs, sentences(12, seed=5)).to_dict()
    low, high = report["scores"]["chrf"]["interval"]
    assert low <= report["scores"]["chrf"]["value"] <= high
    assert report["search"]["beam"] == 2
    assert report["sentences"] == 12
    likelihood = pipeline.score(list(zip(sentences(12), sentences(12, seed=5), strict=True)))
    assert report["likelihood"]["log_probability"] == pytest.approx(sum(each.log_probability for each in likelihood))
    assert report["likelihood"]["tokens"] == sum(len(line.split()) + 1 for line in sentences(12, seed=5))
    assert report["data"] == {str(path): fingerprint(path) for path in files}


def test_a_language_model_is_judged_by_likelihood_alone(files: tuple[Path, Path]) -> None:
    report = evaluate_files(language_model(), None, files[1], None, 5, nothing, {})
    assert report["scores"] == {}
    assert report["likelihood"]["perplexity"] > 1


def test_what_does_not_fit_is_refused_before_decoding(
    pipeline: Pipeline, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, reference = files

    def judge(pipeline: Pipeline, source: Path | None, metrics: list[str] | None = None) -> str:
        with monkeypatch.context() as patch, pytest.raises(InputError) as caught:
            patch.setattr(Pipeline, "predict", lambda *texts, **settings: pytest.fail("it decoded"))
            evaluate_files(pipeline, source, reference, metrics, 5, nothing, {})
        return str(caught.value)

    assert 'there is no "bleuu". Did you mean "bleu"?' in judge(pipeline, source, ["bleuu"])
    assert "name --source" in judge(pipeline, None)
    assert "no --source" in judge(language_model(), source)
    source.write_text("ba\n")
    assert "has 1 lines" in judge(pipeline, source)
    assert "has 12" in judge(pipeline, source)
