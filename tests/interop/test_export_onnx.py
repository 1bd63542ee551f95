"""Exports to ONNX, run by onnxruntime: by our engine, and by the loop that the documentation shows."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from random_models import SHORT, language_model, sentences, translator
from transduce.core.errors import InputError
from transduce.core.padded import Padded, leaves
from transduce.interop.export_onnx import SIZES as TRIALS
from transduce.interop.export_onnx import (
    OnnxSteps,
    _Encoder,
    _free_axes,
    _source,
    _Step,
    _trial,
    export_onnx,
    named,
    without_kernels,
)
from transduce.interop.exports import export_format
from transduce.interop.model_card import Languages
from transduce.interop.parity import PLAIN, Text, compare

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

PAGE = Path(__file__).parent.parent.parent / "docs" / "interop.md"
[LOOP] = re.findall(r"^```python\n# greedy\.py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
SIZES = {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 24, "tied": "none"}
LINES = [line for line in sentences(30, seed=5) if line]


def exported(folder: Path, **model: Any) -> Any:
    pipeline = translator("unigram", model={**SIZES, **model})
    assert export_format("onnx").write(pipeline, folder, Languages("en", "sw")) == folder
    return pipeline


ROTARY: dict[str, Any] = {
    "norm": "post",
    "positions": "rotary",
    "rotary_base": 500.0,
    "rotary_scaling": {"kind": "linear", "factor": 2.0},
    "query_key_norm": True,
    "norm_kind": "rms",
    "activation": "swiglu",
    "key_value_heads": 1,
    "zero_start": True,
}
SSRU: dict[str, Any] = {
    "kind": "ssru_transformer",
    "positions": "tensor2tensor",
    "decoder_positions": True,
    "zero_start": True,
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A pipeline and its export; of a model whose graphs are small, as PyTorch takes long for each operation."""
    folder = tmp_path_factory.mktemp("onnx")
    return exported(folder, **SSRU), folder


def test_greedy_search_and_every_step_are_equal(plain: Any) -> None:
    pipeline, folder = plain
    assert {each.name for each in folder.iterdir()} == {
        "encoder.onnx",
        "decoder_step.onnx",
        "source_tokenizer.json",
        "target_tokenizer.json",
        "config.json",
        "README.md",
    }
    found = compare(pipeline, export_format("onnx").engine(pipeline, folder), Text("random", LINES))
    assert found.holds, found.report()
    assert_same_steps(pipeline, folder)


def assert_same_steps(pipeline: Any, folder: Path) -> None:
    """From no cache at all, for one row and for several, for one position and for several."""
    steps, model = OnnxSteps(folder), pipeline.model
    generator = torch.Generator().manual_seed(1)
    tokens = [token for token in range(pipeline.task.specs.target.size) if token not in (0, 1, 3)]
    for rows, length in ((1, 1), (3, 6)):
        source = torch.randint(4, 60, (rows, length), generator=generator)
        padded = Padded(source, torch.tensor([length, *([max(1, length - 2)] * (rows - 1))]))
        theirs, ours = steps.start(padded, rows), model.start(padded, rows)
        for _ in range(5):
            token_B = torch.randint(4, 60, (rows,), generator=generator)
            with torch.inference_mode():
                expected, ours = _stepped(model, token_B, *ours)
            scores, theirs = _stepped(steps, token_B, *theirs)
            torch.testing.assert_close(scores[:, tokens], expected[:, tokens], atol=2e-5, rtol=1e-5)
            assert bool((scores[:, [0, 1, 3]] < -1e8).all())  # padding, start and unknown


def _stepped(model: Any, token_B: torch.Tensor, memory: Any, state: Any) -> Any:
    scores, state = model.step(token_B, memory, state)
    return scores, (memory, state)


@pytest.mark.parametrize("settings", [{}, ROTARY, SSRU], ids=["plain", "rotary", "ssru"])
def test_what_is_exported_computes_what_the_model_does(settings: dict[str, Any]) -> None:
    """Before PyTorch traces it, which takes long: each tensor has a name, and those that grow are free to."""
    model = translator("unigram", model={**SIZES, **settings}).model
    plain = without_kernels(model, 60)
    (memory, state), (other_memory, other_state) = (_trial(plain, *sizes) for sizes in TRIALS)
    names = [*named(memory, "memory"), *named(state, "state")]
    assert len(set(names)) == len(names) == len(leaves((memory, state)))
    for tree, other in ((memory, other_memory), (state, other_state)):
        for free, one, two in zip(_free_axes(tree, other), leaves(tree), leaves(other), strict=True):
            assert {axis for axis in range(one.dim()) if one.shape[axis] != two.shape[axis]} == set(free)
    never_V = torch.arange(len(model.output.weight)) * -0.5
    with torch.no_grad():
        source = Padded(*_source(2, 5))
        expected = model.start(source, 2)
        found = _Encoder(plain)(source.values, source.lengths)
        step = _Step(plain, memory, state, never_V)
        for token in (5, 7, 6):
            read, kept = found[: len(leaves(memory))], found[len(leaves(memory)) :]
            scores_BV, *kept = step(torch.tensor([token, 9]), list(read), list(kept))
            found = (*read, *kept)
            wanted_BV, after = model.step(torch.tensor([token, 9]), *expected)
            expected = expected[0], after
            torch.testing.assert_close(scores_BV, wanted_BV + never_V, atol=2e-5, rtol=1e-5)


@pytest.mark.slow
def test_another_architecture_is_equal(tmp_path: Path) -> None:
    assert_same_steps(exported(tmp_path, **ROTARY), tmp_path)


def test_the_loop_of_the_documentation_translates_alike(plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline, folder = plain
    assert LOOP.count("\n") <= 60
    assert set(re.findall(r"^(?:import|from) (\w+)", LOOP, re.M)) <= {
        "json",
        "sys",
        "numpy",
        "onnxruntime",
        "tokenizers",
    }
    monkeypatch.setattr("sys.argv", ["greedy.py", str(folder)])
    names: dict[str, Any] = {"__name__": "greedy"}
    exec(compile(LOOP, "greedy.py", "exec"), names)
    limit = {"max_length_factor": SHORT["max_length_factor"], "max_length_offset": SHORT["max_length_offset"]}
    own = pipeline.predict(LINES, split="none", **{**PLAIN, **limit})
    assert names["translate"](LINES) == [each.text for each in own]


def test_what_cannot_go_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only models from text to text"):
        export_onnx(language_model(), tmp_path, Languages())
    assert not list(tmp_path.iterdir())
