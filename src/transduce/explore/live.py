"""Models inside the page: what `explore/page/engine` runs, so that the file that works offline answers new texts too.

The page reads the model file as it is, but for its matrices, of which each row is stored in 8 bits with a scale:

    W_oi = t_o w_oi,   w_oi a whole number of -127 to 127
"""

import base64
import tempfile
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from transduce.core.model_file import NAME, ModelFile, lasting_tensors, save_model_file
from transduce.data.columns.packed import pack
from transduce.kernels.matmul import quantised
from transduce.pipeline.pipeline import EnsemblePipeline, Pipeline

MOST = 10_000_000  # weights of a model that a page holds
KINDS = ("transformer", "transformer_decoder", "rnn", "rnn_decoder", "ctc")
TASKS = ("translation", "language_modelling")


def live(pipeline: Pipeline) -> str | None:
    """The model for the page in base64; None for one that the engine does not run, or one of more than `MOST` weights.

    The engine looks closer, and says what it cannot run; the page then shows what was computed in advance.
    """
    table = pipeline.recipe.to_table()
    weights = lasting_tensors(pipeline.model)
    runs = table["model"]["kind"] in KINDS and table["task"]["kind"] in TASKS
    if not runs or isinstance(pipeline, EnsemblePipeline) or sum(each.numel() for each in weights.values()) > MOST:
        return None
    return base64.b64encode(stored_model(pipeline, in_int8)).decode()


def stored_model(pipeline: Pipeline, store: Callable[[dict[str, Tensor]], dict[str, Tensor]]) -> bytes:
    """The model file with its weights as `store` gives them, and without what only training wants."""
    tokenizers, columns = pack(pipeline.task.columns)
    weights = store(lasting_tensors(pipeline.model))
    file = ModelFile(weights, pipeline.recipe.to_table(), tokenizers, {}, {}, columns=columns)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / NAME
        save_model_file(path, file)
        return path.read_bytes()


def in_int8(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each matrix in int8, with the scale of each of its rows under its name and ".scale"; all others in fp32."""
    found = dict[str, Tensor]()
    for name, weight in weights.items():
        if weight.ndim == 2:
            found[name], found[f"{name}.scale"] = quantised(weight.float())
        else:
            found[name] = weight.float()
    return found
