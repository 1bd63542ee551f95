"""Self-attention contains convolution (Cordonnier et al. 2020, theorem 1).

A head that scores pixels only by their position relative to the query, and prefers one position, reads that pixel: it
shifts the image. A layer with one such head for each pixel of a kernel, and the kernel's slices as the heads' values,
computes the convolution.

    e_h(query, key) = v_h . r(key - query),   v_h = -alpha_h (1, -2 D_h1, -2 D_h2),   r(d) = (|d|^2, d1, d2)
                    = -alpha_h |d - D_h|^2 + a constant                                          (equation 8)

Shapes: B batch, C and O channels in and out, Y and X height and width of the image, N = Y X queries, K keys (with the
border's pixels), H heads, R = 3 coordinates of r.

`Quadratic` are the positions of such a layer: H heads, T queries and S keys, which count cells row by row.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.attention.capture import Role, active_record
from transduce.attention.normalizers import softmax
from transduce.attention.relative import Relative
from transduce.core.errors import InputError

SHARP = 50.0  # the nearest wrong pixel of a grid then has the weight exp(-50), which vanishes beside 1 in fp32


class QuadraticPositions(nn.Module):
    """Scores that depend only on where the key lies relative to the query: a Gaussian around each head's centre.

    Args:
        heads: H.
        spread: standard deviation of the initial centres, in pixels (sqrt(2) in the paper).
    """

    def __init__(self, heads: int, spread: float = 2**0.5) -> None:
        super().__init__()
        self.centre_H2 = nn.Parameter(spread * torch.randn(heads, 2))
        """Delta, in pixels down and to the right of the query."""
        self.alpha_H = nn.Parameter(torch.ones(heads))
        """Sharpness of each head: the Gaussian has a variance of 1 / (2 alpha), in square pixels."""

    def forward(self, query_N2: Tensor, key_K2: Tensor) -> Tensor:
        """Scores e (H, N, K) for queries and keys at these rows and columns."""
        return quadratic_scores(self.centre_H2, self.alpha_H, query_N2, key_K2)


class PixelAttention(nn.Module):
    """Multi-head self-attention over pixels with quadratic positions (W_qry = W_key = 0 in the paper).

        output = sum_h softmax(e_h) x W_h + b,   W_h the product of head h's W_val and its slice of W_out

    Args:
        channels: C.
        out_channels: O.
        heads: H.
        border: width of the zero padding around the image, which can be attended to as well.
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
    """An attention layer that computes the same as `convolution`, with one head for each pixel of the kernel.

    The output has the size of the image. A convolution with less padding than that requires gives the interior of this
    output. At the border, the layer reads zeros if the convolution pads with zeros. For "replicate" padding no border
    is needed, because the repeated pixel is the one nearest to the position outside the image.

    Raises:
        InputError: the convolution has a stride or groups, a kernel of even size, circular or reflecting padding, or
            more padding than "same".
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
        problems.append(f"the kernel must have a middle pixel, but {size[0]} x {size[1]} has none.")
    if convolution.padding_mode not in ("zeros", "replicate"):
        problems.append(f'padding_mode must be "zeros" or "replicate", not "{convolution.padding_mode}".')
    if not isinstance(padding, str) and any(wide > reach for wide, reach in zip(padding, same, strict=True)):
        problems.append(f"padding {padding} makes the image larger; this kernel needs {tuple(same)}.")
    if problems:
        raise InputError([f"Attention cannot express this convolution: {problem}" for problem in problems])


class Quadratic(Relative):
    """Each head attends to the cells around its centre D, which is a shift relative to the query.

        e_ts = .. + v . r,   v = -a (1, -2 D_1, -2 D_2),   r = (|d|^2, d_1, d_2)        (equation 9)

    d is the position of the key relative to the query, in rows and columns. Up to a constant, which the softmax
    ignores, v . r is -a |d - D|^2. With a large a, all weight is on one cell, and H heads are a convolution over H
    cells (theorem 1). If the projections of queries are 0, content has no effect.

    Args:
        heads: H.
        columns: the width of the grid, which may have any number of rows.
    """

    def __init__(self, heads: int, columns: int) -> None:
        super().__init__(heads, head_width=0, causal=False)
        self.columns = columns
        self.centre_H2 = nn.Parameter(torch.randn(heads, 2))
        self.sharpness_H = nn.Parameter(torch.ones(heads))
        """a: 1 / (2 variance) of the Gaussian window."""

    def bias(self, query_BHTE: Tensor, keys: int, offset: int) -> Tensor:
        """(H, T, S)."""
        return self.scores(query_BHTE.shape[2], keys, offset)

    def scores(self, queries: int, keys: int, offset: int = 0) -> Tensor:
        """(H, T, S): v . r for the cells offset .. offset + T - 1 as queries and 0 .. S - 1 as keys."""
        return quadratic_scores(self.centre_H2, self.sharpness_H, self._cells(offset, queries), self._cells(0, keys))

    def weights(self, queries: int, keys: int) -> Tensor:
        """Weights alpha (H, T, S) from positions only, without content."""
        return self.scores(queries, keys).softmax(-1)

    def _cells(self, first: int, count: int) -> Tensor:
        """(N, 2): row and column."""
        cell_N = torch.arange(first, first + count, device=self.centre_H2.device)
        return torch.stack((cell_N // self.columns, cell_N % self.columns), -1).to(self.centre_H2.dtype)


def quadratic_scores(centre_H2: Tensor, alpha_H: Tensor, query_N2: Tensor, key_K2: Tensor) -> Tensor:
    """e_h = v_h . r(key - query), (H, N, K), for queries and keys at these rows and columns (equation 8).

    v = -a (1, -2 D_1, -2 D_2),   r(d) = (|d|^2, d_1, d_2)
    """
    offset_NK2 = key_K2 - query_N2[:, None]
    relative_NK3 = torch.cat((offset_NK2.square().sum(-1, keepdim=True), offset_NK2), -1)
    vector_H3 = -alpha_H[:, None] * torch.cat((torch.ones_like(alpha_H)[:, None], -2 * centre_H2), -1)
    return torch.einsum("hr,nkr->hnk", vector_H3, relative_NK3)
