"""A model's encoder, and one step of its decoder, as ONNX graphs.

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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transduce.attention.positions import Sinusoidal
from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.core.padded import Padded, leaves, map_tree
from transduce.kernels.native import left_out

SIZES = ((3, 7, 4), (5, 11, 6))  # rows, source positions and steps of two trials, none of which is alike, or 0 or 1
READS = 5  # a token


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
