"""The attention behind an output: the same weights as while it was searched, and words that belong together."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from served import serving

from random_models import language_model, model_file, sentences
from transduce.attention.capture import capture
from transduce.model_file import save_model_file
from transduce.pipeline import Pipeline
from transduce.serve.attention import Attention, attention_of, links


@pytest.mark.parametrize("text", [text for text in sentences(12, seed=4) if text])
def test_weights_are_those_of_the_search(offline: Pipeline, text: str) -> None:
    with capture(offline.model) as record:
        [prediction] = offline.predict([text], method="greedy", max_length_factor=1.0, max_length_offset=0)
    found = attention_of(offline, prediction)
    steps = len(prediction.tokens) + prediction.ended
    assert len(found.cross) == 2
    for name in found.cross:
        stepped_HTS = torch.cat([step[0] for step in record[name]], dim=1)
        assert stepped_HTS.shape[1] == steps
        torch.testing.assert_close(found.weights[name][:, :steps], stepped_HTS, atol=1e-5, rtol=1e-4)
        assert found.weights[name].shape[1:] == (len(found.target_tokens), len(found.source_tokens))


def test_cross_attention_is_told_from_self_attention_where_lengths_are_equal(offline: Pipeline) -> None:
    found = [
        attention_of(offline, prediction)
        for prediction in offline.predict([" ".join(["ba"] * length) for length in range(1, 12)], method="greedy")
    ]
    assert any(len(each.source_tokens) == len(each.target_tokens) for each in found)
    assert all(sorted(each.cross) == sorted(found[0].cross) and len(each.cross) == 2 for each in found)
    for each in found:
        shapes = {weights.shape[1:] for name, weights in each.weights.items() if name not in each.cross}
        assert shapes == {(len(each.source_tokens),) * 2, (len(each.target_tokens),) * 2}


def test_links_follow_the_strongest_attention(offline: Pipeline) -> None:
    [prediction] = offline.predict(["ba de fi go"], method="greedy")
    found = attention_of(offline, prediction)
    [name] = found.cross[:1]
    words = prediction.text.split()
    weights = np.zeros((1, len(words) + 1, 5))
    order = [3, 0, 0, 1]
    for row in range(len(words)):
        weights[0, row, order[row % 4]] = 1
    made: Any = links(offline, prediction, Attention([], [], {name: torch.tensor(weights)}, [name]))
    spans = {link.output: link.source for link in made if link.source != (6, 8)}
    outputs = sorted(spans)
    assert [prediction.text[a:b] for a, b in outputs] == words
    sources = ["ba", "de", "fi", "go"]
    assert [prediction.source[slice(*spans[each])] for each in outputs] == [
        sources[order[n % 4]] for n in range(len(words))
    ]
    assert (6, 8) in {link.source for link in made}  # "fi" is nobody's first choice and still belongs somewhere
    nothing = SimpleNamespace(alignment=lambda: None)
    assert links(offline, prediction, nothing) == []  # type: ignore[arg-type]


def test_a_language_model_shows_its_own_attention_alone(tmp_path: Path) -> None:
    save_model_file(tmp_path / "lm.safetensors", model_file(language_model()))
    with serving([tmp_path / "lm.safetensors"]) as running:
        [found] = running.post("/v1/predict", texts=["ba de"], attention=True, alignment=True).json()["predictions"]
        assert found["text"].startswith("ba de")
        assert found["attention"]["source_tokens"] == found["attention"]["cross"] == []
        assert "alignment" not in found["attention"]
        assert "/v1/predict" in running.post("/translate", q="ba", source="x", target="y", model="lm").json()["error"]
        assert running.client.get("/languages").json() == []
        streamed = running.post("/v1/stream", text="ba de").text
        assert "event: done" in streamed


def test_too_many_weights_are_refused(served_file: Path) -> None:
    with serving([served_file], attention_numbers=50) as running:
        answer = running.post("/v1/predict", texts=["ba de fi"], attention=True)
        assert (answer.status_code, "too many" in answer.json()["error"]) == (413, True)
