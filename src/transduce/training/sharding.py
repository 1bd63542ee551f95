"""Training with the weights, gradients and optimizer states of a model split over processes (FSDP2; ZeRO stage 3).

Each process keeps one part of every tensor. A block's weights are gathered for its forward and backward pass, and let
go after each; its gradients are summed into the parts (Rajbhandari et al. 2020; torch's `fully_shard`). The whole model
is in memory when training begins, while it is validated, and when it ends; optimizer states only when it begins.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.distributed.tensor import DTensor, distribute_tensor

from transduce.core.errors import InputError
from transduce.layers.block import Block
from transduce.models.protocols import PredictsByProduct
from transduce.recipe.training import TrainingConfig
from transduce.training.average import MovingAverage
from transduce.training.checkpoint import TrainingState
from transduce.training.optimizer import Optimizers

ENTRIES = ("before_logits", "extend")  # of models, by which objectives call them besides forward
BLOCK_ENTRIES = ("cross_keys_values",)  # of blocks, besides forward


def check_shardable(config: TrainingConfig, model: nn.Module) -> None:
    """Raises InputError where training.parallel = "fsdp" cannot train this model, or not with this optimizer."""
    problems = []
    if not isinstance(model, PredictsByProduct):
        problems.append(
            f'training.parallel = "fsdp" is for models that predict the next token; {type(model).__name__} does not: '
            'use "ddp".'
        )
    first = [id(next(block.parameters())) for block in model.modules() if isinstance(block, Block)]
    if len({*first}) < len(first):
        problems.append(
            'model.shared_layers: not with training.parallel = "fsdp", which splits each block by itself: use "ddp".'
        )
    if config.optimizer == "muon":
        problems.append(
            'training.optimizer = "muon" needs whole matrices, which no process has with training.parallel = "fsdp": '
            'use "adamw", or training.parallel = "ddp".'
        )
    if problems:
        raise InputError(problems)


def sharded(trained: TrainingState, config: TrainingConfig) -> TrainingState:
    """The same training with each tensor split over the processes of its group.

    Raises:
        InputError: see `check_shardable`.
    """
    check_shardable(config, trained.model)
    whole = {name: each.detach().clone() for name, each in trained.tensors().items()}
    model = trained.model
    device = next(model.parameters()).device
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view")  # keys and values, never changed
    mesh = init_device_mesh(device.type, (trained.group.world,))
    for block in (each for each in model.modules() if isinstance(each, Block)):
        fully_shard(block, mesh=mesh)
        _register(block, BLOCK_ENTRIES)
    fully_shard(model, mesh=mesh, reshard_after_forward=False)
    _register(model, ENTRIES)
    for each in _units(model):
        each.set_gradient_divide_factor(1.0)  # a sum over processes, as everywhere; see runtime/process_group.py
        each.set_force_sum_reduction_for_comms(True)
    group = replace(trained.group, lockstep=True)
    average = MovingAverage(model, config.average, in_place=True)
    kept = replace(trained, optimizers=Optimizers(model, config), average=average, group=group)
    kept.restore(_split(whole, model))
    return kept


def unsharded(trained: TrainingState, fresh: TrainingState) -> TrainingState:
    """`fresh`, a training of the same recipe, with the whole tensors of a sharded one; all processes call this."""
    fresh = replace(fresh, progress=trained.progress, group=trained.group)
    tensors = trained.tensors()
    if trained.group.first:
        fresh.restore(tensors)
    return fresh


@contextmanager
def gathered_weights(model: nn.Module) -> Iterator[None]:
    """Inside, each process has the whole model, as plain tensors; nothing is to be trained there."""
    units = _units(model)
    for each in units:
        each.set_reshard_after_forward(False, recurse=False)
        each.unshard()
    try:
        yield
    finally:
        for each in units:
            each.reshard()
            each.set_reshard_after_forward(isinstance(each, Block), recurse=False)


def _units(model: nn.Module) -> list[FSDPModule]:
    return [each for each in model.modules() if isinstance(each, FSDPModule)]


def _register(module: nn.Module, names: tuple[str, ...]) -> None:
    for name in names:
        if hasattr(module, name):
            register_fsdp_forward_method(module, name)


def _split(tensors: Mapping[str, Tensor], model: nn.Module) -> dict[str, Tensor]:
    """Each tensor that is of a parameter's shape, split as that is; without a word to other processes."""
    parameters: dict[str, Tensor] = dict(model.named_parameters())
    found = {}
    for key, tensor in tensors.items():
        part, _, name = key.partition("/")
        like = parameters.get(name.rpartition("/")[0] if part == "optimizer" else name)
        fits = part != "carried" and isinstance(like, DTensor) and tensor.shape == like.shape
        found[key] = _like(tensor, like) if fits else tensor  # type: ignore[arg-type]
    return found


def _like(tensor: Tensor, like: DTensor) -> Tensor:
    return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)
