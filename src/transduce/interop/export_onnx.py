"""A model from text to text as ONNX files, which onnxruntime runs in any language, without PyTorch.

    encoder.onnx            see `transduce.interop.onnx_graphs`
    decoder_step.onnx
    source_tokenizer.json   for the library tokenizers
    target_tokenizer.json
    config.json             ids of start and end, the longest output
    README.md               the model card

docs/interop.md shows a greedy search of a few dozen lines over these files.

Shapes: B batch, S source positions, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from transduce.core.atomic import write_json, write_text
from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.core.padded import Padded
from transduce.data.collate import padded
from transduce.interop.model_card import Languages, model_card
from transduce.interop.onnx_graphs import onnx_graphs
from transduce.interop.parity import EngineOutput, in_batches
from transduce.interop.text_to_text import never_chosen, positions_of, target_of, text_problems
from transduce.models.protocols import Steps

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline


def export_onnx(pipeline: "Pipeline", folder: Path, languages: Languages) -> Path:
    """Writes the model into `folder`, which exists and is empty, and returns it.

    Raises:
        InputError: a library is missing; this is no model that writes text word by word from a text; PyTorch cannot
            export it.
    """
    _check(pipeline)
    tokenizers, search = pipeline.task.tokenizers, pipeline.recipe.search
    target = target_of(pipeline)
    never_V = never_chosen(target.tokenizer.size, target.unwritten)
    written = onnx_graphs(pipeline.model, never_V, positions_of(pipeline))
    for name, program in (("encoder", written.encoder), ("decoder_step", written.step)):
        program.save(str(folder / f"{name}.onnx"), external_data=False)
    for side in ("source", "target"):
        write_text(folder / f"{side}_tokenizer.json", tokenizers[side].to_json())
    config = {
        "name": pipeline.recipe.name,
        "source_end": tokenizers["source"].end,
        "start": target.start,
        "end": target.end,
        "longest_source": pipeline.task.readable,
        "max_length_factor": search.max_length_factor,
        "max_length_offset": search.max_length_offset,
    }
    write_json(folder / "config.json", config)
    write_text(folder / "README.md", model_card(pipeline, languages))
    return folder


def _check(pipeline: "Pipeline") -> None:
    problems = list(text_problems(pipeline))
    if not isinstance(pipeline.model, Steps):
        kind = pipeline.recipe.model.kind  # type: ignore[attr-defined]
        problems.append(f'model.kind = "{kind}" does not write word by word, so it has no decoder step.')
    if problems:
        raise InputError(f"ONNX: {problem}" for problem in problems)


class OnnxEngine:
    """Runs exported graphs with onnxruntime, with our tokenizers.

    Args:
        pipeline: of the model that was exported.
        folder: what `export_onnx` wrote.
    """

    name = "onnxruntime"

    def __init__(self, pipeline: "Pipeline", folder: Path) -> None:
        self.source, self.target = pipeline.task.tokenizers["source"], pipeline.task.tokenizers["target"]
        self.steps = OnnxSteps(folder, torch.get_num_threads())

    def greedy(self, texts: Sequence[str], longest: int) -> list[EngineOutput]:
        return in_batches(self.source.encode(texts), lambda batch: self._batch(batch, longest))

    def _batch(self, sources: list[list[int]], longest: int) -> Iterator[EngineOutput]:
        rows = [np.asarray(ids, np.int32) for ids in sources]
        memory, state = self.steps.start(padded(rows, self.source.pad, end=self.source.end), len(sources))
        token_B = torch.full((len(sources),), self.target.start)
        outputs: list[list[int]] = [[] for _ in sources]
        scores, ended = [0.0] * len(sources), [False] * len(sources)
        for _ in range(longest):
            log_BV, state = self.steps.step(token_B, memory, state)
            best_B, token_B = log_BV.max(1)
            for row, token in enumerate(token_B.tolist()):
                if not ended[row]:
                    scores[row] += float(best_B[row])
                    ended[row] = token == self.target.end
                    outputs[row] += [] if ended[row] else [token]
            if all(ended):
                break
        for written, score in zip(outputs, scores, strict=True):
            yield EngineOutput(tuple(self.target.tokens(written)), self.target.decode(written), score)


class OnnxSteps:
    """Both graphs, run by onnxruntime: what `transduce.models.protocols.Steps` asks of a model, for any search."""

    def __init__(self, folder: Path, threads: int = 1) -> None:
        runtime = library("onnxruntime", "comparing with onnxruntime", "onnx")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        self._encoder, self._step = (
            runtime.InferenceSession(str(folder / f"{name}.onnx"), options, providers=["CPUExecutionProvider"])
            for name in ("encoder", "decoder_step")
        )
        self._outputs = [each.name for each in self._encoder.get_outputs()]
        self._reads = {each.name for each in self._step.get_inputs()}
        self._memory = [name for name in self._outputs if name.startswith("memory")]
        self._state = [name for name in self._outputs if name.startswith("state")]

    def start(self, source: Padded | None, rows: int) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Memory and state before the first token."""
        assert source is not None
        found = self._encoder.run(None, {"source": source.values.numpy(), "lengths": source.lengths.numpy()})
        tensors = {name: torch.from_numpy(each) for name, each in zip(self._outputs, found, strict=True)}
        return tuple(tensors[name] for name in self._memory), tuple(tensors[name] for name in self._state)

    def step(
        self, token_B: Tensor, memory: Sequence[Tensor], state: Sequence[Tensor]
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Log-probabilities (B, V) of the token after `token_B`, and the new state."""
        names = ("token", *self._memory, *self._state)
        given: dict[str, Any] = dict(zip(names, (token_B, *memory, *state), strict=True))
        feed = {name: each.numpy() for name, each in given.items() if name in self._reads}
        found = [torch.from_numpy(each) for each in self._step.run(None, feed)]
        return found[0], tuple(found[1:])
