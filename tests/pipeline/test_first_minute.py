"""The first lines that people type: those of the README, to the letter, and those that they type instead of them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import transduce
from random_models import language_model, translator
from sentence_model import all_pairs
from transduce.core.errors import InputError
from transduce.explore.exploration import explore
from transduce.inference.prediction import Prediction
from transduce.pipeline.generation import generate
from transduce.pipeline.pipeline import EnsemblePipeline, Pipeline

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
INLINE = re.findall(r"`((?:with transduce|transduce\.|model\.)[^`\n]*\([^`\n]*)`", README)
TEXT, TRANSLATION = "Two dogs run.", "Zwei Hunde laufen."


@pytest.fixture(scope="module")
def model(sentence_run: Path) -> Pipeline:
    return transduce.load(sentence_run)


def test_the_readmes_lines_run_as_they_stand(
    sentence_run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(sentence_run.parent.parent)
    scope: dict[str, Any] = {}
    for block in BLOCKS:
        exec(block, scope)
    for line in INLINE:
        exec(line, scope)
    assert capsys.readouterr().out.startswith(f"{TRANSLATION}\n")
    assert len(BLOCKS) == 1
    assert {"with transduce.capture(model) as record: ...", f'model.predict(["{TEXT}"])[0].attention()'} <= {*INLINE}


# ---- predict ---------------------------------------------------------------------------------------------


def test_one_text_gives_one_prediction_that_prints_as_its_text(model: Pipeline) -> None:
    found = model.predict(TEXT)
    assert isinstance(found, Prediction)
    assert (found.source, found.text) == (TEXT, TRANSLATION)
    assert str(found) == f"{found}" == TRANSLATION
    assert re.fullmatch(r"Prediction\('Zwei Hunde laufen\.', score=-\d\.\d+\)", repr(found))
    assert model(TEXT) == found
    assert model.predict([TEXT]) == [found]
    assert repr(model) == "<transduce.Pipeline multi30k-en-de: Transformer on cpu>"


class Series:
    """A column of a table, as pandas has it: what it yields is what counts."""

    def __iter__(self) -> Any:
        return iter([TEXT, "The boat is red."])


@pytest.mark.parametrize(
    "made",
    [
        lambda: (TEXT, "The boat is red."),
        lambda: (text for text in [TEXT, "The boat is red."]),
        lambda: np.array([TEXT, "The boat is red."]),
        lambda: np.array([TEXT, "The boat is red."], dtype=object),
        lambda: dict.fromkeys([TEXT, "The boat is red."]).keys(),
        Series,
    ],
    ids=["tuple", "generator", "array", "objects", "keys", "series"],
)
def test_whatever_has_texts_in_an_order_gives_a_list(model: Pipeline, made: Callable[[], Any]) -> None:
    assert [each.text for each in model.predict(made())] == [TRANSLATION, "Das Boot ist rot."]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "got NoneType: None"),
        (3, "got int: 3"),
        (b"Two dogs run.", r'decode\("utf-8"\)'),
        ([TEXT, b"raw"], r"texts\[1\]: expected a text; got bytes"),
        ([TEXT, float("nan"), None], r"texts\[1\]: expected a text; got float: nan"),
        ([[TEXT]], r"texts\[0\]: expected a text; got list"),
        ({TEXT}, r"got set \(which has no order\)"),
        ({"text": TEXT}, r"got dict with the keys text\. Pass .*, such as table\['text'\]"),
        ([{"text": TEXT}], r"texts\[0\]: expected a text; got dict: .* Give one of its values, as each\['text'\]"),
        (Path("english.txt"), "got PosixPath"),
        ("a lone \ud800 surrogate", "lone surrogate"),
        (["fine", "\udc80"], r"texts\[1\]: holds a lone surrogate"),
    ],
)
def test_what_is_no_text_is_refused_in_words(model: Pipeline, given: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        model.predict(given)


class DataFrame:
    """A table, as pandas has it: iterating it gives the names of its columns."""

    columns = ("english", "german")

    def __iter__(self) -> Any:
        return iter(self.columns)


@pytest.mark.parametrize(
    "asked",
    [
        lambda model, table: model.predict(table),
        lambda model, table: model.predict(TEXT, prefix=table),
        lambda model, table: model.predict(TEXT, must=table),
        lambda model, table: model.score(table),
        lambda model, table: model.score(table, table),
        lambda model, table: transduce.evaluate(model, source=table, reference=[TRANSLATION] * 2),
        lambda model, table: transduce.evaluate(model, source=[TEXT] * 2, reference=table),
        lambda model, table: transduce.evaluate(model, [(TEXT, TRANSLATION)] * 2, outputs={"other": table}),
        explore,
        generate,
        lambda model, table: model.look_back(table),
    ],
    ids=["predict", "prefix", "must", "score", "sides", "source", "reference", "outputs", "explore", "prompt", "back"],
)
def test_the_column_names_of_a_table_are_no_texts(model: Pipeline, asked: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(InputError, match=r"DataFrame with the columns english, german\..* table\['english'\]"):
        asked(model, DataFrame())


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "datasets"])
def test_a_real_table_is_no_list_of_texts(model: Pipeline, library: str) -> None:
    tables = pytest.importorskip(library)
    made = {"pyarrow": "table", "datasets": "Dataset"}.get(library, "DataFrame")
    sides = {"english": [TEXT], "german": [TRANSLATION]}
    table = tables.Dataset.from_dict(sides) if library == "datasets" else getattr(tables, made)(sides)
    with pytest.raises(InputError, match=r"with the columns english, german\..* table\['english'\]"):
        model.predict(table)


def test_settings_and_nbest_lists_are_keywords(model: Pipeline) -> None:
    [found] = model.predict([TEXT], beam=4, nbest=3)
    assert found.alternatives[0].text == TRANSLATION == found.text
    assert repr(found).endswith(", 3 alternatives)")
    with pytest.raises(InputError, match=r'unknown key search.bean. Did you mean "beam"?'):
        model.predict(TEXT, bean=4)


# ---- score -----------------------------------------------------------------------------------------------


def test_score_takes_pairs_two_lists_or_one_pair(model: Pipeline) -> None:
    pairs = all_pairs()[:3]
    sources, targets = (list(side) for side in zip(*pairs, strict=True))
    by_pairs = model.score(pairs)
    assert [each.tokens for each in by_pairs] == [len(each.pieces) for each in by_pairs]
    assert model.score(sources, targets) == by_pairs
    assert model.score(iter(sources), tuple(targets)) == by_pairs
    assert model.score(zip(sources, targets, strict=True)) == by_pairs
    assert model.score(np.array(pairs)) == by_pairs
    assert model.score(sources, targets, batch_size=1)[0].tokens == by_pairs[0].tokens
    alone = model.score(TEXT, TRANSLATION)
    assert alone == model.score((TEXT, TRANSLATION)) == model.score([(TEXT, TRANSLATION)])[0]
    assert alone.log_probability > model.score(TEXT, "Das Boot ist rot.").log_probability
    assert model.score([], []) == model.score([]) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (([TEXT, TEXT], [TRANSLATION]), "a list of 2 sources and a list of 1 target"),
        ((TEXT, [TRANSLATION]), "one source alone and a list of 1 target"),
        ((TEXT,), "give a translation as well"),
        (([TEXT, TEXT],), "expected pairs; got texts"),
        (([(TEXT, TRANSLATION, "more")],), r"score\[0\]: expected a pair \(source, target\)"),
        (([(TEXT, TRANSLATION), (TEXT, None)],), r"score\[1\]: expected a pair"),
        ((None,), "pairs of source and target"),
        (([(TEXT, TRANSLATION)], 16), r"score\(pairs, batch_size=16\)"),
    ],
)
def test_what_score_cannot_take_is_refused_in_words(model: Pipeline, given: tuple[Any, ...], said: str) -> None:
    with pytest.raises(InputError, match=said):
        model.score(*given)


def test_a_language_model_scores_texts() -> None:
    writes = language_model()
    texts = ["ba de fi", "go"]
    expected = writes.score([("", text) for text in texts])
    assert writes.score(texts) == expected
    assert writes.score(texts[0]) == expected[0]
    with pytest.raises(InputError, match="reads no sources"):
        writes.score(texts, texts)


# ---- capture ---------------------------------------------------------------------------------------------


def test_capture_takes_what_load_gave(model: Pipeline) -> None:
    with transduce.capture(model) as record:
        model.predict(TEXT)
    with transduce.capture(model.model) as inner:
        model.predict(TEXT)
    assert "decoder.blocks.0.cross_attention" in record
    assert record.keys() == inner.keys()


def test_a_record_says_what_it_holds_instead(model: Pipeline) -> None:
    with transduce.capture(model) as record:
        model.predict(TEXT)
    with pytest.raises(
        KeyError, match=r"decoder\.blocks\.9\.cross; this record holds encoder\.blocks\.0\.self_attention, "
    ):
        record["decoder.blocks.9.cross"]
    assert "decoder.blocks.9.cross" not in record


def test_attention_is_told_in_one_line(model: Pipeline) -> None:
    told = repr(model.predict(TEXT).attention())
    assert told.startswith(f"<transduce Attention of '{TEXT}' -> '{TRANSLATION}': encoder.blocks.0.self_attention, ")
    assert "tensor" not in told


def test_capture_of_an_ensemble_holds_its_members() -> None:
    both = EnsemblePipeline([translator(seed=3), translator(seed=4)])
    with transduce.capture(both) as record:
        both.predict(["ba de"])
    assert {name.split(".")[1] for name in record} == {"0", "1"}
    assert all(name.startswith("members.") for name in record)


@pytest.mark.parametrize("given", ["runs/multi30k-en-de", None])
def test_capture_of_anything_else_is_refused_in_words(given: Any) -> None:
    with pytest.raises(InputError, match="expected a model"), transduce.capture(given):
        pass


# ---- load ------------------------------------------------------------------------------------------------


def test_load_takes_folders_and_files_as_text_or_path(sentence_run: Path) -> None:
    for path in (sentence_run, str(sentence_run), sentence_run / "model.safetensors", [sentence_run]):
        assert transduce.load(path).predict(TEXT).text == TRANSLATION
    assert isinstance(transduce.load((sentence_run, sentence_run)), EnsemblePipeline)
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", transduce.__version__)


@pytest.fixture
def folder(sentence_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "one").symlink_to(sentence_run)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "one.toml").write_text("[task]\n")
    (tmp_path / "recipes" / "two.toml").write_text("[task]\n")
    (tmp_path / "model.pt").write_bytes(b"PK\x03\x04 a checkpoint of torch.save")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("one", 'Did you mean "runs/one"'),
        ("runs/onee", 'Did you mean "runs/one"'),
        ("recipes/one.toml", "this is a recipe, not a model; train it first: transduce train recipes/one.toml"),
        ("two", "transduce train recipes/two.toml"),
        ("model.pt", "pickle"),
        ("empty", "has no model.safetensors"),
        ("", "expected the path of a model; got none"),
        ([], "expected the path of a model; got none"),
        (None, "got None"),
        (b"runs/one", "got b'runs/one'"),
        (["runs/one", 3], "got "),
    ],
)
def test_what_cannot_be_loaded_is_said_with_what_to_do(folder: Path, path: Any, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        transduce.load(path)
