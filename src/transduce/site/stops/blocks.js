/* One block, six blocks: the whole model at a glance, what each part of a block adds, and the pronoun after each block. */
"use strict";
(function (T) {
  const { sub } = T.equationParts;
  let parts = null; // what is drawn once, and then told again
  let scene = null; // what was computed last

  T.stop = {
    keeps: { text: T.sentence("tired"), blocks: "", word: "" }, // blocks: how many act, empty: all; word: whose state is shown
    draw(area) {
      if (!parts || !area.contains(parts.box)) begin(area);
      scene = computed(T.state());
      show(T.state());
    },
  };

  const go = (patch) => T.go(patch, true);
  const all = () => T.demo().model.settings.encoder_layers;

  function begin(area) {
    parts = Object.fromEntries(["controls", "model", "lens", "inside"].map((name) => [name, T.html("div", { class: "stack" })]));
    parts.output = T.html("p", { class: "say", "aria-live": "polite", id: "output", lang: "fr" });
    parts.box = T.html("input", { class: "typed", id: "typed", lang: "en", spellcheck: "false", "aria-label": T.say("blocks.sentence") });
    parts.box.addEventListener("input", () => parts.box.value.trim() && go({ text: parts.box.value, word: "" }));
    T.fill(area, parts.box, parts.output, parts.controls, parts.model, parts.lens, parts.inside);
  }

  /** changes of a pass in which so many blocks act; undefined for all. */
  const only = (blocks) => (blocks === all() ? undefined : { encoder_layers: blocks });

  function computed(state) {
    const { text } = state;
    const blocks = T.place(state.blocks, all() + 1, all());
    const whole = T.explored(text);
    const words = T.axis(whole, "source", whole.source.tokens.length, "words");
    const it = T.pronounIn(words);
    const pronoun = T.pronounOf(whole);
    const odds = pronoun && T.range(all() + 1).map((count) => T.pronounOdds(text, pronoun, only(count)));
    return { text, blocks, whole, words, pronoun, odds, word: T.place(state.word, words.length, Math.max(0, it)), found: T.explored(text, { changes: only(blocks) }) };
  }

  function show(state) {
    if (document.activeElement !== parts.box) parts.box.value = state.text;
    T.fill(parts.output, T.marked(scene.found.nbest[0].text));
    T.fill(parts.controls, T.html("div", { class: "controls" }, T.ADJECTIVES.map(say), counts(), restore()));
    T.fill(parts.model, modelFigure());
    T.fill(parts.lens, scene.pronoun ? lensFigure() : T.html("p", { class: "hint", id: "none" }, T.say("blocks.none")));
    T.fill(parts.inside, insideFigure(), sum());
  }

  const quiet = (id, text, act, more = {}) => T.html("button", { type: "button", class: "quiet", id, ...more, on: { click: act } }, text);
  const say = (adjective) => quiet(adjective, adjective, () => go({ text: T.sentence(adjective), word: "" }), { lang: "en" });
  const restore = () => scene.blocks < all() && quiet("mend", T.say("blocks.mend", { count: all() }), () => go({ blocks: "" }));
  const choose = (count) => go({ blocks: count === all() ? "" : count });

  function counts() {
    const label = T.say("blocks.use");
    const options = T.range(all() + 1).map((count) => [count, String(count)]);
    return T.html("span", { class: "slider" }, label, T.choice(label, scene.blocks, options, choose));
  }

  /* The model at a glance: blocks from the bottom to the top; those that do not act are crossed out. */
  const BLOCK = 52,
    GAP = 12,
    FOOT = 34,
    PART = 20;

  function modelFigure() {
    const width = T.widthOf(parts.model, 280, 620) - 38;
    const wide = Math.min(236, (width - 56) / 2);
    const height = all() * (BLOCK + GAP) + FOOT + 40;
    const [left, right] = [4, width - wide - 4];
    const y = (count) => height - 8 - FOOT - count * (BLOCK + GAP); // the top of a block, of 0 the embeddings'
    const picture = T.svg("svg", { class: "picture model", id: "model", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": T.say("blocks.model") });
    const middle = left + wide / 2;
    picture.append(T.svg("text", { x: middle, y: 15, "text-anchor": "middle", class: "side-name" }, T.say("short.encoder")));
    T.range(all()).forEach((block) => picture.append(T.svg("path", { d: `M${middle} ${y(block)}v-${GAP}`, class: block < scene.blocks ? "stream" : "stream off" })));
    picture.append(unit([T.say("blocks.embedding")], { x: left, y: y(0), wide, high: FOOT, count: 0 }));
    T.range(all()).forEach((block) =>
      picture.append(unit([either("feed_forward", wide - 42), either("attention", wide - 42)], { x: left, y: y(block + 1), wide, high: BLOCK, count: block + 1 })),
    );
    picture.append(decoder({ x: right, wide, y, height }), way({ from: left + wide, to: right, y }));
    const table = () => ({ head: [T.say("blocks.block"), T.say("blocks.part.attention"), T.say("blocks.part.feed_forward")], rows: sizes() });
    return T.figure({ name: "model", title: T.say("blocks.model"), caption: T.say("blocks.model.caption", { layers: all(), heads: T.demo().model.settings.heads, width: T.demo().model.settings.d_model }), picture, note: T.say("blocks.model.note"), table });
  }

  /** A part's name, or its short one where there is no room. */
  const either = (name, room) => {
    const long = T.say(`blocks.part.${name}`);
    return T.textWidth(long, 11.5) <= room ? long : T.say(`blocks.short.${name}`);
  };

  /** A block, or the embeddings below all: a button that leaves out what is above. */
  function unit(names, { x, y, wide, high, count }) {
    const act = () => choose(count);
    const on = count === scene.blocks;
    const number = count ? String(count) : "";
    const classes = ["unit", on && "on", count > scene.blocks && "off"].filter(Boolean).join(" ");
    return T.svg(
      "g",
      { class: classes, id: `unit-${count}`, role: "button", tabindex: "0", "aria-pressed": String(on), "aria-label": [number, ...names].join(" ").trim(), on: { click: act, keydown: pressed(act) } },
      T.svg("rect", { x, y, width: wide, height: high, rx: 9, class: "unit-back" }),
      number && T.svg("text", { x: x + 12, y: y + high / 2 + 5, class: "unit-number" }, number),
      names.map((name, i) => [" ", part(name, { x: x + (number ? 30 : 6), y: y + 5 + i * (PART + 2), wide: wide - (number ? 36 : 12), high: number ? PART : high - 10 })]),
    );
  }

  const part = (name, { x, y, wide, high }) => [
    T.svg("rect", { x, y, width: wide, height: high, rx: 5, class: "part" }),
    T.svg("text", { x: x + wide / 2, y: y + high / 2 + 4, "text-anchor": "middle", class: "part-name" }, name),
  ];

  const pressed = (act) => (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  };

  const DECODER = ["feed_forward", "cross", "masked"];

  /** The single block of the decoder, what it reads and what it says. */
  function decoder({ x, wide, y, height }) {
    const high = DECODER.length * (PART + 2) + 8;
    const top = crossing(y) - PART * 1.5 - 7;
    const middle = x + wide / 2;
    const says = scene.pronoun ? scene.odds[scene.blocks].map((value, i) => `${scene.pronoun.words[i]} ${T.percent(Math.exp(value))}`).join("  ") : "";
    const foot = height - 8 - FOOT;
    return T.svg(
      "g",
      {},
      T.svg("text", { x: middle, y: 15, "text-anchor": "middle", class: "side-name" }, T.say("short.decoder")),
      T.svg("path", { d: `M${middle} ${foot}V${top + high}M${middle} ${top}V92`, class: "stream" }),
      T.svg("rect", { x, y: top, width: wide, height: high, rx: 9, class: "unit-back still" }),
      DECODER.map((name, i) => part(either(name, wide - 18), { x: x + 6, y: top + 5 + i * (PART + 2), wide: wide - 12, high: PART })),
      T.svg("rect", { x, y: foot, width: wide, height: FOOT, rx: 9, class: "unit-back still" }),
      part(T.say("blocks.written"), { x: x + 6, y: foot + 5, wide: wide - 12, high: FOOT - 10 }),
      T.svg("rect", { x, y: 62, width: wide, height: 30, rx: 9, class: "unit-back still" }),
      part(either("softmax", wide - 18), { x: x + 6, y: 67, wide: wide - 12, high: 20 }),
      T.svg("text", { x: middle, y: 48, "text-anchor": "middle", class: "answer" }, says),
    );
  }

  const crossing = (y) => (y(3) + y(2)) / 2; // the height of the decoder's cross-attention

  /** The encoder's state, from the last block that acts to the decoder. */
  function way({ from, to, y }) {
    const [start, end] = [y(scene.blocks) + 8, crossing(y)];
    return T.svg("path", { d: `M${from + 1} ${start}C${from + 30} ${start}, ${to - 34} ${end}, ${to - 2} ${end}`, class: "way" });
  }

  /* Log p of both pronouns after each block: an earlier state in the place of the last. */
  const CHART = { left: 40, right: 44, top: 16, bottom: 40, height: 250 };

  function lensFigure() {
    const width = T.widthOf(parts.lens, 280, 760) - 38;
    const { left, right, top, bottom, height } = CHART;
    const x = d3.scaleLinear([0, all()], [left + 16, width - right]);
    const y = d3.scaleLinear([Math.min(-1, ...scene.odds.flat()), 0], [height - bottom, top]).nice(4);
    const picture = T.svg("svg", { class: "picture lens", id: "lens", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": T.say("blocks.lens.label") });
    for (const tick of y.ticks(4))
      picture.append(
        T.svg("line", { x1: left, x2: width - right + 14, y1: y(tick), y2: y(tick), class: "grid" }),
        T.svg("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end", class: "tick" }, T.short(tick)),
      );
    scene.odds.forEach((pair, count) => picture.append(moment(pair, count, x, height)));
    scene.pronoun.words.forEach((word, which) => picture.append(curve(word, which, x, y)));
    picture.append(T.svg("text", { x: width / 2, y: height - 2, "text-anchor": "middle", class: "tick" }, T.say("blocks.lens.x")));
    const [masculine, feminine] = scene.pronoun.words;
    const table = () => ({ head: [T.say("blocks.lens.x"), `log p(${masculine})`, `log p(${feminine})`], rows: scene.odds.map((pair, count) => [String(count), ...pair.map(T.number)]) });
    return T.figure({ name: "lens", title: T.say("blocks.lens", { masculine, feminine }), caption: T.say("blocks.lens.caption"), picture, note: T.pronounKey(scene.pronoun.words), table });
  }

  /** A column of the chart: so many blocks; a click chooses it. */
  function moment(pair, count, x, height) {
    const half = (x(1) - x(0)) / 2;
    const act = () => choose(count);
    const on = count === scene.blocks;
    const told = scene.pronoun.words.map((word, i) => `log p(${word}) ${T.number(pair[i])}`).join(", ");
    return T.svg(
      "g",
      { class: on ? "moment on" : "moment", id: `after-${count}`, role: "button", tabindex: "0", "aria-pressed": String(on), "aria-label": `${count}: ${told}`, on: { click: act, keydown: pressed(act) } },
      T.svg("rect", { x: x(count) - half + 2, y: 2, width: 2 * half - 4, height: height - 20, rx: 7, class: "moment-back" }),
      T.svg("text", { x: x(count), y: height - 24, "text-anchor": "middle", class: "moment-name" }, count),
    );
  }

  function curve(word, which, x, y) {
    const points = scene.odds.map((pair, count) => [x(count), y(pair[which])]);
    const colour = T.headColour(which);
    const [lastX, lastY] = points.at(-1);
    return T.svg(
      "g",
      { class: "lens-curve", "pointer-events": "none" },
      T.svg("path", { d: d3.line()(points), style: { stroke: colour } }),
      points.map(([cx, cy], count) => T.svg("circle", { cx, cy, r: count === scene.blocks ? 6.5 : 4, style: { fill: colour } })),
      T.svg("text", { x: lastX + 10, y: lastY + 5, class: "lens-word", style: { fill: colour } }, word),
    );
  }

  /* Inside one block: what attention and the feed-forward network add to one word's state. */
  const STRIP = 22,
    PITCH = 44;

  /** The states of the last block that acts, or of the first where none does, of the first token of the word. */
  function states() {
    const block = Math.max(1, scene.blocks);
    const found = passed(scene.text);
    const width = T.demo().model.settings.d_model;
    const row = scene.words[scene.word].tokens[0];
    const of = (x) => x.slice(row * width, (row + 1) * width);
    const [attention, feed] = ["self_attention", "feed_forward"].map((name) => found.states[`encoder.blocks.${block - 1}.${name}`]);
    return {
      block,
      rows: [
        { name: "x", values: of(attention.input) },
        { name: "norm.first", values: of(attention.read) },
        { name: "adds.attention", values: of(attention.update), sign: "+" },
        { name: "between", values: of(attention.output), sign: "=" },
        { name: "norm.second", values: of(feed.read) },
        { name: "adds.feed_forward", values: of(feed.update), sign: "+" },
        { name: "leaves", values: of(feed.output), sign: "=" },
      ],
    };
  }

  const known = new Map();
  function passed(text) {
    if (!known.has(text)) known.set(text, T.demo().pass(text));
    return known.get(text);
  }

  const length = (values) => Math.sqrt(values.reduce((total, value) => total + value ** 2, 0));

  /** |x| of what each part of each block adds to the word, beside the state that it adds it to. */
  function sizes() {
    const width = T.demo().model.settings.d_model;
    const row = scene.words[scene.word].tokens[0];
    const { states: found } = passed(scene.text);
    const size = (x) => length(x.slice(row * width, (row + 1) * width));
    return T.range(all()).map((block) => {
      const each = ["self_attention", "feed_forward"].map((name) => found[`encoder.blocks.${block}.${name}`]);
      return [String(block + 1), ...each.map(({ input, update }) => `|${T.short(size(input))}| + |${T.short(size(update))}|`)];
    });
  }

  function insideFigure() {
    const { block, rows } = states();
    const word = scene.words[scene.word].text;
    const width = T.widthOf(parts.inside, 280, 860) - 38;
    const left = 22;
    const cell = (width - left - 50) / rows[0].values.length;
    const height = rows.length * PITCH + 6;
    const stream = Math.max(...rows.filter(({ name }) => !name.startsWith("norm")).flatMap(({ values }) => [...values].map(Math.abs)));
    const most = (name, values) => (name.startsWith("norm") ? Math.max(...[...values].map(Math.abs)) : stream);
    const picture = T.svg("svg", { class: "picture inside", id: "inside", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": T.say("blocks.inside", { word, block }) });
    rows.forEach(({ name, values, sign }, i) => {
      const y = i * PITCH;
      picture.append(
        T.svg("text", { x: left, y: y + 12, class: name.startsWith("adds") ? "strip-name adds" : "strip-name" }, T.say(`blocks.strip.${name}`)),
        sign && T.svg("text", { x: 4, y: y + 19 + STRIP / 2 + 5, class: "sign" }, sign),
        T.svg("g", {}, [...values].map((value, d) => T.svg("rect", { x: left + d * cell, y: y + 19, width: cell + 0.2, height: STRIP - 4, fill: T.signedColour(value / most(name, values)) }))),
        T.svg("rect", { x: left - 0.5, y: y + 18.5, width: cell * values.length + 1, height: STRIP - 3, class: "strip-frame" }),
        T.svg("text", { x: width, y: y + 19 + STRIP / 2 + 2, "text-anchor": "end", class: "tick" }, T.short(length(values))),
      );
    });
    const chips = scene.words.map(({ text }, i) => quiet(`word-${i}`, text, () => go({ word: i }), { lang: "en", "aria-pressed": String(i === scene.word) }));
    const table = () => ({ head: ["", ...T.range(rows[0].values.length).map((d) => String(d + 1))], rows: rows.map(({ name, values }) => [T.say(`blocks.strip.${name}`), ...[...values].map(T.short)]) });
    return [
      T.html("div", { class: "chips", role: "group", "aria-label": T.say("blocks.word") }, chips),
      T.figure({ name: "inside", title: T.say("blocks.inside", { word, block }), caption: T.say("blocks.inside.caption"), picture, note: [T.legend(stream, { signed: true }), T.say("blocks.inside.note")], table }),
    ];
  }

  /** The first number of the state: what came in, and what both parts add. */
  function sum() {
    const { rows } = states();
    const first = (name) => rows.find((row) => row.name === name).values[0];
    const numbers = [first("x"), "+", "(", first("adds.attention"), ")", "+", "(", first("adds.feed_forward"), ")", "=", first("leaves")];
    const bold = (name) => T.math("mi", { mathvariant: "bold-italic" }, name);
    const adds = (sum_, of, part_) => [bold(sum_), "=", bold(of), "+", part_, "(", "norm", "(", bold(of), ")", ")"];
    return [
      T.mathLine(T.say("blocks.formula"), ...adds("y", "x", "attention"), ",", T.math("mspace", { width: "1em" }), ...adds("z", "y", "FFN")),
      T.mathLine(T.say("blocks.sum"), sub("z", ["1"]), "=", ...numbers),
    ];
  }
})(window.Transduce);
