"""Marian models of Hugging Face with random weights, converted, and compared with transformers."""

from pathlib import Path
from typing import Any

import pytest
import torch

from converted import converted, logits_of_both
from foreign_models import marian
from random_models import sentences
from transduce.interop.original_engine import OriginalEngine
from transduce.interop.parity import Text, compare

pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

GOES: list[dict[str, Any]] = [
    {},
    {"activation_function": "relu", "encoder_layers": 1, "decoder_layers": 3, "scale_embedding": False},
    {"activation_function": "gelu", "bias": 0.0, "tie_word_embeddings": False},
]


@pytest.mark.parametrize("settings", GOES, ids=str)
def test_logits_and_greedy_ids_are_equal(settings: dict[str, Any], tmp_path: Path) -> None:
    model = marian(tmp_path, **settings)
    pipeline = converted(tmp_path)
    found = compare(pipeline, OriginalEngine(pipeline, tmp_path), Text("random", sentences(15)))
    assert found.holds, found.report()
    assert found.difference is not None
    assert found.difference[0] < 1e-3
    theirs, ours = logits_of_both(model, pipeline)
    torch.testing.assert_close(ours[:, : theirs.shape[1]], theirs, rtol=1e-4, atol=1e-4)
