"""The scale is what it says: even steps of lightness, inside sRGB, legible for all eyes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.interpret.colours import HEADS, glow, ink, oklab_to_srgb, readable_on

LINEAR_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
LMS_TO_LIGHTNESS = np.array([0.2104542553, 0.7936177850, -0.0040720468])


def lightness(colour):
    """OKLab lightness by the published forward transform, the inverse of the one under test."""
    return LMS_TO_LIGHTNESS @ np.cbrt(LINEAR_TO_LMS @ linear(colour))


def linear(colour):
    encoded = np.asarray(colour)
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)


def test_lightness_falls_evenly_and_nothing_is_clipped():
    steps = np.diff([lightness(ink(weight)) for weight in np.linspace(0, 1, 101)])
    np.testing.assert_allclose(steps, (0.27 - 0.975) / 100, atol=1e-5)  # clipping would bend it


def test_readable_without_telling_red_from_green():
    """Under deuteranopia as simulated by Machado et al. (2009), the scale still darkens at every step."""
    deuteranopia = np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    )
    seen = [deuteranopia @ linear(ink(weight)) for weight in np.linspace(0, 1, 51)]
    luminance = np.array(seen) @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(luminance) < 0).all()


def test_known_colours():
    np.testing.assert_allclose(oklab_to_srgb(1, 0, 0), (1, 1, 1), atol=1e-3)
    np.testing.assert_allclose(oklab_to_srgb(0.62796, 0.22486, 0.12585), (1, 0, 0), atol=2e-3)  # sRGB red
    assert glow(0.25) == ink(0.75)


@given(st.floats(0, 1))
def test_text_on_any_shade_is_legible(weight):
    """A contrast of at least 4.5, which WCAG 2 asks of text."""
    background, text = (float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (ink(weight), readable_on(ink(weight))))
    assert (max(background, text) + 0.05) / (min(background, text) + 0.05) >= 4.5


@pytest.mark.parametrize("colour", HEADS)
def test_head_colours_show_on_white(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    assert linear(channels) @ [0.2126, 0.7152, 0.0722] < 0.5
