"""BART, mBART, M2M-100, NLLB and T5 with random weights, converted, and compared with transformers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from converted import converted, logits_of_both
from foreign_models import bart, m2m_100, mbart, nllb, t5
from random_models import sentences
from transduce.interop.original_engine import OriginalEngine
from transduce.interop.parity import Text, compare

pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

Make = Callable[..., Any]
GOES: dict[str, tuple[Make, dict[str, Any], dict[str, str]]] = {
    "bart": (bart, {}, {}),
    "bart not forced": (bart, {"forced_bos_token_id": None}, {}),
    "mbart": (mbart, {}, {"source": "en_XX", "target": "fr"}),
    "nllb": (nllb, {}, {"source": "eng_Latn", "target": "fra_Latn"}),
    "m2m_100": (m2m_100, {}, {"source": "en", "target": "fr"}),
    "t5": (t5, {}, {}),
    "t5 of wide heads": (t5, {"d_kv": 12}, {}),
    "t5 1.1": (t5, {"tie_word_embeddings": False, "feed_forward_proj": "gated-gelu"}, {}),
}


@pytest.mark.parametrize("name", GOES)
def test_logits_and_greedy_ids_are_equal(name: str, tmp_path: Path) -> None:
    make, settings, languages = GOES[name]
    model = make(tmp_path, **settings)
    pipeline = converted(tmp_path, **languages)
    found = compare(pipeline, OriginalEngine(pipeline, tmp_path), Text("random", sentences(15)))
    assert found.holds, found.report()
    theirs, ours = logits_of_both(model, pipeline)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)
