"""A second output on the encoder of an encoder-decoder, trained with CTC beside the decoder (Kim et al. 2017).

    loss = (1 - w) (attention's cross-entropy) + w (-log p_ctc(y | x))         w = `ctc_weight`

CTC aligns monotonically, which teaches the encoder and the attention above it where in the speech each token is.
"""

from pydantic import Field

from transduce.core.errors import InputError
from transduce.data.columns import Specs
from transduce.kernels.matmul import Linear
from transduce.layers.subsampling import SubsamplingConfig


class JointCtcConfig(SubsamplingConfig):
    """The settings of an encoder that reads frames, in a model with a decoder."""

    ctc_weight: float = Field(default=0.0, ge=0, lt=1)
    """Where the source is frames: weight w of CTC on the encoder, and 1 - w of attention. 0 = attention alone."""


def make_ctc_output(config: JointCtcConfig, specs: Specs, width: int) -> Linear | None:
    """The projection of encoder states (.., width) to logits of the target tokens and the blank; None without CTC.

    Raises:
        InputError: the source is no frames, and CTC has a weight.
    """
    if not config.ctc_weight:
        return None
    if specs.source is None or specs.source.kind != "frames":
        raise InputError("model.ctc_weight is for a source of frames, and this task reads tokens. Leave it out.")
    return Linear(width, specs.target.size)
