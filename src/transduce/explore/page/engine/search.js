/* Greedy search, beam search and sampling, as transduce/search has them: the same outputs, scores, ties and draws.
   The search of CTC is in ctc.js. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  const PARTS = { power: [0, 1], gnmt: [5, 6], none: [0, 1] };
  /** The score of an output: its log-probability by the length rule. */
  E.normalised = (total, length, { length_rule = "power", alpha = 0.75 }) => {
    const [offset, unit] = PARTS[length_rule];
    return total / ((offset + length) / unit) ** (length_rule === "none" ? 0 : alpha);
  };

  /** The most tokens of an output for a source of so many. */
  E.limitOf = (length, { max_length_factor = 1.5, max_length_offset = 20 }) =>
    Math.max(1, Math.trunc(max_length_factor * length) + max_length_offset);

  /** The `count` likeliest tokens, of equal ones the lower first; without: tokens that are not chosen. */
  E.likeliest = (row, count, without) => {
    const best = [];
    row.forEach((value, token) => {
      if (without.has(token) || value === -Infinity) return;
      if (best.length === count && value <= best[count - 1].value) return;
      let place = best.length;
      while (place > 0 && best[place - 1].value < value) --place;
      best.splice(place, 0, { token, value });
      if (best.length > count) best.pop();
    });
    return best;
  };

  const barred = (column, time) => new Set(time ? column.forbidden : [...column.forbidden, ...column.forbiddenFirst]);

  /** An output that was found: its log-probability is the sum of its tokens'. */
  E.written = (tokens, values, end, settings) => {
    const total = values.reduce((sum, value) => sum + value, 0);
    const ended = tokens.at(-1) === end;
    return { tokens, values, ended, total, score: E.normalised(total, tokens.length, settings) };
  };

  /** Ended ones first, then by score, length and tokens. */
  E.ranked = (found, count) => {
    const order = (a, b) =>
      b.ended - a.ended ||
      b.score - a.score ||
      a.tokens.length - b.tokens.length ||
      firstDifference(a.tokens, b.tokens);
    return found.sort(order).slice(0, count);
  };

  function firstDifference(a, b) {
    const place = a.findIndex((token, i) => token !== b[i]);
    return place < 0 ? 0 : a[place] - b[place];
  }

  /**
   * The best outputs. model: E.model's; begun: its state before an output; column: what writes, E.column's.
   * forced: tokens that an output begins with; they count as its own. lattice: {steps}, which is filled with what was
   * weighed at each step; null = it is not asked for.
   */
  E.search = (model, begun, column, limit, settings, run, forced = [], lattice = null) => {
    if (settings.method === "ctc") {
      if (forced.length) throw new Error("A model that writes all words at once cannot begin with given tokens.");
      return E.ctcOutputs(begun.places, column, limit, settings);
    }
    if (settings.method === "sample") return sampled(model, begun, column, limit, settings, run, forced);
    const width = settings.method === "greedy" ? 1 : (settings.beam ?? 5);
    const { end } = column.tokenizer;
    let live = [{ slot: 0, total: 0, tokens: [], values: [], last: column.start, state: begun }];
    const found = [];
    let slots = width;
    let worst = -Infinity;
    for (let time = 0; time < limit && live.length; ++time) {
      const offered = weighed(live, model, column, time, width, run, forced[time]);
      const grown = taken(offered, slots);
      if (lattice) lattice.steps.push(noted(offered, grown, end, limit));
      const going = [];
      for (const each of grown) {
        const done = E.written(each.tokens, each.values, end, settings);
        if (!done.ended && each.tokens.length < limit) {
          going.push(each);
          continue;
        }
        found.push(done);
        if (!done.ended) continue;
        --slots;
        const scores = found.filter((other) => other.ended).map((other) => other.score);
        const nbest = settings.nbest ?? 1;
        worst = scores.length >= nbest ? scores.sort((a, b) => b - a)[nbest - 1] : -Infinity;
      }
      const best = Math.max(...going.map((each) => each.total));
      live = E.normalised(best, limit, settings) <= worst ? [] : going;
    }
    return E.ranked(found, settings.nbest ?? 1);
  };

  /** Independent draws, best first; each has random numbers of its own (seed, line 0, draw). */
  function sampled(model, begun, column, limit, settings, run, forced) {
    const draws = Array.from({ length: settings.nbest ?? 1 }, (_, draw) => {
      const uniform = E.uniforms(settings.seed ?? 0, 0, draw);
      const [tokens, values] = [[], []];
      let [last, state] = [column.start, begun];
      for (let time = 0; time < limit && tokens.at(-1) !== column.tokenizer.end; ++time) {
        const step = model.extend([last], state, run);
        const without = barred(column, time);
        const row = step.said[0].map((value, token) => (without.has(token) ? -Infinity : value));
        const share = uniform();
        last = forced[time] ?? drawn(row, share, settings);
        state = step.state;
        tokens.push(last);
        values.push(step.said[0][last]);
      }
      return E.written(tokens, values, column.tokenizer.end, settings);
    });
    return E.ranked(draws, draws.length);
  }

  /** The token at which the cumulative probability first exceeds this share of it, after temperature, top-k, top-p. */
  function drawn(row, share, { temperature = 1, top_k = null, top_p = null }) {
    let order = Array.from(row.keys());
    if (top_k !== null || top_p !== null) order.sort((a, b) => row[b] - row[a] || a - b);
    const greatest = row.reduce((most, value) => Math.max(most, value), -Infinity);
    let powers = order.map((token) => Math.exp((row[token] - greatest) / temperature));
    if (top_k !== null) [order, powers] = [order.slice(0, top_k), powers.slice(0, top_k)];
    if (top_p !== null) {
      const total = powers.reduce((sum, each) => sum + each, 0);
      let before = 0;
      powers = powers.map((each) => ((before += each), before - each < top_p * total ? each : 0));
    }
    const threshold = share * powers.reduce((sum, each) => sum + each, 0);
    let sum = 0;
    const place = powers.findIndex((each) => (sum += each) > threshold);
    return order[place < 0 ? order.length - 1 : place];
  }

  /** The continuations of all live hypotheses that may take a slot, in the order of these. */
  function weighed(live, model, column, time, width, run, forced) {
    return live.flatMap((each) => {
      const { said, state } = model.extend([each.last], each.state, run);
      const chosen =
        forced === undefined
          ? E.likeliest(said[0], width, barred(column, time))
          : [{ token: forced, value: said[0][forced] }];
      return chosen.map(({ token, value }) => ({ each, state, token, value, total: each.total + value }));
    });
  }

  /** The likeliest of them, as many as there are slots. */
  function taken(offered, slots) {
    const sorted = offered.slice().sort((a, b) => b.total - a.total || a.each.slot - b.each.slot);
    return sorted.slice(0, slots).map((offer, slot) => ({
      offer,
      slot,
      total: offer.total,
      tokens: [...offer.each.tokens, offer.token],
      values: [...offer.each.values, offer.value],
      last: offer.token,
      state: offer.state,
    }));
  }

  /** A step of a lattice (search/lattice.py); each live hypothesis then knows its place in it. */
  function noted(offered, grown, end, limit) {
    return offered.map(({ each, token, value, total }, place) => {
      const kept = grown.find(({ offer }) => offer === offered[place]);
      if (kept) kept.place = place;
      const finished = kept !== undefined && (token === end || kept.tokens.length >= limit);
      return { token, parent: each.place ?? -1, log_probability: value, total, kept: kept !== undefined, finished };
    });
  }
})(window.Transduce);
