"""How far apart two tokens are where outputs part, beside the model's own steps."""

import pytest
import torch

from random_models import SHORT, sentences, translator
from transduce.core.padded import Padded
from transduce.interop.parity import margin


def stepped(pipeline: object, source: str, tokens: tuple[str, ...], place: int) -> torch.Tensor:
    """(V,): log-probabilities of the token at `place`, step by step."""
    columns, model = pipeline.task.columns, pipeline.model  # type: ignore[attr-defined]
    ids = columns["source"].closed(columns["source"].encode([source])[0])
    written = [columns["target"].start, *columns["target"].ids(tokens)]
    with torch.inference_mode():
        memory, state = model.start(Padded(torch.tensor([ids]), torch.tensor([len(ids)])), 1)
        for token in written[: place + 1]:
            scores_BV, state = model.step(torch.tensor([token]), memory, state)
    found: torch.Tensor = scores_BV[0].log_softmax(-1)
    return found


@pytest.mark.parametrize("model", [{}, {"pointer": True}, {"kind": "ssru_transformer"}], ids=str)
def test_it_is_the_difference_of_log_probabilities_at_the_first_different_token(model: dict[str, object]) -> None:
    pipeline = translator("unigram", model=model)
    target = pipeline.task.columns["target"]
    source = next(line for line in sentences(20, seed=3) if line)
    ours = pipeline.predict(source, method="greedy", **SHORT).tokens
    assert len(ours) > 2
    other = next(token for token in target.tokens(range(4, 20)) if token != ours[1])  # type: ignore[attr-defined]
    for theirs, place in (((ours[0], other), 1), (ours[:2], 2), ((*ours, other), len(ours))):
        log_p_V = stepped(pipeline, source, ours, place)
        mine, yours = (target.ids([each])[0] for each in ((*ours, "</s>")[place], (*theirs, "</s>")[place]))  # type: ignore[attr-defined]
        found = margin(pipeline, source, ours, theirs)
        assert found == pytest.approx(float(log_p_V[mine] - log_p_V[yours]), abs=1e-4)
        assert margin(pipeline, source, theirs, ours) == pytest.approx(-found, abs=1e-4)
    assert margin(pipeline, source, ours, (ours[0], other)) >= 0
