/* A model file as the explorer asks it: the answers of explore/exploration.py, computed in the page. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});
  const ALTERNATIVES = 10;
  const MOST_BEAM = 64;
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
      const { single = file.config.tokenizer?.kind !== "character" } = file.provenance.sentences ?? {};
      this.splits = single && this.source !== null;
      this.language = file.config.task?.source ?? "";
    }

    /** What an explorer's server answers for a text. beam: its width; search: other settings in the place of the
        recipe's; changes: interventions, as E.weighed takes them, and encoder_layers: how many of the encoder act;
        forced: ids that the output begins with; target: ids that are looked at in the place of an output; sentence:
        the number of the one that is looked at, of a text of several, from 0. */
    explore(text, { beam, search = {}, changes, forced = [], target, sentence = 0 } = {}) {
      if (!text.trim()) throw new Error("text: expected a sentence; this one is empty.");
      const method = this.model.atOnce ? "ctc" : "beam";
      const settings = { ...this.settings, ...(beam ? { method, beam } : {}), ...search };
      const whole = forced.length || target ? null : this.whole(text, sentence, settings, changes);
      const one = whole ? whole.sentences[whole.sentence].text : text;
      if (settings.method === method) settings.nbest = settings.beam;
      const found = this.source
        ? this.translated(one, settings, changes, forced, target)
        : this.continued(one, settings, changes, forced);
      return { ...found, whole };
    }

    /** The outputs of all sentences of a text, and their places in the whole output; null for one sentence. */
    whole(text, sentence, settings, changes) {
      if (!this.splits) return null;
      const tags = E.leadingTags(this.source.tokenizer, text);
      const plain = text.slice(tags.length);
      const cut = E.sentences(plain, this.language);
      if (cut.length < 2) return null;
      const sentences = cut.map(([start, end]) => {
        const one = tags + plain.slice(start, end);
        const [best] = this.read(one, settings, changes, [], null).found;
        return { text: one, output: this.target.tokenizer.decode(writtenIds(best)) };
      });
      const output = E.rejoined(plain, cut, sentences.map((each) => each.output));
      return { text, output, sentence: Math.min(sentence, cut.length - 1), sentences };
    }

    /** {ids, read, found}: the tokens of a text, those of a source as they are read, and the outputs that search finds;
        a language model's begin with the text. */
    read(text, settings, changes, forced, lattice) {
      const { source, target } = this;
      const ids = (source ?? target).tokenizer.encode(text);
      const read = source && source.closed(ids);
      const begun = this.model.start(read, { changes, record: {} });
      const more = Math.max(1, settings.max_length_offset ?? 20);
      const limit = source ? E.limitOf(ids.length, settings) : ids.length + more;
      const before = [...(source ? target.forced : ids), ...forced];
      const run = { changes, record: {} };
      return { ids, read, found: E.search(this.model, begun, target, limit, settings, run, before, lattice) };
    }

    translated(text, settings, changes, forced, target) {
      const lattice = settings.method === "beam" ? { steps: [] } : null;
      const { read, found } = target
        ? this.given(text, target, changes)
        : this.read(text, settings, changes, forced, lattice);
      const side = E.side(text, this.sourceTokens(text));
      return this.answer(text, read, side, found, lattice, changes, []);
    }

    /** A text and what the model goes on with. */
    continued(text, settings, changes, forced) {
      const lattice = settings.method === "beam" ? { steps: [] } : null;
      const { ids, found } = this.read(text, settings, changes, forced, lattice);
      return this.answer(text, null, null, found, lattice, changes, ids);
    }

    /** One pass over a text and ids that are written: {said: log p of every token behind the start and behind each of
        these, states: of each part of a block (E.Stack's residual), by its name}. Of a translator. */
    pass(text, written = [], changes) {
      const run = { changes, record: {}, states: {} };
      const begun = this.model.start(this.source.closed(this.source.tokenizer.encode(text)), run);
      const { said } = this.model.extend([this.target.start, ...written], begun, run);
      return { said, states: run.states };
    }

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

    /** The tokens of a text as it is read, with what stands before and behind it. */
    sourceTokens(text) {
      const { tokenizer } = this.source;
      const ids = tokenizer.encode(text);
      const tokens = E.tokensAt(tokenizer, ids, tokenizer.offsets(text), text);
      const read = this.source.closed(ids);
      const first = read.findIndex((_, at) => ids.every((id, place) => read[at + place] === id));
      const length = Array.from(text).length;
      const name = (id) => this.source.tokenizer.tokens([id])[0];
      const before = read.slice(0, first).map((id) => ({ text: name(id), start: 0, end: 0 }));
      const behind = read.slice(first + ids.length).map((id) => ({ text: name(id), start: length, end: length }));
      return [...before, ...tokens, ...behind];
    }

    /** As `read` has it, of an output that is not searched but given. */
    given(text, target, changes) {
      const ids = this.source.tokenizer.encode(text);
      const read = this.source.closed(ids);
      const values = this.values(read, target, { changes, record: {} });
      const { end } = this.target.tokenizer;
      return { ids, read, found: [E.written([...target, end], values, end, this.settings)] };
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
      const written = writtenIds(best);
      const { said, record } = this.looked(read, written, changes);
      const layers = layersOf(record);
      const output = tokenizer.decode(written);
      const spans = E.writtenSpans(tokenizer, written, output);
      const end = this.model.atOnce ? [] : [E.endToken(tokenizer, output)];
      const tokens = [...E.tokensAt(tokenizer, written, spans, output), ...end];
      return {
        model: this.name,
        text,
        source,
        target: E.side(output, tokens),
        recording: null,
        memory: null,
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
      const written = writtenIds(each);
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

  /** The tokens of an output without its end. */
  const writtenIds = (each) => (each.ended ? each.tokens.slice(0, -1) : each.tokens);

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
    if (settings.beam > MOST_BEAM) throw new E.Unsupported(`search.beam = ${settings.beam}`);
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
