"""Where a model computes: on the processor or on a GPU."""

import os
from typing import TYPE_CHECKING

from transduce.core.errors import InputError
from transduce.core.registry import suggest

if TYPE_CHECKING:
    import torch

NAMES = ("auto", "cpu", "cuda", "mps")
VARIABLE = "TRANSDUCE_DEVICE"  # what "auto" means in this process and in those that it starts


def resolve_device(device: "str | torch.device" = "auto") -> "torch.device":
    """The device of this name; "auto" is what `TRANSDUCE_DEVICE` says, else the first GPU of CUDA, else the processor.

    Raises:
        InputError: no device has this name, or none of its kind is here.
    """
    import torch

    name = str(device)
    if name == "auto":
        name = os.environ.get(VARIABLE) or "auto"
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, colon, number = name.partition(":")
    if kind not in NAMES[1:] or (colon and not number.isdecimal()):
        near = suggest(kind, list(NAMES))
        raise InputError(
            f'device = "{name}": expected one of {", ".join(NAMES)}, or a numbered GPU such as cuda:1.{near}'
        )
    if kind == "cuda" and not torch.cuda.is_available():
        why = "there is no CUDA device" if torch.version.cuda else "this PyTorch was built without CUDA"
        raise InputError(f"{name}: {why}; use cpu, or auto, which takes what there is.")
    if kind == "cuda" and number and int(number) >= torch.cuda.device_count():
        raise InputError(f"{name}: {torch.cuda.device_count()} CUDA device(s) found, numbered from 0.")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise InputError(f"{name}: there is no Apple GPU; use cpu, or auto, which takes what there is.")
    return torch.device(name)


def use_device(device: str) -> None:
    """Make "auto" mean this device from now on, also in processes that are started, if it is here.

    Raises:
        InputError: as `resolve_device`.
    """
    if device != "auto":
        os.environ[VARIABLE] = str(resolve_device(device))


def device_for(precision: str, device: "str | torch.device") -> "torch.device":
    """The device for products of this precision, where "auto" is the processor for those of 8 bits.

    Raises:
        InputError: as `resolve_device`; 8-bit products on a GPU.
    """
    if precision != "int8":
        return resolve_device(device)
    if str(device) not in ("auto", "cpu"):
        raise InputError(f'precision = "int8": 8-bit products run only on device = "cpu"; got "{device}".')
    return resolve_device("cpu")
