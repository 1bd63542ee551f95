"""A Transformer with CTC output, which writes all words at once in a single pass (Libovický and Helcl 2018).

Each encoder state is split into several places, and each place becomes a token or a blank. `transduce.layers.ctc` sums
over all alignments of an output. So the model need not predict the length beforehand, and a word that shifts by one
place costs little. The other model that writes all words at once, `non_autoregressive`, needs several lengths and
iterations for this. Both should be trained on a teacher's translations, which vary less (`transduce distill`).

Shapes: B batch, S source positions, P places, D width, V vocabulary.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from transduce.attention import masks
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.kernels.matmul import Linear
from transduce.layers.embedding import Tied
from transduce.layers.stack import NoncausalStackConfig, Stack
from transduce.layers.subsampling import SubsamplingConfig, embedded, make_front_ends


class CtcConfig(NoncausalStackConfig, SubsamplingConfig):
    """The settings of `StackConfig`, the numbers of layers and of places, and how frames are subsampled."""

    kind: Literal["ctc"] = "ctc"
    encoder_layers: int = Field(default=3, ge=1)
    """Number of encoder layers."""
    decoder_layers: int = Field(default=3, ge=1)
    """Number of decoder layers."""
    tied: Tied = Field(default="all")
    """Which share a matrix. all: source, target and output, if the vocabulary is joint. output: target and output."""
    places: int = Field(default=2, ge=1, le=100)
    """Places per source token, or per position of subsampled frames. They limit the output's length; equal neighbouring
    tokens need one more in between."""


class Ctc(nn.Module):
    """Implements `Encodes` and `Aligns` (see `transduce.models.protocols`)."""

    Config = CtcConfig

    def __init__(self, config: CtcConfig, specs: Specs) -> None:
        super().__init__()
        self.places = config.places
        front_ends = make_front_ends(specs, config.d_model, config.tied, config)
        _, self.source_embedding, self.output = front_ends
        self.encoder = Stack(config, config.encoder_layers, side="encoder")
        self.split = Linear(config.d_model, config.places * config.d_model)
        self.decoder = Stack(config, config.decoder_layers, cross=True, side="decoder")

    def encode(self, source: Padded) -> Padded:
        """Source ids (B, S), or frames (B, S, F), -> states (B, S', D)."""
        read = embedded(self.source_embedding, source)
        return Padded(self.encoder.encode(read.values, read.mask()), read.lengths)

    def align(self, source: Padded, min_places: Tensor | None = None) -> Padded:
        """Logits (B, P, V) of each place. If `min_places` (B,) asks for more places, the last one is repeated."""
        encoded = self.encode(source)
        split_BPD = self.split(encoded.values).view(len(source.lengths), -1, encoded.values.shape[-1])
        own_B = self.places * encoded.lengths
        count_B = own_B if min_places is None else torch.maximum(own_B, min_places)
        if min_places is not None and bool((min_places > own_B).any()):
            split_BPD = _lengthened(split_BPD, own_B, count_B)
        real_BP = Padded(split_BPD, count_B).mask()
        decoded_BPD, _ = self.decoder.extend(
            split_BPD,
            None,
            self.decoder.keys_values(encoded.values),
            masks.padding(encoded.mask()),
            masks.padding(real_BP),
            real_BP,
        )
        return Padded(self.output.logits(decoded_BPD), count_B)


def _lengthened(split_BPD: Tensor, own_B: Tensor, count_B: Tensor) -> Tensor:
    """Rows of at least `count_B` places, made by repeating each row's last place."""
    place_P = torch.arange(int(count_B.max()), device=own_B.device)
    place_BP = torch.minimum(place_P, own_B[:, None] - 1)
    return split_BPD.gather(1, place_BP[..., None].expand(-1, -1, split_BPD.shape[-1]))
