/* The colours of numbers: the ink scale of interpret/colours.py, its mirror for dark pages, and one for signed numbers.

   Lightness runs evenly in OKLab (Björn Ottosson 2020), so equal steps of weight look equally large, also to eyes that
   do not tell red from green. Head colours: Okabe and Ito (2008), with grey for their yellow. */
"use strict";
(function (T) {
  const LIGHTEST = 0.975,
    DARKEST = 0.27;
  const FIRST_HUE = 105,
    LAST_HUE = 272;
  const FIRST_CHROMA = 0.02,
    LAST_CHROMA = 0.085;
  const WARM_HUE = 55;

  T.HEADS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#7A7A7A"];
  T.HEADS_ON_DARK = ["#4FA8E0", "#F08A3C", "#2EC79A", "#E39BC3", "#8FD0F2", "#F2BC45", "#FFFFFF", "#A9A9A9"];

  const clip = (value) => Math.min(Math.max(value, 0), 1);
  const encoded = (linear) => {
    const value = clip(linear);
    return value <= 0.0031308 ? 12.92 * value : 1.055 * value ** (1 / 2.4) - 0.055;
  };
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);

  function fromOklab(lightness, a, b) {
    const long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const short = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
    return [
      encoded(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short),
      encoded(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short),
      encoded(-0.0041960863 * long - 0.7034186147 * medium + 1.707614701 * short),
    ];
  }

  function shade(weight, hue) {
    const lightness = LIGHTEST + (DARKEST - LIGHTEST) * weight;
    const chroma = FIRST_CHROMA + (LAST_CHROMA - FIRST_CHROMA) * weight + 0.2 * weight * (1 - weight);
    return fromOklab(lightness, chroma * Math.cos(hue), chroma * Math.sin(hue));
  }

  const radians = (degrees) => (degrees * Math.PI) / 180;

  /** The colour (red, green, blue in 0..1) of a weight in 0..1: the heavier, the darker. */
  T.ink = (weight) => shade(weight, radians(FIRST_HUE + (LAST_HUE - FIRST_HUE) * Math.sqrt(weight)));
  /** The same scale turned round, for dark pages: the heavier, the brighter. */
  T.glow = (weight) => T.ink(1 - weight);

  /** A signed number in -1..1: above 0 towards blue, below 0 towards brown, 0 is paper. */
  function signed(value) {
    const size = Math.abs(value);
    const hue = value < 0 ? FIRST_HUE + (WARM_HUE - FIRST_HUE) * Math.sqrt(size) : undefined;
    const light = value < 0 ? shade(0.8 * size, radians(hue)) : T.ink(0.8 * size);
    return T.dark() ? signedOnDark(value) : light;
  }

  function signedOnDark(value) {
    const size = Math.abs(value);
    const chroma = 0.012 + 0.13 * size;
    const hue = radians(value < 0 ? WARM_HUE : 235);
    return fromOklab(0.25 + 0.6 * size, chroma * Math.cos(hue), chroma * Math.sin(hue));
  }

  /** Black or white, whichever has the higher contrast (WCAG 2) on a background, given as bytes. */
  T.readableOn = (bytes) => {
    const [red, green, blue] = bytes.map((byte) => linear(byte / 255));
    const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    return luminance > 0.179 ? "#000" : "#fff";
  };

  T.css = (colour) => `rgb(${colour.map((channel) => Math.round(channel * 255)).join(",")})`;

  const tables = {};
  /** 256 colours of the theme's scale, as bytes. */
  function table() {
    const name = T.dark() ? "dark" : "light";
    const colour = T.dark() ? T.glow : T.ink;
    tables[name] ??= Array.from({ length: 256 }, (_, i) => colour(i / 255).map((channel) => Math.round(channel * 255)));
    return tables[name];
  }

  /** The bytes of a weight's colour in the theme that is shown. */
  T.weightBytes = (weight) => table()[Math.round(clip(weight) * 255)];
  /** Its CSS colour. */
  T.weightColour = (weight) => `rgb(${T.weightBytes(weight).join(",")})`;
  /** Black or white upon it. */
  T.weightText = (weight) => T.readableOn(T.weightBytes(weight));

  const round = (colour) => colour.map((channel) => Math.round(channel * 255));
  T.signedBytes = (value) => round(signed(Math.min(Math.max(value, -1), 1)));
  T.signedColour = (value) => `rgb(${T.signedBytes(value).join(",")})`;
  T.signedText = (value) => T.readableOn(T.signedBytes(value));

  T.headColour = (head) => (T.dark() ? T.HEADS_ON_DARK : T.HEADS)[head % T.HEADS.length];
})(window.Transduce);
