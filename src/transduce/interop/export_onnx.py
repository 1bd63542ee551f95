"""A model from text to text as ONNX files, which onnxruntime runs in any language, without PyTorch.

    encoder.onnx            see `transduce.interop.export_onnx`
    decoder_step.onnx
    source_tokenizer.json   for the library tokenizers
    target_tokenizer.json
    config.json             ids of start and end, the longest output
    README.md               the model card

docs/interop.md shows a greedy search of a few dozen lines over these files.

A model's encoder, and one step of its decoder, as ONNX graphs.

    encoder.onnx         source (B, S), lengths (B,)      ->  memory.., state..
    decoder_step.onnx    token (B,), memory.., state..    ->  log_probabilities (B, V), next_state..

What the decoder reads and keeps are trees of tensors (`transduce.models.protocols.Steps`). Each tensor of them is an
input or output of its own, named by its place: `state_0_key` is the key-value cache of the first block. An axis whose
length depends on the batch, the source or the step is free in the graphs; the step itself is found out by trying.

Shapes: B batch, S source positions, V vocabulary.
"""

import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from transduce.attention.positions import Sinusoidal
from transduce.core.atomic import write_json, write_text
from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.core.padded import Padded, leaves, map_tree
from transduce.data.collate import padded
from transduce.interop.model_card import Languages, model_card
from transduce.interop.parity import EngineOutput, in_batches
from transduce.interop.text_to_text import never_chosen, positions_of, target_of, text_problems
from transduce.kernels.native import left_out
from transduce.models.protocols import Steps

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline


SIZES = ((3, 7, 4), (5, 11, 6))  # rows, source positions and steps of two trials, none of which is alike, or 0 or 1
READS = 5  # a token


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
        "longest_source": pipeline.task.max_source_length,
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


class OnnxGraphs(NamedTuple):
    """Programs of `torch.onnx`, ready to be saved."""

    encoder: Any
    step: Any


def onnx_graphs(model: Any, never_V: Tensor, longest: int) -> OnnxGraphs:
    """The two graphs of a model that implements `Steps`.

    Args:
        model: on the processor, in fp32; it is left as it is.
        never_V: added to the log-probabilities.
        longest: positions for which sinusoids are stored.

    Raises:
        InputError: a library is missing; PyTorch cannot export what the model does.
    """
    library("onnxscript", "exporting to ONNX", "onnx")
    plain = without_kernels(model, longest)
    with _traceable():
        memory, state = _trial(plain, *SIZES[0])
        other_memory, other_state = _trial(plain, *SIZES[1])
        names = named(memory, "memory"), named(state, "state")
        outputs = [*names[0], *names[1]]
        rows, positions, _ = SIZES[0]
        source_BS, lengths_B = _source(rows, positions)
        free = torch.export.Dim.DYNAMIC
        encoder = _export(
            _Encoder(plain), (source_BS, lengths_B), ({0: free, 1: free}, {0: free}), ["source", "lengths"], outputs
        )
        step = _export(
            _Step(plain, memory, state, never_V),
            (torch.full((rows,), READS), leaves(memory), leaves(state)),
            ({0: free}, _free_axes(memory, other_memory), _free_axes(state, other_state)),
            ["token", *outputs],
            ["log_probabilities", *(f"next_{name}" for name in names[1])],
        )
    return OnnxGraphs(encoder, step)


def without_kernels(model: nn.Module, longest: int) -> nn.Module:
    """A copy that computes by torch's operators alone, each sentence with keys and values of its own."""
    plain = copy.deepcopy(model).eval()
    for module in plain.modules():
        for name, value in (("packed", None), ("fused", None), ("can_share", False)):
            if hasattr(module, name):
                setattr(module, name, value)
        if isinstance(module, Sinusoidal):
            module.table_TD = module.encoding(max(longest, len(module.table_TD)), module.width, module.first)
    return plain


def named(tree: Any, prefix: str) -> list[str]:
    """A name for each tensor of a tree, in the order of `transduce.core.padded.leaves`."""
    if tree is None:
        return []
    if isinstance(tree, Tensor):
        return [prefix]
    if isinstance(tree, dict):
        branches = list(tree.items())
    else:
        branches = list(zip(getattr(tree, "_fields", range(len(tree))), tree, strict=True))
    return [name for key, branch in branches for name in named(branch, f"{prefix}_{key}")]


def filled(tree: Any, tensors: Any) -> Any:
    """The tree with these tensors in place of its own, in their order."""
    given = iter(tensors)
    return map_tree(lambda _: next(given), tree)


class _Encoder(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, source_BS: Tensor, lengths_B: Tensor) -> tuple[Tensor, ...]:
        return tuple(leaves(self.model.start(Padded(source_BS, lengths_B), source_BS.shape[0])))


class _Step(nn.Module):
    """memory, state: trees like those that it is given, from which their form is known."""

    def __init__(self, model: Any, memory: Any, state: Any, never_V: Tensor) -> None:
        super().__init__()
        self.model, self._memory, self._state = model, memory, state
        self.register_buffer("never_V", never_V)

    def forward(self, token_B: Tensor, memory: list[Tensor], state: list[Tensor]) -> tuple[Tensor, ...]:
        scores_BV, after = self.model.step(token_B, filled(self._memory, memory), filled(self._state, state))
        return (scores_BV + self.never_V, *leaves(after))


def _source(rows: int, positions: int) -> tuple[Tensor, Tensor]:
    """Ids, and lengths of which the last is shorter."""
    lengths_B = torch.full((rows,), positions)
    lengths_B[-1] -= 1
    return torch.full((rows, positions), READS), lengths_B


@torch.no_grad()
def _trial(model: Any, rows: int, positions: int, steps: int) -> tuple[Any, Any]:
    """Memory and state after so many steps."""
    memory, state = model.start(Padded(*_source(rows, positions)), rows)
    for _ in range(steps):
        _, state = model.step(torch.full((rows,), READS), memory, state)
    return map_tree(_laid_out, memory), map_tree(_laid_out, state)


def _laid_out(tensor: Tensor) -> Tensor:
    if not isinstance(tensor, Tensor):
        raise InputError("ONNX: this kind of model keeps more than tensors between steps.")
    return tensor.clone(memory_format=torch.contiguous_format)


def _free_axes(tree: Any, other: Any) -> list[dict[int, Any]]:
    """For each tensor, the axes on which two trials differ."""
    free = torch.export.Dim.DYNAMIC
    return [
        {axis: free for axis, sizes in enumerate(zip(one.shape, two.shape, strict=True)) if len(set(sizes)) > 1}
        for one, two in zip(leaves(tree), leaves(other), strict=True)
    ]


@contextmanager
def _traceable() -> Iterator[None]:
    """No kernels of ours, no product of oneDNN, no packed weights, which need gradients off; and no chatter."""
    with ExitStack() as entered:
        entered.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        entered.enter_context(left_out())
        entered.enter_context(torch.backends.mkldnn.flags(enabled=False))
        entered.enter_context(torch.enable_grad())
        logger = logging.getLogger("torch.onnx")
        entered.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.ERROR)
        yield


def _export(model: nn.Module, given: Any, free: Any, inputs: list[str], outputs: list[str]) -> Any:
    try:
        return torch.onnx.export(
            model,
            given,
            dynamo=True,
            dynamic_shapes=free,
            input_names=inputs,
            output_names=outputs,
            verbose=False,
        )
    except Exception as error:  # whatever the exporter meets in a model
        cause = error.__cause__ or error
        said = next((line for line in str(cause).splitlines() if line.strip()), "")
        raise InputError(
            f"ONNX: PyTorch {torch.__version__} cannot export this model: {type(cause).__name__}: {said[:300]}"
        ) from error


class ExportOnnx:
    """See `transduce.interop.exports.Export`."""

    write, engine = staticmethod(export_onnx), OnnxEngine
