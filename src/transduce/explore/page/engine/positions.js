/* Positions: what is added to embeddings, how queries and keys are turned, and biases of distances. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});
  const BASE = 10_000;

  const ADDED = {
    sinusoidal: (place, d, width) => {
      const angle = place * BASE ** (-(d - (d % 2)) / width);
      return d % 2 ? Math.cos(angle) : Math.sin(angle);
    },
    tensor2tensor: (place, d, width) => {
      const half = width / 2;
      const angle = place * BASE ** (-(d % half) / Math.max(1, half - 1));
      return d < half ? Math.sin(angle) : Math.cos(angle);
    },
  };

  /** x and what is added to its rows, the first of which is at `offset`. */
  E.withPositions = (kind, x, width, offset, { first = 0, table }) => {
    const y = x.slice();
    for (let at = 0; at < x.length; ++at) {
      const place = offset + Math.floor(at / width);
      const d = at % width;
      if (kind === "learned") {
        if (place >= table.shape[0]) throw new Error(`This model has learned positions for ${table.shape[0]} tokens.`);
        y[at] += table.data[place * width + d];
      } else if (kind in ADDED) y[at] += Math.fround(ADDED[kind](place + first, d, width));
    }
    return y;
  };

  /** Relative positions, made of the settings and the attention's own weights: {turn, bias, read}. */
  E.relative = (settings, parts, causal) => {
    const make = RELATIVE[settings.positions];
    return make ? make(settings, parts, causal) : {};
  };

  const RELATIVE = {
    rotary(settings) {
      const width = settings.head_width ?? settings.d_model / settings.heads;
      const frequency = stretched(
        Array.from({ length: width / 2 }, (_, j) => (settings.rotary_base ?? BASE) ** ((-2 * j) / width)),
        settings.rotary_scaling,
      );
      return {
        turn(x, place) {
          const y = new Float32Array(width);
          for (let j = 0; j < width / 2; ++j) {
            const cosine = Math.fround(Math.cos(place * frequency[j]));
            const sine = Math.fround(Math.sin(place * frequency[j]));
            y[2 * j] = x[2 * j] * cosine - x[2 * j + 1] * sine;
            y[2 * j + 1] = x[2 * j] * sine + x[2 * j + 1] * cosine;
          }
          return y;
        },
      };
    },
    alibi(settings) {
      const slope = slopes(settings.heads);
      return { bias: (query, head, t, s) => -slope[head] * Math.abs(t - s) };
    },
    shaw(settings, { key_KE, value_KE }, causal) {
      const [count, width] = key_KE.shape;
      const clip = causal ? count - 1 : (count - 1) / 2;
      const row = (t, s) => Math.min(count - 1 - clip, Math.max(-clip, s - t)) + clip;
      return {
        bias: (query, head, t, s) => E.dot(query, 0, key_KE.data, row(t, s) * width, width) / Math.sqrt(width),
        read(alpha, t, out) {
          alpha.forEach((weight, s) => {
            for (let e = 0; e < width; ++e) out[e] += weight * value_KE.data[row(t, s) * width + e];
          });
        },
      };
    },
    t5(settings, { bias_KH }, causal) {
      const [count, heads] = bias_KH.shape;
      return { bias: (query, head, t, s) => bias_KH.data[bucket(s - t, causal, count) * heads + head] };
    },
  };

  function stretched(frequency, scaling) {
    if (!scaling) return frequency;
    const { kind, factor, low_frequency_factor = 1, high_frequency_factor = 4, original_length = 8192 } = scaling;
    if (kind === "linear") return frequency.map((each) => each / factor);
    return frequency.map((each) => {
      const waves = (original_length * each) / (2 * Math.PI);
      const share = (waves - low_frequency_factor) / (high_frequency_factor - low_frequency_factor);
      const kept = Math.min(1, Math.max(0, share));
      return kept * each + ((1 - kept) * each) / factor;
    });
  }

  function slopes(heads) {
    const geometric = (count) => Array.from({ length: count }, (_, i) => Math.fround(2 ** ((-8 / count) * (i + 1))));
    const lower = 2 ** Math.floor(Math.log2(heads));
    return [...geometric(lower), ...geometric(2 * lower).filter((_, i) => i % 2 === 0)].slice(0, heads);
  }

  const FARTHEST = 128;
  function bucket(distance, causal, count) {
    if (causal) return oneWay(Math.max(0, -distance), count);
    const half = Math.floor(count / 2);
    return oneWay(Math.abs(distance), half) + (distance > 0 ? half : 0);
  }

  function oneWay(distance, count) {
    const exact = Math.floor(count / 2);
    if (distance < exact) return distance;
    if (distance >= FARTHEST) return count - 1;
    const logarithmic = (Math.log(distance / exact) / Math.log(FARTHEST / exact)) * (count - exact);
    return Math.min(count - 1, exact + Math.trunc(logarithmic));
  }
})(window.Transduce);
