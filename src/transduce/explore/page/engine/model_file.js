/* A model file in the page: its settings, and its weights in fp32, whatever they are stored in. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  const LONGEST_HEADER = 100_000_000; // bytes
  const TABLES = ["config", "tokenizer", "columns", "provenance", "metrics", "tied"];
  const READ = {
    F32: (buffer, start, end) => new Float32Array(buffer.slice(start, end)),
    F16: (buffer, start, end) => Float32Array.from(new Uint16Array(buffer.slice(start, end)), half),
    I8: (buffer, start, end) => Float32Array.from(new Int8Array(buffer.slice(start, end))),
    I32: (buffer, start, end) => new Int32Array(buffer.slice(start, end)),
  };

  /** The number that 16 bits of IEEE 754 stand for. */
  function half(bits) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 31) return fraction ? NaN : sign * Infinity;
    return sign * (exponent ? 2 ** (exponent - 25) * (1024 + fraction) : 2 ** -24 * fraction);
  }

  /**
   * {config, tokenizer, columns, .., weights: {name: {shape, data}}} of a model.safetensors (ArrayBuffer). Of a weight
   * in int8 the scale of each row stands beside it, under its name and ".scale"; it is multiplied in here.
   */
  E.readModelFile = (buffer) => {
    const [header, start] = headerOf(buffer);
    const weights = {};
    let left = buffer.byteLength - start; // bytes, of which each is of one weight
    for (const [name, { dtype, shape, data_offsets }] of Object.entries(header)) {
      if (name === "__metadata__") continue;
      if (!(dtype in READ)) throw new E.Unsupported(`weight ${name}: stored as ${dtype}`);
      const [from, to] = data_offsets;
      left -= to - from;
      if (!(from >= 0 && to >= from && left >= 0)) throw new Error(`weight ${name}: its bytes are not all in the file.`);
      weights[name] = { shape, data: READ[dtype](buffer, start + from, start + to) };
      if (weights[name].data.length !== shape.reduce((product, size) => product * size, 1))
        throw new Error(`weight ${name}: ${weights[name].data.length} numbers do not fit its shape ${shape}.`);
    }
    scaleRows(weights);
    const said = header.__metadata__ || {};
    if (said.format !== "transduce-model") throw new E.Unsupported("the file is no model of Transduce");
    const tables = Object.fromEntries(TABLES.map((name) => [name, JSON.parse(said[name] || "{}")]));
    for (const [name, other] of Object.entries(tables.tied)) weights[name] ??= weights[other];
    return { ...tables, weights };
  };

  function headerOf(buffer) {
    if (buffer.byteLength < 8) throw new Error("This is no safetensors file: it is too short.");
    const length = Number(new DataView(buffer).getBigUint64(0, true));
    if (length > LONGEST_HEADER || length + 8 > buffer.byteLength)
      throw new Error("This is no safetensors file: its header is longer than the file.");
    return [JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length))), 8 + length];
  }

  function scaleRows(weights) {
    for (const [name, scale] of Object.entries(weights)) {
      if (!name.endsWith(".scale")) continue;
      const { data } = weights[name.slice(0, -6)];
      const width = data.length / scale.data.length;
      for (let place = 0; place < data.length; ++place) data[place] *= scale.data[Math.floor(place / width)];
      delete weights[name];
    }
  }
})(window.Transduce);
