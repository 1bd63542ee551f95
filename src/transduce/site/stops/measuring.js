/* Measuring: BLEU, ROUGE and perplexity by hand, on two sentences of the reader's own. */
"use strict";
(function (T) {
  const m = T.math;
  const SOURCE = "The animal didn't cross the street because it was too tired.";
  const REFERENCE = "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.";
  const PAIRS = {
    pronoun: ["L'animal n'a pas traversé la rue parce qu'elle était trop fatiguée.", REFERENCE, SOURCE],
    order: ["Parce qu'il était trop fatigué, l'animal n'a pas traversé la rue.", REFERENCE, SOURCE],
    repeated: ["la la la la la rue", REFERENCE, SOURCE],
    letters: ["A B B C D", "A B C D E F", SOURCE],
  };
  const MOST = 4; // words of the longest n-gram
  let parts = null; // what is drawn once; the rest is told again

  /** Words and punctuation marks apart; where there are no spaces, each character. */
  const wordsOf = (text) => T.pieces(text).flatMap(({ text: piece, word }) => (word ? [piece] : []));
  const gramsOf = (words, n) => T.range(Math.max(0, words.length - n + 1)).map((i) => words.slice(i, i + n).join(" "));

  /** {candidate, reference}: of each n-gram the place of its partner on the other side, -1 for none; `matches`: how many
      have one. An n-gram that the reference has twice counts twice at most. */
  function matched(candidate, reference, n) {
    const [said, wanted] = [gramsOf(candidate, n), gramsOf(reference, n)];
    const partner = { candidate: said.map(() => -1), reference: wanted.map(() => -1), said, wanted, matches: 0 };
    said.forEach((gram, i) => {
      const j = wanted.findIndex((other, at) => other === gram && partner.reference[at] < 0);
      if (j < 0) return;
      partner.candidate[i] = j;
      partner.reference[j] = i;
      ++partner.matches;
    });
    return partner;
  }

  const share = (part, whole) => (whole ? part / whole : 0);
  const f1 = (precision, recall) => share(2 * precision * recall, precision + recall);

  /** BLEU of one sentence (Papineni et al. 2002), in 0..1. smooth "exp": where an order has no match, 1/2, 1/4 .. of one
      stand in its place, as sacrebleu has it. */
  function bleu(candidate, reference, most, smooth) {
    const orders = T.range(most).map((i) => matched(candidate, reference, i + 1));
    let halved = 1;
    const precisions = orders.map(({ matches, said }) => {
      if (matches || !said.length || smooth !== "exp") return share(matches, said.length);
      halved *= 2;
      return 1 / (halved * said.length);
    });
    const penalty = candidate.length ? Math.min(1, Math.exp(1 - reference.length / candidate.length)) : 0;
    const none = !orders[0].matches || precisions.includes(0);
    const mean = precisions.reduce((sum, each) => sum + Math.log(each), 0) / most;
    return { precisions, penalty, score: none ? 0 : penalty * Math.exp(mean), orders };
  }

  /** ROUGE-N (Lin 2004): recall, precision and F1 of the n-grams. */
  function rouge(candidate, reference, n) {
    const { matches, said, wanted } = matched(candidate, reference, n);
    const [precision, recall] = [share(matches, said.length), share(matches, wanted.length)];
    return { precision, recall, f1: f1(precision, recall) };
  }

  /** ROUGE-L: the same of the longest common subsequence. */
  function rougeL(candidate, reference) {
    let row = Array(reference.length + 1).fill(0);
    for (const word of candidate) {
      const next = [0];
      reference.forEach((other, j) => next.push(word === other ? row[j] + 1 : Math.max(row[j + 1], next[j])));
      row = next;
    }
    const [precision, recall] = [share(row.at(-1), candidate.length), share(row.at(-1), reference.length)];
    return { length: row.at(-1), precision, recall, f1: f1(precision, recall) };
  }

  T.measures = { words: wordsOf, bleu, rouge, rougeL };

  const [CANDIDATE] = PAIRS.pronoun;
  T.stop = {
    keeps: { candidate: CANDIDATE, reference: REFERENCE, source: SOURCE, gram: "2", most: "4", smooth: "none", scored: "candidate" },
    draw(area) {
      if (!parts || !area.contains(parts.candidate)) begin(area);
      show(T.state());
    },
  };

  function begin(area) {
    const box = (name, lang) => {
      const set = () => T.go({ [name]: parts[name].value }, true);
      const node = T.html("input", { class: "typed", id: name, lang, spellcheck: "false", on: { input: set } });
      return [node, T.html("label", { class: "field" }, T.html("span", {}, T.say(`measuring.${name}`)), node)];
    };
    const boxes = { candidate: box("candidate", "fr"), reference: box("reference", "fr"), source: box("source", "en") };
    parts = Object.fromEntries(Object.entries(boxes).map(([name, [node]]) => [name, node]));
    parts.told = T.html("div", { class: "stack" });
    const pair = ([name, [candidate, reference, source]]) =>
      T.html(
        "button",
        { type: "button", class: "quiet", id: `pair-${name}`, on: { click: () => T.go({ candidate, reference, source }, true) } },
        T.say(`measuring.pair.${name}`),
      );
    T.fill(
      area,
      T.html("div", { class: "controls", role: "group", "aria-label": T.say("measuring.pairs") }, Object.entries(PAIRS).map(pair)),
      boxes.candidate[1],
      boxes.reference[1],
      parts.told,
      T.html("h2", {}, T.say("measuring.doubt")),
      boxes.source[1],
      (parts.doubt = T.html("div", { class: "stack" })),
    );
  }

  function show(state) {
    for (const name of ["candidate", "reference", "source"])
      if (document.activeElement !== parts[name] && parts[name].value !== state[name]) parts[name].value = state[name];
    const [candidate, reference] = [wordsOf(state.candidate), wordsOf(state.reference)];
    if (!candidate.length || !reference.length) {
      for (const place of [parts.told, parts.doubt]) T.fill(place, T.html("p", { class: "hint" }, T.say("measuring.empty")));
      return;
    }
    const most = 1 + T.place(String(state.most - 1), MOST, MOST - 1);
    const n = 1 + T.place(String(state.gram - 1), MOST, 1);
    T.fill(parts.told, matches(parts.told, candidate, reference, n), bleuCard(candidate, reference, most, state.smooth), rougeCard(candidate, reference));
    T.fill(parts.doubt, state.source.trim() ? doubt(parts.doubt, state) : T.html("p", { class: "hint" }, T.say("measuring.empty")));
  }

  /* The picture: both sentences from top to bottom, a bar for each n-gram, a line where two are matched. */
  const LINE = 30,
    TOP = 30,
    BAR = 8,
    LANE = 13,
    SIZE = 16;
  const SHAPE = d3.linkHorizontal();

  function matches(area, candidate, reference, n) {
    const found = matched(candidate, reference, n);
    const label = T.say("measuring.label", { n, matches: found.matches, all: found.said.length });
    return T.figure({
      name: "matches",
      title: T.say("measuring.matches", { n }),
      caption: T.say("measuring.matches.why"),
      picture: pictured(area, candidate, reference, n, found, label),
      tools: T.choice(T.say("measuring.gram"), n, T.range(MOST).map((i) => [i + 1, i + 1]), (gram) => T.go({ gram }, true)),
      note: [key("counted"), key("clipped"), key("alone")],
      table: () => ({
        head: [T.say("measuring.gram"), T.say("measuring.candidate"), T.say("measuring.reference"), T.say("measuring.counted")],
        rows: [...new Set(found.said)].map((gram) => countsOf(found, gram)),
      }),
    });
  }

  const key = (state) =>
    T.html("span", { class: "key" }, T.html("span", { class: `swatch gram-${state}` }), T.say(`measuring.key.${state}`));
  const times = (all, one) => all.filter((each) => each === one).length;
  const countsOf = ({ said, wanted }, gram) => [
    gram,
    times(said, gram),
    times(wanted, gram),
    Math.min(times(said, gram), times(wanted, gram)),
  ];

  function pictured(area, candidate, reference, n, found, label) {
    const room = T.widthOf(area, 260, 780) - 34;
    const wide = (words, title) =>
      Math.min(room * 0.36, Math.max(T.textWidth(title, 12) + 4, ...words.map((word) => T.textWidth(word, SIZE)))) + 12;
    const titles = [T.say("measuring.candidate"), T.say("measuring.reference")];
    const [left, right] = [wide(candidate, titles[0]), wide(reference, titles[1])];
    const size = {
      width: Math.min(room, left + right + 2 * n * LANE + 300),
      height: TOP + LINE * Math.max(candidate.length, reference.length) + 6,
    };
    const picture = T.walkedPicture("grams", size, T.say("measuring.role"), label);
    const sides = [
      { words: candidate, partners: found.candidate, at: left, sign: 1, grams: found.said, others: found.wanted },
      { words: reference, partners: found.reference, at: size.width - right, sign: -1, grams: found.wanted, others: found.said },
    ];
    const lane = ({ at, sign }, i) => at + sign * (6 + LANE * (i % n));
    const middle = (i) => TOP + LINE * (i + n / 2);
    const edge = (side) => side.at + side.sign * (LANE * n + 4);
    const links = found.candidate.flatMap((j, i) => (j < 0 ? [] : [linkOf(sides, edge, middle, i, j)]));
    picture.append(...links, ...sides.flatMap((side, which) => drawn(side, { n, lane, title: titles[which] })));
    const boxes = sides.flatMap((side) =>
      side.grams.map((_, i) => ({
        x: lane(side, i) - (side.sign > 0 ? 2 : BAR + 2),
        y: TOP + LINE * i + 3,
        width: BAR + 4,
        height: LINE * n - 6,
      })),
    );
    const all = [...found.said.map((_, i) => [0, i]), ...found.wanted.map((_, i) => [1, i])];
    T.walkBoxes(picture, {
      boxes,
      size,
      tell: (at) => told(found, ...all[at]),
      shown: (at) => links.forEach((link) => link.classList.toggle("now", at >= 0 && link.dataset[all[at][0] ? "to" : "from"] === String(all[at][1]))),
    });
    return picture;
  }

  const linkOf = ([from, to], edge, middle, i, j) =>
    T.svg("path", {
      class: "gram-link",
      d: SHAPE({ source: [edge(from), middle(i)], target: [edge(to), middle(j)] }),
      "data-from": i,
      "data-to": j,
    });

  /** counted: it has a partner; clipped: the other side has it, but not as often; alone: it has not. */
  const stateOf = ({ partners, grams, others }, i) =>
    partners[i] >= 0 ? "counted" : others.includes(grams[i]) ? "clipped" : "alone";

  function drawn(side, { n, lane, title }) {
    const { words, at, sign, grams } = side;
    const end = sign > 0 ? "end" : "start";
    const covered = words.map((_, i) => grams.some((_, g) => g <= i && i < g + n && side.partners[g] >= 0));
    return [
      T.svg("text", { x: at - 6 * sign, y: 14, "text-anchor": end, class: "gram-title" }, title),
      ...words.map((word, i) =>
        T.svg(
          "text",
          { x: at - 6 * sign, y: TOP + LINE * (i + 0.5) + 5, "text-anchor": end, class: `gram-word${covered[i] ? "" : " alone"}` },
          T.fit(word, side.sign > 0 ? at - 8 : 400, SIZE),
        ),
      ),
      ...grams.map((gram, i) =>
        T.svg("rect", {
          class: `gram gram-${stateOf(side, i)}`,
          x: lane(side, i) - (sign > 0 ? 0 : BAR),
          y: TOP + LINE * i + 5,
          width: BAR,
          height: LINE * n - 10,
          rx: 4,
          "data-gram": gram,
        }),
      ),
    ];
  }

  function told(found, which, i) {
    const gram = (which ? found.wanted : found.said)[i];
    const [, said, wanted, counted] = countsOf(found, gram);
    return [gram, T.say("measuring.times", { said, wanted, counted })];
  }

  /* Equations with the numbers of the sentences. */
  const row = (...all) => m("mrow", {}, all);
  const i = (text) => m("mi", {}, text);
  const name = (text) => m("mtext", {}, text);
  const o = (text) => m("mo", {}, text);
  const number = (value) => m("mn", {}, typeof value === "number" ? T.short(value) : value);
  const over = (above, below) => m("mfrac", {}, above, below);
  const power = (base, above) => m("msup", {}, base, above);
  const block = (...all) => T.html("div", { class: "equation", tabindex: "0", role: "group", "aria-label": T.say("measuring.equation") }, m("math", { display: "block", class: "formula" }, ...all));
  const joined = (all, sign) => all.flatMap((each, place) => (place ? [o(sign), each] : [each]));

  function bleuCard(candidate, reference, most, smooth) {
    const found = bleu(candidate, reference, most, smooth);
    const shares = found.orders.map(({ matches, said }, k) =>
      !matches && found.precisions[k] ? number(found.precisions[k]) : over(number(matches), number(said.length)),
    );
    const short = candidate.length < reference.length;
    const penalty = short ? power(i("e"), row(number(1), o("−"), over(number(reference.length), number(candidate.length)))) : number(1);
    return T.html(
      "section",
      { class: "stop-part", id: "bleu" },
      T.html("h2", {}, "BLEU ", T.html("output", { id: "bleu-score" }, (100 * found.score).toFixed(2))),
      T.html(
        "div",
        { class: "controls" },
        T.html("span", {}, T.say("measuring.most")),
        T.choice(T.say("measuring.most"), most, T.range(MOST).map((k) => [k + 1, k + 1]), (to) => T.go({ most: to }, true)),
        T.html("span", {}, T.say("measuring.smooth")),
        T.choice(T.say("measuring.smooth"), smooth, ["none", "exp"].map((each) => [each, T.say(`measuring.smooth.${each}`)]), (to) => T.go({ smooth: to }, true)),
      ),
      block(
        ...[name("BLEU"), o("="), i("b"), o("·"), power(row(o("("), m("munderover", {}, o("∏"), row(i("n"), o("="), number(1)), number(most)), m("msub", {}, i("P"), i("n")), o(")")), over(number(1), number(most)))],
      ),
      block(o("="), penalty, o("·"), power(row(o("("), ...joined(shares, "·"), o(")")), over(number(1), number(most))), o("="), number(found.score.toFixed(4))),
      T.html("p", { class: "note", id: "penalty" }, T.say(short ? "measuring.short" : "measuring.long", { c: candidate.length, r: reference.length, b: found.penalty.toFixed(3) })),
      found.score === 0 && T.html("p", { class: "note" }, T.say("measuring.zero")),
    );
  }

  function rougeCard(candidate, reference) {
    const numbers = ({ precision, recall, f1: both }) => [recall, precision, both].map((value) => value.toFixed(4));
    const rows = [...T.range(MOST).map((k) => [`ROUGE-${k + 1}`, ...numbers(rouge(candidate, reference, k + 1))]), ["ROUGE-L", ...numbers(rougeL(candidate, reference))]];
    const { orders } = bleu(candidate, reference, 1, "none");
    const [one] = orders;
    return T.html(
      "section",
      { class: "stop-part", id: "rouge" },
      T.html("h2", {}, "ROUGE"),
      T.html("p", { class: "caption" }, T.say("measuring.rouge")),
      block(m("msub", {}, name("ROUGE"), number(1)), o("="), over(number(one.matches), number(one.wanted.length)), o("="), number(share(one.matches, one.wanted.length).toFixed(4))),
      T.table({ head: ["", T.say("measuring.recall"), T.say("measuring.precision"), "F1"], rows }, "ROUGE"),
    );
  }

  /** What the demo's model makes of one of the two as a translation of the source. */
  function doubt(area, state) {
    const text = state[state.scored === "reference" ? "reference" : "candidate"];
    const target = T.demo().target.tokenizer.encode(text);
    const found = T.explored(state.source, { target }).nbest[0];
    const logs = found.token_log_probabilities;
    const tokens = [...found.tokens.map((token) => token.replace(/^▁/u, "\u2009")), T.say("measuring.end")];
    const mean = logs.reduce((sum, each) => sum + each, 0) / logs.length;
    const worst = logs.indexOf(Math.min(...logs));
    const scored = state.scored === "reference" ? "reference" : "candidate";
    return [
      T.figure({
        name: "doubt",
        title: T.say("measuring.perplexity", { value: T.short(Math.exp(-mean)) }),
        caption: T.say("measuring.perplexity.why"),
        picture: bars(area, tokens, logs, worst),
        tools: T.choice(T.say("measuring.scored"), scored, ["candidate", "reference"].map((each) => [each, T.say(`measuring.${each}`)]), (to) => T.go({ scored: to }, true)),
        note: T.say("measuring.worst", { token: tokens[worst].trim(), p: T.percent(Math.exp(logs[worst])) }),
        table: () => ({
          head: [T.say("measuring.token"), "p", "ln p"],
          rows: tokens.map((token, k) => [token.trim(), T.short(Math.exp(logs[k])), T.short(logs[k])]),
        }),
      }),
      equation(logs, mean),
      T.html("output", { class: "unseen", id: "perplexity" }, Math.exp(-mean).toFixed(4)),
    ];
  }

  function equation(logs, mean) {
    const sum = logs.reduce((total, each) => total + each, 0);
    const count = number(logs.length);
    return block(
      ...[name("PPL"), o("="), power(i("e"), row(o("−"), over(number(1), i("T")), m("munder", {}, o("∑"), i("t")), name("ln "), i("p"), o("("), m("msub", {}, i("y"), i("t")), o(")")))],
      ...[o("="), power(i("e"), over(number(-sum), count)), o("="), number(Math.exp(-mean))],
    );
  }

  const BAR_LINE = 24;

  /** How likely each token was, given those before it. */
  function bars(area, tokens, logs, worst) {
    const width = T.widthOf(area, 260, 700) - 34;
    const left = Math.min(width * 0.4, Math.max(...tokens.map((token) => T.textWidth(token, 15, 700)))) + 14;
    const most = width - left - 62;
    const height = BAR_LINE * tokens.length + 4;
    const label = T.say("measuring.bars", { tokens: tokens.length });
    const picture = T.svg("svg", { class: "picture doubt", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
    tokens.forEach((token, k) => {
      const [y, p, strong] = [BAR_LINE * k + 2, Math.exp(logs[k]), k === worst ? " strong" : ""];
      picture.append(
        T.svg("text", { x: left - 10, y: y + 16, "text-anchor": "end", class: `doubt-token${strong}` }, token.trim()),
        T.svg("rect", { x: left, y: y + 3, width: most, height: BAR_LINE - 8, rx: 3, class: "share-rest" }),
        T.svg("rect", { x: left, y: y + 3, width: Math.max(1, most * p), height: BAR_LINE - 8, rx: 3, class: `doubt-bar${strong}` }),
        T.svg("text", { x: left + most + 8, y: y + 16, class: `doubt-token${strong}` }, T.percent(p)),
      );
    });
    return picture;
  }
})(window.Transduce);
