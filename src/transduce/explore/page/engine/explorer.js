/* A model file as the explorer asks it: the answers of explore/exploration.py, computed in the page. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});
  const ALTERNATIVES = 10;
  const TASKS = ["translation", "language_modelling"];
  const READ = ["method", "beam", "nbest", "length_rule", "alpha", "max_length_factor", "max_length_offset"];
  READ.push("temperature", "top_k", "top_p", "seed");
  const IDLE = { coverage: 0, min_length: 0, no_repeat_ngram: null, shortlist: null, groups: 1, prune: null };

  /** Little-endian fp32 in base64, as the server sends it. */
  function packed(data) {
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    let characters = "";
    for (let at = 0; at < bytes.length; at += 0x8000)
      characters += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    return btoa(characters);
  }

  /**
   * A model that runs in the page.
   * buffer: the bytes of a model file. Throws E.Unsupported with the reason for what cannot run here.
   */
  E.Explorer = class {
    constructor(buffer, name = "") {
      const file = E.readModelFile(buffer);
      const task = file.config.task?.kind ?? "translation";
      if (!TASKS.includes(task)) throw new E.Unsupported(`task.kind = "${task}"`);
      this.name = name;
      this.model = new E.Transformer(file);
      this.settings = searched(file.config.search ?? {});
      const tokenizers = Object.fromEntries(
        Object.entries(file.tokenizer).map(([side, text]) => [side, E.tokenizer(text)]),
      );
      const column = (side) => file.columns[side] && E.column(file.columns[side], tokenizers[side] ?? tokenizers.joint);
      this.source = this.model.alone ? null : column("source");
      this.target = column("target");
    }

    /** What an explorer's server answers for a text. beam: its width; search: other settings in the place of the
        recipe's; changes: interventions, as E.weighed takes them, and encoder_layers: how many of the encoder act;
        forced: ids that the output begins with; target: ids that are looked at in the place of an output. */
    explore(text, { beam, search = {}, changes, forced = [], target } = {}) {
      if (!text.trim()) throw new Error("text: expected a sentence; this one is empty.");
      const settings = { ...this.settings, ...(beam ? { method: "beam", beam } : {}), ...search };
      settings.nbest = settings.method === "beam" ? settings.beam : 1;
      return this.source
        ? this.translated(text, settings, changes, forced, target)
        : this.continued(text, settings, changes, forced);
    }

    translated(text, settings, changes, forced, target) {
      const { tokenizer } = this.source;
      const ids = tokenizer.encode(text);
      const read = this.source.closed(ids);
      const lattice = settings.method === "beam" ? { steps: [] } : null;
      const begun = this.model.start(read, { changes, record: {} });
      const limit = E.limitOf(ids.length, settings);
      const found = target
        ? [this.given(target, begun, changes)]
        : this.searched(begun, limit, settings, changes, forced, lattice);
      const tokens = E.tokensAt(tokenizer, ids, tokenizer.offsets(text), text);
      const side = E.side(text, this.around(tokens, read, ids, text));
      return this.answer(text, read, side, found, lattice, changes, []);
    }

    /** A text and what the model goes on with. */
    continued(text, settings, changes, forced) {
      const { tokenizer } = this.target;
      const prompt = tokenizer.encode(text);
      const begun = this.model.start(null, { changes, record: {} });
      const lattice = settings.method === "beam" ? { steps: [] } : null;
      const limit = prompt.length + Math.max(1, settings.max_length_offset ?? 20);
      const before = [...prompt, ...forced];
      const run = { changes, record: {} };
      const found = E.search(this.model, begun, this.target, limit, settings, run, before, lattice);
      return this.answer(text, null, null, found, lattice, changes, prompt);
    }

    /** One pass over a text and ids that are written: {said: log p of every token behind the start and behind each of
        these, states: of each part of a block (E.Stack's residual), by its name}. Of a translator. */
    pass(text, written = [], changes) {
      const run = { changes, record: {}, states: {} };
      const begun = this.model.start(this.source.closed(this.source.tokenizer.encode(text)), run);
      const { said } = this.model.extend([this.target.start, ...written], begun, run);
      return { said, states: run.states };
    }

    searched = (begun, limit, settings, changes, forced, lattice) =>
      E.search(
        ...[this.model, begun, this.target, limit, settings, { changes, record: {} }],
        ...[[...this.target.forced, ...forced], lattice],
      );

    /** log p(output | source), and its change without each head (interpret/importance.py). tokens: of the output. */
    importance(text, tokens) {
      const read = this.source ? this.source.closed(this.source.tokenizer.encode(text)) : null;
      const ids = this.target.tokenizer.ids(tokens);
      const run = { record: {} };
      const whole = this.likelihood(read, ids, run);
      const heads = layersOf(run.record).flatMap(({ name, kind, layer, heads: count }) =>
        T.range(count).map((head) => {
          const change = this.likelihood(read, ids, { record: {}, changes: { cut: [{ name, head }] } }) - whole;
          return { name, layer, kind, head, change };
        }),
      );
      return { log_probability: whole, heads };
    }

    likelihood(read, ids, run) {
      const { said } = this.model.extend([this.target.start, ...ids], this.model.start(read, run), run);
      return [...ids, this.target.end].reduce((sum, token, place) => sum + said[place][token], 0);
    }

    /** The tokens that stand before and behind a text, with those of the text between them. */
    around(tokens, read, ids, text) {
      const first = read.findIndex((_, at) => ids.every((id, place) => read[at + place] === id));
      const length = Array.from(text).length;
      const name = (id) => this.source.tokenizer.tokens([id])[0];
      const before = read.slice(0, first).map((id) => ({ text: name(id), start: 0, end: 0 }));
      const behind = read.slice(first + ids.length).map((id) => ({ text: name(id), start: length, end: length }));
      return [...before, ...tokens, ...behind];
    }

    /** An output that is not searched but given. */
    given(target, begun, changes) {
      const read = [this.target.start, ...target];
      const { said } = this.model.extend(read, begun, { changes, record: {} });
      const tokens = [...target, this.target.tokenizer.end];
      const values = tokens.map((token, place) => said[place][token]);
      const total = values.reduce((sum, value) => sum + value, 0);
      return { tokens, values, total, ended: true, score: E.normalised(total, tokens.length, this.settings) };
    }

    answer(text, read, source, found, lattice, changes, prompt) {
      const { tokenizer } = this.target;
      const [best] = found;
      const written = best.ended ? best.tokens.slice(0, -1) : best.tokens;
      const run = { changes, record: {} };
      const begun = this.model.start(read, run);
      const { said } = this.model.extend([this.target.start, ...written], begun, run);
      const output = tokenizer.decode(written);
      const spans = E.writtenSpans(tokenizer, written, output);
      const tokens = [...E.tokensAt(tokenizer, written, spans, output), E.endToken(tokenizer, output)];
      return {
        model: this.name,
        text,
        whole: null,
        source,
        target: E.side(output, tokens),
        recording: null,
        score: best.score,
        log_probability: best.total,
        ended: best.ended,
        nbest: found.map((each) => this.listed(each)),
        alternatives: said.map((row) => this.alternatives(row)),
        lattice: lattice && this.spelled(lattice),
        attention: layersOf(run.record),
        drawing: read ? null : { kind: "look_back", prompt: prompt.length },
      };
    }

    listed(each) {
      const { tokenizer } = this.target;
      const written = each.ended ? each.tokens.slice(0, -1) : each.tokens;
      return {
        text: tokenizer.decode(written),
        score: each.score,
        log_probability: each.total,
        tokens: tokenizer.tokens(written),
        token_log_probabilities: each.values,
      };
    }

    alternatives = (row) =>
      E.likeliest(row, ALTERNATIVES, new Set()).map(({ token, value }) => ({
        token: E.shown(this.target.tokenizer.tokens([token])[0]),
        log_probability: value,
      }));

    spelled = (lattice) => ({
      steps: lattice.steps.map((step) =>
        step.map((each) => ({ ...each, text: this.target.tokenizer.tokens([each.token])[0] })),
      ),
    });
  };

  /** The recipe's settings of search. Throws Unsupported for those that need more than a beam. */
  function searched(settings) {
    if (!["greedy", "beam", "sample", undefined].includes(settings.method))
      throw new E.Unsupported(`search.method = "${settings.method}"`);
    for (const [key, idle] of Object.entries(IDLE))
      if ((settings[key] ?? idle) !== idle) throw new E.Unsupported(`search.${key} = ${settings[key]}`);
    const read = READ.filter((key) => settings[key] !== undefined).map((key) => [key, settings[key]]);
    return { method: "beam", beam: 5, ...Object.fromEntries(read) };
  }

  const KINDS = { encoder: ["encoder", "source", "source"], decoder: ["decoder", "decoder_input", "decoder_input"] };

  /** The attention of one pass: encoder, decoder, then between both. */
  function layersOf(record) {
    const kind = (name) => (name.endsWith("cross_attention") ? "cross" : name.split(".")[0]);
    const layers = { encoder: [], decoder: [], cross: [] };
    for (const [name, calls] of Object.entries(record)) {
      const { heads, rows, columns, data } = calls.at(-1);
      const [, queries, keys] = KINDS[kind(name)] ?? ["cross", "target", "source"];
      const list = layers[kind(name)];
      const shape = [heads, rows, columns];
      list.push({
        ...{ name, kind: kind(name), layer: list.length, heads, rows: queries, columns: keys },
        ...{ causal: keys === "decoder_input", shape, weights: packed(data) },
      });
    }
    return [...layers.encoder, ...layers.decoder, ...layers.cross];
  }
})(window.Transduce);
