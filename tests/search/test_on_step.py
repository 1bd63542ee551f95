"""Whoever is told of each step is told what a search has, and changes nothing of what it finds."""

import pytest
import torch

from random_models import language_model, sentences, translator
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.pipeline.pipeline import EnsemblePipeline, Pipeline
from transduce.search.dispatch import search
from transduce.search.request import Request, Step
from transduce.search.settings import Search

pytestmark = pytest.mark.usefixtures("either_way")
TEXTS = [text for text in sentences(9, seed=4) if text]
WAYS = [
    {"method": "greedy"},
    {"method": "beam", "beam": 1},
    {"method": "beam", "beam": 4, "nbest": 4},
    {"method": "beam", "beam": 4, "groups": 2},
    {"method": "sample", "nbest": 2},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_it_finds_the_same_and_tells_all_of_it(way: dict[str, object]) -> None:
    made, told = translator(), list[Step]()
    expected = made.predict(TEXTS, batch_size=4, **way)
    found = made.predict(TEXTS, batch_size=4, on_step=told.append, **way)
    assert found == expected
    seen: dict[int, set[tuple[tuple[int, ...], float]]] = {}
    for step in told:
        assert step.rows.dtype == step.tokens.dtype == torch.int64
        assert step.log_probabilities.dtype == torch.float64
        assert step.tokens.shape == (len(step.rows), step.tokens.shape[1])
        for row, tokens, total in zip(*(part.tolist() for part in step), strict=True):
            seen.setdefault(row, set()).add((tuple(tokens), round(total, 6)))
    target = made.task.tokenizers["target"]
    for row, prediction in enumerate(found):
        for each in [prediction, *prediction.alternatives]:
            tokens = (*target.ids(each.tokens), *([made.task.end] if each.ended else []))
            assert (tokens, round(each.log_probability, 6)) in seen[row]


def test_a_greedy_search_is_told_token_by_token() -> None:
    made, told = translator(), list[Step]()
    found = made.predict("ba de fi go", method="greedy", on_step=told.append)
    whole = [*made.task.tokenizers["target"].ids(found.tokens), *([made.task.end] if found.ended else [])]
    assert [step.tokens.tolist() for step in told] == [[whole[: place + 1]] for place in range(len(whole))]
    assert [step.rows.tolist() for step in told] == [[0]] * len(whole)
    sums = torch.tensor(found.token_log_probabilities, dtype=torch.float64).cumsum(0).tolist()
    assert [float(step.log_probabilities) for step in told][: len(sums)] == pytest.approx(sums)


def test_a_prompt_is_part_of_what_a_language_model_says() -> None:
    made, told = language_model(), list[Step]()
    found = made.predict("ba de", method="greedy", on_step=told.append)
    assert made.task.tokenizers["target"].decode(told[-1].tokens[0].tolist()) == found.text


def test_an_ensemble_tells_as_one() -> None:
    told = list[Step]()
    both = EnsemblePipeline([translator(seed=1), translator(seed=2)])
    found, expected = both.predict(TEXTS, beam=3, on_step=told.append), both.predict(TEXTS, beam=3)
    assert [each.tokens for each in found] == [each.tokens for each in expected]  # scores are equal to rounding
    assert told


@pytest.mark.parametrize("way", WAYS[:3], ids=str)
def test_what_it_raises_ends_the_search(way: dict[str, object]) -> None:
    class Enough(Exception):
        pass

    told = list[Step]()

    def once(step: Step) -> None:
        told.append(step)
        raise Enough

    with pytest.raises(Enough):
        translator().predict(TEXTS, on_step=once, **way)
    assert len(told) == 1


def test_there_are_no_steps_to_tell_of() -> None:
    made: Pipeline = translator()
    with pytest.raises(InputError, match=r"requires workers = 1; got workers = 2\."):
        made.predict(TEXTS, workers=2, on_step=print)
    source = Padded(torch.tensor([[4, 2]]), torch.tensor([2]))
    with pytest.raises(InputError, match='method "exhaustive" does not write token by token; use one of greedy, beam'):
        search(made.model, source, [Request(2)], Search(method="exhaustive"), start=1, end=2, on_step=lambda step: None)
