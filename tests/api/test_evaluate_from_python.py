"""`transduce.evaluate`: the command's figures, whatever holds models and data; sacrebleu computes them as well."""

import json
from pathlib import Path
from typing import Any

import jiwer
import pytest
import sacrebleu
from typer.testing import CliRunner

import transduce
from random_models import language_model, sentences, translator
from transduce.cli.app import app
from transduce.metrics.exact_match import exact_match_tally

SOURCES, ANSWERS, OTHERS = sentences(12), sentences(12, seed=5), sentences(12, seed=6)
PAIRS = list(zip(SOURCES, ANSWERS, strict=True))


@pytest.fixture(scope="module")
def model() -> transduce.Pipeline:
    return translator()


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    for name, lines in (("source", SOURCES), ("reference", ANSWERS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path / "source", tmp_path / "reference"


def figures(found: transduce.Evaluation) -> dict[str, Any]:
    """All that does not depend on the clock, or on where the texts came from."""
    report = json.loads(json.dumps(found.to_dict()))
    for each in (report, *report.get("systems", {}).values()):
        each.pop("seconds", None)
    del report["data"]
    report.pop("note", None)
    return report


def test_what_holds_the_data_makes_no_difference(model: transduce.Pipeline, files: tuple[Path, Path]) -> None:
    source, reference = files
    table = files[0].with_name("pairs.tsv")
    table.write_text("".join(f"{one}\t{other}\n" for one, other in PAIRS), encoding="utf-8")
    nested = [{"translation": {"xx": one, "yy": other}} for one, other in PAIRS]
    found = [
        transduce.evaluate(model, source=source, reference=reference),
        transduce.evaluate(model, source=str(source), reference=str(reference)),
        transduce.evaluate(model, source=SOURCES, reference=ANSWERS),
        transduce.evaluate(model, source=SOURCES, reference=reference),
        transduce.evaluate(model, source=tuple(SOURCES), reference=[[each] for each in ANSWERS]),
        transduce.evaluate(model, PAIRS),
        transduce.evaluate(model, (pair for pair in PAIRS)),
        transduce.evaluate(model, [{"source": one, "target": other} for one, other in PAIRS]),
        transduce.evaluate(model, nested, columns=("translation.xx", "translation.yy")),
        transduce.evaluate(model, table),
    ]
    assert all(figures(each) == figures(found[0]) for each in found)
    assert {each.data["examples"] for each in found[2:9]} == {found[2].data["examples"]}
    assert set(found[0].data) == {str(source), str(reference)}


@pytest.mark.parametrize("library", ["pandas", "polars", "datasets"])
def test_a_table_is_read_by_its_columns(model: transduce.Pipeline, library: str) -> None:
    tables = pytest.importorskip(library)
    sides = {"text": SOURCES, "label": ANSWERS, "more": list(range(12))}
    table = tables.Dataset.from_dict(sides) if library == "datasets" else tables.DataFrame(sides)
    assert figures(transduce.evaluate(model, table)) == figures(transduce.evaluate(model, PAIRS))


def test_the_command_says_the_same(tiny_run: Path, tiny_corpus: Path) -> None:
    sides = [tiny_corpus / "test.digits", tiny_corpus / "test.words"]
    asked = ["--source", str(sides[0]), "--reference", str(sides[1]), "--metric", "bleu", "--metric", "chrf"]
    done = CliRunner().invoke(app, ["evaluate", str(tiny_run), *asked, "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    found = transduce.evaluate(tiny_run, source=sides[0], reference=sides[1], metrics=["bleu", "chrf"])
    told.pop("seconds")
    assert {**figures(found), "data": found.to_dict()["data"]} == told
    outputs = [each.text for each in transduce.load(tiny_run).predict(sides[0].read_text().splitlines())]
    assert found.outputs == outputs
    answers = [sides[1].read_text().splitlines()]
    assert found.scores["bleu"].value == pytest.approx(sacrebleu.corpus_bleu(outputs, answers).score)
    assert found.scores["chrf"].value == pytest.approx(sacrebleu.corpus_chrf(outputs, answers).score)
    shown = CliRunner().invoke(app, ["evaluate", str(tiny_run), *asked]).stdout
    assert str(found) == shown.rstrip("\n")
    assert transduce.load(tiny_run).recipe.name in transduce.evaluate(transduce.load(tiny_run), PAIRS).systems


def test_systems_are_compared(model: transduce.Pipeline, files: tuple[Path, Path]) -> None:
    models = {"one": model, "other": translator(seed=4)}
    near = [f"{each} ba" for each in ANSWERS]
    found = transduce.evaluate(models, PAIRS, outputs={"near": near}, metrics="bleu", beam=2)
    assert list(found.systems) == ["one", "other", "near"]
    assert [(each.first, each.second, each.metric) for each in found.comparisons] == [
        ("one", "other", "bleu"),
        ("one", "other", "bits"),
        ("one", "near", "bleu"),
    ]
    last = found.comparisons[-1]
    assert last.difference.better == "second"
    assert last.difference.value == pytest.approx(
        sacrebleu.corpus_bleu(near, [ANSWERS]).score - found.systems["one"].scores["bleu"].value
    )
    assert last.verdict.startswith("near is better than one: BLEU")
    assert last.verdict in str(found)
    assert "near is better than one" in found._repr_html_()
    with pytest.raises(transduce.InputError, match=r"several systems: one, other, near"):
        _ = found.scores
    with pytest.raises(transduce.InputError, match='no system "third"'):
        found.per_sentence("third")


def test_each_sentence_has_its_own_figures(model: transduce.Pipeline) -> None:
    found = transduce.evaluate(model, PAIRS, metrics=["chrf", "exact_match", "wer"], beam=2)
    rows = found.per_sentence()
    outputs = [each.text for each in model.predict(SOURCES, beam=2)]
    assert [row["output"] for row in rows] == outputs
    assert [(row["source"], row["references"]) for row in rows] == [(one, [other]) for one, other in PAIRS]
    for row in rows:
        expected = sacrebleu.corpus_chrf([row["output"]], [row["references"]]).score
        assert row["chrf"] == pytest.approx(expected)
    exact = exact_match_tally(outputs, ANSWERS).statistics_SN[:, 0] * 100
    assert [row["exact_match"] for row in rows] == exact.tolist()
    for row in rows:
        if row["references"][0]:
            assert row["wer"] == pytest.approx(100 * jiwer.wer(row["references"][0], row["output"]))
    likelihoods = model.score(PAIRS)
    assert [row["log_probability"] for row in rows] == [each.log_probability for each in likelihoods]
    assert [row["tokens"] for row in rows] == [each.tokens for each in likelihoods]


def test_several_answers(files: tuple[Path, Path]) -> None:
    outputs = {"theirs": SOURCES}
    several = [list(each) for each in zip(ANSWERS, SOURCES, strict=True)]
    lists = transduce.evaluate(None, source=None, reference=several, outputs=outputs)
    examples = transduce.evaluate(None, list(zip(SOURCES, several, strict=True)), outputs=outputs)
    paths = transduce.evaluate(None, reference=[files[1], files[0]], outputs={"theirs": files[0]})
    assert lists.scores["bleu"].value == pytest.approx(sacrebleu.corpus_bleu(SOURCES, [ANSWERS, SOURCES]).score)
    assert lists.scores == examples.scores == paths.scores
    assert lists.scores["bleu"].signature.startswith("nrefs:2|")


def test_a_language_model_reads_references_alone(files: tuple[Path, Path]) -> None:
    model = language_model()
    found = transduce.evaluate(model, reference=ANSWERS)
    assert figures(found) == figures(transduce.evaluate(model, reference=files[1]))
    assert found.outputs == []
    assert [set(row) for row in found.per_sentence()] == [{"references", "log_probability", "tokens"}] * 12
    total = sum(row["log_probability"] for row in found.per_sentence())
    assert found.to_dict()["likelihood"]["log_probability"] == pytest.approx(total)
    assert "perplexity" in str(found)


def test_a_mistake_is_told_before_any_work(
    model: transduce.Pipeline, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transduce.Pipeline, "predict", lambda *texts, **settings: pytest.fail("it decoded"))

    def told(models: Any = model, data: Any = None, **options: Any) -> str:
        with pytest.raises(transduce.InputError) as caught:
            transduce.evaluate(models, data, **options)
        return "\n".join(caught.value.problems)

    assert "expected examples" in told()
    assert "leave out source and reference" in told(data=PAIRS, source=SOURCES)
    assert "text n must belong to text n" in told(source=SOURCES[:3], reference=ANSWERS)
    assert "translates: name the texts to translate with source" in told(reference=ANSWERS)
    assert "reads no source" in told(language_model(), source=SOURCES, reference=ANSWERS)
    assert "give reference=.. alone" in told(language_model(), data=PAIRS)
    assert "there is no file 'Two dogs run.'" in told(source="Two dogs run.", reference=ANSWERS)
    assert "got int: 3" in told(source=SOURCES, reference=3)
    assert "data[1]: target" in told(data=[("a", "b"), ("a", None)])
    assert 'there is no "bleuu"' in told(data=PAIRS, metrics="bleuu")
    assert "models: expected the path of a model" in told(3, data=PAIRS)
    assert "named twice" in told([model, model], data=PAIRS)
    assert "name of a model as well" in told({"a": model}, data=PAIRS, outputs={"a": ANSWERS})
    assert "name a model, or outputs" in told(None, reference=files[1])
    assert "name a model, or outputs" in told(None, reference=ANSWERS)
    assert "reference: expected a list of texts" in told(source=SOURCES)
    assert "answer at least for each; none for 1" in told(source=["a", "b"], reference=[["a"], []])
