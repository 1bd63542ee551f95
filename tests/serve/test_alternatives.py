"""Other words in the place of one: those that Python's own search with forced prefixes finds, word by word."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from random_models import language_model, model_file, translator
from served import Server, serving, write_model
from transduce.core.model_file import save_model_file
from transduce.pipeline.pipeline import Pipeline, load
from transduce.serve.served_model import ModelUse

TEXT = "ka le mo"
TWO = " ba be bi go.\n\nKa le mo fi du. "
BEAM = 3


@pytest.fixture(scope="module", params=["greedy", "beam"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random translator whose every token is a word."""
    return write_model(
        tmp_path_factory.mktemp("served") / "tiny.safetensors", search={"method": request.param, "beam": BEAM}
    )


@pytest.fixture(scope="module")
def here(path: Path) -> Pipeline:
    return load(path, device="cpu")


@pytest.fixture(scope="module")
def server(path: Path) -> Iterator[Server]:
    with serving([path]) as running:
        yield running


def ask(server: Server, start: int, q: str = TEXT, status: int = 200, **more: Any) -> Any:
    asked = {"q": q, "source": "de", "target": "en", "start": start, "end": start + 2, **more}
    answer = server.post("/v1/alternatives", **asked)
    assert answer.status_code == status, answer.text
    return answer.json()


def forced(here: Pipeline, source: str, before: str, own: str) -> dict[str, tuple[float, str, float]]:
    """By each word in this place: its log-probability, and output and score of the search behind it."""
    target = here.task.columns["target"]
    unwritten = {*target.unwritten, target.end}  # type: ignore[attr-defined]
    size = here.task.tokenizers["target"].size
    words = [target.tokens([token])[0] for token in range(size) if token not in unwritten]
    tried = [word for word in words if word != own]
    place = len(before.split())
    found = here.predict([source] * len(tried), prefix=[f"{before} {word}".strip() for word in tried], split="none")
    return {
        word: (each.token_log_probabilities[place], each.text, each.score)
        for word, each in zip(tried, found, strict=True)
    }


@pytest.mark.parametrize("place", [0, 2, 4])
def test_they_are_those_of_searches_with_each_word_forced(server: Server, here: Pipeline, place: int) -> None:
    output = here.predict(TEXT).text
    words = output.split()
    before = " ".join(words[:place])
    start = len(before) + (place > 0)
    every = forced(here, TEXT, before, words[place])
    found = ask(server, start, most=6)
    assert found["translatedText"] == output
    assert (found["start"], found["end"]) == (start, start + len(words[place]))
    kept = here.predict([TEXT], prefix=before, split="none", nbest=1 if here.recipe.search.method == "greedy" else BEAM)
    beam = {each.text: each.score for each in kept[0].alternatives or kept if each.text.startswith(before)}
    likely = sorted(every, key=lambda word: -every[word][0])[:6]
    expected: dict[str, tuple[float, str]] = {}
    tried = [(score, text) for text, score in beam.items()] + [(every[word][2], every[word][1]) for word in likely]
    for score, text in sorted(tried, reverse=True):
        word = text[start:].split(" ")[0]
        if word and word != words[place]:
            expected.setdefault(word, (score, text))
    told = [(each["word"], each["translatedText"]) for each in found["alternatives"]]
    assert told == [(word, text) for word, (_, text) in expected.items()][:6]
    scores = [each["score"] for each in found["alternatives"]]
    np.testing.assert_allclose(scores, [score for score, _ in expected.values()][:6], rtol=1e-5)
    assert len(told) >= 4


def test_what_was_chosen_stays_and_the_next_word_is_chosen_behind_it(server: Server, here: Pipeline) -> None:
    first = ask(server, 0)
    chosen = first["alternatives"][1]
    start = len(chosen["word"]) + 1
    again = ask(server, start, outputs=chosen["outputs"])
    assert again["translatedText"] == chosen["translatedText"]
    assert again["alternatives"]
    for each in again["alternatives"]:
        assert each["translatedText"].startswith(f"{chosen['word']} {each['word']}")
        assert each["translatedText"] != chosen["translatedText"]


def test_in_several_sentences_only_one_changes(server: Server, here: Pipeline) -> None:
    whole = server.post("/translate", q=TWO, source="de", target="en").json()["translatedText"]
    one, two = (here.predict(each).text for each in ("ba be bi go.", "Ka le mo fi du."))
    start = whole.index(two, len(one))
    found = ask(server, start, TWO)
    assert (found["translatedText"], found["outputs"], found["sentence"]) == (whole, [one, two], 1)
    assert found["start"] == start
    alone = ask(server, 0, "Ka le mo fi du.")
    assert [each["outputs"] for each in found["alternatives"]] == [
        [one, *each["outputs"]] for each in alone["alternatives"]
    ]
    for each in found["alternatives"]:
        assert each["translatedText"] == whole.replace(two, each["outputs"][1])
    shift = TWO.index("Ka")
    moved = [{**each, "start": each["start"] + shift, "end": each["end"] + shift} for each in alone["links"]]
    assert found["links"] == moved


def test_links_are_the_words_with_most_cross_attention(server: Server, here: Pipeline) -> None:
    prediction = here.predict(TEXT)
    words = prediction.text.split()
    cross = [layer.weights.double().numpy() for layer in prediction.attention().of("cross")]
    for place in (0, 3):
        mean_S = sum(layer_HTS[:, place].mean(0) for layer_HTS in cross) / len(cross)  # a token is a word
        weights = dict(enumerate(mean_S[: len(TEXT.split())].tolist()))
        most = [number for number, weight in weights.items() if weight >= max(weights.values()) / 2]
        found = ask(server, len(" ".join(words[:place])) + (place > 0))["links"]
        assert [(each["start"] // 3, each["end"] - each["start"]) for each in found] == [(each, 2) for each in most]
        np.testing.assert_allclose([each["weight"] for each in found], [weights[each] for each in most], atol=2e-6)


def test_what_cannot_be_is_refused_with_the_reason(server: Server) -> None:
    assert "no word of the translation is there" in ask(server, 5000, status=400)["error"]
    assert "expected 1, one for each sentence; got 2" in ask(server, 0, outputs=["a", "b"], status=400)["error"]
    assert "de to fr is not supported" in ask(server, 0, target="fr", status=400)["error"]
    assert "no word of the translation is there" in ask(server, 0, " ", status=400)["error"]
    assert "cannot be written with the tokens" in ask(server, 7, outputs=["zzzzzz ba"], status=400)["error"]
    ask(server, 0, most=0, status=400)
    ask(server, 0, "ba " * 10_000, status=413)
    ask(server, -1, status=400)


def test_tags_are_no_words_and_other_models_are_refused(tmp_path: Path) -> None:
    tagged = tmp_path / "tagged.safetensors"
    save_model_file(
        tagged, model_file(translator(tags=[">>fr<<", ">>sw<<"], task={"kind": "translation", "source": "de"}))
    )
    writer = tmp_path / "writer.safetensors"
    save_model_file(writer, model_file(language_model()))
    with serving([tagged, writer]) as running:
        here = load(tagged, device="cpu")
        texts = ["ba be bi go", TEXT, "go go fi ra", "du ti"]
        text, output = next((each, found) for each in texts if (found := here.predict(f">>fr<< {each}").text))
        found = ask(running, 0, text, target="fr")
        assert found["translatedText"] == output
        assert found["links"] and all(text[each["start"] : each["end"]] in text.split() for each in found["links"])
        assert "continues text and does not translate" in ask(running, 0, model="writer", status=400)["error"]


@pytest.mark.usefixtures("kernels")
def test_the_kernels_alone_say_what_is_needed(tmp_path: Path) -> None:
    path = write_model(tmp_path / "tiny.safetensors")
    with serving([path], use=ModelUse(engine="kernels")) as running:
        assert "translates without torch" in ask(running, 0, status=400)["error"]
