"""benchmarks/digits.py: what it says of heads is so, and its record fills the page."""

from importlib import metadata
from types import ModuleType

import pytest
import torch

from scripts import loaded


@pytest.fixture(scope="module")
def digits() -> ModuleType:
    return loaded("benchmarks/digits.py")


def test_moved_heads_are_a_sum_of_shifted_images(digits: ModuleType) -> None:
    """Pixel by pixel: each head reads the pixel at its shift, or the nearest one of the border, where all is 0."""
    torch.manual_seed(0)
    model = digits.network("attention").double()
    first = digits.attention_layers(digits.moved(model))[0]
    image_BCYX = torch.rand(2, 1, 8, 8, dtype=torch.float64)
    with torch.no_grad():
        found_BOYX = first(image_BCYX)
        border, expected_BOYX = digits.BORDER, torch.zeros_like(found_BOYX) + first.bias_O[:, None, None]
        for head, (down, right) in enumerate(digits.attention_layers(model)[0].positions.centre_H2.round().tolist()):
            for y in range(8):
                for x in range(8):
                    row, column = (min(max(int(place), -border), 7 + border) for place in (y + down, x + right))
                    if 0 <= row < 8 and 0 <= column < 8:
                        expected_BOYX[:, :, y, x] += image_BCYX[:, :, row, column] @ first.weight_HCO[head]
    torch.testing.assert_close(found_BOYX, expected_BOYX)


def test_figures_of_heads(digits: ModuleType) -> None:
    heads = digits.Heads(torch.tensor([[1.0, -2.0], [0.5, 0.5], [1.1, -2.2]]), torch.tensor([50.0, 1.0, 2.0]))
    assert heads.distance().tolist() == pytest.approx([0.0, 0.5**0.5, 0.05**0.5], abs=1e-6)
    assert heads.pixels() == 2  # (1, -2) twice
    heaviest = heads.heaviest().tolist()
    assert heaviest[0] == pytest.approx(1)
    near = [torch.exp(-torch.tensor((place - 0.5) ** 2)).item() for place in range(-8, 9)]
    assert heaviest[1] == pytest.approx((max(near) / sum(near)) ** 2, abs=1e-6)


def test_networks_are_of_one_size(digits: ModuleType) -> None:
    attention, convolution = (sum(p.numel() for p in digits.network(kind).parameters()) for kind in ("attention", "c"))
    assert attention - convolution == 3 * digits.HEADS * digits.LAYERS


def test_the_record_fills_the_page(digits: ModuleType) -> None:
    torch.manual_seed(0)
    drawn = digits.Digits(torch.rand(64, 1, 8, 8), torch.arange(64) % 10)
    record = digits.measured(drawn, [1, 2], epochs=1)
    assert (record["training"], record["test"], record["seeds"]) == (32, 32, [1, 2])
    assert record["accuracy"]["attention"]["seeds"].keys() == record["heads"].keys() == {"1", "2"}
    assert [len(layers) for layers in record["heads"].values()] == [digits.LAYERS] * 2
    assert record["heads"]["1"][0]["before"]["sharpness"] == [1.0] * digits.HEADS
    assert record["heads"]["1"][0]["after"] != record["heads"]["1"][0]["before"]
    text = loaded("docs/make_attention_pages.py").found_of_digits(record)
    assert "| convolution | 19,146 |" in text
    assert "seeds 1, 2." in text


def test_training_again_gives_the_same_heads(digits: ModuleType) -> None:
    drawn = digits.Digits(torch.rand(16, 1, 8, 8), torch.arange(16) % 10)
    (one, before), (other, _) = (digits.train("attention", 3, drawn, 1) for _ in range(2))
    for layer, same, start in zip(digits.attention_layers(one), digits.attention_layers(other), before, strict=True):
        assert torch.equal(layer.positions.centre_H2, same.positions.centre_H2)
        assert not torch.equal(layer.positions.centre_H2, start.centre)


def test_the_images_are_those_of_scikit_learn(digits: ModuleType) -> None:
    try:
        metadata.distribution("scikit-learn")
    except metadata.PackageNotFoundError:
        pytest.skip("needs the images in scikit-learn's wheel: pip install --no-deps scikit-learn")
    found = digits.read_digits()
    assert found.image.shape == (1797, 1, 8, 8)
    assert found.label.bincount().tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]  # as its docs have it
    assert (found.image.min(), found.image.max()) == (0, 1)
    assert found.label[:10].tolist() == list(range(10))
