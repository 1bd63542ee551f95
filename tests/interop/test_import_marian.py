"""Marian models of Hugging Face with random weights, converted, and compared with transformers."""

from pathlib import Path
from typing import Any

import pytest
import torch

from foreign_models import marian
from random_models import sentences
from transduce.core.model_file import save_model_file
from transduce.core.padded import Padded
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.interop.original_engine import OriginalEngine
from transduce.interop.parity import Text, compare
from transduce.pipeline.pipeline import Pipeline, load

transformers = pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

GOES: list[dict[str, Any]] = [
    {},
    {"activation_function": "relu"},
    {"activation_function": "gelu", "bias": 0.0},
    {"scale_embedding": False},
    {"tie_word_embeddings": False},
    {"encoder_layers": 1, "decoder_layers": 3},
]


def converted(folder: Path, **languages: str) -> Pipeline:
    """The model in `folder`, through a file."""
    path = folder / "ours.safetensors"
    save_model_file(path, read_foreign(folder, Languages(**languages), "ours").file)
    pipeline = load(path, device="cpu")
    pipeline.recipe = pipeline.recipe.model_copy(
        update={"search": pipeline.recipe.search.model_copy(update={"max_length_factor": 0.5, "max_length_offset": 4})}
    )
    return pipeline


def logits_of_both(model: Any, pipeline: Pipeline, rows: list[tuple[list[int], list[int]]]) -> tuple[Any, Any]:
    """Theirs and ours (T, V) of each source and target, both with all that stands before and behind."""
    theirs, ours = [], []
    for source, target in rows:
        with torch.inference_mode():
            theirs += [model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits[0]]
            padded = [Padded(torch.tensor([ids]), torch.tensor([len(ids)])) for ids in (source, target)]
            ours += [pipeline.model(*padded)[0]]
    return torch.cat(theirs), torch.cat(ours)


@pytest.mark.parametrize("settings", GOES, ids=str)
def test_logits_and_greedy_ids_are_equal(settings: dict[str, Any], tmp_path: Path) -> None:
    model = marian(tmp_path, **settings)
    pipeline = converted(tmp_path)
    found = compare(pipeline, OriginalEngine(pipeline, tmp_path), Text("random", sentences(60)))
    assert found.holds, found.report()
    assert found.apart is not None
    assert found.apart[0] < 1e-3
    source, target = pipeline.task.columns["source"], pipeline.task.columns["target"]
    rows = [
        (source.closed(one), [target.start, *other])
        for one, other in zip(source.encode(sentences(8, 5)), target.encode(sentences(8, 6)), strict=True)
    ]
    theirs, ours = logits_of_both(model, pipeline, rows)
    size = theirs.shape[1]
    torch.testing.assert_close(ours[:, :size], theirs, rtol=1e-4, atol=1e-4)
