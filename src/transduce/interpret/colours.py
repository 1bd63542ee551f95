"""The colours of attention: one scale for terminal and figures, and a few colours for heads.

The scale runs from cream through teal to navy. Its OKLab lightness falls linearly, so that equal steps of
weight look equally large, and it reads the same to eyes that do not tell red from green, or in grey print.

Source: OKLab, Björn Ottosson, "A perceptual color space for image processing" (2020). Head colours: Okabe and
Ito, "Color Universal Design" (2008), with grey for its yellow, which is too pale for lines on white.
"""

import math

RGB = tuple[float, float, float]  # red, green, blue, each 0..1

LIGHTEST, DARKEST = 0.975, 0.27  # OKLab lightness at weight 0 and 1
FIRST_HUE, LAST_HUE = 105.0, 272.0  # degrees: yellow to blue
FIRST_CHROMA, LAST_CHROMA = 0.02, 0.085  # with more colour in the middle, as far as sRGB reaches
FIRST_PASTEL, PASTEL_LIGHTNESS, PASTEL_CHROMA = 70.0, 0.87, 0.08

HEADS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#7A7A7A")


def ink(weight: float) -> RGB:
    """The colour of a weight in 0..1: the heavier, the darker, as ink on paper."""
    lightness = LIGHTEST + (DARKEST - LIGHTEST) * weight
    hue = math.radians(FIRST_HUE + (LAST_HUE - FIRST_HUE) * math.sqrt(weight))
    chroma = FIRST_CHROMA + (LAST_CHROMA - FIRST_CHROMA) * weight + 0.2 * weight * (1 - weight)
    return oklab_to_srgb(lightness, chroma * math.cos(hue), chroma * math.sin(hue))


def glow(weight: float) -> RGB:
    """The same scale turned round, for terminals, which are mostly dark: the heavier, the brighter."""
    return ink(1 - weight)


def pastel(place: int, count: int) -> RGB:
    """One of `count` light colours of equal lightness, for black letters; neighbours differ as far as hues allow."""
    hue = 2 * math.pi * place / max(count, 1) + math.radians(FIRST_PASTEL)
    return oklab_to_srgb(PASTEL_LIGHTNESS, PASTEL_CHROMA * math.cos(hue), PASTEL_CHROMA * math.sin(hue))


def css(colour: RGB) -> str:
    """A colour as #rrggbb."""
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in colour)


def readable_on(background: RGB) -> RGB:
    """Black or white, whichever has the higher contrast (WCAG 2 relative luminance) on `background`."""
    red, green, blue = (_linear(channel) for channel in background)
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return (0.0, 0.0, 0.0) if luminance > 0.179 else (1.0, 1.0, 1.0)


def oklab_to_srgb(lightness: float, a: float, b: float) -> RGB:
    """OKLab -> gamma-encoded sRGB, clipped to 0..1."""
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        _encoded(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
        _encoded(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
        _encoded(-0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short),
    )


def _encoded(linear: float) -> float:
    linear = min(max(linear, 0.0), 1.0)
    return 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055


def _linear(encoded: float) -> float:
    return encoded / 12.92 if encoded <= 0.04045 else float(((encoded + 0.055) / 1.055) ** 2.4)
