"""Attention as HTML for notebooks: a heat map with its words, and below it a small one for every head.

The HTML is self-contained: shapes are SVG, heads are embedded images, and there are no scripts.
"""

import base64
import struct
import zlib
from collections.abc import Sequence
from functools import cache
from html import escape
from typing import NamedTuple

import numpy as np
from torch import Tensor

from transduce.interpret.colours import RGB, ink

CELL = 22  # pixels
LETTER = 7.2  # pixels that a letter takes
LARGE = 60  # rows or columns from which a heat map is a picture without a number for each cell
SMALL = 96  # pixels of a head's longer side
FONT = "12px system-ui, sans-serif"


class Map(NamedTuple):
    """One matrix (T, S) with its labels."""

    rows: Sequence[str]
    columns: Sequence[str]
    weights: Tensor
    title: str


class Strip(NamedTuple):
    """The heads (H, T, S) of one layer, which are shown counted from 1."""

    title: str
    weights: Tensor


def drawn(large: Map, strips: Sequence[Strip]) -> str:
    """The heat map, then a row of small ones for each strip."""
    rows = "".join(
        f'<tr><th scope="row" style="font:{FONT};text-align:left">{escape(strip.title)}</th>'
        + "".join(
            f"<td>{_head(each.numpy(), f'{strip.title}, head {n}')}</td>" for n, each in enumerate(strip.weights, 1)
        )
        + "</tr>"
        for strip in strips
    )
    return f'<div style="overflow-x:auto">{heat_map(large)}<table>{rows}</table></div>'


def heat_map(drawing: Map) -> str:
    """An SVG: queries downwards, keys across, the darker the heavier; each cell tells its number on hovering."""
    weights = drawing.weights.double().numpy()
    left = 12 + LETTER * max((len(label) for label in drawing.rows), default=0)
    top = 34 + 0.75 * LETTER * max((len(label) for label in drawing.columns), default=0)
    width, height = left + CELL * len(drawing.columns) + 60, top + CELL * len(drawing.rows) + 8
    parts = [f'<text x="4" y="16" font-weight="bold">{escape(drawing.title)}</text>']
    for place, label in enumerate(drawing.columns):
        x = left + CELL * (place + 0.5)
        parts.append(f'<text transform="translate({x:.0f} {top - 6:.0f}) rotate(-45)">{escape(label)}</text>')
    for place, label in enumerate(drawing.rows):
        y = top + CELL * (place + 0.5) + 4
        parts.append(f'<text x="{left - 6:.0f}" y="{y:.0f}" text-anchor="end">{escape(label)}</text>')
    cells = _picture(weights, left, top) if max(weights.shape) > LARGE else _cells(drawing, weights, left, top)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'aria-label="{escape(drawing.title)}" style="font:{FONT};background:#fff" fill="#1d2433">'
        f"{''.join(parts)}{cells}</svg>"
    )


def _cells(drawing: Map, weights: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", left: float, top: float) -> str:
    heaviest = weights.max(initial=0.0) or 1.0
    cells = []
    for (row, column), weight in np.ndenumerate(weights):
        said = escape(f"{drawing.rows[row]} \u2192 {drawing.columns[column]}: {weight:.3f}")
        place = f'x="{left + CELL * column:.0f}" y="{top + CELL * row:.0f}"'
        size = f'width="{CELL - 1}" height="{CELL - 1}"'
        cells.append(f'<rect {place} {size} fill="{_hex(ink(weight / heaviest))}"><title>{said}</title></rect>')
    return "".join(cells)


def _picture(weights: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", left: float, top: float) -> str:
    rows, columns = weights.shape
    size = f'width="{CELL * columns}" height="{CELL * rows}" preserveAspectRatio="none"'
    return f'<image x="{left:.0f}" y="{top:.0f}" {size} style="image-rendering:pixelated" href="{png(weights)}"/>'


def _head(weights: "np.ndarray[tuple[int, ...], np.dtype[np.float32]]", said: str) -> str:
    rows, columns = weights.shape
    scale = SMALL / max(rows, columns)
    size = f'width="{max(1, round(scale * columns))}" height="{max(1, round(scale * rows))}"'
    said = escape(said)
    return f'<img {size} alt="{said}" title="{said}" style="image-rendering:pixelated" src="{png(weights)}">'


def png(weights: "np.ndarray[tuple[int, ...], np.dtype[np.floating]]") -> str:
    """A matrix as a picture of one pixel a number, in a data: address; the heaviest is the darkest."""
    rows, columns = weights.shape
    shades = np.rint(255 * weights / (weights.max(initial=0.0) or 1.0)).astype(np.uint8)
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), shades], 1).tobytes()  # each begins with "no filter"
    header = struct.pack(">IIBBBBB", columns, rows, 8, 3, 0, 0, 0)  # 8 bits a pixel, from a palette
    parts = ((b"IHDR", header), (b"PLTE", _palette()), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*part) for part in parts)
    return f"data:image/png;base64,{base64.b64encode(data).decode()}"


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


@cache
def _palette() -> bytes:
    return bytes(round(255 * channel) for shade in range(256) for channel in ink(shade / 255))


def _hex(colour: RGB) -> str:
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in colour)
