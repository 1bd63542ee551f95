"""Labels of words: trained, resumed, evaluated, served, and what is refused."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import transduce
from forked import transduce as command
from served import serving
from toy_trainings import resumed_to_the_same_bytes, trained_beside
from transduce.core.errors import InputError
from transduce.data.columns.words import Words
from transduce.data.structures.label_schemes import LabelSpan, labels_of, spans_of
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.evaluation.evaluate import Settings, evaluate_files
from transduce.evaluation.texts import Files
from transduce.inference.frequent_labels import FrequentLabels
from transduce.tasks.tagging import parts_that_fit

FIRST, LAST = ["Ann", "Bob", "Cem", "Dana", "Eva"], ["Ruz", "Stone", "Tal", "Umar"]
PLACES = ["Oslo", "Kisumu", "Lima", "Bonn"]
PLAIN = ["meets", "near", "and", "sees", "leaves", "today", "the", "river", "old"]


def sentence(drawn: random.Random) -> list[tuple[str, str]]:
    """Persons of one name or two, places, and other words."""
    found: list[tuple[str, str]] = []
    for _ in range(drawn.randint(2, 4)):
        found += [(drawn.choice(PLAIN), "O") for _ in range(drawn.randint(1, 2))]
        if drawn.random() < 0.6:
            found.append((drawn.choice(FIRST), "B-PER"))
            found += [(drawn.choice(LAST), "I-PER")] * drawn.randint(0, 1)
        else:
            found.append((drawn.choice(PLACES), "B-LOC"))
    return found


def conll(count: int, seed: int) -> str:
    drawn = random.Random(seed)
    return "\n\n".join("\n".join("\t".join(each) for each in sentence(drawn)) for _ in range(count)) + "\n"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tagged")
    for name, count, seed in (("train", 200, 1), ("valid", 30, 2), ("test", 40, 3)):
        (folder / f"{name}.conll").write_text(conll(count, seed))
    return folder


def recipe_at(corpus: Path, path: Path, model: str = "", updates: int = 60, data: str = "", task: str = "") -> Path:
    path.write_text(f"""
[task]
kind = "tagging"
metrics = ["entity_f1", "accuracy", "macro_f1", "exact_match"]
{task}
[data]
root = "{corpus}"
train = [{{ file = "train.conll" }}]
validation = {{ file = "valid.conll" }}
test = {{ held_out = {{ file = "test.conll" }} }}
{data}
[tokenizer]
vocabulary = 120
[batch]
tokens = 300
[model]
kind = "tagger"
d_model = 16
hidden = 16
character_width = 8
character_filters = 8
{model}
[training]
threads = 1
updates = {updates}
learning_rate = 2e-2
warmup = 5
precision = "fp32"
best = "accuracy"
validate_every = 20
decode_sentences = 30
checkpoint_every = 15
""")
    return path


@pytest.fixture(scope="module", params=["", "crf = false\npieces = 'mean'"], ids=["crf", "each"])
def trained(request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    recipe = recipe_at(corpus, folder / "recipe.toml", request.param)
    done = trained_beside(recipe, tmp_path_factory)
    assert "entity F1" in done.shown
    assert "most frequent label (baseline)" in done.shown
    assert "Scheme: bio." in done.shown
    assert "true \\ predicted" in done.out
    return folder / "run"


def test_it_learns(trained: Path, corpus: Path) -> None:
    rows = [block.split("\n") for block in (corpus / "test.conll").read_text().strip().split("\n\n")]
    texts = [" ".join(line.split("\t")[0] for line in row) for row in rows]
    labels = [[line.split("\t")[1] for line in row] for row in rows]
    found: Any = transduce.load(trained).predict(texts)
    right = sum(one == other for each, row in zip(found, labels, strict=True) for one, other in zip(each.tokens, row))  # noqa: B905
    scores = json.loads((trained / "report.json").read_text())["tests"]["held_out"]["scores"]
    count = sum(map(len, labels))
    assert scores["accuracy"]["value"] == pytest.approx(100 * right / count)
    assert right > 0.9 * count
    said, true = (
        {(n, *span) for n, row in enumerate(side) for span in spans_of(row)}
        for side in ([each.tokens for each in found], labels)
    )
    wanted = 200 * len(said & true) / (len(said) + len(true))
    assert scores["entity_f1"]["value"] == pytest.approx(wanted)
    assert all(labels_of(spans_of(each.tokens), len(each.tokens), "bio") == [*each.tokens] for each in found)


@pytest.mark.parametrize("model", ["", "crf = false"])
def test_a_killed_training_ends_in_the_same_bytes(corpus: Path, tmp_path: Path, model: str) -> None:
    resumed_to_the_same_bytes(recipe_at(corpus, tmp_path / "recipe.toml", model, 40))


def test_files_are_evaluated_and_scored(trained: Path, corpus: Path, tmp_path: Path) -> None:
    files = Files(corpus / "test.conll", [], {})
    report = evaluate_files({"model": transduce.load(trained)}, files, Settings(), lambda done: None)
    scores = report["scores"]
    assert set(scores) == {"entity_f1", "accuracy", "macro_f1", "exact_match"}
    first = json.loads((trained / "report.json").read_text())["tests"]["held_out"]["scores"]
    assert scores["entity_f1"]["value"] == pytest.approx(first["entity_f1"]["value"])
    (tmp_path / "source").write_text("the Ann Ruz\nOslo\n")
    (tmp_path / "target").write_text("O B-PER I-PER\nB-LOC\n")
    options = ("--source", tmp_path / "source", "--target", tmp_path / "target")
    found = command(tmp_path, "score", trained, *options)
    assert found.code == 0, found.shown
    assert re.search(r"^perplexity [\d.]+ a word \([\d.]+ nats, 4 words, each line alone\)$", found.err, re.MULTILINE)


def test_files_and_lines_are_predicted(trained: Path, corpus: Path, tmp_path: Path) -> None:
    done = command(tmp_path, "predict", trained, "--source", corpus / "test.conll")
    assert done.code == 0, done.shown
    assert len(done.out.splitlines()) == 40
    (tmp_path / "in").write_text("Ann  Ruz meets\n\nOslo\n")
    done = command(tmp_path, "predict", trained, "--source", tmp_path / "in", "--json")
    assert done.code == 0, done.shown
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [[word["word"] for word in row["words"]] for row in rows] == [["Ann", "Ruz", "meets"], [], ["Oslo"]]
    done = command(tmp_path, "predict", trained, "--source", corpus / "test.conll", "--format", "conll")
    words = [line.split("\t")[0] for line in (corpus / "test.conll").read_text().splitlines()]
    assert [line.split("\t")[0] for line in done.out.splitlines()][: len(words)] == words
    done = command(tmp_path, "predict", trained, "--source", tmp_path / "in", "--format", "entities")
    assert [json.loads(line) for line in done.out.splitlines()] == [row["entities"] for row in rows]
    done = command(tmp_path, "predict", trained, "--text", "Ann Ruz", "--format", "json")
    assert json.loads(done.out)["source"] == "Ann Ruz"


def test_it_is_served(trained: Path) -> None:
    with serving([trained]) as server:
        text = "the old Ann Ruz leaves Oslo"
        [prediction] = server.post("/v1/predict", texts=[text]).json()["predictions"]
        assert len(prediction["words"]) == len(prediction["text"].split(" ")) == 6
        assert all(each["text"] in text for each in prediction["entities"])


def test_what_makes_no_sense_is_refused(trained: Path, corpus: Path, tmp_path: Path) -> None:
    model = transduce.load(trained)
    with pytest.raises(InputError, match="pair 2: 2 words and 1 labels"):
        model.score([("Ann", "B-PER"), ("Ann Ruz", "B-PER")])
    with pytest.raises(InputError, match='pair 1: "B-CAT" is no label of this model'):
        model.score([("Ann", "B-CAT")])
    recipe = recipe_at(corpus, tmp_path / "recipe.toml")
    for override, said in (
        ("model={kind='classifier'}", "expected a task with a text and a label"),
        ("training.r_drop=1.0", "for models that write text"),
        ("data.train=[{file='none.conll'}]", "no such file"),
        ("data.scheme=bix", "bio"),
    ):
        found = command(tmp_path, "train", recipe, override, "--run", tmp_path / said[:6])
        assert found.code == 2, found.shown
        assert said in " ".join(found.shown.split())


def test_a_label_of_held_out_files_alone_is_told_and_missed(corpus: Path, tmp_path: Path) -> None:
    for name in ("train", "valid"):
        (tmp_path / f"{name}.conll").write_text((corpus / f"{name}.conll").read_text())
    (tmp_path / "test.conll").write_text("Rex\tB-DOG\nsees\tO\n\nI\tI-PER\n")
    recipe = recipe_at(tmp_path, tmp_path / "recipe.toml", updates=4)
    done = command(tmp_path, "train", recipe, "--run", tmp_path / "run")
    assert done.code == 0, done.shown
    said = " ".join(done.shown.split())
    assert '1 word has a label that training never had, and will be missed: "B-DOG".' in said
    assert "test.conll: 1 span begins with a label inside, as I- behind O, and was read as if" in said
    report = json.loads((tmp_path / "run" / "report.json").read_text())["tests"]["held_out"]
    assert report["scores"]["accuracy"]["value"] < 100


def test_labels_without_a_scheme_have_no_entities(tmp_path: Path) -> None:
    rows = [
        f"{number}\t{word}\t_\t{label}\t_\t_\t_\t_\t_\t_"
        for number, (word, label) in enumerate([("the", "DET"), ("old", "ADJ"), ("river", "NOUN")], 1)
    ]
    for name in ("train", "valid", "test"):
        (tmp_path / f"{name}.conllu").write_text(("\n".join(rows) + "\n\n") * 8)
    recipe = recipe_at(tmp_path, tmp_path / "recipe.toml", updates=4)
    text = recipe.read_text().replace(".conll", ".conllu").replace("exact_match", "word_f1")
    recipe.write_text(text.replace('"accuracy", "macro_f1", "word_f1"', '"accuracy"'))
    done = command(tmp_path, "train", recipe, "--run", tmp_path / "run")
    assert done.code == 0, done.shown
    assert "entity" not in json.dumps(json.loads((tmp_path / "run" / "report.json").read_text())["tests"])
    assert transduce.load(tmp_path / "run").predict("the river").entities == ()  # type: ignore[attr-defined]


def test_chinese_text_is_cut_into_words(tmp_path: Path) -> None:
    drawn = random.Random(1)
    words = ["我", "喜欢", "计算机", "的", "城市", "今天"]
    for name, count in (("train", 120), ("valid", 10), ("test", 10)):
        lines = (" ".join(drawn.choices(words, k=drawn.randint(2, 6))) for _ in range(count))
        (tmp_path / f"{name}.conll").write_text("".join(f"{line}\n" for line in lines))
    recipe = recipe_at(tmp_path, tmp_path / "recipe.toml", updates=40)
    recipe.write_text(
        recipe.read_text()
        .replace('.conll"', '.conll", segmented = true')
        .replace('["entity_f1", "accuracy", "macro_f1", "exact_match"]', '["word_f1", "accuracy"]')
    )
    done = command(tmp_path, "train", recipe, "--run", tmp_path / "run")
    assert done.code == 0, done.shown
    scores = json.loads((tmp_path / "run" / "report.json").read_text())["tests"]["held_out"]["scores"]
    assert scores["word_f1"]["value"] > 80
    found: Any = transduce.load(tmp_path / "run").predict("我喜欢计算机")
    assert [each.word for each in found.words] == [*"我喜欢计算机"]
    assert "".join(each.text for each in found.entities) == "我喜欢计算机"
    done = command(tmp_path, "predict", tmp_path / "run", "--text", "我喜欢计算机", "--format", "text")
    assert done.out.replace(" ", "") == "我喜欢计算机\n"


def test_a_program_gives_words_and_labels_as_texts(tmp_path: Path) -> None:
    drawn = random.Random(5)
    rows = [tuple(" ".join(side) for side in zip(*sentence(drawn), strict=True)) for _ in range(60)]
    recipe = {
        "task": {"kind": "tagging"},
        "model": {"kind": "tagger", "d_model": 8, "hidden": 8, "character_filters": 4},
        "training": {"updates": 4, "threads": 1},
    }
    trained = transduce.train(recipe, tmp_path / "run", {"train": rows[:50], "test": rows[50:]}, quiet=True)
    assert len(transduce.load(trained.run).predict("Ann Ruz sees").text.split(" ")) == 3
    with pytest.raises(InputError, match="line 1: expected a label for each token; got 2 tokens and 1 labels"):
        transduce.train(recipe, tmp_path / "other", [("Ann Ruz", "B-PER"), ("Bob", "B-PER")], quiet=True)


def test_the_baseline_knows_words_by_their_looks() -> None:
    counted = FrequentLabels.of(
        [(["walking", "Walking", "3", "dogs"], ["V", "N", "NUM", "N"]), (["walking", "cats", "17"], ["V", "N", "NUM"])]
    )
    assert counted.predict(["walking", "running", "2019", "birds", "ÉTÉ", "cats"]) == ["V", "V", "NUM", "N", "N", "N"]


def test_held_out_texts_may_be_longer_than_the_positions(corpus: Path, tmp_path: Path) -> None:
    """Their loss is that of parts that fit; predictions read windows."""
    lines = conll(30, 5).replace("\n\n", "\n")
    (tmp_path / "long.conll").write_text(f"{lines}\n{'x' * 3000}\tO\n\n{conll(5, 6)}")
    model = "encoder = 'transformer'\nheads = 2\nfeed_forward = 16\npositions = 'learned'\nmax_length = 9"
    recipe = recipe_at(corpus, tmp_path / "recipe.toml", model, 2)
    text = recipe.read_text().replace("hidden = 16\n", "").replace('"valid.conll"', f'"{tmp_path / "long.conll"}"')
    recipe.write_text(text.replace("character_width = 8\ncharacter_filters = 8\n", ""))
    found = command(tmp_path, "train", recipe, "--run", tmp_path / "run")
    assert found.code == 0, found.shown
    loss = json.loads((tmp_path / "run" / "report.json").read_text())["validation"]["loss"]
    assert 0 < loss < 100


@pytest.mark.parametrize("scheme", ["bio", "bioes", "none"])
def test_parts_hold_every_word_and_whole_rows_of_labels(scheme: Any) -> None:
    source = Words(train_tokenizer(TokenizerConfig(vocabulary=60), [" ".join(PLAIN + FIRST)]), positions=8)
    words = [*PLAIN, "Eva" * 30, *FIRST, *PLAIN]
    labels = labels_of(
        [LabelSpan(1, 4, "A"), LabelSpan(10, 23, "B")], len(words), "bio" if scheme == "none" else scheme
    )
    parts = list(parts_that_fit((7, " ".join(words), " ".join(labels)), source, scheme))
    assert len(parts) > 3
    shown = [word for _, text, _ in parts for word in text.split(" ")]
    assert all(one == other or one.startswith(other) for one, other in zip(words, shown, strict=True))
    for line, text, given in parts:
        row, [ids] = given.split(" "), source.encode([text])
        assert line == 7
        assert len(ids) <= 8
        assert len(row) == len(text.split(" "))
        assert scheme == "none" or labels_of(spans_of(row), len(row), scheme) == row
    kinds = [label.partition("-")[2] for _, _, row in parts for label in row.split(" ")]
    assert kinds == [label.partition("-")[2] for label in labels]
