"""The attention behind an output over HTTP, and words that belong together by it."""

from dataclasses import replace
from pathlib import Path

import torch

from random_models import language_model, model_file
from served import serving
from transduce.core.model_file import save_model_file
from transduce.interpret.links import links
from transduce.pipeline.pipeline import Pipeline


def test_links_follow_the_strongest_attention(offline: Pipeline) -> None:
    [prediction] = offline.predict(["ba de fi go"], method="greedy")
    found = offline.attention(prediction)
    words = prediction.text.split()
    weights = torch.zeros(1, len(words) + 1, 5)
    order = [3, 0, 0, 1]
    for row in range(len(words)):
        weights[0, row, order[row % 4]] = 1
    made = links(prediction, replace(found, layers=(replace(found.of("cross")[0], weights=weights),)))
    spans = {link.output: link.source for link in made if link.source != (6, 8)}
    outputs = sorted(spans)
    assert [prediction.text[a:b] for a, b in outputs] == words
    sources = ["ba", "de", "fi", "go"]
    assert [prediction.source[slice(*spans[each])] for each in outputs] == [
        sources[order[n % 4]] for n in range(len(words))
    ]
    assert (6, 8) in {link.source for link in made}  # "fi" is nobody's first choice and still belongs somewhere
    assert links(prediction, replace(found, layers=())) == []


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
