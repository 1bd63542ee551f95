"""Several languages in one model: tags before the sources, weights by temperature, a score for each direction."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from rich.console import Console

import transduce
from forked import transduce as command
from random_models import translator
from served import serving
from toy_trainings import trained_beside
from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs, read_tagged_pairs
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.tags import addressed, languages_of, leading_tags, require_language, tags_of, with_tags
from transduce.data.tokenizers.resegment import Resegmenter
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer
from transduce.explore.exploration import explore
from transduce.recipe.recipe import load_recipe
from transduce.tasks.translation import temperature_weights
from transduce.training.display import Display
from transduce.training.run import open_task

WORDS = {"de": ["null", "eins", "zwei", "drei"], "fr": ["zéro", "un", "deux", "trois"], "zh": ["零", "一", "二", "三"]}
RECIPE = """
[data]
root = "{root}"
temperature = 2
train = [
    {{ source = "train.de", target = "train.fr", to = "fr" }},
    {{ source = "small.de", target = "small.zh", to = "zh" }},
    {{ source = "small.zh", target = "small.de", to = "de", tag = "<BT>" }},
]
validation = {{ source = "small.de", target = "small.fr", to = "fr" }}
[data.test.zh-fr]
source = "small.zh"
target = "small.fr"
to = "fr"
[data.test.de-zh]
source = "small.de"
target = "small.zh"
to = "zh"
[tokenizer]
kind = "bpe"
vocabulary = 80
[batch]
tokens = 200
[model]
d_model = 16
heads = 2
encoder_layers = 1
decoder_layers = 1
feed_forward = 32
[training]
threads = 1
precision = "fp32"
updates = 3
warmup = 1
validate_every = 3
decode_sentences = 4
"""


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, drawn = tmp_path_factory.mktemp("languages"), random.Random(3)
    for name, count in (("train", 160), ("small", 10)):
        numbers = [drawn.choices(range(4), k=drawn.randrange(1, 6)) for _ in range(count)]
        for language, words in WORDS.items():
            between = "" if language == "zh" else " "
            lines = [between.join(words[each] for each in number) + "\n" for number in numbers]
            (folder / f"{name}.{language}").write_text("".join(lines), encoding="utf-8")
    (folder / "recipe.toml").write_text(RECIPE.format(root=folder.as_posix()), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    trained_beside(corpus / "recipe.toml", tmp_path_factory)
    return corpus / "run"


def test_figures_and_back_translations_without_a_language_are_refused(corpus: Path, run: Path, tmp_path: Path) -> None:
    """They would be of outputs in no language in particular."""
    files = ("--source", corpus / "small.de", "--reference", corpus / "small.zh")
    done = command(tmp_path, "evaluate", run, *files)
    assert (done.code, "say which, as in --to fr" in done.err) == (2, True), done.shown
    assert command(tmp_path, "evaluate", run, *files, "--to", "zh").code == 0
    done = command(tmp_path, "translate-back", run, "--text", corpus / "small.de", "--output", tmp_path / "bt")
    assert (done.code, "expected one that writes a single language" in done.err) == (2, True), done.shown
    assert not (tmp_path / "bt").exists()


# ---- tags are tokens -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bpe", "unigram", "whitespace", "character", "byte"])
def test_a_tag_is_one_token_and_changes_no_other(kind: str) -> None:
    config = TokenizerConfig(kind=kind, vocabulary=60, min_frequency=1)  # type: ignore[arg-type]
    plain = train_tokenizer(config, ["Das ist ein Haus."] * 3)
    tagged = with_tags(plain, [">>fr<<", "<BT>", ">>fr<<"])
    assert tagged.size == plain.size + 2 and tags_of(tagged) == [">>fr<<", "<BT>"] and languages_of(tagged) == ["fr"]
    assert with_tags(tagged, ["<BT>"]) is tagged and tags_of(plain) == []
    [ids], [others] = tagged.encode([">>fr<< <BT> Das ist."]), plain.encode(["Das ist."])
    assert [plain.size, plain.size + 1] == [each for each in ids if each >= plain.size]
    assert ids[-len(others) :] == others == tagged.encode(["Das ist."])[0]
    assert Tokenizer.from_json(tagged.to_json()).equals(tagged)
    assert leading_tags(tagged, ">>fr<< <BT>  Das >>fr<<") == ">>fr<< <BT>  " and not leading_tags(tagged, "a >>fr<<")


@pytest.mark.parametrize("wrong", ["a", "back", "<B T>", "BT>", ""])
def test_a_plain_word_is_no_tag(wrong: str) -> None:
    with pytest.raises(ValidationError, match="expected one word that begins and ends with a symbol, such as <BT>"):
        PairFiles(source="a", target="b", tag=wrong)


def test_symbols_are_no_languages_and_words_among_them_no_tags() -> None:
    config = TokenizerConfig(kind="character", min_frequency=1, symbols="USA|EU|<[A-Z]+>")
    tokenizer = with_tags(train_tokenizer(config, ["USA EU <V> go is it"] * 3), [">>fr<<", ">>de<<"])
    texts = ["<V> go", "go <V>", ">>de<< go", "<V> >>de<< go"]
    assert addressed(tokenizer, texts, "fr") == [">>fr<< <V> go", ">>fr<< go <V>", *texts[2:]]
    with pytest.raises(InputError, match="say which, as in --to fr"):
        require_language(tokenizer, texts[:2])
    require_language(tokenizer, texts)
    assert leading_tags(tokenizer, "USA is EU.") == ""


def test_a_tag_survives_other_cuts_of_words() -> None:
    tokenizer = with_tags(
        train_tokenizer(TokenizerConfig(vocabulary=60, min_frequency=1), ["das haus"] * 3), [">>fr<<"]
    )
    texts = [">>fr<< das haus", "das haus", ">>fr<< haus"]
    assert Resegmenter(tokenizer, 0.0, 1).encode(texts) == tokenizer.encode(texts)
    cut = Resegmenter(tokenizer, 0.9, 1).encode(texts)
    assert [ids[0] == tokenizer.size - 1 for ids in cut] == [True, False, True]
    assert [tokenizer.decode(ids) for ids in cut] == texts


def test_files_are_read_with_their_tags(corpus: Path) -> None:
    files = PairFiles(source="small.de", target="small.zh", to="zh", tag="<BT>")
    for (line, source, target), tagged in zip(read_pairs(files, corpus), read_tagged_pairs(files, corpus), strict=True):
        assert tagged == (line, f">>zh<< <BT> {source}", target)
    assert files.evaluate_options(corpus)[-2:] == ["--to", "zh"]


def test_the_vocabulary_is_learnt_without_tags_and_stores_hold_them(corpus: Path) -> None:
    recipe = load_recipe(corpus / "recipe.toml")
    task, data = open_task(recipe, Display(Console(quiet=True)))
    tokenizer = task.tokenizers["source"]
    assert tags_of(tokenizer) == [">>fr<<", ">>zh<<", ">>de<<", "<BT>"]
    firsts = [
        {int(store.read("source", np.array([row]))[0][0]) for row in range(len(store))} for store, _ in data.corpora
    ]
    assert firsts == [{each} for each in tokenizer.ids([">>fr<<", ">>zh<<", ">>de<<"])]
    assert int(data.corpora[2][0].read("source", np.array([0]))[0][1]) == tokenizer.ids(["<BT>"])[0]
    assert data.validation and data.validation.language == "fr" and data.validation.texts[0][0].startswith(">>fr<< ")


def test_the_temperature_decides_the_shares(corpus: Path) -> None:
    recipe = load_recipe(corpus / "recipe.toml")
    _, data = open_task(recipe, Display(Console(quiet=True)))
    sizes = np.array([len(store) for store, _ in data.corpora])
    shown = np.array([len(store) * weight for store, weight in data.corpora])
    assert shown / shown.sum() == pytest.approx(sizes**0.5 / (sizes**0.5).sum())
    assert data.corpora[0][1] == 1.0
    assert temperature_weights(sizes.tolist(), 1) == [1.0] * len(sizes)


def test_a_direction_without_training_files_is_refused(corpus: Path, tmp_path: Path) -> None:
    wrong = RECIPE.format(root=corpus.as_posix()).replace(
        'target = "small.fr"\nto = "fr"', 'target = "small.fr"\nto = "it"'
    )
    (tmp_path / "recipe.toml").write_text(wrong, encoding="utf-8")
    with pytest.raises(
        InputError, match=r'data.test.zh-fr: the tag ">>it<<" is no token of the model. Its tags: >>fr<<'
    ):
        open_task(load_recipe(tmp_path / "recipe.toml"), Display(Console(quiet=True)))


# ---- a direction at a time -------------------------------------------------------------------------------


def test_each_direction_is_scored_by_its_language(run: Path) -> None:
    tests = json.loads((run / "report.json").read_text())["tests"]
    signatures = {name: test["scores"]["bleu"]["signature"] for name, test in tests.items()}
    assert "tok:13a" in signatures["zh-fr"] and "tok:zh" in signatures["de-zh"]


def test_predict_writes_the_language_asked_for(run: Path, tmp_path: Path) -> None:
    model = transduce.load(run)
    found = model.predict("eins zwei", to="zh")
    assert found.source == ">>zh<< eins zwei" and found.text == model.predict(">>zh<< eins zwei").text
    (tmp_path / "in").write_text("eins zwei\n>>fr<< drei\n\n", encoding="utf-8")
    done = command(tmp_path, "predict", str(run), "--source", str(tmp_path / "in"), "--to", "zh")
    assert done.out.split("\n")[:3] == [found.text, model.predict(">>fr<< drei").text, ""]
    for asked, problem in (([], "this model writes fr, zh, de: say which"), (["--to", "zhh"], 'mean "zh"')):
        done = command(tmp_path, "predict", str(run), "--text", "eins", *asked)
        assert done.code == 2 and problem in done.err
    with pytest.raises(InputError, match="without language tags"):
        translator().predict("ba", to="fr")


def test_evaluate_scores_the_direction_asked_for(run: Path, corpus: Path, tmp_path: Path) -> None:
    files = ["--source", str(corpus / "small.zh"), "--reference", str(corpus / "small.fr")]
    done = command(tmp_path, "evaluate", str(run), *files, "--to", "fr", "--json")
    assert done.code == 0, done.err
    trained = json.loads((run / "report.json").read_text())["tests"]["zh-fr"]
    assert json.loads(done.out)["scores"]["chrf"]["value"] == trained["scores"]["chrf"]["value"]
    assert json.loads(done.out)["likelihood"]["tokens"] == trained["likelihood"]["tokens"]


def test_score_is_of_the_direction_asked_for(run: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("eins zwei\n", encoding="utf-8")
    (tmp_path / "out").write_text("un deux\n", encoding="utf-8")
    files = ["--source", str(tmp_path / "in"), "--target", str(tmp_path / "out")]
    done = command(tmp_path, "score", str(run), *files, "--to", "fr")
    wanted = transduce.load(run).score(">>fr<< eins zwei", "un deux")
    assert float(done.out.split("\t")[0]) == pytest.approx(wanted.log_probability, abs=1e-3)
    done = command(tmp_path, "score", str(run), *files)
    assert done.code == 2 and "say which" in done.err


def test_every_sentence_of_a_text_is_read_behind_its_tags() -> None:
    plain = translator("bpe")
    text = ">>fr<<  Ba de. Fi go.\nKu la."
    tokenizer = with_tags(plain.task.tokenizers["source"], [">>fr<<"])
    plain.task.columns = {
        side: type(column)(tokenizer, column.starts, column.ends)  # type: ignore[attr-defined,call-arg]
        for side, column in plain.task.columns.items()
    }
    pieces = plain.pieces([text, "Ba de. Fi go."], "sentences")
    assert pieces.read == [">>fr<<  Ba de.", ">>fr<<  Fi go.", ">>fr<<  Ku la.", "Ba de.", "Fi go."]
    assert pieces.ids == tokenizer.encode(pieces.read)
    assert plain.pieces([text], "none").read == [text]
    assert addressed(tokenizer, ["ba", "", ">>fr<< ba"], "fr") == [">>fr<< ba", "", ">>fr<< ba"]


def test_the_server_and_the_page_write_the_language_asked_for(run: Path) -> None:
    model = transduce.load(run)
    model.single_sentences = True
    text = "eins zwei. drei.\n eins."
    never_split = model.predict(text, to="zh", split="sentences", method="greedy").text
    found = explore(model, f">>zh<< {text}", method="greedy")["whole"]
    unprotected = model.predict(text, to="zh", split="sentences", protect=False, method="greedy").text
    assert found["output"] == unprotected
    sentences = [f">>zh<< {each}" for each in ("eins zwei.", "drei.", "eins.")]
    assert [each["text"] for each in found["sentences"]] == sentences
    with serving([run]) as server:
        asked = {"to": "zh", "split": "sentences"}
        answer = server.post("/v1/predict", texts=[text], method="greedy", **asked)
        assert [each["text"] for each in answer.json()["predictions"]] == [never_split]
        with server.client.stream("POST", "/v1/stream", json={"text": text, **asked}) as stream:
            assert f'"text": {json.dumps(never_split)}' in stream.read().decode().split("event: done")[1]
        refused = server.post("/v1/predict", texts=["eins"], to="it")
        assert refused.status_code == 400 and "this model writes fr, zh, de" in refused.text
