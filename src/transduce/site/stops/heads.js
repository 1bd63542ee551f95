/* Many heads: each named by what it does in this sentence, by a rule over its weights; and what is lost without it. */
"use strict";
(function (T) {
  const E = T.engine;
  const SENTENCE = "The dog didn't cross the river because it was too deep.";
  const OTHERS = [
    "The old fox found the key.",
    "The dog avoided the roof because it was very slippery.",
    "The cow was too nervous, so it didn't explore the castle.",
    "A wolf wanted to drink the soup, but it was too salty.",
    "The squirrel refused to follow the street because it was too sleepy.",
    "The beautiful bear carried the log because it was very proud.",
    "The birds were too playful.",
    "A grey dog moved the bed even though it was very unsteady.",
  ];
  const LEAST = 0.15, // of the weight, for a name
    TIMES = 2; // as much as by chance
  const { i, o, n, sub, sum } = T.equationParts;

  /** What a head may look at: (words, t, s) -> whether the word at s is it, for the query at t. */
  const KINDS = {
    itself: (words, t, s) => s === t,
    before: (words, t, s) => s === t - 1,
    behind: (words, t, s) => s === t + 1,
    end: (words, t, s) => words[s] === "</s>",
    stop: (words, t, s) => /^[.,!?;:]+$/.test(words[s]),
    noun: (words, t, s) => T.words.noun.includes(words[s].toLowerCase()),
    verb: (words, t, s) => T.words.verb.includes(words[s].toLowerCase()),
    adjective: (words, t, s) => T.words.adjective.includes(words[s].toLowerCase()),
    article: (words, t, s) => /^(the|an?)$/i.test(words[s]),
    pronoun: (words, t, s) => /^(it|they)$/i.test(words[s]),
  };
  const NAMES = Object.keys(KINDS);
  let parts = null; // what is drawn once, and then told again

  T.stop = {
    keeps: { ...T.askingKeeps(), text: SENTENCE, off: "", show: "lines" },
    draw(area) {
      if (!parts || !area.contains(parts.stage)) begin(area);
      show(T.state());
    },
  };

  const set = (patch) => T.go(patch, true);
  const settings = () => T.demo().model.settings;
  const nameOf = (layer) => `encoder.blocks.${layer}.self_attention`;

  function begin(area) {
    const box = T.html("input", { class: "typed", id: "typed", lang: "en", spellcheck: "false" });
    box.setAttribute("aria-label", T.say("heads.sentence"));
    box.addEventListener("input", () => box.value.trim() && set({ text: box.value }));
    parts = {
      box,
      told: T.html("p", { class: "say", id: "told", "aria-live": "polite" }),
      tiles: T.html("div", { class: "stack" }),
      buttons: T.html("div", { class: "controls" }),
      outputs: T.html("p", { class: "outputs", "aria-live": "polite" }),
      stage: T.html("div", { class: "stack" }),
    };
    T.fill(area, box, parts.tiles, parts.told, parts.buttons, parts.outputs, parts.stage);
  }

  // ---- the heads, and the rule that names them

  /** The heads that are switched off, as "layer.head". */
  const offOf = (state) => new Set(state.off.split("_").filter((each) => /^\d+\.\d+$/.test(each)));
  const changesOf = (off) => ({
    cut: [...off].map((each) => each.split(".").map(Number)).map(([layer, head]) => ({ name: nameOf(layer), head })),
  });

  /** {words, heads: [{layer, head, values}]}: the weights between words, of every head of the encoder. */
  function read(text, changes) {
    const explorer = T.demo();
    const run = { changes, record: {} };
    explorer.model.start(explorer.source.closed(explorer.source.tokenizer.encode(text)), run);
    const { words } = E.side(text, explorer.sourceTokens(text));
    const heads = T.range(settings().encoder_layers).flatMap((layer) => {
      const { heads: count, rows, data } = run.record[nameOf(layer)].at(-1);
      return T.range(count).map((head) => {
        const weights = data.subarray(head * rows * rows, (head + 1) * rows * rows);
        return { layer, head, values: T.joined(weights, rows, rows, words, words) };
      });
    });
    return { words: words.map((word) => word.text), labels: words, heads };
  }

  /** For each kind the share of the weight that goes to it, and what it would be if all weights were equal. */
  function shares(words, values) {
    const size = words.length;
    return Object.fromEntries(
      NAMES.map((kind) => {
        let [share, chance, rows] = [0, 0, 0];
        for (let t = 0; t < size; ++t) {
          const places = T.range(size).filter((s) => KINDS[kind](words, t, s));
          if (!places.length) continue;
          rows += 1;
          chance += places.length / size;
          share += places.reduce((total, s) => total + values[t * size + s], 0);
        }
        return [kind, { share: rows ? share / rows : 0, chance: rows ? chance / rows : 0, rows }];
      }),
    );
  }

  /** The kind with the largest share, of those that have enough and more than chance; else "mixed". "off": no weight. */
  function named(found) {
    const passing = NAMES.filter((kind) => found[kind].share >= LEAST && found[kind].share >= TIMES * found[kind].chance);
    if (passing.length) return passing.reduce((best, kind) => (found[kind].share > found[best].share ? kind : best));
    return NAMES.every((kind) => !found[kind].share) ? "off" : "mixed";
  }

  const kept = new Map();
  /** Each head with its shares here and in other sentences. Equal questions are answered once. */
  function heads(text, off) {
    const key = `${text}\n${[...off]}`;
    if (kept.has(key)) return kept.get(key);
    const changes = changesOf(off);
    const here = read(text, changes);
    const others = OTHERS.filter((other) => other !== text).map((other) => read(other, changes));
    const found = here.heads.map((each, place) => {
      const own = shares(here.words, each.values);
      const elsewhere = others.map((other) => shares(other.words, other.heads[place].values));
      const name = named(own);
      const mean = (kind) => {
        const told = elsewhere.filter((other) => other[kind].rows);
        return told.reduce((total, other) => total + other[kind].share, 0) / Math.max(1, told.length);
      };
      const same = elsewhere.filter((other) => named(other) === name).length;
      return { ...each, name, own, mean: Object.fromEntries(NAMES.map((kind) => [kind, mean(kind)])), same };
    });
    if (kept.size > 40) kept.clear();
    kept.set(key, { ...here, heads: found, others: others.length });
    return kept.get(key);
  }

  // ---- what is shown

  function show(state) {
    if (document.activeElement !== parts.box) parts.box.value = state.text;
    const off = offOf(state);
    const found = heads(state.text, off);
    const [layer, head] = [T.place(state.layer, settings().encoder_layers), T.place(state.head, settings().heads)];
    const one = found.heads.find((each) => each.layer === layer && each.head === head);
    T.fill(parts.tiles, tilesFigure(found, one, off));
    T.fill(parts.told, told(one, found));
    T.fill(parts.buttons, buttons(one, found, off));
    outputs(state, off);
    const why = one.name === "off" ? [] : [sharesFigure(one, found), equation(one, found)];
    T.fill(parts.stage, large(found, one, state), why);
  }

  const says = (name) => T.say(`heads.kind.${name}`);
  const shareOf = (one) => (NAMES.includes(one.name) ? one.own[one.name].share : null);

  const times = (one) => T.short(Number((one.own[one.name].share / one.own[one.name].chance).toFixed(1)));

  function told(one, { others }) {
    const place = { layer: one.layer + 1, head: one.head + 1, name: says(one.name) };
    if (one.name === "off") return T.say("heads.told.off", place);
    if (one.name === "mixed") return T.say("heads.told.mixed", { ...place, least: T.percent(LEAST), times: TIMES });
    const shares_ = { share: T.percent(shareOf(one)), times: times(one), mean: T.percent(one.mean[one.name]) };
    return T.say("heads.told", { ...place, ...shares_, same: one.same, others });
  }

  const keyOf = ({ layer, head }) => `${layer}.${head}`;

  function buttons(one, found, off) {
    const key = keyOf(one);
    const put = (keys, away) => {
      const next = new Set(off);
      for (const each of keys) away ? next.add(each) : next.delete(each);
      set({ off: [...next].sort().join("_") });
    };
    const button = (id, text, act, disabled = false) =>
      T.html("button", { type: "button", class: id === "switch" ? "primary" : "quiet", id, disabled, on: { click: act } }, text);
    const alike = found.heads.filter((each) => each.name === one.name).map(keyOf);
    return [
      button("switch", T.say(off.has(key) ? "heads.on" : "heads.off"), () => put([key], !off.has(key))),
      alike.length > 1 &&
        !off.has(key) &&
        button("alike", T.say("heads.alike", { count: alike.length, name: says(one.name) }), () => put(alike, true)),
      button("everything", T.say("heads.everything", { count: found.heads.length }), () => put(found.heads.map(keyOf), true)),
      button("restore", T.say("heads.restore"), () => set({ off: "" }), !off.size),
    ];
  }

  function outputs(state, off) {
    const written = (changes) => T.explored(state.text, changes ? { changes } : {}).nbest[0].text;
    const line = (key, text, id) => T.html("span", {}, T.say(key), " ", T.html("b", { lang: "fr", id }, text));
    const whole = written();
    T.fill(
      parts.outputs,
      line("heads.all", whole, "whole"),
      off.size ? line("heads.without", written(changesOf(off)), "without") : null,
    );
  }

  // ---- the tiles

  const GAP = 10,
    SIDE = 26,
    TOP = 22,
    NAME = 36;

  const COLOURED = ["itself", "noun", "behind", "adjective", "pronoun", "before", "verb", "article"];
  const OWN = { end: "var(--warn)", stop: "var(--muted)" };
  const colourOf = (name) =>
    COLOURED.includes(name) ? T.headColour(COLOURED.indexOf(name)) : (OWN[name] ?? "var(--line-strong)");

  function tilesFigure(found, one, off) {
    const counts = [...new Set(found.heads.map((each) => each.name))]
      .map((name) => [name, found.heads.filter((each) => each.name === name).length])
      .sort((a, b) => b[1] - a[1]);
    return T.figure({
      name: "heads",
      title: T.say("heads.figure"),
      caption: T.say("heads.caption", { least: T.percent(LEAST), times: TIMES }),
      picture: tiles(parts.tiles, found, one, off),
      note: counts.map(([name, count]) =>
        T.html(
          "span",
          { class: "key" },
          T.html("span", { class: "swatch", style: { background: colourOf(name) } }),
          `${says(name)} ${count}`,
        ),
      ),
      table: () => ({
        head: [T.say("heads.head"), T.say("heads.name"), T.say("heads.share"), T.say("heads.chance"), T.say("heads.elsewhere"), T.say("heads.same")],
        rows: found.heads.map((each) => {
          const known = NAMES.includes(each.name);
          const numbers = known
            ? [T.percent(shareOf(each)), T.percent(each.own[each.name].chance), T.percent(each.mean[each.name])]
            : ["", "", ""];
          return [`${each.layer + 1}.${each.head + 1}`, says(each.name), ...numbers, `${each.same} / ${found.others}`];
        }),
      }),
    });
  }

  function tiles(area, found, one, off) {
    const room = T.widthOf(area, 290, 900) - 40;
    const across = settings().heads;
    const cell = (room - SIDE) / across;
    const size = Math.min(112, cell - GAP);
    const beside = cell - size > 78;
    const tall = size + GAP + (beside ? 0 : NAME);
    const height = TOP + tall * settings().encoder_layers;
    const picture = T.svg("svg", {
      class: "picture tiles",
      ...{ width: room, height, viewBox: `0 0 ${room} ${height}`, role: "radiogroup", "aria-label": T.say("heads.figure") },
    });
    const names = T.svg("g", { "aria-hidden": "true" });
    const text = (content, x, y, anchor, kind) => names.append(T.svg("text", { x, y, "text-anchor": anchor, class: kind }, content));
    T.range(across).forEach((head) => text(String(head + 1), SIDE + head * cell + size / 2, 14, "middle", "tick"));
    T.range(settings().encoder_layers).forEach((layer) => text(String(layer + 1), SIDE - 10, TOP + layer * tall + size / 2 + 4, "end", "tick"));
    for (const each of found.heads) {
      const [x, y] = [SIDE + each.head * cell, TOP + each.layer * tall];
      picture.append(tile(each, found, { x, y, size, chosen: each === one, off: off.has(keyOf(each)) }));
      const share = shareOf(each);
      const [tx, ty, anchor] = beside ? [x + size + 9, y + size / 2, "start"] : [x + size / 2, y + size + 16, "middle"];
      const kind = `tile-name ${each === one ? "chosen" : share === null ? "quiet-text" : ""}`;
      text(T.fit(says(each.name), beside ? cell - size - 10 : cell - 2, 13), tx, ty, anchor, kind);
      if (share !== null) text(`${T.percent(share)} ×${times(each)}`, tx, ty + 15, anchor, "tick");
    }
    picture.append(names);
    picture.addEventListener("keydown", (event) => walk(event, one));
    return picture;
  }

  function tile(each, { words }, { x, y, size, chosen, off }) {
    const most = T.largest(each.values) || 1;
    const href = T.paint(each.values, words.length, words.length, (value) => T.weightBytes(value / most));
    const share = shareOf(each);
    const place = { layer: each.layer + 1, head: each.head + 1, name: says(each.name) };
    const label = T.say("heads.tile", { ...place, share: share === null ? "" : T.percent(share) }).trim();
    const node = T.svg(
      "g",
      {
        ...{ class: chosen ? "head-tile on" : "head-tile", role: "radio", "aria-checked": String(chosen), "aria-label": label },
        ...{ tabindex: chosen ? "0" : "-1", id: `tile-${each.layer}-${each.head}` },
        on: { click: () => choose(each.layer, each.head) },
      },
      T.svg("image", { x, y, width: size, height: size, preserveAspectRatio: "none", class: "pixels", href }),
      T.svg("rect", { class: "frame", x: x - 1.5, y: y - 1.5, width: size + 3, height: size + 3, rx: 4, style: { stroke: colourOf(each.name) } }),
      off ? T.svg("path", { class: "away", d: `M${x} ${y}l${size} ${size}m0 ${-size}l${-size} ${size}` }) : null,
    );
    T.pointed(node, { show: (event) => T.tip(event.clientX, event.clientY, [label]), hide: T.untip, atOnce: true });
    return node;
  }

  const choose = (layer, head) => (T.untip(), set({ layer, head }));

  const AHEAD = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  function walk(event, { layer, head }) {
    const step = AHEAD[event.key];
    if (!step) return;
    event.preventDefault();
    const [down, aside] = [T.place(layer + step[0], settings().encoder_layers), T.place(head + step[1], settings().heads)];
    document.getElementById(`tile-${down}-${aside}`)?.focus({ preventScroll: true }); // which stays, drawn anew
    choose(down, aside);
  }

  // ---- one head, large

  function large({ words, labels }, one, state) {
    const rows = labels.map((label, place) => ({ text: words[place], tokens: label.tokens }));
    const matrix = { values: one.values, T: words.length, S: words.length, rows, columns: rows, causal: false };
    const name = T.say("heads.one", { layer: one.layer + 1, head: one.head + 1, name: says(one.name) });
    const asLines = state.show === "lines";
    const most = T.largest(one.values) || 1;
    const drawing = { row: -1, rowTitle: T.say("heads.looks"), columnTitle: T.say("heads.seen"), label: T.describe(matrix, name) };
    return T.figure({
      name: "head",
      title: name,
      caption: T.say(asLines ? "heads.lines" : "heads.matrix"),
      picture: asLines
        ? T.lines(parts.stage, { ...drawing, matrix, choose: () => {}, tell: tell(matrix) })
        : T.weightsMap(parts.stage, matrix, most, drawing),
      tools: T.choice(
        T.say("show.label"),
        asLines ? "lines" : "matrix",
        [
          ["lines", T.say("show.lines")],
          ["matrix", T.say("show.matrix")],
        ],
        (how) => set({ show: how }),
      ),
      note: asLines ? null : T.legend(most),
      table: () => T.matrixTable(matrix),
    });
  }

  const tell = (matrix) => (which, place) => {
    const size = matrix.S;
    const weight = (other) => matrix.values[which === "rows" ? place * size + other : other * size + place];
    const best = T.range(size)
      .sort((a, b) => weight(b) - weight(a))
      .slice(0, 4);
    const told_ = T.say(which === "rows" ? "lines.looks" : "lines.seen", { word: matrix.rows[place].text });
    return [told_, ...best.map((other) => `${matrix.rows[other].text}  ${T.number(weight(other))}`)];
  };

  // ---- the rule, with the numbers of this head

  const ROW = 28;

  function sharesFigure(one, found) {
    return T.figure({
      name: "rule",
      title: T.say("heads.rule", { name: says(one.name) }),
      caption: T.say("heads.rule.caption", { others: found.others }),
      picture: sharesPicture(parts.stage, one),
      note: T.say("heads.rule.note"),
      table: () => ({
        head: [T.say("heads.name"), T.say("heads.share"), T.say("heads.chance"), T.say("heads.elsewhere")],
        rows: NAMES.map((kind) => [says(kind), ...[one.own[kind].share, one.own[kind].chance, one.mean[kind]].map(T.percent)]),
      }),
    });
  }

  function sharesPicture(area, one) {
    const room = Math.min(720, T.widthOf(area, 290, 900) - 40);
    const left = Math.max(...NAMES.map((kind) => T.textWidth(says(kind), 13, 700))) + 14;
    const wide = room - left - 56;
    const height = 8 + ROW * NAMES.length;
    const picture = T.svg("svg", {
      class: "picture steps rule-shares",
      ...{ width: room, height, viewBox: `0 0 ${room} ${height}`, role: "img" },
      "aria-label": NAMES.map((kind) => `${says(kind)} ${T.percent(one.own[kind].share)}`).join(", "),
    });
    NAMES.forEach((kind, line) => {
      const y = 4 + line * ROW;
      const { share, chance } = one.own[kind];
      const mine = kind === one.name;
      picture.append(
        T.svg("text", { x: left - 10, y: y + 18, "text-anchor": "end", class: mine ? "column-title" : "word-text" }, says(kind)),
        T.svg("rect", { x: left, y: y + 5, width: wide, height: ROW - 10, rx: 3, class: "share-rest" }),
        T.svg("rect", { x: left, y: y + 5, width: Math.max(0.5, wide * share), height: ROW - 10, rx: 3, style: { fill: colourOf(kind) } }),
        T.svg("line", { class: "chance", x1: left + wide * chance, x2: left + wide * chance, y1: y + 2, y2: y + ROW - 2 }),
        T.svg("circle", { class: "elsewhere", cx: left + wide * one.mean[kind], cy: y + ROW / 2, r: 5 }),
        T.svg("text", { x: room - 4, y: y + 18, "text-anchor": "end", class: "number" }, T.percent(share)),
      );
    });
    return picture;
  }

  /** The largest share as the sum that it is. */
  function equation(one, { words }) {
    const kind = NAMES.includes(one.name) ? one.name : NAMES.reduce((best, each) => (one.own[each].share > one.own[best].share ? each : best));
    const size = words.length;
    const lines = T.range(size)
      .map((t) => [t, T.range(size).filter((s) => KINDS[kind](words, t, s))])
      .filter(([, places]) => places.length);
    const parts_ = lines.slice(0, 3).map(([t, places]) => places.reduce((total, s) => total + one.values[t * size + s], 0));
    const terms = parts_.flatMap((value, place) => [place ? o("+") : null, n(T.number(value))]).filter(Boolean);
    const inside = T.math("mrow", {}, o("("), terms, o("+ … )"));
    return T.formulaBox(
      T.say("heads.rule", { name: says(one.name) }),
      T.equation(
        ...[T.math("mtext", {}, says(kind)), o("="), T.math("mfrac", {}, n("1"), n(String(lines.length))), sum(i("t"))],
        ...[sum(T.math("mrow", {}, i("s"), o("∈"), T.math("mtext", {}, says(kind)))), sub(i("α"), T.math("mrow", {}, i("t"), i("s")))],
        ...[o("="), T.math("mfrac", {}, n("1"), n(String(lines.length))), inside, o("="), n(T.percent(one.own[kind].share))],
      ),
    );
  }
})(window.Transduce);
