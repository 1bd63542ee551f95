/* Recurrent models: encoder-decoders with attention or without, as layers/recurrent_decoder.py has them, and language
   models. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  const CROSS = { kind: "cross", rows: "target", columns: "source" };
  const POOL = { kind: "other", rows: "other", columns: "source", still: true };
  const maxout = (x) => Float32Array.from({ length: x.length / 2 }, (_, d) => Math.max(x[2 * d], x[2 * d + 1]));

  /** What `compute` gives, which computes one query after the other; their weights are noted as one call. */
  function inOnePass(run, compute) {
    const inner = { ...run, record: {} };
    const found = compute(inner);
    for (const [name, calls] of Object.entries(inner.record)) E.noted(run, name, E.onePass(calls));
    return found;
  }

  /** An encoder-decoder of a model file. */
  E.Recurrent = class {
    alone = false;

    constructor({ config, weights }) {
      const settings = config.model;
      E.refuse(settings, {
        cell: Object.keys(E.CELLS),
        score: Object.keys(E.SCORES),
        normalizer: Object.keys(E.NORMALIZERS),
        pointer: [false, undefined],
        ctc_weight: [0, undefined],
      });
      this.settings = settings;
      this.embedding = weights["target_embedding.weight"];
      this.reads = weights["source_embedding.weight"] ?? this.embedding;
      this.output = weights["output.weight"] ?? this.embedding;
      this.parts = E.partsOf(weights, "decoder");
      this.encoder = new E.RecurrentEncoder("encoder", weights, settings);
      this.stack = new E.RecurrentStack("decoder.stack", weights, settings, settings.decoder_layers);
      const attends = settings.attention !== "none";
      this.reader = attends ? new E.CrossAttention("decoder.reader", this.parts.reader ?? {}, settings, CROSS) : null;
    }

    /** What a search begins with. ids: what is read, as its column frames it. */
    start(ids, run) {
      const { settings, parts } = this;
      const { states, last } = this.encoder.read(E.embedded(ids, this.reads), ids.length, run);
      const vector = parts.pool ? this.pooled(states, ids.length, run) : last.at(-1)[0];
      const cells = this.stack.begin(parts.bridge ? this.bridged(vector) : last);
      const memory = this.reader ? this.reader.remember(states, ids.length) : null;
      const fed = settings.attention === "luong" && settings.feeding ? new Float32Array(settings.d_model) : null;
      return { vector, memory, cells, fed, place: 0, alpha: null };
    }

    /** tanh(W u + b), cut into the parts of each layer's state. */
    bridged(vector) {
      const { weight, bias } = this.parts.bridge.linear;
      const start = E.linear(vector, 1, weight, bias).map(Math.tanh);
      const { hidden, decoder_layers: layers } = this.settings;
      const count = start.length / hidden / layers;
      const part = (at) => start.slice(at * hidden, (at + 1) * hidden);
      return E.range(layers).map((layer) => E.range(count).map((place) => part(layer * count + place)));
    }

    /** What learned queries read of all states. Nothing changes their weights, in Python neither. */
    pooled(states, rows, run) {
      const { query_RK, score, weigh } = this.parts.pool;
      const [queries, width] = query_RK.shape;
      const pool = new E.CrossAttention("decoder.pool", { score, weigh }, { ...this.settings, heads: 1 }, POOL);
      const memory = pool.remember(states, rows);
      let before = null;
      return inOnePass({ record: run.record }, (inner) =>
        E.concatenated(
          E.range(queries).map((place) => {
            const query = query_RK.data.subarray(place * width, (place + 1) * width);
            const { context, alpha } = pool.read(query, memory, place, before, inner);
            before = alpha;
            return context;
          }),
        ),
      );
    }

    /** The log-probabilities after each of more tokens, and the state behind them; `state` stays as it is. */
    extend(ids, state, run) {
      return inOnePass(run, (inner) => {
        const said = ids.map((id) => {
          const [row, after] = this.step(E.embedded([id], this.embedding), state, inner);
          state = after;
          return row;
        });
        return { said, state };
      });
    }

    step(embedded, state, run) {
      const read = { none: this.byVector, bahdanau: this.attendingBefore, luong: this.attendingAfter };
      const [hidden, after] = read[this.settings.attention].call(this, embedded, state, run);
      const said = E.logSoftmax(E.linear(hidden, 1, this.output));
      return [said, { ...state, ...after, place: state.place + 1 }];
    }

    advanced(embedded, fed, state, run) {
      const projected = this.stack.project(embedded, 1);
      const { feed } = this.parts;
      const gates = feed ? E.added(projected, E.linear(fed, 1, feed.weight)) : projected;
      return this.stack.extend(gates, 1, state.cells, run);
    }

    byVector(embedded, state, run) {
      const { outputs, states } = this.advanced(embedded, state.vector, state, run);
      const given = this.parts.feed ? [outputs, embedded, state.vector] : [outputs];
      return [this.readout(given), { cells: states }];
    }

    attendingBefore(embedded, state, run) {
      const { context, alpha } = this.reader.read(state.cells.at(-1)[0], state.memory, state.place, state.alpha, run);
      const { outputs, states } = this.advanced(embedded, context, state, run);
      return [this.readout([outputs, embedded, context]), { cells: states, alpha }];
    }

    attendingAfter(embedded, state, run) {
      const { outputs, states } = this.advanced(embedded, state.fed, state, run);
      const { context, alpha } = this.reader.read(outputs, state.memory, state.place, state.alpha, run);
      const hidden = this.readout([context, outputs]);
      return [hidden, { cells: states, fed: this.parts.feed ? hidden : null, alpha }];
    }

    /** The vector from which the next token is predicted. */
    readout(given) {
      const { weight, bias } = this.parts.readout.linear;
      const x = E.linear(E.concatenated(given), 1, weight, bias);
      return this.settings.readout === "maxout" ? maxout(x) : x.map(Math.tanh);
    }
  };

  /** A language model. */
  E.RecurrentDecoder = class {
    alone = true;

    constructor({ config, weights }) {
      E.refuse(config.model, { cell: Object.keys(E.CELLS) });
      this.embedding = weights["embedding.weight"];
      this.output = weights["output.weight"] ?? this.embedding;
      this.stack = new E.RecurrentStack("stack", weights, config.model, config.model.layers);
    }

    start = () => ({ cells: this.stack.empty() });

    extend(ids, state, run) {
      const projected = this.stack.project(E.embedded(ids, this.embedding), ids.length);
      const { outputs, states } = this.stack.extend(projected, ids.length, state.cells, run);
      return { said: E.saidRows(E.linear(outputs, ids.length, this.output), ids.length), state: { cells: states } };
    }
  };
})(window.Transduce);
