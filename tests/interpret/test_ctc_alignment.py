"""Which places say which token, against all rows of places, and what that makes of attention."""

import itertools

import pytest
import torch

from pipelines import TEXT, pipeline
from transduce.interpret.attention import by_token, held, looked
from transduce.interpret.layers import Attends
from transduce.interpret.model_inputs import given_of, next_tokens

BLANK = 0


@pytest.mark.parametrize("tokens", [[1], [1, 2], [2, 2], [1, 3, 3], [3, 1, 3, 1]])
def test_the_likeliest_row_that_says_them(tokens: list[int]) -> None:
    for seed in range(20):
        normed_PV = torch.randn(6, 4, generator=torch.Generator().manual_seed(seed)).mul(2).log_softmax(1)
        best, row = -1e9, ()
        for each in itertools.product(range(4), repeat=6):
            if [token for token, _ in itertools.groupby(each) if token != BLANK] == tokens:
                value = sum(float(normed_PV[place, token]) for place, token in enumerate(each))
                best, row = max((best, row), (value, each))
        found = held(normed_PV, tokens, BLANK).tolist()
        assert [BLANK if index < 0 else tokens[index] for index in found] == list(row)
        assert [index for index, _ in itertools.groupby(i for i in found if i >= 0)] == list(range(len(tokens)))


def test_places_become_tokens_as_sub_words_become_words() -> None:
    # Places:            blank  a    a    blank  b
    row = torch.tensor([[8.0, 0, 0], [0, 7, 0], [0, 9, 0], [9, 0, 0], [0, 0, 9]]).log_softmax(1)
    weights = torch.rand(1, 2, 5, 5).softmax(-1)
    parts = [Attends("own", "decoder", 0, 2, "target", "target"), Attends("cross", "cross", 0, 2, "target", "source")]
    said, found = by_token(row, {"own": [weights], "cross": [weights]}, parts, [1, 2], BLANK)
    assert torch.equal(said, row[[2, 4]])  # of a's two places the surer one
    means = torch.stack([weights[:, :, :4].mean(2), weights[:, :, 4]], 2)
    torch.testing.assert_close(found["cross"][0], means)
    torch.testing.assert_close(found["own"][0], torch.stack([means[..., :4].sum(-1), means[..., 4]], -1))


def test_of_a_model() -> None:
    made = pipeline("ctc")
    [prediction] = made.predict([TEXT], beam=1, max_length_factor=3)
    given = given_of(made.task, prediction)
    attention, next_TV = looked(made.model, made.task, given, prediction.source, prediction.text)
    with torch.inference_mode():
        places = next_tokens(made.model, made.task, given)
    assert len(places) > len(next_TV) == len(given.target)
    said = next_TV.index_fill(1, torch.arange(made.task.end + 1), -torch.inf)  # <pad>, <s>, </s>: in no output
    assert said.argmax(1).tolist() == given.target  # what the best row says is the likeliest where it is said
    for layer in attention.layers:
        torch.testing.assert_close(layer.weights.sum(-1), torch.ones(layer.weights.shape[:2]), atol=1e-5, rtol=0)
