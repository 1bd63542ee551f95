"""What computes a prediction: torch, or the kernels alone, which start in a fraction of the time."""

import os
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from transduce.without_torch.translator import Translator

Engine = Literal["auto", "torch", "kernels", "ray"]
GPUS = (Path("/dev/nvidiactl"), Path("/dev/kfd"))  # of NVIDIA, of AMD


def translator_of(
    models: Sequence[Path], engine: Engine, search: Mapping[str, Any], device: str, more: bool, **how: Any
) -> "Translator | None":
    """The models without torch; None where torch is to compute, here or on a cluster.

    "auto" takes the kernels where torch is not installed, and where they give the same predictions: of Transformers
    that translate, by searches of one call, on a machine without a GPU.

    Args:
        search: keys in place of the recipe's.
        more: whether something is asked for that only torch has, such as pictures.
        how: arguments of `transduce.without_torch.translator.load`.

    Raises:
        InputError: the kernels are asked for, or torch is missing, and they cannot do it.
    """
    from transduce.core.errors import InputError
    from transduce.runtime.devices import VARIABLE

    if engine in ("torch", "ray"):
        return None
    if device == "auto":  # what it means: see `transduce.runtime.devices`
        device = "cpu" if how.get("precision") == "int8" else os.environ.get(VARIABLE) or "auto"
    decided = engine == "kernels" or find_spec("torch") is None
    gpu = device == "auto" and any(path.exists() for path in GPUS)
    if not decided and (more or gpu or device not in ("auto", "cpu")):
        return None
    from transduce.without_torch.translator import load

    try:
        if device not in ("auto", "cpu"):
            raise InputError(f'--device {device}: the kernels compute on the processor; use "cpu", or install torch.')
        return load(models, search=search, **how)
    except InputError:
        if decided:
            raise
        return None  # torch can, or says better what is wrong
