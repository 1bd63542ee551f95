/* Attention weights as numbers: decoded, averaged, rolled out, joined into words.

   A matrix is {values: Float32Array (T*S, row after row), T, S, rows: [label], columns: [label]}. */
"use strict";
(function (T) {
  /** base64 of little-endian float32 -> Float32Array. */
  T.floats = (text) => {
    const characters = atob(text);
    const bytes = new Uint8Array(characters.length);
    for (let i = 0; i < characters.length; i++) bytes[i] = characters.charCodeAt(i);
    if (new Uint8Array(new Uint16Array([1]).buffer)[0]) return new Float32Array(bytes.buffer);
    const view = new DataView(bytes.buffer);
    return Float32Array.from({ length: bytes.length / 4 }, (_, i) => view.getFloat32(4 * i, true));
  };

  const decoded = new WeakMap();
  /** The numbers of a packed {shape, weights}, decoded once. */
  T.unpacked = (packed) => {
    if (!decoded.has(packed)) decoded.set(packed, T.floats(packed.weights));
    return decoded.get(packed);
  };

  /** One head of a layer, (T, S). */
  T.headOf = (layer, head) => {
    const size = layer.shape[1] * layer.shape[2];
    return T.unpacked(layer).subarray(head * size, (head + 1) * size);
  };

  /** The mean of equally long arrays. */
  T.mean = (arrays) => {
    const sum = new Float32Array(arrays[0].length);
    for (const values of arrays) for (let i = 0; i < sum.length; i++) sum[i] += values[i];
    for (let i = 0; i < sum.length; i++) sum[i] /= arrays.length;
    return sum;
  };

  /** The mean of a layer's heads, (T, S). */
  T.meanOfHeads = (layer) => T.mean(T.range(layer.shape[0]).map((head) => T.headOf(layer, head)));
  /** The mean of all heads of all layers that have one shape. */
  T.meanOfLayers = (layers) => T.mean(layers.map(T.meanOfHeads));

  T.range = (count) => Array.from({ length: count }, (_, i) => i);
  T.largest = (values) => {
    let most = 0;
    for (let i = 0; i < values.length; i++) if (values[i] > most) most = values[i];
    return most;
  };

  /** What stands along one axis, token by token: [{text, tokens: [index]}]. */
  function labels(side, count, shifted) {
    if (!side) return T.range(count).map((i) => ({ text: String(i + 1), tokens: [i] }));
    const texts = side.tokens.map((token) => token.text);
    const spelt = shifted ? ["<s>", ...texts] : texts;
    return T.range(count).map((i) => ({ text: spelt[i] ?? "…", tokens: [i] }));
  }

  /** The same, word by word. Tokens outside every word join the word behind them; marks as </s> stand alone. */
  function words(side, count, shifted) {
    const single = labels(side, count, shifted);
    if (!side || !side.words) return single;
    const shift = shifted ? 1 : 0;
    const owner = new Map();
    side.words.forEach((word, number) =>
      word.tokens.forEach((token) => {
        owner.set(token + shift, [...(owner.get(token + shift) || []), number]);
      }),
    );
    const groups = side.words.map((word) => ({ text: word.text, tokens: word.tokens.map((token) => token + shift) }));
    return placed(groups, single, owner);
  }

  const special = (text) => /^<[^<>\s]+>$/.test(text);

  function placed(groups, single, owner) {
    const out = [];
    let waiting = [];
    const done = new Set();
    single.forEach((label, token) => {
      const numbers = owner.get(token);
      if (numbers) {
        for (const number of numbers) {
          if (done.has(number)) continue;
          done.add(number);
          const tokens = groups[number].tokens.filter((each) => each < single.length);
          out.push({ text: groups[number].text, tokens: [...waiting, ...tokens] });
          waiting = [];
        }
      } else if (special(label.text)) (out.push(...alone(waiting, single), label), (waiting = []));
      else waiting.push(token);
    });
    return [...out, ...alone(waiting, single)];
  }

  const alone = (tokens, single) => tokens.map((token) => single[token]);

  /** The labels of one side of a layer: "source", "target", "decoder_input" or anything else, which is numbered. */
  T.axis = (exploration, name, count, unit) => {
    const side = name === "source" ? exploration.source : name === "pixels" ? null : exploration.target;
    const known = ["source", "target", "decoder_input"].includes(name) ? side : null;
    return (unit === "words" ? words : labels)(known, count, name === "decoder_input");
  };

  /** How many groups share a token: a token of two words gives each half. */
  function shares(groups, count) {
    const held = new Float32Array(count);
    for (const group of groups) for (const token of group.tokens) held[token] += 1;
    return held;
  }

  /** (T, S) tokens -> (rows, columns) groups: a word receives what its tokens receive (their sum) and attends as they
      do on average, so rows keep their sum. As interpret/words.py. */
  T.joined = (values, T_, S, rows, columns) => {
    const rowShares = shares(rows, T_),
      columnShares = shares(columns, S);
    const out = new Float32Array(rows.length * columns.length);
    rows.forEach((row, r) => {
      const whole = row.tokens.reduce((sum, token) => sum + 1 / rowShares[token], 0);
      for (const t of row.tokens) {
        const part = 1 / rowShares[t] / whole;
        columns.forEach((column, c) => {
          let sum = 0;
          for (const s of column.tokens) sum += values[t * S + s] / columnShares[s];
          out[r * columns.length + c] += part * sum;
        });
      }
    });
    return out;
  };

  /** A picture no larger than `most` on a side, each cell the largest of those it stands for. */
  T.shrunk = (values, T_, S, most) => {
    const height = Math.min(T_, most),
      width = Math.min(S, most);
    if (height === T_ && width === S) return { values, T: T_, S };
    const out = new Float32Array(height * width);
    for (let t = 0; t < T_; t++) {
      const row = Math.floor((t * height) / T_) * width;
      for (let s = 0; s < S; s++) {
        const place = row + Math.floor((s * width) / S);
        const value = values[t * S + s];
        if (value > out[place]) out[place] = value;
      }
    }
    return { values: out, T: height, S: width };
  };
})(window.Transduce);
