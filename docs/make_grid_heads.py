"""Attention learns to be a convolution: nine heads with quadratic positions imitate a 3 x 3 kernel.

    python docs/make_grid_heads.py              # trains (seconds) and writes docs/figures/grid-heads.svg
    python docs/make_grid_heads.py --seeds 10   # how often all nine heads find a pixel of their own

The heads start anywhere and wide (Cordonnier et al. 2020, section 4.2, and its figure 3), see white noise, and are to
give what a random convolution gives. Any nine independent mixtures of the nine pixels could do that; a penalty on the
size of the values makes looking at one pixel each the cheapest way.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.attention.convolution import PixelAttention

FIGURE = Path(__file__).parent / "figures" / "grid-heads.svg"
CHANNELS, OUT_CHANNELS, IMAGE, BATCH = 3, 12, 8, 16
PENALTY = 0.03  # on the values, relative to the kernel
GRID_92 = torch.cartesian_prod(torch.arange(-1.0, 2.0), torch.arange(-1.0, 2.0))


class Heads(NamedTuple):
    """Where the heads look: centres (9, 2) in pixels from the query, and their sharpness (9,)."""

    centre: Tensor
    alpha: Tensor

    def nearest(self) -> tuple[Tensor, Tensor]:
        """How far each centre is from the nearest of the kernel's pixels (9,), and which that is (9,)."""
        found = torch.cdist(self.centre, GRID_92).min(1)
        return found.values, found.indices


def train(seed: int = 0, updates: int = 500) -> tuple[Heads, Heads, float]:
    """The heads before and after, and the share of the output's variance that is still missed."""
    torch.manual_seed(seed)
    kernel = torch.randn(OUT_CHANNELS, CHANNELS, 3, 3) * (9 * CHANNELS) ** -0.5
    layer = PixelAttention(CHANNELS, OUT_CHANNELS, heads=9, border=1)
    positions = layer.positions
    with torch.no_grad():
        positions.centre_H2.copy_(torch.randn(9, 2))
        positions.alpha_H.fill_(0.5)  # wide: a head that sees no pixel of the kernel learns nothing
    before = Heads(positions.centre_H2.detach().clone(), positions.alpha_H.detach().clone())
    rates = {layer.weight_HCO: 0.03, layer.bias_O: 0.03, positions.centre_H2: 0.05, positions.alpha_H: 0.02}
    optimizer = torch.optim.Adam([{"params": [parameter], "lr": rate} for parameter, rate in rates.items()])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, updates)
    for _ in range(updates):
        image = torch.randn(BATCH, CHANNELS, IMAGE, IMAGE)
        wanted = F.conv2d(image, kernel, padding=1)
        missed = (layer(image) - wanted).square().mean() / wanted.var()
        size = layer.weight_HCO.square().sum() / kernel.square().sum()
        optimizer.zero_grad()
        (missed + PENALTY * size).backward()
        optimizer.step()
        schedule.step()
    return before, Heads(positions.centre_H2.detach(), positions.alpha_H.detach()), missed.item()


def draw(before: Heads, after: Heads) -> None:
    """Both side by side: the pixels around the query, each head's centre, and a circle of its standard deviation."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "transduce", "svg.fonttype": "none", "font.size": 9}
    from matplotlib import pyplot
    from matplotlib.patches import Circle, Rectangle

    figure, axes = pyplot.subplots(1, 2, figsize=(6.4, 3.4), layout="constrained")
    for axis, heads, title in zip(axes, (before, after), ("before training", "after"), strict=True):
        for row, column in GRID_92.tolist():
            axis.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor="#eef1f5", edgecolor="white", lw=2))
        for head, ((row, column), alpha) in enumerate(zip(heads.centre.tolist(), heads.alpha.tolist(), strict=True)):
            colour = matplotlib.colormaps["tab10"](head)
            axis.add_patch(Circle((column, row), (2 * alpha) ** -0.5, facecolor=colour, alpha=0.15, edgecolor=colour))
            axis.plot(column, row, "o", color=colour, markersize=4)
        axis.set(title=title, xlim=(-3, 3), ylim=(3, -3), xticks=range(-2, 3), yticks=range(-2, 3), aspect="equal")
        axis.set_xlabel("pixels to the right of the query")
    axes[0].set_ylabel("pixels below the query")
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, metadata={"Date": None})


def main() -> None:
    """One line a seed; the figure is of seed 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1)
    for seed in range(parser.parse_args().seeds):
        before, after, missed = train(seed)
        distance, pixel = after.nearest()
        owned, started = len(set(pixel.tolist())), before.nearest()[0].mean()
        print(f"seed {seed}: {owned} of 9 pixels have a head;", end=" ")
        print(f"mean distance {started:.2f} -> {distance.mean():.2f} pixels, {distance.max():.2f} at most;", end=" ")
        print(f"{missed:.2%} of the variance missed", flush=True)
        if seed == 0:
            draw(before, after)


if __name__ == "__main__":
    main()
