/* One query's computation in one attention module, as interpret/steps.py has it; with what went into it. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});
  const FORMULAS = {
    dot: "q · k",
    scaled_dot: "q · k / √E",
    cosine: "g (q · k) / |q|,  k = h / |h|",
    bilinear: "q · k,  k = W h",
    additive: "vᵀ tanh(W q + k),  k = U h",
  };

  /**
   * What one attention module was given, of a text and an output.
   * tokens: of the output, as nbest has them. Gives {module, x, rows, memory, sees, offset, run}; x: the rows that ask,
   * of an encoder also those that are asked; null for attention that is not taken apart: of a recurrent model, or of
   * one that writes all at once. Throws where there is no such module.
   */
  E.watched = (explorer, text, tokens, name, changes) => {
    if (explorer.model.atOnce) return null;
    let call = null;
    const watch = (module, given) => module.name === name && (call ??= { module, ...given });
    const run = { changes, record: {}, watch };
    const read = explorer.source ? explorer.source.closed(explorer.source.tokenizer.encode(text)) : null;
    const begun = explorer.model.start(read, run);
    explorer.model.extend([explorer.target.start, ...explorer.target.tokenizer.ids(tokens)], begun, run);
    if (!call && !run.record[name]) throw new Error(`${name}: there is no such attention.`);
    return call;
  };

  /** The computation of one head for one query, both from 0, with arrays of numbers as the server sends them; or null,
      see E.watched. */
  E.Explorer.prototype.steps = function (text, tokens, name, head, query, { changes } = {}) {
    const call = E.watched(this, text, tokens, name, changes);
    if (!call) return null;
    const { module, rows } = call;
    for (const [what, number, count] of [["head", head, module.heads], ["query", query, rows]])
      if (!(number >= 0 && number < count)) throw new Error(`${what}: expected 0 to ${count - 1}; got ${number}.`);
    return { ...named(this, text, tokens, call, query), ...workedOut(call, head, query) };
  };

  function named(explorer, text, tokens, { module, memory }, query) {
    const { tokenizer } = explorer.target;
    const [self, encoder] = [!module.name.endsWith("cross_attention"), module.name.startsWith("encoder")];
    const ids = tokenizer.ids(tokens);
    const output = tokenizer.decode(ids);
    const written = E.tokensAt(tokenizer, ids, E.writtenSpans(tokenizer, ids, output), output);
    const said = [...written, E.endToken(tokenizer, output)].map((token) => token.text);
    const before = [E.shown(tokenizer.tokens([explorer.target.start])[0]), ...said];
    const source = explorer.source ? explorer.sourceTokens(text).map((token) => token.text) : [];
    const asking = encoder ? source : self ? before : said;
    const columns = self && !encoder ? before : source;
    return { query_token: asking[query], columns: columns.slice(0, memory.keys.length) };
  }

  function workedOut(call, head, query) {
    const { module, memory, sees, offset, run } = call;
    const { settings, parts, width, kind } = module;
    const place = offset + query;
    const { bias, read } = module.now(run);
    const every = asked(call, query);
    const count = memory.keys.length;
    const allowed = T.range(count).map((s) => sees(place, s));
    const all = every.map((q, h) => {
      const raw = q.raw;
      const alpha = module.weights(raw, h, place, memory, allowed, run);
      const out = new Float32Array(width);
      module.gather(alpha, memory, h, place, out, run);
      return { alpha, out };
    });
    const group = module.group(head);
    const { turned } = every[head];
    const keys = memory.keys.map((each) => each[group]);
    const scaled = Array.from(E.scored(kind, turned, keys, parts.score, null));
    const plain = ["dot", "scaled_dot"].includes(settings.score);
    const joined = Float32Array.from(all.flatMap(({ out }) => Array.from(out)));
    const besides = read ? new Float32Array(width) : null;
    read?.(all[head].alpha, place, besides);
    return {
      score: settings.score,
      formula: FORMULAS[settings.score],
      normalizer: settings.normalizer,
      width,
      q: Array.from(turned),
      k: keys.map((key) => Array.from(key)),
      v: memory.values.map((each) => Array.from(each[group])),
      scores: plain ? keys.map((key) => E.dot(turned, 0, key, 0, width)) : scaled,
      divisor: settings.score === "scaled_dot" ? Math.sqrt(width) : null,
      scaled,
      bias: bias ? T.range(count).map((s) => bias(turned, head, place, s)) : null,
      mask: allowed,
      weights: Array.from(all[head].alpha),
      read_besides: besides && Array.from(besides),
      head_output: Array.from(all[head].out),
      joined: Array.from(joined),
      output: Array.from(E.linear(joined, 1, parts.output.weight, parts.output.bias)),
    };
  }

  /** {raw, turned} for each head: W^Q x, and as it meets the keys. */
  function asked({ module, x, offset, run }, query) {
    const { weight, bias } = module.parts.query;
    const inputs = weight.shape[1];
    const whole = E.linear(x.subarray(query * inputs, (query + 1) * inputs), 1, weight, bias);
    return T.range(module.heads).map((head) => {
      const raw = whole.slice(head * module.width, (head + 1) * module.width);
      return { raw, turned: module.asked(raw, offset + query, run) };
    });
  }
})(window.Transduce);
