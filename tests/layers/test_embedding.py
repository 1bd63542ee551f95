"""Tokens to vectors and back."""

import pytest
import torch

from transduce.layers.embedding import Embedding


def test_looks_up_scaled_and_reads_out_unscaled() -> None:
    torch.manual_seed(0)
    embedding = Embedding(7, 16)
    ids_BT = torch.tensor([[3, 0], [6, 3]])
    torch.testing.assert_close(embedding(ids_BT)[1, 1], 4 * embedding.weight[3])  # sqrt(16) = 4
    hidden_BTD = torch.randn(2, 2, 16)
    torch.testing.assert_close(embedding.logits(hidden_BTD), hidden_BTD @ embedding.weight.T)


def test_vectors_enter_with_unit_variance_and_their_own_logits_start_small() -> None:
    torch.manual_seed(0)
    embedding = Embedding(500, 256)
    assert embedding.weight.std().item() == pytest.approx(256**-0.5, rel=0.02)
    assert embedding(torch.arange(500)).std().item() == pytest.approx(1, rel=0.02)
    assert embedding.logits(torch.randn(100, 1, 256)).std().item() == pytest.approx(1, rel=0.02)


def test_one_matrix_gets_both_gradients() -> None:
    torch.manual_seed(0)
    embedding = Embedding(5, 4)
    embedding.logits(embedding(torch.tensor([[2]]))).square().sum().backward()
    assert embedding.weight.grad is not None
    rows = embedding.weight.grad.norm(dim=1)
    assert (rows > 0).all()  # through the output; row 2 through the lookup as well
    leaf_VD = embedding.weight.detach().clone().requires_grad_()
    (2 * leaf_VD[2] @ leaf_VD.T).square().sum().backward()
    torch.testing.assert_close(embedding.weight.grad, leaf_VD.grad)
