"""Attention as HTML for notebooks: a heat map with its words, and below it a small one for every head.

The HTML is self-contained: shapes are SVG, heads are embedded images, and there are no scripts.
"""

import base64
import struct
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from torch import Tensor

from transduce.core.templates import render
from transduce.interpret.colours import RGB, ink

CELL = 22  # pixels
LETTER = 7.2  # pixels that a letter takes
LARGE = 60  # rows or columns from which a heat map is a picture without a number for each cell
SMALL = 96  # pixels of a head's longer side
TEMPLATE = Path(__file__).with_name("notebook.html.jinja")

Array = np.ndarray[tuple[int, ...], np.dtype[np.floating]]


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
    """The heat map, queries downwards, keys across, the darker the heavier; then a row of small ones for each strip.

    Each cell of the heat map tells its number on hovering.
    """
    weights = large.weights.double().numpy()
    left = round(12 + LETTER * max((len(label) for label in large.rows), default=0))
    top = round(34 + 0.75 * LETTER * max((len(label) for label in large.columns), default=0))
    picture = png(weights) if max(weights.shape) > LARGE else None
    return render(
        TEMPLATE,
        map=large,
        weights=weights,
        left=left,
        top=top,
        cell=CELL,
        width=left + CELL * len(large.columns) + 60,
        height=top + CELL * len(large.rows) + 8,
        picture=picture,
        colours=[] if picture else _colours(weights),
        strips=[{"title": strip.title, "heads": [_head(each.numpy()) for each in strip.weights]} for strip in strips],
    )


def _colours(weights: Array) -> list[list[str]]:
    heaviest = weights.max(initial=0.0) or 1.0
    return [[_hex(ink(weight / heaviest)) for weight in row] for row in weights]


def _head(weights: Array) -> dict[str, int | str]:
    rows, columns = weights.shape
    scale = SMALL / max(rows, columns)
    return {"width": max(1, round(scale * columns)), "height": max(1, round(scale * rows)), "png": png(weights)}


def png(weights: Array) -> str:
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
