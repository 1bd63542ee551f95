"""Self-attention contains convolution (Cordonnier et al. 2020, theorem 1).

A head that knows only how far away a pixel is, and prefers one distance, reads that pixel: a shift of the image. As
many heads as a kernel has pixels, each with its own slice of the kernel as its values, are the convolution.

    e_h(query, key) = v_h . r(key - query),   v_h = -alpha_h (1, -2 D_h1, -2 D_h2),   r(d) = (|d|^2, d1, d2)
                    = -alpha_h |d - D_h|^2 + a constant                                          (equation 8)

Shapes: B batch, C and O channels in and out, Y and X height and width of the image, N = Y X queries, K keys (with the
border's pixels), H heads, R = 3 coordinates of r.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.attention.capture import Role, active_record
from transduce.attention.grid import quadratic_scores
from transduce.attention.normalizers import softmax
from transduce.core.errors import InputError

SHARP = 50.0  # the nearest wrong pixel of a grid then weighs exp(-50), which fp32 does not see beside 1


class QuadraticPositions(nn.Module):
    """Scores by where a key lies from the query, and by nothing else: a Gaussian around each head's own centre.

    Args:
        heads: H.
        spread: standard deviation, in pixels, of where the centres start (the paper's is sqrt(2)).
    """

    def __init__(self, heads: int, spread: float = 2**0.5) -> None:
        super().__init__()
        self.centre_H2 = nn.Parameter(spread * torch.randn(heads, 2))
        """Delta, in pixels down and to the right of the query."""
        self.alpha_H = nn.Parameter(torch.ones(heads))
        """How sharply a head looks; a variance of 1 / (2 alpha) pixels."""

    def forward(self, query_N2: Tensor, key_K2: Tensor) -> Tensor:
        """e (H, N, K) from where queries and keys lie, in rows and columns."""
        return quadratic_scores(self.centre_H2, self.alpha_H, query_N2, key_K2)


class PixelAttention(nn.Module):
    """Multi-head self-attention over the pixels of an image by quadratic positions (the paper's W_qry = W_key = 0).

        output = sum_h softmax(e_h) x W_h + b,   W_h the product of head h's W_val and its slice of W_out

    Args:
        channels: C.
        out_channels: O.
        heads: H.
        border: pixels of zeros around the image, which can be looked at as well, as a convolution's padding is.
    """

    role: Role = "self"

    def __init__(self, channels: int, out_channels: int, heads: int, border: int = 0) -> None:
        super().__init__()
        self.positions = QuadraticPositions(heads)
        self.border = border
        self.weight_HCO = nn.Parameter(torch.randn(heads, channels, out_channels) * (heads * channels) ** -0.5)
        self.bias_O = nn.Parameter(torch.zeros(out_channels))

    def forward(self, image_BCYX: Tensor) -> Tensor:
        """(B, C, Y, X) -> (B, O, Y, X)."""
        height, width = image_BCYX.shape[-2:]
        alpha_HNK = softmax(self.positions(_grid(image_BCYX, 0), _grid(image_BCYX, self.border)), None)
        record = active_record()
        if record is not None:
            record.take(self, alpha_HNK.expand(len(image_BCYX), -1, -1, -1))
        pixel_BKC = F.pad(image_BCYX, [self.border] * 4).flatten(2).mT
        output_BNO = torch.einsum("hnk,bkc,hco->bno", alpha_HNK.to(image_BCYX.dtype), pixel_BKC, self.weight_HCO)
        return torch.unflatten((output_BNO + self.bias_O).mT, -1, (height, width))


def from_convolution(convolution: nn.Conv2d) -> PixelAttention:
    """A layer that computes what `convolution` does, with a head for each pixel of the kernel.

    Its output is as large as the image; a convolution with less padding than that takes gives the interior of it.
    At the border zeros are read where the convolution pads with zeros. Where it pads with "replicate" nothing has to
    be added: of the pixels there are, the one it repeats is the nearest to the place outside.

    Raises:
        InputError: stride, groups, a kernel of even size, padding that wraps or reflects, more padding than "same".
    """
    _refuse(convolution)
    kernel_OCYX = convolution.weight.detach()
    steps = [_shifts(size, step) for size, step in zip(kernel_OCYX.shape[2:], convolution.dilation, strict=True)]
    centre_H2 = torch.cartesian_prod(*steps)
    border = int(centre_H2.max()) if convolution.padding_mode == "zeros" else 0
    layer = PixelAttention(kernel_OCYX.shape[1], kernel_OCYX.shape[0], len(centre_H2), border).to(kernel_OCYX)
    with torch.no_grad():
        layer.positions.centre_H2.copy_(centre_H2)
        layer.positions.alpha_H.fill_(SHARP)
        layer.weight_HCO.copy_(kernel_OCYX.flatten(2).permute(2, 1, 0))
        if convolution.bias is not None:
            layer.bias_O.copy_(convolution.bias)
    return layer


def _shifts(size: int, step: int) -> Tensor:
    """Where a kernel of `size` pixels, `step` apart, looks from its middle."""
    return torch.arange(-(size // 2), size // 2 + 1) * step


def _grid(image_BCYX: Tensor, border: int) -> Tensor:
    """(N, 2): row and column of each pixel, those of a border around the image as well."""
    sides = (torch.arange(-border, size + border).to(image_BCYX) for size in image_BCYX.shape[-2:])
    return torch.cartesian_prod(*sides)


def _refuse(convolution: nn.Conv2d) -> None:
    size, padding = convolution.kernel_size, convolution.padding
    same = [step * (side // 2) for side, step in zip(size, convolution.dilation, strict=True)]
    problems = []
    if max(convolution.stride) > 1 or convolution.groups > 1:
        problems.append(f"stride and groups must be 1, not {convolution.stride} and {convolution.groups}.")
    if any(side % 2 == 0 for side in size):
        problems.append(f"the kernel must have a middle pixel, and {size[0]} x {size[1]} has none.")
    if convolution.padding_mode not in ("zeros", "replicate"):
        problems.append(f'padding_mode must be "zeros" or "replicate", not "{convolution.padding_mode}".')
    if not isinstance(padding, str) and any(wide > reach for wide, reach in zip(padding, same, strict=True)):
        problems.append(f"padding {padding} makes the image larger; this kernel needs {tuple(same)}.")
    if problems:
        raise InputError([f"This convolution has no equal in attention: {problem}" for problem in problems])
