"""Outputs that begin with zeros: the model is one whose start token's embedding is zeros, in training and in search."""

import pytest
import torch

from random_models import sentences, translator
from transduce.core.padded import Padded


@pytest.mark.parametrize("kind", ["transformer", "ssru_transformer"])
def test_it_is_a_model_whose_start_token_is_zeros(kind: str) -> None:
    given, zeros = (translator(model={"kind": kind, "tied": "none", "zero_start": each}) for each in (True, False))
    start = given.task.tokenizers["target"].start
    with torch.no_grad():
        zeros.model.get_submodule("target_embedding").weight[start] = 0  # type: ignore[operator]
    assert given.model.get_submodule("target_embedding").weight[start].any()  # type: ignore[index]
    texts = sentences(8)
    ours, theirs = (each.predict(texts, method="beam", nbest=2, beam=3) for each in (given, zeros))
    assert [each.text for each in ours] == [each.text for each in theirs]
    source, target = (Padded(torch.randint(4, 20, (2, 5)), torch.tensor([5, 3])) for _ in range(2))
    target.values[:, 0] = start
    with torch.inference_mode():
        logits, expected = (each.model(source, target) for each in (given, zeros))
    torch.testing.assert_close(logits, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", ["transformer", "ssru_transformer"])
def test_nothing_is_learned_of_the_first_embedding(kind: str) -> None:
    model = translator(model={"kind": kind, "tied": "none", "zero_start": True}).model
    for parameter in model.parameters():
        parameter.requires_grad_()
    source, target = (Padded(torch.tensor([[7, 8, 9]]), torch.tensor([3])) for _ in range(2))
    model(source, target).square().sum().backward()
    gradient_VD = model.get_submodule("target_embedding").weight.grad
    assert isinstance(gradient_VD, torch.Tensor)
    assert gradient_VD.any(1).nonzero().flatten().tolist() == [8, 9]
