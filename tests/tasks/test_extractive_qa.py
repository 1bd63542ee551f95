"""Extractive question answering: files, windows and predictions against slow references; trained, resumed, served."""

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import transduce
from forked import transduce as command
from served import serving
from toy_trainings import resumed_to_the_same_bytes, trained_beside
from transduce.core.errors import InputError
from transduce.data.structures.squad import cut, joined, placed, read_squad
from transduce.evaluation.evaluate import Settings, evaluate_files
from transduce.evaluation.texts import Files
from transduce.inference.spans import best_span, token_span, windows
from transduce.interpret.attention import attention_of
from transduce.recipe.recipe import load_recipe
from transduce.tasks.extractive_qa import ExtractiveQa

THINGS = ["key", "ball", "book", "lamp", "cup"]
PLACES = ["kitchen", "garden", "old cellar", "hall", "blue attic"]
SIZES = {
    "bidaf": """d_model = 16
hidden = 16
modeling_layers = 1
character_filters = 8
character_width = 4""",
    "qanet": """d_model = 64
heads = 4
blocks = 1
encoder_convolutions = 2
layer_dropout = 0.0
character_filters = 8
character_width = 4""",
}
PACE = {"bidaf": "updates = 150\nlearning_rate = 1e-2", "qanet": "updates = 300\nlearning_rate = 2e-3"}


def drawn(count: int, seed: int, without: float = 0.0) -> dict[str, Any]:
    """Where things are; some of the things asked for are nowhere."""
    random_ = random.Random(seed)
    paragraphs = []
    for number in range(count):
        things = random_.sample(THINGS, 3)
        places = dict(zip(things, random_.sample(PLACES, 3), strict=True))
        context = " ".join(f"The {thing} is in the {place}." for thing, place in places.items())
        missing = random_.random() < without
        thing = random_.choice([each for each in THINGS if (each in places) != missing])
        answers = []
        if not missing:
            start = context.index(f"The {thing}") + len(f"The {thing} is in the ")
            answers = [{"text": places[thing], "answer_start": start}]
        question = {"id": f"q{seed}-{number}", "question": f"Where is the {thing}?", "answers": answers}
        paragraphs.append({"context": context, "qas": [question]})
    return {"version": "x", "data": [{"title": "t", "paragraphs": paragraphs}]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    for name, count, seed, without in (("train", 300, 1, 0.0), ("valid", 30, 2, 0.0), ("test", 40, 3, 0.0)):
        (folder / f"{name}.json").write_text(json.dumps(drawn(count, seed, without)))
    for name, count, seed in (("train2", 400, 4), ("valid2", 30, 5), ("test2", 40, 6)):
        (folder / f"{name}.json").write_text(json.dumps(drawn(count, seed, 0.4)))
    return folder


def recipe_at(corpus: Path, path: Path, kind: str = "bidaf", two: str = "", task: str = "") -> Path:
    path.write_text(f"""
[task]
kind = "extractive_qa"
metrics = ["squad{two}_em", "squad{two}_f1"]
window = 30
stride = 15
longest_answer = 4
{task}
[data]
root = "{corpus}"
train = [{{ file = "train{two}.json" }}]
validation = {{ file = "valid{two}.json" }}
test = {{ held_out = {{ file = "test{two}.json" }} }}
[tokenizer]
vocabulary = 200
[batch]
tokens = 600
[model]
kind = "{kind}"
{SIZES[kind]}
dropout = 0.0
[training]
threads = 1
{PACE[kind]}
warmup = 10
precision = "fp32"
best = "squad{two}_f1"
validate_every = 50
checkpoint_every = 40
""")
    return path


@pytest.fixture(scope="module", params=["bidaf", pytest.param("qanet", marks=pytest.mark.slow)])
def trained(request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    recipe = recipe_at(corpus, folder / "recipe.toml", kind=request.param)
    assert "EM" in trained_beside(recipe, tmp_path_factory).shown
    return folder / "run"


@pytest.fixture(scope="module")
def questions(corpus: Path) -> list[Any]:
    return read_squad(corpus / "test.json")


def test_it_learns_to_answer_and_its_report_says_so(trained: Path, questions: list[Any]) -> None:
    model = transduce.load(trained)
    found: Any = model.predict([each.text for each in questions])
    right = sum(
        one.text.lower() in (each.answers[0][0], each.answers[0][0] + ".")
        for one, each in zip(found, questions, strict=True)
    )
    assert right >= 30
    scores = json.loads((trained / "report.json").read_text())["tests"]["held_out"]["scores"]
    assert scores["squad_em"]["value"] == pytest.approx(100 * right / len(questions))
    assert scores["squad_f1"]["interval"][0] <= scores["squad_f1"]["value"] <= scores["squad_f1"]["interval"][1]
    for one, each in zip(found, questions, strict=True):
        assert each.context[one.start : one.end] == one.text


def test_the_same_alone_and_in_any_batch(trained: Path, questions: list[Any]) -> None:
    model, texts = transduce.load(trained), [each.text for each in questions]
    together: Any = model.predict(texts, batch_size=7)
    for text, each in zip(texts[:15], together, strict=False):
        alone: Any = model.predict(text)
        assert (alone.text, alone.start, alone.tokens) == (each.text, each.start, each.tokens)
        assert alone.log_probability == pytest.approx(each.log_probability, abs=1e-4)
        scored = model.score([(text, alone.text)])[0]
        assert scored.log_probability >= alone.log_probability - 1e-4  # the place found, or a likelier one
        assert scored.tokens == 1
    assert model.score([(texts[0], "nowhere to be found")])[0].tokens == 0


def test_the_answer_is_the_likeliest_span_of_all_windows(trained: Path) -> None:
    """A text of several windows, each of them read by the model alone."""
    model = transduce.load(trained)
    sentences = [f"The {thing} is in the {place}." for thing, place in zip(THINGS, PLACES, strict=True)]
    text = joined("Where is the lamp?", " ".join(sentences * 3))
    found: Any = model.predict(text)
    column: Any = model.task.columns["source"]
    [row] = column.encode([text])
    asked = row.index(column.end) + 1
    best: tuple[float, int, int] = (-np.inf, 0, 0)
    for first, last in windows(len(row) - asked, 30, 15):
        given = column.collate([np.asarray([*row[:asked], *row[asked + first : asked + last]], np.int32)])
        with torch.inference_mode():
            start_S, end_S = (each[0].double().log_softmax(-1) for each in model.model.point(given))
        for i in range(last - first):
            for j in range(i, min(last - first, i + 4)):
                best = max(best, (float(start_S[i] + end_S[j]), first + i, first + j))
    assert found.tokens == (str(best[1]), str(best[2]))
    assert found.log_probability == pytest.approx(best[0], abs=1e-4)


def test_attention_stands_between_question_text_and_answer(trained: Path, questions: list[Any]) -> None:
    model = transduce.load(trained)
    attention = attention_of(model.model, model.task, model.predict(questions[0].text))
    assert attention.source is not None
    labels = attention.labels("source", len(attention.source.tokens))
    assert labels[-1] == "</s>" and labels.count("</s>") == 2
    for token in attention.source.tokens:
        assert questions[0].text[token.start : token.end] in token.text
    weights_2N = attention.alignment()
    assert weights_2N is not None and weights_2N.shape == (2, len(labels))
    assert weights_2N.sum(1) == pytest.approx(1, abs=1e-5)
    assert weights_2N[:, : labels.index("</s>") + 1].sum() == 0
    start_N, end_N = weights_2N[:, labels.index("</s>") + 1 :]
    spans = [(i, j) for i in range(len(start_N)) for j in range(i, min(len(end_N), i + 4))]
    best = max(spans, key=lambda span: start_N[span[0]] * end_N[span[1]])
    assert model.predict(questions[0].text).tokens == (str(best[0]), str(best[1]))
    assert attention.of("encoder")  # the flow, over the tokens of both


def test_a_killed_training_ends_in_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    recipe = recipe_at(corpus, tmp_path / "recipe.toml")
    resumed_to_the_same_bytes(recipe, "model.dropout=0.1")


def test_squad_json_goes_in_and_predictions_come_out(trained: Path, corpus: Path, questions: list[Any]) -> None:
    source = corpus / "test.json.gz"
    source.write_bytes(gzip.compress((corpus / "test.json").read_bytes()))
    done = command(corpus, "predict", trained, "--source", source)
    assert done.code == 0, done.shown
    found = json.loads(done.out)
    model = transduce.load(trained)
    assert found == {each.id: model.predict(each.text).text for each in questions}
    lines = command(corpus, "predict", trained, "--source", source, "--json").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [each.id for each in questions]
    assert json.loads(lines[0])["context"] == questions[0].context


def test_two_systems_are_compared_on_squad_json(
    trained: Path, corpus: Path, tmp_path: Path, questions: list[Any]
) -> None:
    (tmp_path / "kitchen.json").write_text(json.dumps({each.id: "kitchen" for each in questions[1:]}))
    files = Files(corpus / "test.json", [], {"kitchen": tmp_path / "kitchen.json"})
    report = evaluate_files({"model": transduce.load(trained)}, files, Settings(), lambda done: None)
    assert set(report["systems"]["model"]["scores"]) == {"squad_em", "squad_f1"}
    assert report["systems"]["model"]["likelihood"]["unit"] == "span"
    assert any("model is better than kitchen: SQuAD F1" in each["verdict"] for each in report["comparisons"])
    with pytest.raises(InputError, match="holds the correct answers itself"):
        evaluate_files(
            {"model": transduce.load(trained)}, Files(files.source, [corpus / "test.json"]), Settings(), print
        )
    (tmp_path / "wrong.json").write_text('{"q": 1}')
    wrong = Files(corpus / "test.json", [], {"wrong": tmp_path / "wrong.json"})
    with pytest.raises(InputError, match=r"wrong\.json: expected a JSON object of outputs by name"):
        evaluate_files({"model": transduce.load(trained)}, wrong, Settings(), print)


def test_it_is_served(trained: Path, questions: list[Any]) -> None:
    with serving([trained]) as server:
        answer = server.post("/v1/predict", texts=[questions[0].text], attention=True).json()
        [prediction] = answer["predictions"]
        assert questions[0].context[prediction["start"] : prediction["end"]] == prediction["text"]
        assert 0 <= prediction["no_answer"] <= 1


def test_no_answer_is_given_where_it_is_likelier_by_the_margin(trained: Path, corpus: Path) -> None:
    model, texts = transduce.load(trained), [each.text for each in read_squad(corpus / "test2.json")]
    predictor: Any = model.task.predictor
    always = predictor.predict(model.model, texts)
    assert all(each.text for each in always)
    for margin in (-3.0, 0.0, 3.0):
        found = replace(predictor, reading=replace(predictor.reading, no_answer=margin)).predict(model.model, texts)
        for one, span in zip(found, always, strict=True):
            expected = "" if np.log(span.no_answer) > span.log_probability + margin else span.text
            assert one.text == expected
            assert (one.start is None) == (one.text == "")
    assert {bool(each.text) for each in found} | {False} == {True, False}
    null = model.score([(texts[0], "")])[0]
    assert np.exp(null.log_probability) == pytest.approx(always[0].no_answer, rel=1e-4)


def test_windows_without_the_answer_point_at_their_end(corpus: Path, tmp_path: Path) -> None:
    recipe = load_recipe(recipe_at(corpus, tmp_path / "recipe.toml", two="2", task="no_answer = true"))
    columns = ExtractiveQa.learn_columns(recipe.tokenizer, recipe.data)
    told: list[str] = []
    data = ExtractiveQa(recipe.task, recipe.data, columns).open(tmp_path / "cache", told.append)
    [(store, _)] = data.corpora
    questions = {each.text: each for each in read_squad(corpus / "train2.json")}
    assert told[0].endswith(f"400 questions in {len(store):,} windows.")
    column: Any = columns["source"]
    spans = store.read("target", np.arange(len(store)))
    null = 0
    for row, (first, last) in zip(store.read("source", np.arange(len(store))), spans, strict=True):
        context = row[list(row).index(column.end) + 1 :]
        if first == last == len(context):
            null += 1
        else:
            text = column.decode(context[first : last + 1].tolist())
            assert text in [answer for each in questions.values() for answer, _ in each.answers]
    assert 0 < null < len(store)
    without = load_recipe(recipe_at(corpus, tmp_path / "recipe.toml", two="2"))
    ExtractiveQa(without.task, without.data, columns).open(tmp_path / "cache", told.append)
    missing = sum(not each.answers for each in read_squad(corpus / "train2.json"))
    assert any(f"{missing:,} left out, which have no answer" in line for line in told)


# ---- reading -------------------------------------------------------------------------------------------------------


def test_windows_overlap_and_cover_the_text() -> None:
    assert list(windows(0, 4, 2)) == [(0, 0)]
    assert list(windows(4, 4, 2)) == [(0, 4)]
    assert list(windows(5, 4, 2)) == [(0, 4), (2, 5)]
    assert list(windows(9, 4, 3)) == [(0, 4), (3, 7), (6, 9)]
    for length in range(40):
        for size in range(1, 9):
            for stride in range(1, size + 1):
                found = list(windows(length, size, stride))
                assert {place for first, last in found for place in range(first, last)} == set(range(length))
                assert all(last - first <= size for first, last in found)


def test_the_best_span_is_that_of_two_loops() -> None:
    random_ = np.random.default_rng(1)
    for _ in range(200):
        start_S, end_S = random_.integers(0, 4, (2, random_.integers(1, 8))).astype(float)
        longest = int(random_.integers(1, 9))
        values = [
            (start_S[i] + end_S[j], -i, -j)
            for i in range(len(start_S))
            for j in range(i, min(len(start_S), i + longest))
        ]
        found = best_span(start_S, end_S, longest)
        assert found is not None
        assert (found.value, -found.first, -found.last) == max(values)
    assert best_span(np.zeros(0), np.zeros(0), 3) is None


def test_characters_are_tokens_through_offsets() -> None:
    offsets = [(0, 1), (0, 3), (3, 3), (4, 7), (7, 8)]
    assert token_span(offsets, 4, 8) == (3, 4)
    assert token_span(offsets, 5, 6) == (3, 3)
    assert token_span(offsets, 3, 4) is None


@pytest.mark.parametrize("text", ["Wer?\tEin Text", "Wer?\nEin Text", "Wer?\tEin\nText\tmehr"])
def test_a_question_and_a_text_are_one_text(text: str) -> None:
    question, context = cut(text)
    assert question == "Wer?"
    assert cut(joined(question, context)) == (question, context)


def test_answers_are_found_again(tmp_path: Path) -> None:
    answers = [{"text": "ab", "answer_start": 5}, {"text": "b", "answer_start": 0}, {"text": "zz", "answer_start": 1}]
    paragraph = {"context": "ab cd ab", "qas": [{"id": "1", "question": "?", "answers": answers}]}
    (tmp_path / "a.json").write_text(json.dumps({"data": [{"paragraphs": [paragraph]}]}))
    [question] = read_squad(tmp_path / "a.json")
    assert placed(question) == [("ab", 6), ("b", 1)]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ([], r'a\.json: the file: expected an object with a list "data"; got \[\]'),
        ({"data": [{}]}, r'data\[0\]: expected an object with a list "paragraphs"'),
        (
            {"data": [{"paragraphs": [{"qas": []}]}]},
            r'data\[0\]\.paragraphs\[0\]: expected an object with a text "context"',
        ),
        (
            {"data": [{"paragraphs": [{"context": "a", "qas": [{"id": 1, "question": "?"}]}]}]},
            r'qas\[0\]: .* text "id"',
        ),
        (
            {"data": [{"paragraphs": [{"context": "a", "qas": [{"id": "1", "question": "?"}] * 2}]}]},
            '1 ids stand twice, such as "1"',
        ),
        (
            {
                "data": [
                    {
                        "paragraphs": [
                            {
                                "context": "a",
                                "qas": [{"id": "1", "question": "?", "answers": [{"text": "a", "answer_start": "0"}]}],
                            }
                        ]
                    }
                ]
            },
            r"answers\[0\]\.answer_start: expected a whole number; got '0'",
        ),
    ],
)
def test_a_wrong_place_is_named(tmp_path: Path, table: Any, said: str) -> None:
    (tmp_path / "a.json").write_text(json.dumps(table))
    with pytest.raises(InputError, match=said):
        read_squad(tmp_path / "a.json")


def test_what_is_no_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(InputError, match=r"a\.json: expected JSON in the format of SQuAD"):
        read_squad(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("model={kind='rnn'}", "expected a model that does"),
        ("training.r_drop=1.0", "for models that write text"),
        ("task.stride=40", "stride = 40 leaves out tokens"),
        ("model.character_kernel=4", "expected an odd number"),
        ("data.train=[{file='nowhere.json'}]", "no such file"),
    ],
)
def test_what_does_not_go_together_is_refused(corpus: Path, tmp_path: Path, override: str, said: str) -> None:
    recipe = recipe_at(corpus, tmp_path / "recipe.toml")
    found = command(tmp_path, "train", recipe, override, "--run", tmp_path / "run")
    assert found.code == 2, found.shown
    assert said in " ".join(found.shown.split())
