/* Multi-head attention with any score, normalizer and positions of a Transformer, a query at a time. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});
  const SHORTEST = 1e-3; // the least norm that a cosine divides by

  const scaled = (x, factor) => x.map((value) => value * factor);
  const direction = (x) => scaled(x, 1 / Math.max(SHORTEST, Math.sqrt(E.dot(x, 0, x, 0, x.length))));

  /** Each: {keys(key, parts), score(query, key, parts)}; keys: what is computed once for a key. */
  E.SCORES = {
    dot: { score: (q, k) => E.dot(q, 0, k, 0, q.length) },
    scaled_dot: { score: (q, k) => E.dot(q, 0, k, 0, q.length) / Math.sqrt(q.length) },
    cosine: { keys: direction, score: (q, k, { gain }) => gain.data[0] * E.dot(direction(q), 0, k, 0, q.length) },
    bilinear: {
      keys: (key, { weight_EF }) => E.linear(key, 1, weight_EF),
      score: (q, k) => E.dot(q, 0, k, 0, q.length),
    },
    additive: {
      keys: (key, { key: inner }) => E.linear(key, 1, inner.weight),
      score(q, k, { query, reader_A }) {
        const hidden = E.linear(q, 1, query.weight).map((value, a) => Math.tanh(value + k[a]));
        return E.dot(hidden, 0, reader_A.data, 0, hidden.length);
      },
    },
  };

  /**
   * One attention module.
   * parts: its weights. settings: of the stack. causal: whether no query sees a later key. relative: positions, or {}.
   */
  E.Attention = class {
    constructor(name, parts, settings, relative) {
      Object.assign(this, { name, parts, settings, relative });
      this.heads = settings.heads;
      this.groups = settings.key_value_heads ?? settings.heads;
      this.width = settings.head_width ?? settings.d_model / settings.heads;
      this.kind = E.SCORES[settings.score];
    }

    /** {keys, values}: for each row of y a list of heads' vectors; the first row is at `offset`. */
    keysValues(y, rows, offset, run) {
      const both = E.linear(y, rows, this.parts.key_value.weight, this.parts.key_value.bias);
      const span = this.groups * this.width;
      const memory = { keys: [], values: [] };
      for (let row = 0; row < rows; ++row) {
        const head = (part) => (_, g) => {
          const at = row * 2 * span + part * span + g * this.width;
          return both.slice(at, at + this.width);
        };
        memory.keys.push(Array.from({ length: this.groups }, head(0)).map((key) => this.key(key, offset + row, run)));
        memory.values.push(Array.from({ length: this.groups }, head(1)));
      }
      return memory;
    }

    key(key, place, run) {
      const normed = this.headNormed(key, this.parts.key_norm);
      const turned = this.now(run).turn ? this.relative.turn(normed, place) : normed;
      return this.kind.keys ? this.kind.keys(turned, this.parts.score) : turned;
    }

    headNormed = (x, norm) => (norm ? E.normed("rms", x, this.width, norm, this.settings.norm_epsilon ?? 1e-5) : x);

    /** Its relative positions, unless positions are switched off. */
    now = (run) => (run.changes?.positions === false ? {} : this.relative);

    /** What the rows of x read; sees(t, s): whether the query at t may attend to key s. */
    read(x, rows, memory, sees, offset, run) {
      const { query, output } = this.parts;
      run.watch?.(this, { x, rows, memory, sees, offset, run });
      const asked = E.linear(x, rows, query.weight, query.bias);
      const joined = new Float32Array(rows * this.heads * this.width);
      const count = memory.keys.length;
      const alpha = new Float32Array(this.heads * rows * count);
      for (let row = 0; row < rows; ++row) {
        const allowed = Array.from({ length: count }, (_, s) => sees(offset + row, s));
        for (let head = 0; head < this.heads; ++head) {
          const at = (row * this.heads + head) * this.width;
          const weights = this.weights(asked.slice(at, at + this.width), head, offset + row, memory, allowed, run);
          alpha.set(weights, (head * rows + row) * count);
          this.gather(weights, memory, head, offset + row, joined.subarray(at, at + this.width), run);
        }
      }
      (run.record[this.name] ??= []).push({ heads: this.heads, rows, columns: count, data: alpha });
      return E.linear(joined, rows, output.weight, output.bias);
    }

    /** The keys and values that a head of queries reads. */
    group = (head) => Math.floor((head * this.groups) / this.heads);

    /** A query as it meets the keys. */
    asked(query, place, run) {
      const normed = this.headNormed(query, this.parts.query_norm);
      return this.now(run).turn?.(normed, place) ?? normed;
    }

    weights(query, head, place, memory, allowed, run) {
      const { bias } = this.now(run);
      const group = this.group(head);
      const turned = this.asked(query, place, run);
      const scores = Float64Array.from(memory.keys, (keys, s) => {
        const score = this.kind.score(turned, keys[group], this.parts.score);
        return bias ? score + bias(turned, head, place, s) : score;
      });
      const at = { name: this.name, head, query: place };
      return E.weighed(this.settings.normalizer, this.parts.weigh, scores, allowed, turned, at, run.changes);
    }

    gather(weights, memory, head, place, out, run) {
      const group = this.group(head);
      for (let e = 0; e < this.width; ++e)
        out[e] = weights.reduce((sum, weight, s) => sum + weight * memory.values[s][group][e], 0);
      this.now(run).read?.(weights, place, out);
    }
  };
})(window.Transduce);
