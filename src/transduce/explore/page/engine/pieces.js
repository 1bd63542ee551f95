/* The models of a tokenizer.json: how each cuts a piece of a text into tokens.

A model is {ids, cut}: ids, a Map of its tokens; cut(chars), [[id, first, last]] of the characters of a piece. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  /** The model that a table describes. Throws Unsupported. */
  E.tokenModel = (table, spellsBytes) => {
    const make = { BPE: bytePairs, Unigram: unigram, WordLevel: wholeWords }[table?.type];
    if (!make) throw new E.Unsupported(`tokenizer.model: ${table?.type} is not known here.`);
    return make(table, spellsBytes);
  };

  const refuse = (wrong, problem) => {
    if (wrong) throw new E.Unsupported(`tokenizer.model: ${problem}`);
  };

  /** Byte-pair encoding (Sennrich et al. 2016): of all neighbours, those merge first whose merge was learnt first. */
  function bytePairs(table, spellsBytes) {
    refuse(table.dropout, "dropout draws at random.");
    refuse(table.byte_fallback, "byte_fallback is not known here.");
    refuse(table.continuing_subword_prefix || table.end_of_word_suffix, "prefixes and suffixes are not known here.");
    const ids = new Map(Object.entries(table.vocab));
    const unknown = table.unk_token == null ? undefined : ids.get(table.unk_token);
    refuse(unknown === undefined && !spellsBytes(ids), "it has no token for unknown characters.");
    const size = largest(ids) + 1;
    const ranks = new Map(), // of two neighbours: left * size + right
      makes = []; // by rank
    table.merges.forEach((merge, rank) => {
      const [left, right, more] = Array.isArray(merge) ? merge : merge.split(" ");
      const [a, b, made] = [ids.get(left), ids.get(right), ids.get(left + right)];
      refuse(more !== undefined || made === undefined || a === undefined || b === undefined, `the merge ${merge}.`);
      ranks.set(a * size + b, rank);
      makes.push(made);
    });
    const letters = (chars) => {
      const found = [];
      chars.forEach((char, i) => {
        const id = ids.get(char) ?? unknown,
          last = found.at(-1);
        if (table.fuse_unk && !ids.has(char) && last?.[3]) last[2] = i + 1;
        else found.push([id, i, i + 1, !ids.has(char)]);
      });
      return found;
    };
    const cut = (chars) => {
      const whole = table.ignore_merges ? ids.get(chars.join("")) : undefined;
      if (whole !== undefined) return [[whole, 0, chars.length]];
      return merged(letters(chars), (a, b) => ranks.get(a * size + b), makes);
    };
    return { ids, cut };
  }

  const largest = (ids) => {
    let most = -1;
    for (const id of ids.values()) most = Math.max(most, id);
    return most;
  };

  const PLACES = 2 ** 31; // a merge in the queue: rank * PLACES + place

  /** Tokens after all merges. rank(a, b): undefined where two ids do not merge. makes: the id that a rank makes. */
  function merged(tokens, rank, makes) {
    const after = tokens.map((_, i) => i + 1),
      before = tokens.map((_, i) => i - 1),
      queue = new Queue();
    const rankAt = (place) => {
      const next = after[place];
      return place < 0 || next >= tokens.length ? undefined : rank(tokens[place][0], tokens[next][0]);
    };
    const ask = (place) => {
      const found = rankAt(place);
      if (found !== undefined) queue.push(found * PLACES + place);
    };
    for (let place = 0; place + 1 < tokens.length; place++) ask(place);
    for (let top; (top = queue.pop()) !== undefined;) {
      const place = top % PLACES,
        made = makes[Math.floor(top / PLACES)];
      if (tokens[place] === null) continue;
      const now = rankAt(place);
      if (now === undefined || makes[now] !== made) continue; // its neighbours changed meanwhile
      const right = after[place];
      tokens[place] = [made, tokens[place][1], tokens[right][2]];
      tokens[right] = null;
      after[place] = after[right];
      if (after[place] < tokens.length) before[after[place]] = place;
      ask(before[place]);
      ask(place);
    }
    return tokens.filter((token) => token !== null);
  }

  /** The smallest number first: a binary heap. */
  class Queue {
    #heap = [];

    push(value) {
      const heap = this.#heap;
      let place = heap.length;
      for (let parent; place && heap[(parent = (place - 1) >> 1)] > value; place = parent) heap[place] = heap[parent];
      heap[place] = value;
    }

    pop() {
      const heap = this.#heap,
        top = heap[0],
        value = heap.pop();
      if (!heap.length) return top;
      let place = 0;
      for (let child; (child = 2 * place + 1) < heap.length; place = child) {
        if (heap[child + 1] < heap[child]) child += 1;
        if (heap[child] >= value) break;
        heap[place] = heap[child];
      }
      heap[place] = value;
      return top;
    }
  }

  const UNKNOWN_PENALTY = 10;

  /** The likeliest cut into pieces (Kudo 2018). Unknown characters side by side are one token. */
  function unigram(table) {
    refuse(table.byte_fallback, "byte_fallback is not known here.");
    refuse(table.alpha, "alpha draws at random.");
    refuse(table.unk_id == null, "it has no token for unknown characters.");
    const ids = new Map(table.vocab.map(([piece], id) => [piece, id]));
    const scores = table.vocab.map(([, score]) => score);
    const unknownScore = scores.reduce((least, score) => Math.min(least, score), Infinity) - UNKNOWN_PENALTY;
    const longest = new Map(); // characters of a piece, by its first
    for (const piece of ids.keys()) {
      const chars = Array.from(piece);
      longest.set(chars[0], Math.max(longest.get(chars[0]) ?? 0, chars.length));
    }
    const cut = (chars) => {
      const score = new Float64Array(chars.length + 1),
        start = new Int32Array(chars.length + 1).fill(-1),
        token = new Int32Array(chars.length + 1);
      const reach = (from, to, id, more) => {
        const total = more + score[from];
        if (start[to] >= 0 && total <= score[to]) return;
        [score[to], start[to], token[to]] = [total, from, id];
      };
      for (let from = 0; from < chars.length; from++) {
        const last = Math.min(chars.length, from + (longest.get(chars[from]) ?? 0));
        for (let to = from + 1, piece = ""; to <= last; to++) {
          const id = ids.get((piece += chars[to - 1]));
          if (id !== undefined) reach(from, to, id, scores[id]);
        }
        if (!ids.has(chars[from])) reach(from, from + 1, table.unk_id, unknownScore);
      }
      const found = [];
      for (let to = chars.length; to > 0; to = start[to]) {
        const next = found.at(-1);
        if (token[to] === table.unk_id && next?.[0] === table.unk_id) next[1] = start[to];
        else found.push([token[to], start[to], to]);
      }
      for (const each of found) each[0] = ids.get(chars.slice(each[1], each[2]).join("")) ?? table.unk_id;
      return found.reverse();
    };
    return { ids, cut };
  }

  /** A vocabulary of words. */
  function wholeWords(table) {
    const ids = new Map(Object.entries(table.vocab)),
      unknown = ids.get(table.unk_token);
    refuse(unknown === undefined, "it has no token for unknown words.");
    return { ids, cut: (chars) => [[ids.get(chars.join("")) ?? unknown, 0, chars.length]] };
  }
})((window.Transduce ??= {}));
