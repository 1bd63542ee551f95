/* A model file as the explorer asks it: the answers of explore/exploration.py, computed in the page. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});
  const ALTERNATIVES = 10;
  const TASKS = ["translation", "language_modelling"];
  const STEPWISE = ["beam", "greedy", "sample"];
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
      this.model = E.model(file);
      this.settings = searched(file.config.search ?? {}, this.model.atOnce ? ["ctc"] : STEPWISE);
      const tokenizers = Object.fromEntries(
        Object.entries(file.tokenizer).map(([side, text]) => [side, E.tokenizer(text)]),
      );
      const column = (side) => file.columns[side] && E.column(file.columns[side], tokenizers[side] ?? tokenizers.joint);
      this.source = this.model.alone ? null : column("source");
      this.target = column("target");
    }

    /** What an explorer's server answers for a text. beam: its width; changes: interventions, as E.weighed takes them;
        forced: ids that the output begins with; target: ids that are looked at in the place of an output. */
    explore(text, { beam, changes, forced = [], target } = {}) {
      if (!text.trim()) throw new Error("text: expected a sentence; this one is empty.");
      const method = this.model.atOnce ? "ctc" : "beam";
      const settings = { ...this.settings, ...(beam ? { method, beam } : {}) };
      if (settings.method === method) settings.nbest = settings.beam;
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
        ? [this.given(target, read, changes)]
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
        T.range(run.record[name][0].axes.still ? 0 : count).map((head) => {
          const change = this.likelihood(read, ids, { record: {}, changes: { off: [{ name, head }] } }) - whole;
          return { name, layer, kind, head, change };
        }),
      );
      return { log_probability: whole, heads };
    }

    likelihood = (read, ids, run) => this.values(read, ids, run).reduce((sum, value) => sum + value, 0);

    /** The log-probability of each token of a given output, and of its end. */
    values(read, ids, run) {
      const { start } = this.target;
      if (this.model.atOnce) return E.ctcValues(this.model.start(read, run, E.leastPlaces(ids)).places, ids, start);
      const { said } = this.model.extend([start, ...ids], this.model.start(read, run), run);
      return [...ids, this.target.end].map((token, place) => said[place][token]);
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
    given(target, read, changes) {
      const values = this.values(read, target, { changes, record: {} });
      return E.written([...target, this.target.tokenizer.end], values, this.target.tokenizer.end, this.settings);
    }

    /** {said, record}: the log-probabilities at each token of an output, and the weights of that one pass. */
    looked(read, written, changes) {
      const run = { changes, record: {} };
      if (!this.model.atOnce) {
        const { said } = this.model.extend([this.target.start, ...written], this.model.start(read, run), run);
        return { said, record: run.record };
      }
      if (!written.length) throw new Error("An output without words has no attention in this kind of model.");
      const { places } = this.model.start(read, run, E.leastPlaces(written));
      const { held, owners } = E.owners(places, written, this.target.start);
      const merged = Object.entries(run.record).map(([name, calls]) => [
        name,
        calls.map((call) => E.byToken(call, owners, written.length)),
      ]);
      return { said: mostCertain(places, held, written), record: Object.fromEntries(merged) };
    }

    answer(text, read, source, found, lattice, changes, prompt) {
      const { tokenizer } = this.target;
      const [best] = found;
      const written = best.ended ? best.tokens.slice(0, -1) : best.tokens;
      const { said, record } = this.looked(read, written, changes);
      const layers = layersOf(record);
      const output = tokenizer.decode(written);
      const spans = E.writtenSpans(tokenizer, written, output);
      const end = this.model.atOnce ? [] : [E.endToken(tokenizer, output)];
      const tokens = [...E.tokensAt(tokenizer, written, spans, output), ...end];
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
        attention: layers,
        drawing: layers.some((each) => each.causal) && !read ? { kind: "look_back", prompt: prompt.length } : null,
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

  /** Of each token the predictions of the place that is most certain of it. */
  const mostCertain = (places, held, tokens) =>
    tokens.map((token, t) => {
      const own = places.filter((_, place) => held[place] === t);
      return own.reduce((best, row) => (row[token] > best[token] ? row : best));
    });

  /** The recipe's settings of search. Throws Unsupported for those that need more than these methods. */
  function searched(settings, methods) {
    const method = settings.method ?? methods[0];
    if (!methods.includes(method)) throw new E.Unsupported(`search.method = "${method}"`);
    for (const [key, idle] of Object.entries(IDLE))
      if ((settings[key] ?? idle) !== idle) throw new E.Unsupported(`search.${key} = ${settings[key]}`);
    const read = READ.filter((key) => settings[key] !== undefined).map((key) => [key, settings[key]]);
    return { beam: 5, ...Object.fromEntries(read), method };
  }

  /** The attention of one pass: encoder, decoder, then between both, then others. */
  function layersOf(record) {
    const layers = { encoder: [], decoder: [], cross: [], other: [] };
    for (const [name, calls] of Object.entries(record)) {
      const { axes, heads, rows, columns, data } = calls.at(-1);
      const list = layers[axes.kind];
      list.push({
        ...{ name, kind: axes.kind, layer: list.length, heads, rows: axes.rows, columns: axes.columns },
        ...{ causal: axes.columns === "decoder_input", shape: [heads, rows, columns] },
        weights: packed(axes.tape ? overTokens(data, rows) : data),
      });
    }
    return Object.values(layers).flat();
  }

  /** The weights of states by the tokens that they were left by; the initial one is the start token's. */
  function overTokens(data, rows) {
    const found = new Float32Array(data.length);
    for (let row = 0; row < rows; ++row) {
      found.set(data.subarray(row * rows + 1, (row + 1) * rows), row * rows);
      found[row * rows] += data[row * rows];
    }
    return found;
  }
})(window.Transduce);
