"""Attention that becomes a convolution, on real images: handwritten digits, 8 x 8 pixels.

    pip install --no-deps scikit-learn          # its wheel has the images; nothing else of it is used
    python benchmarks/digits.py                 # three seeds, some three minutes on one core
    python docs/make_attention_pages.py

Three layers, ReLU after each, the mean over the pixels, a linear layer. A layer is either self-attention of nine heads
that know positions only (Cordonnier et al. 2020), or a convolution with a kernel of 3 x 3; the parameters differ by the
three numbers that say where each head looks. As in scikit-learn's own example, the first half of the images trains and
the second half tests. The settings were chosen with seed 1 on the last 200 training images. The weights after the last
update are tested.

Measured of the heads, before and after training: how far their centres are from the nearest pixel of the grid, how much
of the weight is on one pixel, and whether the network classifies as well when every head is moved to its pixel and
looks nowhere else, which makes the layer a convolution.

Writes results/digits.json. Intervals are 95 % bootstrap intervals over images and seeds.

Shapes: B batch, H heads, K pixels.
"""

import argparse
import copy
import gzip
import json
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.attention.convolution import SHARP, PixelAttention, quadratic_scores
from transduce.metrics.labels import accuracy_tally
from transduce.metrics.paired import mean_interval, paired_bootstrap
from transduce.metrics.tally import Tally
from transduce.runtime.environment import library_versions, machine, source_commit

RECORD = Path(__file__).parent / "results" / "digits.json"
LAYERS, CHANNELS, HEADS, BORDER = 3, 32, 9, 2
EPOCHS, BATCH, DECAY = 100, 64, 0.1
RATE, RATE_OF_POSITIONS = 1e-2, 0.1
NEAR = 6  # pixels around the query, further than any head goes
Kind = Literal["attention", "convolution"]


class Digits(NamedTuple):
    """Images (B, 1, 8, 8) from 0 to 1, and what they show (B,)."""

    image: Tensor
    label: Tensor

    def part(self, first: int, end: int) -> "Digits":
        """Some of them."""
        return Digits(self.image[first:end], self.label[first:end])


class Heads(NamedTuple):
    """Where the heads of a layer look: centres (H, 2) in pixels from the query, and their sharpness (H,)."""

    centre: Tensor
    alpha: Tensor

    @classmethod
    def of(cls, layer: PixelAttention) -> "Heads":
        """As they are now."""
        return cls(layer.positions.centre_H2.detach().clone(), layer.positions.alpha_H.detach().clone())

    def distance(self) -> Tensor:
        """(H,): from each centre to the nearest pixel. Of random centres the mean is 0.38."""
        return torch.linalg.vector_norm(self.centre - self.centre.round(), dim=1)

    def heaviest(self) -> Tensor:
        """(H,): the share of each head's weight that is on one pixel, where no border is near."""
        reach = torch.arange(-NEAR, NEAR + 1).to(self.centre)
        scores_HK = quadratic_scores(self.centre, self.alpha, torch.zeros(1, 2), torch.cartesian_prod(reach, reach))
        return scores_HK[:, 0].softmax(-1).amax(-1)

    def pixels(self) -> int:
        """Number of different nearest pixels."""
        return len(self.centre.round().unique(dim=0))


def main() -> None:
    """Train, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    record = measured(read_digits(), asked.seeds, asked.epochs)
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(RECORD)


def read_digits() -> Digits:
    """The 1,797 images in scikit-learn's wheel, read without importing it."""
    try:
        files = metadata.files("scikit-learn") or []
    except metadata.PackageNotFoundError:
        sys.exit("The images come with scikit-learn, which is not installed: pip install --no-deps scikit-learn")
    [path] = [each.locate() for each in files if each.name == "digits.csv.gz"]
    with gzip.open(str(path)) as file:
        table = np.loadtxt(file, delimiter=",")
    image = torch.tensor(table[:, :64] / 16, dtype=torch.float32)
    return Digits(image.unflatten(1, (1, 8, 8)), torch.tensor(table[:, 64]).long())


def measured(digits: Digits, seeds: list[int], epochs: int = EPOCHS) -> dict[str, Any]:
    """The record."""
    half = len(digits.label) // 2
    training, test = digits.part(0, half), digits.part(half, len(digits.label))
    start, heads = time.process_time(), dict[str, Any]()
    tallies: dict[str, list[Tally]] = {"attention": [], "convolution": [], "moved": []}
    for seed in seeds:
        for kind in ("attention", "convolution"):
            model, before = train(kind, seed, training, epochs)
            tallies[kind].append(accuracy(model, test))
            print(f"{kind}, seed {seed}: accuracy {tallies[kind][-1].value:.1f}", flush=True)
            if kind == "attention":
                layers = zip(before, attention_layers(model), strict=True)
                heads[str(seed)] = [{"before": _told(one), "after": _told(Heads.of(layer))} for one, layer in layers]
                tallies["moved"].append(accuracy(moved(model), test))
    difference = paired_bootstrap(tallies["convolution"], tallies["attention"])
    return {
        "training": len(training.label),
        "test": len(test.label),
        "seeds": seeds,
        "epochs": epochs,
        "parameters": {
            kind: sum(p.numel() for p in network(kind).parameters()) for kind in ("attention", "convolution")
        },
        "accuracy": {name: _summary(each, seeds) for name, each in tallies.items()},
        "difference": {"value": difference.value, "interval": difference.interval, "p_value": difference.p_value},
        "heads": heads,
        "minutes": round((time.process_time() - start) / 60, 1),
        "commit": source_commit(),
        "machine": machine()["processor"],
        "torch": library_versions()["torch"],
    }


def network(kind: Kind) -> nn.Sequential:
    """Untrained."""
    layers: list[nn.Module] = []
    for channels in [1] + [CHANNELS] * (LAYERS - 1):
        if kind == "attention":
            layer = PixelAttention(channels, CHANNELS, HEADS, BORDER)
            nn.init.normal_(layer.weight_HCO, std=(2 / (HEADS * channels)) ** 0.5)  # He et al. 2015, for ReLU
            layers += [layer, nn.ReLU()]
        else:
            layers += [nn.Conv2d(channels, CHANNELS, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(CHANNELS, 10))


def attention_layers(model: nn.Sequential) -> list[PixelAttention]:
    """From the image on."""
    return [each for each in model if isinstance(each, PixelAttention)]


def train(kind: Kind, seed: int, digits: Digits, epochs: int) -> tuple[nn.Sequential, list[Heads]]:
    """A trained network, and its heads as they were before."""
    torch.manual_seed(seed)
    model = network(kind)
    before = [Heads.of(layer) for layer in attention_layers(model)]
    positions = [parameter for layer in attention_layers(model) for parameter in layer.positions.parameters()]
    others = [each for each in model.parameters() if not any(each is one for one in positions)]
    groups = [{"params": others, "lr": RATE, "weight_decay": DECAY}]
    groups += [{"params": positions, "lr": RATE_OF_POSITIONS, "weight_decay": 0.0}] if positions else []
    optimizer = torch.optim.AdamW(groups)
    updates = epochs * -(-len(digits.label) // BATCH)
    rates = [group["lr"] for group in optimizer.param_groups]
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rates, total_steps=updates + 1)
    for _ in range(epochs):
        for rows_B in torch.randperm(len(digits.label)).split(BATCH):
            loss = F.cross_entropy(model(digits.image[rows_B]), digits.label[rows_B])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    return model, before


@torch.inference_mode()
def accuracy(model: nn.Sequential, digits: Digits) -> Tally:
    """On these images."""
    said = model(digits.image).argmax(1).tolist()
    return accuracy_tally([str(each) for each in said], [str(each) for each in digits.label.tolist()])


def moved(model: nn.Sequential) -> nn.Sequential:
    """A copy whose heads look at the pixel nearest to their centres and nowhere else: a convolution."""
    copied = copy.deepcopy(model)
    with torch.no_grad():
        for layer in attention_layers(copied):
            layer.positions.centre_H2.round_()
            layer.positions.alpha_H.fill_(SHARP)
    return copied


def _told(heads: Heads) -> dict[str, Any]:
    return {
        "centres": [[round(side, 3) for side in centre] for centre in heads.centre.tolist()],
        "sharpness": [round(each, 3) for each in heads.alpha.tolist()],
        "distance": round(heads.distance().mean().item(), 4),
        "on_one_pixel": round(heads.heaviest().mean().item(), 4),
        "pixels": heads.pixels(),
    }


def _summary(tallies: list[Tally], seeds: list[int]) -> dict[str, Any]:
    values = [tally.value for tally in tallies]
    interval = mean_interval(tallies)
    return {
        "mean": float(np.mean(values)),
        "interval": list(interval) if interval else None,
        "seeds": {str(seed): value for seed, value in zip(seeds, values, strict=True)},
    }


if __name__ == "__main__":
    main()
