/* The Transformer: with encoder and decoder, or a decoder alone that continues texts. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});
  const EPSILON = 1e-5;
  const ABSOLUTE = ["none", "sinusoidal", "tensor2tensor", "learned"];
  const RELATIVE = ["rotary", "alibi", "shaw", "t5"];

  const CROSS = { kind: "cross", rows: "target", columns: "source" };

  const PATTERNS = {
    full: () => true,
    local: (t, s, stride) => Math.floor(t / stride) - Math.floor(s / stride) <= 1,
    strided: (t, s, stride) => t - s < stride || (t - s) % stride === 0,
    fixed: (t, s, stride) => Math.floor(t / stride) === Math.floor(s / stride) || s % stride === stride - 1,
  };

  /** A stack of blocks; cross: whether they attend to a source, too. */
  E.Stack = class {
    constructor(name, weights, settings, layers, { cross = false, causal = false }) {
      Object.assign(this, { name, settings, cross, causal });
      this.parts = E.partsOf(weights, name);
      this.epsilon = settings.norm_epsilon ?? EPSILON;
      const shared = this.parts.blocks[0].self_attention.positions; // of T5: the first block holds them for all
      const of = (layer) => this.parts.blocks[settings.shared_layers ? 0 : layer];
      this.blocks = Array.from({ length: layers }, (_, layer) => this.block(of(layer), layer, shared));
    }

    block(parts, layer, shared) {
      const name = `${this.name}.blocks.${layer}`;
      const own = parts.self_attention.positions ?? shared ?? {};
      const relative = E.relative(this.settings, own, this.causal);
      return {
        parts,
        self: new E.Attention(`${name}.self_attention`, parts.self_attention, this.settings, relative, this.axes()),
        cross: this.cross
          ? new E.Attention(`${name}.cross_attention`, parts.cross_attention, this.settings, {}, CROSS)
          : null,
      };
    }

    /** What its own attention is between. One that is not causal and has a source writes all tokens at once. */
    axes() {
      const kind = this.causal || this.cross ? "decoder" : "encoder";
      const axis = this.causal ? "decoder_input" : this.cross ? "target" : "source";
      return { kind, rows: axis, columns: axis };
    }

    norm = (x, parts) => E.normed(this.settings.norm_kind ?? "layer", x, this.settings.d_model, parts, this.epsilon);

    /** x + f(norm(x)), or norm(x + f(x)). run.states: {name: what came in, what f read and gave, the sum, what leaves}. */
    residual(x, { norm }, name, run, layer) {
      const pre = this.settings.norm === "pre";
      const read = pre ? this.norm(x, norm) : x;
      const update = layer(read);
      const sum = E.added(x, update);
      const output = pre ? sum : this.norm(sum, norm);
      if (run.states) run.states[name] = { input: x, read, update, sum, output };
      return output;
    }

    /**
     * What leaves the last block. past: for each block {keys, values} of earlier positions, which grow here.
     * sources: for each block those of the source. run.changes.encoder_layers: how many blocks of the encoder act; the
     * others are left out.
     */
    extend(x, past, sources, run) {
      const { d_model, positions, first_position, pattern, stride } = this.settings;
      const rows = x.length / d_model;
      const offset = past[0].keys.length;
      const added = { first: first_position, table: this.parts.positions?.weight_TD };
      if (run.changes?.positions !== false) x = E.withPositions(positions, x, d_model, offset, added);
      if (this.parts.embedding_norm) x = this.norm(x, this.parts.embedding_norm);
      const may = PATTERNS[pattern ?? "full"];
      const sees = this.causal ? (t, s) => s <= t && may(t, s, stride) : () => true;
      const acting = this.causal ? undefined : run.changes?.encoder_layers;
      this.blocks.slice(0, acting).forEach(({ parts, self, cross }, layer) => {
        x = this.residual(x, parts.self_residual, self.name, run, (y) => {
          const present = self.keysValues(y, rows, offset, run);
          past[layer].keys.push(...present.keys);
          past[layer].values.push(...present.values);
          return self.read(y, rows, past[layer], sees, offset, run);
        });
        if (cross) {
          const look = (y) => cross.read(y, rows, sources[layer], () => true, offset, run);
          x = this.residual(x, parts.cross_residual, cross.name, run, look);
        }
        const feed = (y) => E.feedForward(this.settings.activation, y, rows, parts.feed_forward);
        x = this.residual(x, parts.feed_forward_residual, `${this.name}.blocks.${layer}.feed_forward`, run, feed);
      });
      return this.settings.norm === "pre" ? this.norm(x, this.parts.norm) : x;
    }

    nothing = () => this.blocks.map(() => ({ keys: [], values: [] }));
    sources = (encoded, rows, run) => this.blocks.map(({ cross }) => cross.keysValues(encoded, rows, 0, run));
  };

  /** A copy that grows by itself. */
  const copied = (past) => past.map(({ keys, values }) => ({ keys: keys.slice(), values: values.slice() }));

  /** An encoder-decoder, or a decoder alone, of a model file. */
  E.Transformer = class {
    constructor({ config, weights }) {
      const settings = config.model;
      E.refuse(settings, E.STACKS);
      this.settings = settings;
      this.alone = settings.kind === "transformer_decoder";
      const embedding = this.alone ? "embedding" : "target_embedding";
      this.embedding = weights[`${embedding}.weight`];
      this.reads = weights["source_embedding.weight"] ?? this.embedding;
      this.output = weights["output.weight"] ?? this.embedding;
      this.outputBias = weights["output.bias"] ?? weights[`${embedding}.bias`];
      const layers = this.alone ? settings.layers : settings.decoder_layers;
      const of = { ...settings, positions: settings.encoder_positions ?? settings.positions };
      this.encoder = this.alone ? null : new E.Stack("encoder", weights, of, settings.encoder_layers, {});
      this.decoder = new E.Stack("decoder", weights, settings, layers, { cross: !this.alone, causal: true });
    }

    embedded = (ids, table) => E.embedded(ids, table, this.settings.scale_embeddings !== false);

    /** What a search begins with: sources, and nothing said. ids: what is read, as its column frames it. */
    start(ids, run) {
      if (this.alone) return { sources: null, past: this.decoder.nothing() };
      const encoded = this.encoder.extend(this.embedded(ids, this.reads), this.encoder.nothing(), null, run);
      return { sources: this.decoder.sources(encoded, ids.length, run), past: this.decoder.nothing() };
    }

    /** The log-probabilities after each of more tokens, and the state behind them; `state` stays as it is. */
    extend(ids, state, run) {
      const past = copied(state.past);
      const x = this.embedded(ids, this.embedding);
      if (this.settings.zero_start && past[0].keys.length === 0) x.fill(0, 0, this.settings.d_model);
      const hidden = this.decoder.extend(x, past, state.sources, run);
      const logits = E.linear(hidden, ids.length, this.output, this.outputBias);
      return { said: E.saidRows(logits, ids.length), state: { ...state, past } };
    }
  };

  const inParallel = Object.keys(E.SCORES).filter((name) => !E.SCORES[name].located);
  /** What a stack of blocks may be made of here; see E.refuse. */
  E.STACKS = {
    score: inParallel,
    normalizer: Object.keys(E.NORMALIZERS).filter((name) => name !== "monotonic"),
    positions: [...ABSOLUTE, ...RELATIVE],
    encoder_positions: [null, undefined, ...ABSOLUTE, ...RELATIVE],
    pointer: [false, undefined],
    ctc_weight: [0, undefined],
  };
})(window.Transduce);
