/* CTC: a Transformer that writes all tokens at once, its search, and its alignments (layers/ctc.py, search/ctc.py). */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  /** A model of a model file; the blank is the start token. */
  E.Ctc = class {
    alone = false;
    atOnce = true;

    constructor({ config, weights }) {
      const settings = config.model;
      E.refuse(settings, E.STACKS);
      this.settings = settings;
      this.reads = weights["source_embedding.weight"] ?? weights["output.weight"];
      this.output = weights["output.weight"] ?? this.reads;
      this.split = E.partsOf(weights, "split");
      this.encoder = new E.Stack("encoder", weights, settings, settings.encoder_layers, {});
      this.decoder = new E.Stack("decoder", weights, settings, settings.decoder_layers, { cross: true });
    }

    /** {places}: the log-probabilities of each place. least: the fewest places there are; the last one is repeated. */
    start(ids, run, least = 0) {
      const { d_model: width, places } = this.settings;
      const encoded = this.encoder.extend(E.embedded(ids, this.reads), this.encoder.nothing(), null, run);
      const own = E.linear(encoded, ids.length, this.split.weight, this.split.bias);
      const count = Math.max(places * ids.length, least);
      const x = new Float32Array(count * width);
      x.set(own);
      for (let at = own.length; at < x.length; at += width) x.set(own.subarray(own.length - width), at);
      const sources = this.decoder.sources(encoded, ids.length, run);
      const hidden = this.decoder.extend(x, this.decoder.nothing(), sources, run);
      return { places: E.saidRows(E.linear(hidden, count, this.output), count) };
    }
  };

  const plus = (one, other) => {
    const [less, more] = one < other ? [one, other] : [other, one];
    return more === -Infinity ? more : more + Math.log1p(Math.exp(less - more));
  };

  /**
   * The best outputs of a prefix beam, or with a beam of 1 of the best path. Their log-probabilities are sums over all
   * alignments. limit: the most tokens of an output, its end included.
   */
  E.ctcOutputs = (places, column, limit, settings) => {
    const { beam = 5, nbest = 1 } = settings;
    const blank = column.start;
    const { end } = column.tokenizer;
    const refused = new Set([end, ...column.forbidden].filter((token) => token !== blank));
    const offered = places.map((row) => E.likeliest(row, beam, refused));
    const outputs = beam === 1 ? [bestPath(offered, blank)] : prefixes(places, offered, blank, beam);
    const found = new Map(); // those that the limit makes equal are one
    for (const output of outputs) {
      const tokens = [...output, end].slice(0, limit);
      const values = tokenValues(places, output, blank).slice(0, limit);
      found.set(tokens.join(" "), E.written(tokens, values, end, settings));
    }
    return E.ranked([...found.values()], nbest);
  };

  const bestPath = (offered, blank) =>
    offered
      .map(([{ token }]) => token)
      .filter((token, place, all) => token !== all[place - 1])
      .filter((token) => token !== blank);

  /** Outputs with the probabilities of alignments that end in a blank and in their last token. */
  function prefixes(places, offered, blank, beam) {
    let kept = [{ output: [], blank: 0, token: -Infinity }];
    places.forEach((row, place) => {
      const after = new Map();
      const of = (output) => {
        const key = output.join(" ");
        if (!after.has(key)) after.set(key, { output, blank: -Infinity, token: -Infinity });
        return after.get(key);
      };
      for (const each of kept) {
        const whole = plus(each.blank, each.token);
        const same = of(each.output);
        same.blank = plus(same.blank, whole + row[blank]);
        for (const { token, value } of offered[place]) {
          if (token === blank) continue;
          const repeats = each.output.at(-1) === token;
          if (repeats) same.token = plus(same.token, each.token + value);
          const longer = of([...each.output, token]);
          longer.token = plus(longer.token, (repeats ? each.blank : whole) + value);
        }
      }
      kept = Array.from(after.values(), (each) => ({ ...each, whole: plus(each.blank, each.token) }))
        .sort((a, b) => b.whole - a.whole || inOrder(a.output, b.output))
        .slice(0, beam);
    });
    return kept.map((each) => each.output);
  }

  /** As Python orders tuples. */
  function inOrder(a, b) {
    const place = a.findIndex((token, i) => token !== b[i]);
    return place < 0 ? a.length - b.length : b.length <= place ? 1 : a[place] - b[place];
  }

  /** Log-probability of each token given those before, then of the end; they sum to that of the output. */
  function tokenValues(places, tokens, blank) {
    const count = tokens.length;
    let held = new Array(count).fill(-Infinity); // the last place held the token
    let rested = [0, ...held]; // it held the blank
    let said = rested;
    const begins = new Array(count).fill(-Infinity);
    for (const row of places) {
      const entered = tokens.map((token, t) => (token === tokens[t - 1] ? rested[t] : said[t]) + row[token]);
      entered.forEach((value, t) => (begins[t] = plus(begins[t], value)));
      held = held.map((value, t) => plus(value + row[tokens[t]], entered[t]));
      rested = said.map((value) => value + row[blank]);
      said = rested.map((value, u) => (u ? plus(value, held[u - 1]) : value));
    }
    const all = [0, ...begins];
    return all.map((value, u) => (u < count ? all[u + 1] : said[count]) - value);
  }
  E.ctcValues = tokenValues;

  /** The fewest places of an output: one for each token, and one between equal neighbours. */
  E.leastPlaces = (tokens) => tokens.length + tokens.filter((token, t) => t && token === tokens[t - 1]).length;

  /** The token that each place owns in the likeliest alignment: those that hold it, and the blanks behind them. */
  E.owners = (places, tokens, blank) => {
    const held = aligned(places, tokens, blank);
    let owner = -1;
    return { held, owners: held.map((token) => Math.max(0, (owner = Math.max(owner, token)))) };
  };

  /** The token that each place holds in the likeliest alignment, -1 = the blank (Viterbi). */
  function aligned(places, tokens, blank) {
    const count = tokens.length;
    let held = new Array(count).fill(-Infinity);
    let rested = [0, ...held];
    const came = places.map((row) => {
      const entered = tokens.map((token, t) => {
        const offers = [held[t], rested[t], t && token !== tokens[t - 1] ? held[t - 1] : -Infinity];
        const best = offers.indexOf(Math.max(...offers));
        return { best, value: offers[best] + row[token] };
      });
      const ended = rested.map((value, u) => u > 0 && held[u - 1] > value);
      rested = rested.map((value, u) => (ended[u] ? held[u - 1] : value) + row[blank]);
      held = entered.map((each) => each.value);
      return { entered: entered.map((each) => each.best), ended };
    });
    return traced(came, count, held[count - 1] > rested[count]);
  }

  const [STAYS, FROM_BLANK] = [0, 1];

  function traced(came, count, holds) {
    let said = count;
    const found = new Array(came.length).fill(-1);
    for (let place = came.length - 1; place >= 0 && said > 0; --place) {
      if (!holds) {
        holds = came[place].ended[said];
        continue;
      }
      found[place] = said - 1;
      const how = came[place].entered[said - 1];
      if (how === STAYS) continue;
      --said;
      holds = how !== FROM_BLANK;
    }
    return found;
  }

  /**
   * One call's weights with tokens in the place of places: rows averaged, columns summed, where they are places.
   * owners: the token of each place, of `count` tokens.
   */
  E.byToken = (call, owners, count) => {
    const { axes, heads, rows, columns, data } = call;
    const byRow = axes.rows === "target";
    const byColumn = axes.columns === "target";
    const [queries, keys] = [byRow ? count : rows, byColumn ? count : columns];
    const share = new Array(count).fill(0);
    owners.forEach((token) => ++share[token]);
    const found = new Float64Array(heads * queries * keys);
    for (let head = 0; head < heads; ++head)
      for (let row = 0; row < rows; ++row)
        for (let column = 0; column < columns; ++column) {
          const t = byRow ? owners[row] : row;
          const s = byColumn ? owners[column] : column;
          const weight = data[(head * rows + row) * columns + column];
          found[(head * queries + t) * keys + s] += byRow ? weight / share[t] : weight;
        }
    return { axes, heads, rows: queries, columns: keys, data: Float32Array.from(found) };
  };
})(window.Transduce);
