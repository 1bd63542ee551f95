/* Scores, and attention with any score and normalizer: of a Transformer, and from a recurrent decoder to a source. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});
  const SHORTEST = 1e-3; // the least norm that a cosine divides by

  const scaled = (x, factor) => x.map((value) => value * factor);
  const direction = (x) => scaled(x, 1 / Math.max(SHORTEST, Math.sqrt(E.dot(x, 0, x, 0, x.length))));

  /**
   * Each: {keys(key, parts), asks(query, parts), located(previous, s, parts), score(query, key, parts, located)}.
   * keys, asks: what is computed once for a key and for a query; by default the vectors themselves.
   * located: of a sequential score, what the weights of the query before say of a key.
   */
  E.SCORES = {
    dot: { score: (q, k) => E.dot(q, 0, k, 0, q.length) },
    scaled_dot: { score: (q, k) => E.dot(q, 0, k, 0, q.length) / Math.sqrt(q.length) },
    cosine: {
      keys: direction,
      asks: direction,
      score: (q, k, { gain }) => gain.data[0] * E.dot(q, 0, k, 0, q.length),
    },
    bilinear: {
      keys: (key, { weight_EF }) => E.linear(key, 1, weight_EF),
      score: (q, k) => E.dot(q, 0, k, 0, q.length),
    },
    additive: {
      keys: (key, { key: inner }) => E.linear(key, 1, inner.weight),
      asks: (q, { query }) => E.linear(q, 1, query.weight),
      score: (q, k, { reader_A }) => read(reader_A, (a) => q[a] + k[a]),
    },
    location_aware: {
      keys: (key, { key: inner }) => E.linear(key, 1, inner.weight),
      asks: (q, { query }) => E.linear(q, 1, query.weight),
      located,
      score: (q, k, { reader_A }, l) => read(reader_A, (a) => q[a] + k[a] + l[a]),
    },
  };

  /** v . tanh(x). */
  function read(reader_A, x) {
    let sum = 0;
    for (let a = 0; a < reader_A.data.length; ++a) sum += reader_A.data[a] * Math.tanh(x(a));
    return sum;
  }

  /** L f + b of a key, f the filters over the previous weights around it (Chorowski et al. 2015); at first f = 0. */
  function located(previous, s, { filters, location }) {
    if (!previous) return location.bias.data;
    const [count, , width] = filters.weight.shape;
    const found = new Float32Array(count);
    for (let filter = 0; filter < count; ++filter)
      for (let i = 0; i < width; ++i)
        found[filter] += filters.weight.data[filter * width + i] * (previous[s + i - (width >> 1)] ?? 0);
    return E.linear(found, 1, location.weight, location.bias);
  }

  /** The scores of one query for all keys; previous: the weights of the query before, null for the first. */
  E.scored = (kind, query, keys, parts, previous) => {
    const asked = kind.asks ? kind.asks(query, parts) : query;
    return Float64Array.from(keys, (key, s) =>
      kind.score(asked, key, parts, kind.located ? kind.located(previous, s, parts) : null),
    );
  };

  /** The weighted sum of `count` numbers of each value. */
  E.gathered = (weights, values, out) => {
    for (let e = 0; e < out.length; ++e)
      out[e] = weights.reduce((sum, weight, s) => sum + weight * values[s][e], 0);
  };

  /** Whether a head is switched off, as attention/ablation.py does it: its part of what is read is 0. */
  E.isOff = (run, name, head) => (run.changes?.off ?? []).some((each) => each.name === name && each.head === head);

  /**
   * Notes the weights of one call of a module: {axes, heads, rows, columns, data}.
   * axes: {kind, rows, columns}: its kind, its queries and its keys, as the page calls them; tape: its keys are states,
   * the initial one first; still: none of its heads can be switched off.
   */
  E.noted = (run, name, call) => (run.record[name] ??= []).push(call);

  /**
   * One attention module.
   * parts: its weights. settings: of the stack. relative: positions, or {}. axes: see E.noted.
   */
  E.Attention = class {
    constructor(name, parts, settings, relative, axes) {
      Object.assign(this, { name, parts, settings, relative, axes });
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
          if (E.isOff(run, this.name, head)) continue;
          this.gather(weights, memory, head, offset + row, joined.subarray(at, at + this.width), run);
        }
      }
      E.noted(run, this.name, { axes: this.axes, heads: this.heads, rows, columns: count, data: alpha });
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
      const keys = memory.keys.map((each) => each[group]);
      let scores = E.scored(this.kind, turned, keys, this.parts.score, null);
      if (bias) scores = scores.map((score, s) => score + bias(turned, head, place, s));
      const at = { name: this.name, head, query: place };
      return E.weighed(this.settings.normalizer, this.parts.weigh, scores, allowed, turned, at, run.changes);
    }

    gather(weights, memory, head, place, out, run) {
      const group = this.group(head);
      const values = memory.values.map((each) => each[group]);
      E.gathered(weights, values, out);
      this.now(run).read?.(weights, place, out);
    }
  };

  /**
   * Attention from a recurrent decoder to a source, as attention/cross_attention.py has it: with one head vectors are
   * used as they are, with several each head uses projections of them.
   */
  E.CrossAttention = class {
    constructor(name, parts, { heads, hidden, score, normalizer }, axes) {
      Object.assign(this, { name, parts, heads, width: hidden / heads, normalizer, axes });
      this.kind = E.SCORES[score];
    }

    /** {keys, values}: for each head the vectors of all rows. */
    remember(states, rows) {
      const keys = this.split(states, rows, this.parts.key);
      return {
        keys: this.kind.keys ? keys.map((each) => each.map((key) => this.kind.keys(key, this.parts.score))) : keys,
        values: this.split(states, rows, this.parts.value),
      };
    }

    split(x, rows, projection) {
      const y = projection ? E.linear(x, rows, projection.weight, projection.bias) : x;
      const at = (row, head) => (row * this.heads + head) * this.width;
      return Array.from({ length: this.heads }, (_, head) =>
        Array.from({ length: rows }, (__, row) => y.slice(at(row, head), at(row, head) + this.width)),
      );
    }

    /** {context, alpha}: what one query reads, and the weights of each head. previous: those of the query before. */
    read(query, memory, place, previous, run) {
      const asked = this.split(query, 1, this.parts.query);
      const context = new Float32Array(this.heads * this.width);
      const alpha = asked.map(([one], head) => {
        const before = previous?.[head] ?? null;
        const scores = E.scored(this.kind, one, memory.keys[head], this.parts.score, before);
        const all = Array.from(scores, () => true);
        const at = { name: this.name, head, query: place };
        const weights = E.weighed(this.normalizer, this.parts.weigh, scores, all, one, at, run.changes, before);
        const out = context.subarray(head * this.width, (head + 1) * this.width);
        if (!E.isOff(run, this.name, head)) E.gathered(weights, memory.values[head], out);
        return weights;
      });
      const call = { axes: this.axes, heads: this.heads, rows: 1, columns: alpha[0].length };
      E.noted(run, this.name, { ...call, data: E.concatenated(alpha) });
      return { context, alpha };
    }
  };

  /** One call of the calls for one query after the other; where keys became more, the later ones have weight 0. */
  E.onePass = (calls) => {
    const { axes, heads, columns } = calls.at(-1);
    const rows = calls.reduce((sum, call) => sum + call.rows, 0);
    const data = new Float32Array(heads * rows * columns);
    for (let head = 0; head < heads; ++head) {
      let at = head * rows * columns;
      for (const call of calls)
        for (let row = 0; row < call.rows; ++row, at += columns) {
          const from = (head * call.rows + row) * call.columns;
          data.set(call.data.subarray(from, from + call.columns), at);
        }
    }
    return { axes, heads, rows, columns, data };
  };
})(window.Transduce);
