/* Products, norms and activations. A matrix of rows is a Float32Array, one row behind the other; sums are in fp64. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  /** y = x W^T + b of `rows` rows; weight: {shape: [outputs, inputs], data}. */
  E.linear = (x, rows, weight, bias) => {
    const [outputs, inputs] = weight.shape;
    const w = weight.data;
    const y = new Float32Array(rows * outputs);
    for (let row = 0; row < rows; ++row) {
      const from = row * inputs;
      for (let o = 0, at = 0; o < outputs; ++o) {
        let one = bias ? bias.data[o] : 0;
        let two = 0;
        let i = 0;
        for (; i + 1 < inputs; i += 2, at += 2) {
          one += x[from + i] * w[at];
          two += x[from + i + 1] * w[at + 1];
        }
        if (i < inputs) one += x[from + i] * w[at++];
        y[row * outputs + o] = one + two;
      }
    }
    return y;
  };

  E.dot = (x, from, y, start, count) => {
    let sum = 0;
    for (let i = 0; i < count; ++i) sum += x[from + i] * y[start + i];
    return sum;
  };

  E.added = (x, y) => x.map((value, place) => value + y[place]);

  /** 0, 1, .. count - 1. */
  E.range = (count) => Array.from({ length: count }, (_, i) => i);

  /** Vectors one behind the other. */
  E.concatenated = (vectors) => {
    const y = new Float32Array(vectors.reduce((sum, each) => sum + each.length, 0));
    let at = 0;
    for (const each of vectors) {
      y.set(each, at);
      at += each.length;
    }
    return y;
  };

  /** Matrices of as many rows, side by side. */
  E.beside = (parts, rows) => {
    const widths = parts.map((part) => part.length / rows);
    const row = (place) => parts.map((part, i) => part.subarray(place * widths[i], (place + 1) * widths[i]));
    return E.concatenated(E.range(rows).flatMap(row));
  };

  const NORMS = {
    layer(row, { weight, bias }, epsilon) {
      const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
      const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
      const scale = 1 / Math.sqrt(variance + epsilon);
      return row.map((value, d) => (value - mean) * scale * weight.data[d] + bias.data[d]);
    },
    rms(row, { weight }, epsilon) {
      const scale = 1 / Math.sqrt(row.reduce((sum, value) => sum + value ** 2, 0) / row.length + epsilon);
      return row.map((value, d) => value * scale * weight.data[d]);
    },
    batch: (row, { weight, bias, mean_D, variance_D }, epsilon) =>
      row.map(
        (value, d) =>
          ((value - mean_D.data[d]) / Math.sqrt(variance_D.data[d] + epsilon)) * weight.data[d] + bias.data[d],
      ),
  };

  /** Each row normed; parts: the norm's weights by name. */
  E.normed = (kind, x, width, parts, epsilon) => {
    const y = new Float32Array(x.length);
    for (let at = 0; at < x.length; at += width)
      y.set(NORMS[kind](x.subarray(at, at + width), parts, epsilon), at);
    return y;
  };

  const sigmoid = (x) => 1 / (1 + Math.exp(-x));
  const gelu = (x) => 0.5 * x * (1 + errorFunction(x * Math.SQRT1_2));
  const geluTanh = (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

  /** erf(x): its series, or for greater |x| the continued fraction of its complement. */
  function errorFunction(x) {
    const far = Math.abs(x);
    if (far < 2.5) {
      let term = x;
      let sum = x;
      for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); ++n) sum += (term *= (-x * x) / n) / (2 * n + 1);
      return (2 / Math.sqrt(Math.PI)) * sum;
    }
    let below = far;
    for (let n = 40; n > 0; --n) below = far + n / 2 / below;
    return Math.sign(x) * (1 - Math.exp(-far * far) / (below * Math.sqrt(Math.PI)));
  }

  const PLAIN = {
    relu: (x) => Math.max(0, x),
    gelu,
    gelu_tanh: geluTanh,
    swish: (x) => x * sigmoid(x),
    squared_relu: (x) => Math.max(0, x) ** 2,
  };
  const GATED = { glu: sigmoid, geglu: gelu, geglu_tanh: geluTanh, swiglu: (x) => x * sigmoid(x) };

  /** W2 a(W1 x), or gated W2 (a(W1 x) * V x); parts: the layers' weights by name. */
  E.feedForward = (kind, x, rows, { inner, outer, linear }) => {
    const hidden = E.linear(x, rows, inner.weight, inner.bias).map(PLAIN[kind] || GATED[kind]);
    if (!(kind in GATED)) return E.linear(hidden, rows, outer.weight, outer.bias);
    const gate = E.linear(x, rows, linear.weight, linear.bias);
    const both = hidden.map((value, place) => value * gate[place]);
    return E.linear(both, rows, outer.weight, outer.bias);
  };

  /** log softmax of a row, in fp64. */
  E.logSoftmax = (row) => {
    const greatest = row.reduce((most, value) => Math.max(most, value), -Infinity);
    const mass = Math.log(row.reduce((sum, value) => sum + Math.exp(value - greatest), 0)) + greatest;
    return Float64Array.from(row, (value) => value - mass);
  };

  /** The same of each of `rows` rows. */
  E.saidRows = (logits, rows) => {
    const words = logits.length / rows;
    return Array.from({ length: rows }, (_, row) => E.logSoftmax(logits.subarray(row * words, (row + 1) * words)));
  };

  /** The rows of these ids, times the square root of their width where they are scaled. */
  E.embedded = (ids, { shape: [, width], data }, scaled = true) => {
    const scale = scaled ? Math.sqrt(width) : 1;
    const x = new Float32Array(ids.length * width);
    ids.forEach((id, row) => {
      for (let d = 0; d < width; ++d) x[row * width + d] = data[id * width + d] * scale;
    });
    return x;
  };

  /** {bias: .., weight: ..} and deeper: the weights whose names begin so, by the rest of their names. */
  E.partsOf = (weights, name) => {
    const found = {};
    for (const [key, weight] of Object.entries(weights)) {
      if (!key.startsWith(`${name}.`)) continue;
      const path = key.slice(name.length + 1).split(".");
      let place = found;
      for (const step of path.slice(0, -1)) place = place[step] ??= {};
      place[path.at(-1)] = weight;
    }
    return found;
  };
})(window.Transduce);
