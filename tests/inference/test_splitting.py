"""No sentence of a text is lost: models of single sentences get them one by one, by whatever way the text comes."""

import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import transduce
from random_models import language_model, model_file, translator
from sentence_model import all_pairs
from served import Server, serving
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.data.corpus import sampled_pairs
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.explore.offline import offline
from transduce.inference import splitting
from transduce.inference.sentences import examined
from transduce.inference.splitting import pieces_of
from transduce.pipeline.pipeline import Pipeline

TWO = "The animal was tired. The street was wide."
TRANSLATED = "Das Tier war müde. Das Sträßchen war breit."
SPACES = (" ", "  ", "\n", "\n\n", "\t", " \r\n ", "\u2028", "\u00a0")


@pytest.fixture(scope="module")
def model(sentence_run: Path) -> Pipeline:
    return transduce.load(sentence_run)


@pytest.fixture(scope="module")
def server(sentence_run: Path) -> Any:
    with serving([sentence_run], queue=4096) as running:
        yield running


@pytest.fixture(scope="module")
def pairs_of_sentences() -> list[tuple[str, str]]:
    """500 texts of two sentences, with all kinds of white space between and around, and what must come of them."""
    drawn, pairs = random.Random(4), all_pairs()
    found = []
    for _ in range(500):
        (one, first), (two, second) = drawn.sample(pairs, 2)
        between, end = drawn.choice(SPACES), drawn.choice(["", " ", "\n"])
        found.append((f"{one}{between}{two}{end}", f"{first}{between}{second}"))
    return found


def command(*words: str, input: str | None = None) -> str:
    """What a command that succeeds writes on standard output."""
    from typer.testing import CliRunner

    from transduce.cli.app import app

    done = CliRunner().invoke(app, words, input=input)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout_bytes.decode()


# ---- 500 pairs of sentences ------------------------------------------------------------------------------


def test_predict_loses_none(model: Pipeline, pairs_of_sentences: list[tuple[str, str]]) -> None:
    found = model.predict([text for text, _ in pairs_of_sentences])
    assert [each.text for each in found] == [answer for _, answer in pairs_of_sentences]
    assert [each.source for each in found] == [text for text, _ in pairs_of_sentences]


def test_translate_loses_none(server: Server, pairs_of_sentences: list[tuple[str, str]]) -> None:
    asked = [text for text, _ in pairs_of_sentences]
    found: list[str] = []
    for first in range(0, 500, 100):
        answer = server.post("/translate", q=asked[first : first + 100], source="en", target="de")
        found += answer.json()["translatedText"]
    outer = [text[len(text.rstrip()) :] for text in asked]
    assert found == [answer + end for (_, answer), end in zip(pairs_of_sentences, outer, strict=True)]


def test_our_own_api_loses_none(server: Server, pairs_of_sentences: list[tuple[str, str]]) -> None:
    asked = [text for text, _ in pairs_of_sentences[:100]]
    found = server.post("/v1/predict", texts=asked).json()["predictions"]
    assert [each["text"] for each in found] == [answer for _, answer in pairs_of_sentences[:100]]
    with server.client.stream("POST", "/v1/stream", json={"text": asked[0]}) as stream:
        told = stream.read().decode()
    assert f'"text": {json.dumps(pairs_of_sentences[0][1])}' in told.split("event: done")[1]


def test_html_loses_none(server: Server) -> None:
    answer = server.post("/translate", q=f"<p>{TWO}</p>", source="en", target="de", format="html")
    assert answer.json()["translatedText"] == f"<p>{TRANSLATED}</p>"


def test_the_command_line_loses_none(sentence_run: Path, pairs_of_sentences: list[tuple[str, str]]) -> None:
    """As lines, and as one text with all its line breaks."""
    lines = [(one.replace("\n", " ").rstrip(), other.replace("\n", " ")) for one, other in pairs_of_sentences]
    found = command("predict", str(sentence_run), input="".join(f"{one}\n" for one, _ in lines))
    assert found == "".join(f"{other}\n" for _, other in lines)
    text = "\n \n".join(one for one, _ in pairs_of_sentences)
    ends = [one[len(one.rstrip()) :] for one, _ in pairs_of_sentences]
    expected = "\n \n".join(other + end for (_, other), end in zip(pairs_of_sentences, ends, strict=True))
    found = command("predict", str(sentence_run), "--text", f"\t{text}")
    assert found == f"\t{expected}".removesuffix("\n") + "\n"


def test_back_translations_lose_none(
    sentence_run: Path, pairs_of_sentences: list[tuple[str, str]], tmp_path: Path
) -> None:
    lines = [(one.replace("\n", " ").rstrip(), other.replace("\n", " ")) for one, other in pairs_of_sentences]
    (tmp_path / "text").write_text("".join(f"{one}\n" for one, _ in lines), encoding="utf-8")
    command("translate-back", str(sentence_run), "--text", str(tmp_path / "text"), "--output", str(tmp_path / "back"))
    with gzip.open(tmp_path / "back" / "source.gz", "rt", encoding="utf-8", newline="\n") as file:
        assert file.read() == "".join(f"{other}\n" for _, other in lines)


def test_an_evaluation_reads_lines_whole_and_says_so(sentence_run: Path, tmp_path: Path) -> None:
    (tmp_path / "en").write_text(f"{TWO}\nThe animal was tired.\n", encoding="utf-8")
    (tmp_path / "de").write_text(f"{TRANSLATED}\nDas Tier war müde.\n", encoding="utf-8")
    asked = ("evaluate", str(sentence_run), "--source", str(tmp_path / "en"), "--reference", str(tmp_path / "de"))
    asked = (*asked, "--metric", "exact_match")
    whole = command(*asked)
    assert "exact match 50.0" in whole
    assert "inputs of several sentences, which are read whole here: 1. `predict` reads them sentence by" in whole
    for split in ("auto", "sentences"):
        read = command(*asked, "--split", split)
        assert "exact match 100.0" in read
        assert "several sentences" not in read
    found = transduce.evaluate(sentence_run, [(TWO, TRANSLATED)], metrics="exact_match", split="auto")
    assert found.to_dict()["scores"]["exact_match"]["value"] == 100


def test_text_and_source_exclude_each_other(sentence_run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--text is the input itself"):
        command("predict", str(sentence_run), "--text", "a", "--source", str(tmp_path / "a"))


def test_the_page_loses_none(server: Server, pairs_of_sentences: list[tuple[str, str]]) -> None:
    for text, answer in pairs_of_sentences[:50]:
        whole = server.post("/v1/explore/predict", text=text).json()["whole"]
        assert whole["output"].rstrip() == answer
        assert [len(each["output"]) > 1 for each in whole["sentences"]] == [True, True]


# ---- the option ------------------------------------------------------------------------------------------


def test_a_whole_text_on_request(model: Pipeline, server: Server) -> None:
    whole = model.predict(TWO, split="none").text
    assert whole != TRANSLATED == model.predict(TWO, split="sentences").text
    asked = {"q": TWO, "source": "en", "target": "de"}
    assert server.post("/translate", **asked, split="none").json()["translatedText"] == whole
    assert server.post("/v1/predict", texts=[TWO], split="none").json()["predictions"][0]["text"] == whole
    with pytest.raises(InputError, match='expected "auto", "sentences" or "none"'):
        model.predict(TWO, split="words")  # type: ignore[call-overload]


@pytest.mark.parametrize("options", [[], ["--split", "none"]])
def test_predict_on_the_command_line(sentence_run: Path, model: Pipeline, options: list[str], tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from transduce.cli.app import app

    done = CliRunner().invoke(app, ["predict", str(sentence_run), *options], input=f"{TWO}\nTwo dogs run.\n")
    split = "none" if options else "auto"
    assert done.stdout.splitlines() == [model.predict(TWO, split=split).text, "Zwei Hunde laufen."]


def test_a_text_of_several_sentences_has_scores_and_an_nbest_list(model: Pipeline) -> None:
    parts = model.predict(["The animal was tired.", "The street was wide."], nbest=3)
    found = model.predict(TWO, nbest=3)
    assert found.log_probability == pytest.approx(sum(part.log_probability for part in parts), abs=1e-5)
    assert found.tokens == parts[0].tokens + parts[1].tokens
    for rank, each in enumerate(found.alternatives):
        assert each.text == " ".join(part.alternatives[rank].text for part in parts)
    assert [each.score for each in found.alternatives] == sorted(each.score for each in found.alternatives)[::-1]
    assert replace(found, alternatives=()) == found.alternatives[0]
    with pytest.raises(InputError, match="several pieces"):
        found.attention()


def test_what_is_wanted_of_the_output_keeps_a_text_together(model: Pipeline) -> None:
    told: list[str] = []
    [found, other] = model.predict([TWO, TWO], must=[["rot"], []], tell=told.append)
    assert "rot" in found.text
    assert other.text == TRANSLATED
    assert told == ["line 1: its 2 sentences are read as one, because constraints apply to it."]
    with pytest.raises(InputError, match=r"line 1: .* is translated in 2 pieces"):
        model.predict(TWO, must=["rot"], split="sentences")


def test_a_long_text_of_short_sentences_is_not_too_long(sentence_run: Path, tmp_path: Path) -> None:
    file = model_file(short := transduce.load(sentence_run))
    table = short.recipe.to_table()
    table["data"]["filters"]["max_tokens"] = 14
    save_model_file(tmp_path / "short.safetensors", replace(file, config=table, provenance=short.provenance))
    short, told = transduce.load(tmp_path / "short.safetensors"), list[str]()
    many = " ".join([TWO] * 4)
    for long in ("split", "truncate", "refuse"):
        assert short.predict(many, long=long, tell=told.append).text == " ".join([TRANSLATED] * 4)
    assert not told
    with pytest.raises(InputError, match=r"line 1: a sentence of \d+ tokens, the model reads 14 at most"):
        short.predict(f"{TWO} The very old animal and the very old animal were tired, tired, tired.", long="refuse")


@pytest.mark.parametrize(("prompts", "part"), [(False, slice(0, 50)), (True, slice(-50, None))])
def test_of_a_far_too_long_text_only_what_is_read_is_looked_at(
    prompts: bool, part: slice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splitting, "FAR", 10)
    looked_at = list[int]()

    class Counting(Tokenizer):
        def encode(self, texts: Sequence[str]) -> list[list[int]]:
            looked_at.extend(map(len, texts))
            return super().encode(texts)

    learnt = train_tokenizer(TokenizerConfig(kind="character"), ["abcdefgh "])
    counting, text = Counting.from_json(learnt.to_json()), "abc defgh " * 1000
    found = pieces_of([text], [False], counting, 50, "truncate", prompts)
    assert found.read == [text[part]] and "over 500 tokens, the model reads 50 at most" in found.long[0]
    with pytest.raises(InputError, match="line 1: over 500 tokens, the model reads 50 at most"):
        pieces_of([text], [False], counting, 50, "refuse", prompts)
    assert max(looked_at) <= 50 * 10


def test_a_long_run_of_spaces_is_not_what_is_cut_off() -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="whitespace", min_frequency=1), ["one two three"])
    spaced = "one" + " " * 100_000 + "two three"
    assert pieces_of([spaced], [False], tokenizer, 5, "truncate").long == {}
    [[segment]] = pieces_of([spaced], [False], tokenizer, 2, "truncate").cuts
    assert spaced[segment.start : segment.end].split() == ["one", "two"]


def test_progress_counts_texts(model: Pipeline) -> None:
    steps: list[int] = []
    model.predict([TWO, "Two dogs run.", "", TWO], advance=steps.append, batch_size=2)
    assert sum(steps) == 4
    assert min(steps) >= 0


def test_a_prompt_is_never_cut() -> None:
    writes = language_model()
    assert writes.pieces(["ba. De fi."], "sentences").read == ["ba. De fi."]


# ---- who is cut ------------------------------------------------------------------------------------------


def test_training_notes_what_its_pairs_were(model: Pipeline) -> None:
    assert model.provenance["sentences"] == {"pairs": 435, "several": 0.0, "ended": 1.0, "single": True}
    assert "sentences" not in model.recipe.to_table()


ONE, TWICE = ("A dog runs.", "Ein Hund läuft."), ("It ran. It fell.", "Er lief. Er fiel.")
PAIRS = {
    "single sentences": ([ONE] * 95 + [TWICE] * 5, True),
    "paragraphs": ([ONE] * 80 + [TWICE] * 20, False),
    "words and their sounds": ([("ABBREVIATED", "AH B R IY"), ("MR.", "M IH S T ER")] * 50, False),
    "dates": ([("3. May 2020", "2020-05-03"), ("Dec. 1st, 99", "1999-12-01")] * 50, False),
    "questions and queries": ([("How many dogs run?", "SELECT COUNT(*) FROM dogs WHERE runs = 1")] * 100, False),
    "captions without a stop": ([("a dog runs", "ein hund läuft")] * 100, False),
    "into Thai": ([("Il pleut.", "ฝนตก"), ("Viens.", "มาเถอะ")] * 50, True),
    "into Lao": ([("Il pleut.", "ຝົນຕົກ")] * 100, True),
    "from Thai": ([("ฝนตก", "Il pleut.")] * 100, False),
    "from Burmese": ([("သူလာမယ်။", "Il vient.")] * 100, True),
    "into Burmese": ([("Il vient.", "သူလာမယ်။")] * 100, True),
    "into Tibetan": ([("Il vient.", "དེ་རེད།")] * 100, True),
    "into Khmer": ([("Il vient.", "អ្នកនៅផ្ទះ។")] * 100, True),
    "into Armenian": ([("Il vient.", "Նա գալիս է։")] * 100, True),
    "into Santali": ([("Il vient.", "ᱥᱟ ᱵ᱾")] * 100, True),
    "from Khmer, paragraphs": ([("ខ្ញុំទៅផ្សារ។ អ្នកនៅផ្ទះ។", "Je vais. Tu restes.")] * 100, False),
    "words into Thai": ([("rain", "ฝน")] * 100, False),
    "nothing": ([], False),
}  # fmt: skip


@pytest.mark.parametrize(("pairs", "single"), PAIRS.values(), ids=PAIRS)
def test_the_data_says_whether_sentences_are_read_one_by_one(pairs: list[tuple[str, str]], single: bool) -> None:
    assert examined(pairs, "en")["single"] is single


def test_a_file_that_does_not_say_is_taken_to_be_of_single_sentences() -> None:
    assert translator().single_sentences
    assert not translator("character").single_sentences
    assert not language_model().single_sentences
    file = model_file(translator())
    for said in (True, False):
        assert Pipeline(replace(file, provenance={"sentences": {"single": said}})).single_sentences is said


def test_a_sample_is_of_all_lines_of_all_files(tmp_path: Path) -> None:
    for name, count in (("one", 1000), ("two", 30)):
        (tmp_path / name).write_text("".join(f"{name} {line}\n" for line in range(count)), encoding="utf-8")
    corpora = [PairFiles(source=name, target=name) for name in ("one", "two")]
    lines = [source for source, _ in sampled_pairs(corpora, tmp_path, 100)]
    assert lines == [f"one {line}" for line in range(0, 1000, 20)] + [f"two {line}" for line in range(30)]


# ---- the explorer ----------------------------------------------------------------------------------------


def test_the_explorer_translates_all_and_looks_at_one(model: Pipeline, server: Server) -> None:
    text = TWO.replace(" The street", "\n The street")
    for chosen in (0, 1, 9):
        found = server.post("/v1/explore/predict", text=text, sentence=chosen).json()
        assert found["text"] == ["The animal was tired.", "The street was wide."][min(chosen, 1)]
        assert found["nbest"][0]["text"] == found["whole"]["sentences"][min(chosen, 1)]["output"]
        assert found["whole"]["output"] == model.predict(text).text
        assert found["whole"]["sentence"] == min(chosen, 1)
    assert server.post("/v1/explore/predict", text="Two dogs run.").json()["whole"] is None


def test_the_file_that_works_offline_has_every_sentence(model: Pipeline) -> None:
    data = offline({"one": model}, [TWO, "Two dogs run."])
    assert [each["text"] for each in data["explorations"]] == [
        "The animal was tired.",
        "The street was wide.",
        "Two dogs run.",
    ]
