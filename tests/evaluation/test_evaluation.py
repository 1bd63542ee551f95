"""Reports on files: figures with signatures, or an error before any work is done."""

import json
import math
from pathlib import Path

import pytest

from random_models import language_model, sentences, translator
from scores import bleu
from transduce.core.errors import InputError
from transduce.data.files import fingerprint
from transduce.evaluation.evaluate import Settings, evaluate_files, verdict
from transduce.evaluation.texts import Files
from transduce.metrics.bleu import bleu_tally
from transduce.metrics.paired import Difference, paired_bootstrap
from transduce.pipeline.pipeline import Pipeline


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
    report = evaluate_files(
        {"a": pipeline}, Files(source, [reference]), Settings(["bleu", "chrf"], 5, {"beam": 2}), nothing
    )
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
    report = evaluate_files({"a": language_model()}, Files(None, [files[1]]), Settings(), nothing)
    assert report["scores"] == {}
    assert report["likelihood"]["perplexity"] > 1


def test_what_does_not_fit_is_refused_before_decoding(
    pipeline: Pipeline, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, reference = files

    def judge(pipeline: Pipeline, source: Path | None, metrics: list[str] | None = None) -> str:
        with monkeypatch.context() as patch, pytest.raises(InputError) as caught:
            patch.setattr(Pipeline, "predict", lambda *texts, **settings: pytest.fail("it decoded"))
            evaluate_files({"a": pipeline}, Files(source, [reference]), Settings(metrics), nothing)
        return str(caught.value)

    assert 'there is no "bleuu". Did you mean "bleu"?' in judge(pipeline, source, ["bleuu"])
    assert "with --source" in judge(pipeline, None)
    assert "no --source" in judge(language_model(), source)
    source.write_text("ba\n")
    assert "has 1 lines" in judge(pipeline, source)
    assert "has 12" in judge(pipeline, source)


def test_two_systems_are_compared_by_every_figure(pipeline: Pipeline, files: tuple[Path, Path], tmp_path: Path) -> None:
    source, reference = files
    good = tmp_path / "good.txt"
    good.write_text("".join(f"{line} ba\n" for line in sentences(12, seed=5)))
    models = {"one": pipeline, "other": translator(seed=4)}
    asked = Files(source, [reference], {"good": good})
    report = evaluate_files(models, asked, Settings(["bleu", "ter"], 5), nothing)
    assert json.loads(json.dumps(report)) == report
    assert list(report["systems"]) == ["one", "other", "good"]
    assert report["data"] == {str(path): fingerprint(path) for path in (source, reference, good)}
    told = {(each["second"], each["metric"]): each for each in report["comparisons"]}
    assert list(told) == [("other", "bleu"), ("other", "ter"), ("other", "bits"), ("good", "bleu"), ("good", "ter")]
    outputs = [each.text for each in pipeline.predict(sentences(12))]
    answers = sentences(12, seed=5)
    difference = paired_bootstrap(bleu_tally(outputs, answers), bleu_tally(good.read_text().splitlines(), answers))
    assert told["good", "bleu"].items() >= difference.to_dict().items()
    assert told["good", "bleu"]["value"] > 50
    assert told["good", "ter"]["value"] < 0
    for metric in ("bleu", "ter"):
        assert told["good", metric]["better"] == "second"
        assert told["good", metric]["verdict"].startswith("good is better than one: ")
    # 12 lines of random words: the likelihood in bits a character, whatever the tokens are
    likelihood = {name: report["systems"][name]["likelihood"]["log_probability"] for name in models}
    characters = sum(len(line) + 1 for line in answers)
    gained = (likelihood["one"] - likelihood["other"]) / math.log(2) / characters
    assert told["other", "bits"]["value"] == pytest.approx(gained)


def test_outputs_alone_need_no_model_and_no_source(files: tuple[Path, Path], tmp_path: Path) -> None:
    source, reference = files
    report = evaluate_files({}, Files(None, [reference], {"theirs": source}), Settings(), nothing)
    assert list(report["scores"]) == ["bleu", "chrf"]
    assert report["scores"]["bleu"] == bleu(sentences(12), sentences(12, seed=5)).to_dict()
    with pytest.raises(InputError, match="name the target's"):
        evaluate_files({}, Files(None, [reference], {"theirs": source}), Settings(["bleu-lc-moses"]), nothing)
    german = Files(None, [reference], {"theirs": source}, "de")
    assert "tok:moses-de" in str(evaluate_files({}, german, Settings(["bleu-lc-moses"]), nothing)["scores"])


def test_several_references_count(files: tuple[Path, Path], tmp_path: Path) -> None:
    source, reference = files
    report = evaluate_files({}, Files(None, [reference, source], {"theirs": source}), Settings(["bleu"]), nothing)
    assert report["scores"]["bleu"]["value"] == pytest.approx(100)
    assert report["scores"]["bleu"]["signature"].startswith("nrefs:2|")


def test_what_cannot_be_compared_is_refused(pipeline: Pipeline, files: tuple[Path, Path]) -> None:
    source, reference = files
    short = source.with_name("short.txt")
    short.write_text("ba\n")

    def judge(models: dict[str, Pipeline], asked: Files) -> str:
        with pytest.raises(InputError) as caught:
            evaluate_files(models, asked, Settings(), nothing)
        return str(caught.value)

    assert "name a model" in judge({}, Files(source, [reference]))
    assert "name a file of references" in judge({"a": pipeline}, Files(source, []))
    assert "share no metric" in judge({"a": pipeline, "b": language_model()}, Files(source, [reference]))
    assert "judged by likelihood" in judge({"b": language_model()}, Files(None, [reference], {"theirs": source}))
    assert "has 1 lines" in judge({"a": pipeline}, Files(source, [reference], {"theirs": short}))
    assert "has 1 lines" in judge({"a": pipeline}, Files(source, [reference, short]))


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (
            Difference(1.2, (0.2, 2.1), 0.012, 0.994, "second"),
            "b is better than a: BLEU +1.20 [+0.20, +2.10], p = 0.012; it wins in 99.4% of resampled test sets.",
        ),
        (
            Difference(-1.2, (-2.1, -0.2), 0.012, 0.006, "first"),
            "a is better than b: BLEU +1.20 [+0.20, +2.10], p = 0.012; it wins in 99.4% of resampled test sets.",
        ),
        (
            Difference(-1.2, (-2.1, -0.2), 0.012, 0.994, "second", lower_is_better=True),
            "b is better than a: BLEU -1.20 [-2.10, -0.20] (lower is better), p = 0.012; "
            "it wins in 99.4% of resampled test sets.",
        ),
        (
            Difference(1.2, (0.2, 2.1), 0.012, 0.006, "first", lower_is_better=True),
            "a is better than b: BLEU -1.20 [-2.10, -0.20] (lower is better), p = 0.012; "
            "it wins in 99.4% of resampled test sets.",
        ),
        (
            Difference(0.3, (-0.4, 1.0), 0.41, 0.7, ""),
            "No difference was found between a and b: from a to b BLEU changes by +0.30 [-0.40, +1.00], p = 0.410; "
            "more sentences might show one.",
        ),
        (
            Difference(-0.001, (-0.002, 0.0), 0.001, 0.0, "first"),
            "The difference between a and b rounds to 0: from a to b BLEU changes by +0.00 [+0.00, +0.00], p = 0.001.",
        ),
        (Difference(3.0, None, None, None, ""), "BLEU: at least two sentences are needed to tell a and b apart."),
    ],
)
def test_the_verdict_is_a_sentence(difference: Difference, said: str) -> None:
    assert verdict("a", "b", "BLEU", difference) == said


@pytest.mark.parametrize("metric", ["bleu", "chrf", "exact_match", "ter"])
def test_sign_and_words_agree_whichever_system_comes_first(
    metric: str, files: tuple[Path, Path], tmp_path: Path
) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    answers = sentences(12, seed=5)
    good.write_text("".join(f"{line}\n" for line in answers))
    bad.write_text("".join(f"{line[3:]} ba ba\n" for line in answers))
    for outputs in ({"good": good, "bad": bad}, {"bad": bad, "good": good}):
        [told] = evaluate_files({}, Files(None, [files[1]], outputs), Settings([metric]), nothing)["comparisons"]
        sign = "-" if metric == "ter" else "+"
        assert told["verdict"].startswith(f"good is better than bad: {told['name']} {sign}")
        assert ("(lower is better)" in told["verdict"]) == told["lower_is_better"] == (metric == "ter")
        difference = told["value"] if told["second"] == "good" else -told["value"]
        low, high = sorted(abs(end) for end in told["interval"])
        assert f"{sign}{abs(difference):.2f} [" in told["verdict"]
        assert f"{sign}{low:.2f}" in told["verdict"] and f"{sign}{high:.2f}" in told["verdict"]
        assert (difference > 0) == (sign == "+")


def test_a_target_language_that_is_asked_for_wins_over_the_models(pipeline: Pipeline, files: tuple[Path, Path]) -> None:
    asked = Files(files[0], [files[1]], {}, "zh")
    scores = evaluate_files({"a": pipeline}, asked, Settings(["bleu", "bleu-lc-moses"]), nothing)["scores"]
    assert "|tok:zh|" in scores["bleu"]["signature"]
    assert "|tok:moses-zh|" in scores["bleu-lc-moses"]["signature"]
    assert "use bleu or chrf" in scores["bleu-lc-moses"]["note"]
