"""Training starts from every import: the loss of the first updates is finite, and falls."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console
from test_import_marian_npz import as_marian

from converted import converted_file
from foreign_models import LINES, bart, m2m_100, marian, mbart, nllb, pieces_of, t5, train_spm
from transduce.data.batches import Rows
from transduce.data.collate import collate
from transduce.layers.cross_entropy import smoothed_cross_entropy
from transduce.recipe.recipe import load_recipe
from transduce.training.display import Display
from transduce.training.initialization import new_training
from transduce.training.run import open_task

pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

RECIPE = """
[data]
train = [{ source = "s", target = "t" }]
[training]
updates = 2
threads = 1
label_smoothing = 0.1
[batch]
tokens = 100
"""


def lacking(folder: Path) -> Path:
    """A Marian model whose vocab.json lacks pieces that source.spm has."""
    pieces = [each for each in pieces_of(train_spm(folder / "other.spm", LINES)) if each[1:].isalpha()][:4]
    marian(folder, without=pieces)
    return folder


def npz(folder: Path) -> Path:
    """Marian's own file."""
    np.savez(folder / "model.npz", **as_marian(marian(folder)))
    return folder / "model.npz"


def made(make: Callable[[Path], Any]) -> Callable[[Path], Path]:
    def folder_of(folder: Path) -> Path:
        make(folder)
        return folder

    return folder_of


IMPORTS: dict[str, tuple[Callable[[Path], Path], dict[str, str]]] = {
    "bart": (made(bart), {}),
    "marian": (made(marian), {}),
    "marian, pieces lacking": (lacking, {}),
    "npz": (npz, {}),
    "mbart": (made(mbart), {"source": "en_XX", "target": "fr_XX"}),
    "t5": (made(t5), {}),
    "m2m_100": (made(m2m_100), {"source": "en", "target": "fr"}),
    "nllb": (made(nllb), {"source": "eng_Latn", "target": "fra_Latn"}),
}


@pytest.mark.parametrize("name", IMPORTS)
def test_the_loss_is_finite_and_falls(name: str, tmp_path: Path) -> None:
    make, languages = IMPORTS[name]
    (folder := tmp_path / "theirs").mkdir()
    path = make(folder)
    converted_file(path, **languages)
    (tmp_path / "my.toml").write_text(RECIPE, encoding="utf-8")
    lines = [line for line in LINES if line][:30]
    (tmp_path / "s").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "t").write_text("".join(f"{line[::-1]}\n" for line in lines), encoding="utf-8")
    given = [f"training.start={folder / 'ours.safetensors'}", f"data.root={tmp_path}", "model.dropout=0"]
    tuned = load_recipe(tmp_path / "my.toml", given)
    task, data = open_task(tuned, Display(Console(file=io.StringIO())))
    trained = new_training(tuned, task)
    store, _ = data.corpora[0]
    batch = collate([store], Rows(np.zeros(8, dtype=int), np.arange(8)), task.columns)
    losses = []
    adam = torch.optim.Adam(trained.model.parameters(), lr=3e-3)
    for _ in range(4):
        adam.zero_grad()
        loss = trained.objective.loss(trained.model, batch, trained.objective.draw(trained.model, batch)).minimised
        loss.backward()
        adam.step()
        losses.append(float(loss.detach()) / int((batch.targets.lengths - 1).sum()))
    size = task.tokenizers["target"].size
    assert all(0 < each < 8 * np.log(size) for each in losses), losses
    assert losses[-1] < losses[0], losses


def test_words_that_are_never_said_have_no_share_of_smoothing() -> None:
    """The loss and its gradient are those of the vocabulary without them."""
    drawn = torch.Generator().manual_seed(1)
    logits_NV, target_N = torch.randn(5, 9, generator=drawn), torch.tensor([0, 3, 8, 4, 4])
    wide_NV = torch.cat((logits_NV, torch.full((5, 2), -1e9) + torch.randn(5, 2, generator=drawn)), 1)
    found = []
    for given_NV in (logits_NV.requires_grad_(), wide_NV.requires_grad_()):
        loss = smoothed_cross_entropy(given_NV, target_N, 0.1)
        loss.backward()
        found.append((float(loss.detach()), given_NV.grad))
    (one, narrow_NV), (other, broad_NV) = found
    assert narrow_NV is not None and broad_NV is not None
    wanted = torch.nn.functional.cross_entropy(logits_NV.detach(), target_N, label_smoothing=0.1, reduction="sum")
    assert one == pytest.approx(float(wanted), rel=1e-5) and other == pytest.approx(one, rel=1e-5)
    torch.testing.assert_close(broad_NV[:, :9], narrow_NV)
    assert not broad_NV[:, 9:].any()
