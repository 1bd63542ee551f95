"""Times of words against a slow Viterbi over labels and blanks, and against where the sounds were put."""

import math
from typing import Any

import numpy as np
import pytest
import soundfile
import torch

from random_models import listener
from transduce.core.padded import Padded
from transduce.data.columns.tokens import Tokens
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.prediction import Prediction
from transduce.interpret.word_times import _words_of, spoken_words

RATE, SHIFT, SUBSAMPLED = 8000, 0.01, 4
JOINT = {"kind": "rnn", "d_model": 16, "hidden": 16, "ctc_weight": 0.4}
CTC = {"kind": "ctc", "d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 24}


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder, random_ = tmp_path_factory.mktemp("sounds"), np.random.default_rng(3)
    for number, seconds in enumerate((1.0, 0.43, 2.02, 0.7)):
        soundfile.write(folder / f"{number}.wav", 0.1 * random_.normal(size=round(seconds * RATE)), RATE)
    return [str(folder / f"{number}.wav") for number in range(4)]


def slow_alignment(normed_PV: torch.Tensor, ids: list[int], blank: int) -> list[tuple[int, int]] | None:
    """First and last place of each token, by the textbook: one row of blanks and labels, place by place."""
    labels = [blank, *(each for index in ids for each in (index, blank))]
    best: dict[int, tuple[float, list[int]]] = {-1: (0.0, [])}  # by the label that the last place holds
    for place in range(len(normed_PV)):
        after: dict[int, tuple[float, list[int]]] = {}
        for state, (value, path) in best.items():
            steps = [0, 1] if state < 0 else [state, state + 1, state + 2]
            for other in steps:
                skips = other == state + 2 and state >= 0
                if other >= len(labels) or (skips and (labels[other] == blank or labels[other] == labels[state])):
                    continue
                more = value + float(normed_PV[place, labels[other]])
                if other not in after or more > after[other][0]:
                    after[other] = (more, [*path, other])
        best = after
    ends = [best[state] for state in (len(labels) - 1, len(labels) - 2) if state in best and state >= 0]
    if not ends:
        return None
    path = max(ends)[1]
    places = [[place for place, state in enumerate(path) if state == 2 * number + 1] for number in range(len(ids))]
    return [(each[0], each[-1]) for each in places]


def slow_times(pipeline: Any, name: str, prediction: Prediction) -> list[tuple[float, float]] | None:
    """Of the tokens, whose model makes a place of four frames."""
    task, model = pipeline.task, pipeline.model
    frames = torch.from_numpy(task.columns["source"].encode([name])[0])[None]
    source = Padded(frames, torch.tensor([frames.shape[1]]))
    with torch.inference_mode():
        places = model.align_encoder(source) if hasattr(model, "align_encoder") else model.align(source)
    ids = task.columns["target"].ids(prediction.tokens)
    found = slow_alignment(places.values[0].double().log_softmax(-1), ids, task.start)
    step = SUBSAMPLED * SHIFT
    if found is None:
        return None
    return [(a * step, min((b + 1) * step, frames.shape[1] * SHIFT)) for a, b in found]


@pytest.mark.parametrize("table", [JOINT, {**CTC, "places": 1}], ids=["joint", "ctc"])
def test_times_are_those_of_a_slow_alignment_alone_and_in_a_batch(table: dict[str, Any], sounds: list[str]) -> None:
    model = listener(table["kind"], model=table)
    assert model.times_words
    together = model.predict(sounds, word_times=True, batch_size=3)
    assert sum(bool(each.spoken_words) for each in together) >= 2
    for name, each in zip(sounds, together, strict=True):
        assert model.predict(name, word_times=True).spoken_words == each.spoken_words
        expected = slow_times(model, name, each)
        if expected is None:  # attention writes more than there are places for
            assert each.spoken_words == ()
            continue
        assert "".join(word.word for word in each.spoken_words) == "".join(each.text.split()) != ""
        said = [time for token, time in zip(each.tokens, expected, strict=True) if token.strip()]  # not line breaks
        for word, (start, end) in zip(each.spoken_words, said, strict=True):  # each character of Chinese is a word
            assert (word.start, word.end) == pytest.approx((start, end), abs=2e-3)
        assert [word._asdict() for word in each.spoken_words] == each.to_dict()["words"]


@pytest.mark.parametrize("places", [1, 2, 3])
def test_times_lie_within_the_sound_and_increase(places: int, sounds: list[str]) -> None:
    for name, each in zip(
        sounds, listener("ctc", model={**CTC, "places": places}).predict(sounds, word_times=True), strict=True
    ):
        times = [moment for word in each.spoken_words for moment in (word.start, word.end)]
        assert times == sorted(times) and all(word.start < word.end for word in each.spoken_words)
        assert times[0] >= 0 and times[-1] <= soundfile.info(name).duration
        assert "".join(word.word for word in each.spoken_words) == "".join(each.text.split())


def test_there_are_none_where_nobody_asks_or_nothing_aligns(sounds: list[str]) -> None:
    plain, aligning = listener("rnn"), listener("ctc")
    assert not plain.times_words and plain.predict(sounds[0], word_times=True).spoken_words == ()
    assert aligning.predict(sounds[0]).spoken_words == () and "words" not in aligning.predict(sounds[0]).to_dict()


def test_more_tokens_than_places_have_no_times(sounds: list[str]) -> None:
    """Attention writes as many tokens as it is made to; CTC has no place for them."""
    model = listener("rnn", model=JOINT)
    found = model.predict(sounds[1], word_times=True, min_length=15, max_length_offset=30)
    assert len(found.tokens) >= 15 > math.ceil(41 / SUBSAMPLED) and found.spoken_words == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello,  world!", ["hello,", "world!"]),
        ("三七", ["三", "七"]),
        ("「你好」，world3 再见。", ["「你", "好」，", "world3", "再", "见。"]),
        ("don't\u00a0stop", ["don't", "stop"]),
        ("สวัสดี", ["ส", "วั", "ส", "ดี"]),
        ("はい", ["は", "い"]),
        (" ", []),
    ],
)
def test_words_are_the_text_without_its_white_space(text: str, words: list[str]) -> None:
    found = [text[a:b] for a, b in spoken_words(text)]
    assert found == words and "".join(found) == "".join(text.split())


def test_a_token_of_several_words_is_divided_and_a_word_of_several_tokens_joined() -> None:
    texts = ["你好 we go", "你好 we we", "你好 你好 go"] * 30
    tokenizer = train_tokenizer(TokenizerConfig(kind="bpe", vocabulary=40, min_frequency=1), texts)
    target, text = Tokens(tokenizer, starts=True, ends=True), "你好 we"
    ids = tokenizer.encode([text])[0]
    assert tokenizer.tokens(ids) == ["▁你好", "▁we"]
    found = _words_of(target, ids, [(1.0, 2.0), (3.0, 3.5)])
    assert found == (("你", 1.0, 1.5), ("好", 1.5, 2.0), ("we", 3.0, 3.5))
    spelt = tokenizer.ids(["▁", "w", "e"])
    assert _words_of(target, spelt, [(0.0, 0.1), (1.0, 1.2), (2.0, 2.2)]) == (("we", 1.0, 2.2),)
