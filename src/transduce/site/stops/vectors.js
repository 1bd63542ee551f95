/* Words become vectors: a token's embedding, and the position added to it; without it no order is known. */
"use strict";
(function (T) {
  const E = T.engine;
  const SENTENCE = "The dog followed the cat.";
  const BASE = 10_000,
    POSITIONS = 24, // of the dot products
    LAST = 63; // of the clock
  const { i, b, o, n, sub, sup } = T.equationParts;
  let parts = null; // what is drawn once, and then told again
  let stop = null; // ends the clock's turning

  T.stop = {
    keeps: { text: SENTENCE, order: "", picked: "", positions: "1", position: "1" },
    draw(area) {
      if (!parts || !area.contains(parts.stage)) begin(area);
      show(T.state());
    },
  };

  const set = (patch) => T.go(patch, true);
  const model = () => T.demo().model;
  const width = () => model().settings.d_model;

  function begin(area) {
    parts = {
      box: T.html("input", { class: "typed", id: "typed", lang: "en", spellcheck: "false", on: { input: typed } }),
      words: T.html("div", { class: "asking", id: "words", role: "group", lang: "en" }),
      on: T.html("input", { type: "checkbox", id: "positions", on: { change: () => set({ positions: parts.on.checked ? "1" : "" }) } }),
      hint: T.html("p", { class: "hint", id: "hint", role: "status" }),
      said: T.html("p", { class: "say", id: "told", "aria-live": "polite" }),
      outputs: T.html("p", { class: "outputs", "aria-live": "polite" }),
      stage: T.html("div", { class: "stack" }),
      clock: T.html("div", { class: "stack" }),
      dots: T.html("div", { class: "stack" }),
    };
    parts.box.setAttribute("aria-label", T.say("vectors.sentence"));
    parts.words.setAttribute("aria-label", T.say("vectors.words"));
    const button = (id, act, kind = "quiet") =>
      T.html("button", { type: "button", class: kind, id, on: { click: act } }, T.say(`vectors.${id}`));
    parts.back = button("back", () => set({ order: "", picked: "" }));
    const switched = T.html("label", {}, parts.on, T.say("vectors.positions"));
    T.fill(area, parts.box, parts.words, parts.hint);
    area.append(
      T.html("div", { class: "controls" }, button("shuffle", shuffle, "primary"), parts.back, switched),
      parts.said,
      parts.outputs,
      parts.stage,
      T.html("h2", {}, T.say("vectors.clock")),
      T.html("div", { class: "controls" }, (parts.turn = button("turn", () => (stop ? halt() : play()))), slider()),
      parts.clock,
      parts.dots,
    );
  }

  function slider() {
    const change = (position) => (halt(), set({ position }));
    const all = { min: 0, max: LAST, step: 1, value: 1, show: (value) => String(Math.round(value)), change };
    parts.position = T.slider({ id: "position", label: T.say("vectors.position"), ...all });
    return parts.position.node;
  }

  function typed() {
    if (parts.box.value.trim()) set({ text: parts.box.value, order: "", picked: "" });
  }

  // ---- tokens and their order

  /** {ids, names, order, end}: the tokens as the model reads them, and which of them stands at each place. */
  function tokens(state) {
    const { source } = T.demo();
    const ids = source.closed(source.tokenizer.encode(state.text));
    const names = T.demo().sourceTokens(state.text).map((token) => token.text);
    const told = state.order.split("_").map(Number);
    const known = told.length === ids.length && new Set(told).size === ids.length && told.every((at) => at in ids);
    return { ids, names, order: known ? told : T.range(ids.length) };
  }

  const isMoved = (order) => order.some((at, place) => at !== place);

  function swap(place) {
    const state = T.state();
    const { order } = tokens(state);
    if (state.picked === "") return set({ picked: place, position: place });
    const from = T.place(state.picked, order.length);
    [order[from], order[place]] = [order[place], order[from]];
    set({ order: isMoved(order) ? order.join("_") : "", picked: "" });
  }

  /** Another order of all tokens but the last, which ends the sentence. */
  function shuffle() {
    const { order } = tokens(T.state());
    const before = order.join("_");
    for (let turn = 0; turn < 9 && (order.join("_") === before || !isMoved(order)); ++turn)
      for (let last = order.length - 2; last > 0; --last) {
        const other = Math.floor(Math.random() * (last + 1));
        [order[last], order[other]] = [order[other], order[last]];
      }
    set({ order: isMoved(order) ? order.join("_") : "", picked: "" });
  }

  function chips(state, { names, order }) {
    T.fill(
      parts.words,
      order.map((at, place) => {
        const act = { click: () => swap(place) };
        const pressed = String(state.picked !== "" && T.place(state.picked, order.length) === place);
        const told = { type: "button", id: `word-${place}`, "aria-pressed": pressed, on: act };
        return T.html("button", told, names[at], T.html("sub", { class: "place-number" }, state.positions ? String(place) : "?"));
      }),
    );
    parts.back.disabled = !isMoved(order);
  }

  // ---- what the model makes of them

  const changesOf = (state) => ({ positions: Boolean(state.positions) });

  /** What leaves the encoder, row after row; and the translation, whose decoder keeps its positions. */
  function encoded(ids, state) {
    const { encoder, decoder, reads } = model();
    const run = { changes: changesOf(state), record: {} };
    const outputs = encoder.extend(model().embedded(ids, reads), encoder.nothing(), null, run);
    const plain = { record: {} };
    const begun = { sources: decoder.sources(outputs, ids.length, plain), past: decoder.nothing() };
    const { settings, target } = T.demo();
    const [found] = E.search(model(), begun, target, E.limitOf(ids.length - 1, settings), settings, plain, target.forced);
    return { outputs, text: target.tokenizer.decode(found.ended ? found.tokens.slice(0, -1) : found.tokens) };
  }

  /** How far each token's output is from what it was in the sentence's own order, as a share of its length. */
  function moved(one, other, order) {
    const size = width();
    return order.map((at, place) => {
      const before = one.subarray(at * size, (at + 1) * size);
      const after = other.subarray(place * size, (place + 1) * size);
      return Math.hypot(...before.map((value, d) => value - after[d])) / Math.hypot(...before);
    });
  }

  function show(state) {
    if (document.activeElement !== parts.box) parts.box.value = state.text;
    parts.on.checked = Boolean(state.positions);
    const given = tokens(state);
    chips(state, given);
    const picked = state.picked === "" ? null : given.names[given.order[T.place(state.picked, given.order.length)]];
    T.fill(parts.hint, picked === null ? T.say("vectors.pick") : T.say("vectors.picked", { word: picked }));
    const own = encoded(given.ids, state);
    const now = encoded(given.order.map((at) => given.ids[at]), state);
    const changes = moved(own.outputs, now.outputs, given.order);
    T.fill(parts.said, told(state, given, changes));
    const says = (key, text, id) => T.html("span", {}, T.say(key), " ", T.html("b", { lang: "fr", id }, text));
    T.fill(parts.outputs, says("vectors.own", own.text, "own"), says("vectors.now", now.text, "now"));
    T.fill(parts.stage, sumFigure(state, given), orderFigure(given, changes));
    turned(state);
    if (parts.dotsOf !== `${T.dark()} ${state.position} ${innerWidth}`) dots(state);
  }

  function told(state, { order }, changes) {
    const count = changes.filter((change) => change > 1e-4).length;
    if (!isMoved(order)) return T.say(state.positions ? "vectors.told.own" : "vectors.told.off");
    return T.say(state.positions ? "vectors.told.moved" : "vectors.told.same", { count, all: order.length });
  }

  // ---- embedding + position = what the model reads

  const place = (position, d, size) => {
    const angle = position * BASE ** (-(d - (d % 2)) / size);
    return d % 2 ? Math.cos(angle) : Math.sin(angle);
  };
  const positionVector = (position) => Float32Array.from({ length: width() }, (_, d) => place(position, d, width()));

  function vectors(state, { ids, order }) {
    const size = width();
    const { reads } = model();
    const embedding = model().embedded(order.map((at) => ids[at]), reads);
    const added = E.withPositions(model().settings.positions, embedding, size, 0, {});
    const sum = state.positions ? added : embedding;
    const row = (values, at) => values.subarray(at * size, (at + 1) * size);
    return order.map((_, at) => ({
      embedding: row(embedding, at),
      position: row(sum, at).map((value, d) => value - embedding[at * size + d]),
      sum: row(sum, at),
    }));
  }

  const PARTS = ["embedding", "position", "sum"];

  function sumFigure(state, given) {
    const rows = vectors(state, given);
    const at = T.place(state.position, rows.length);
    const names = given.order.map((each) => given.names[each]);
    return T.html(
      "div",
      { class: "stack" },
      T.figure({
        name: "vectors",
        title: T.say("vectors.figure"),
        caption: T.say("vectors.caption", { size: width(), root: T.short(Math.sqrt(width())) }),
        picture: sumPicture(parts.stage, rows, names, at),
        note: T.say("vectors.note"),
        table: () => ({
          head: [T.say("vectors.token"), "id", "", ...T.range(width()).map((d) => String(d + 1))],
          rows: rows.flatMap((row, line) =>
            PARTS.map((part) => [
              `${line} ${names[line]}`,
              String(given.ids[given.order[line]]),
              T.say(`vectors.part.${part}`),
              ...Array.from(row[part], T.short),
            ]),
          ),
        }),
      }),
      equation(rows[at], names[at], at),
    );
  }

  function equation(row, name, at) {
    const list = (values) => [o("("), ...[0, 1, 2].flatMap((d) => [d ? o(",") : "", n(T.short(values[d]))]), o(", … )")].filter(Boolean);
    return T.formulaBox(
      T.say("vectors.figure"),
      T.equation(
        ...[sub(b("x"), T.math("mtext", {}, name)), o("="), T.math("msqrt", {}, n(String(width())))],
        ...[sub(b("e"), T.math("mtext", {}, name)), o("+"), sub(b("p"), n(String(at))), o("=")],
        ...[...list(row.embedding), o("+"), ...list(row.position), o("="), ...list(row.sum)],
      ),
    );
  }

  const ROW = 24,
    TITLE = 30;

  /** Three blocks, a row for each place: the embeddings move with their words, the positions stay. */
  function sumPicture(area, rows, names, at) {
    const room = T.widthOf(area, 290, 900) - 40;
    const left = Math.min(92, Math.max(...names.map((name) => T.textWidth(name, 13, 700))) + 26);
    const across = room > 620;
    const sign = 30;
    const wide = across ? (room - left - 2 * sign) / 3 : room - left;
    const tall = TITLE + ROW * rows.length + 12;
    const height = across ? tall : 3 * tall;
    const picture = T.svg("svg", {
      class: "picture steps vectors",
      ...{ width: room, height, viewBox: `0 0 ${room} ${height}`, role: "img", "aria-label": T.say("vectors.label") },
    });
    const most = Math.max(...rows.flatMap((row) => [...row.sum, ...row.embedding].map(Math.abs)));
    const small = Math.max(1, ...rows.flatMap((row) => [...row.position].map(Math.abs)));
    PARTS.forEach((part, column) => {
      const x = across ? left + column * (wide + sign) : left;
      const y = across ? 0 : column * tall;
      const text = (content, tx, ty, anchor = "end", kind = "column-title") =>
        picture.append(T.svg("text", { x: tx, y: ty, "text-anchor": anchor, class: kind }, content));
      text(T.say(`vectors.part.${part}`), x, y + 18, "start");
      if (column) text("+="[column - 1], across ? x - sign / 2 : left - 12, across ? y + TITLE + (ROW * rows.length) / 2 + 6 : y + 18, across ? "middle" : "end", "sign");
      rows.forEach((row, line) => {
        const top = y + TITLE + line * ROW;
        if (!across || !column) {
          text(names[line], left - 22, top + 16, "end", line === at ? "column-title" : "word-text");
          text(String(line), left - 6, top + 15, "end", "tick");
        }
        const href = T.paint(row[part], 1, row[part].length, (value) => T.signedBytes(value / (part === "position" ? small : most)));
        const image = { x, y: top + 2, width: wide, height: ROW - 4, preserveAspectRatio: "none", href };
        picture.append(T.svg("image", { ...image, class: "pixels" }));
        picture.append(T.svg("rect", { x: x - 0.5, y: top + 1.5, width: wide + 1, height: ROW - 3, class: line === at ? "mine" : "strip-frame" }));
      });
    });
    return picture;
  }

  // ---- what another order changes

  function orderFigure({ names, order }, changes) {
    return T.figure({
      name: "order",
      title: T.say("vectors.order"),
      caption: T.say("vectors.order.caption"),
      picture: orderPicture(parts.stage, names, order, changes),
      note: T.say("vectors.order.note"),
      table: () => ({
        head: [T.say("vectors.token"), T.say("vectors.from"), T.say("vectors.to"), T.say("vectors.change")],
        rows: order.map((at, to) => [names[at], String(at), String(to), exact(changes[to])]),
      }),
    });
  }

  /** A change as per cent; what rounding alone leaves, as it is. */
  const exact = (change) => (change === 0 ? "0" : change < 1e-4 ? `${(100 * change).toExponential(0)}%` : T.ratio(change)).replace("-", "−");

  const LINE = 32;

  function orderPicture(area, names, order, changes) {
    const room = Math.min(640, T.widthOf(area, 290, 900) - 40);
    const wide = Math.max(...names.map((name) => T.textWidth(name, 15, 700))) + 12;
    const [left, right] = [wide + 16, room - wide - 84];
    const height = LINE * names.length + 12;
    const y = (line) => 8 + (line + 0.5) * LINE;
    const picture = T.svg("svg", {
      class: "picture order",
      ...{ width: room, height, viewBox: `0 0 ${room} ${height}`, role: "img" },
      "aria-label": T.say("vectors.order.label", { changes: order.map((at, to) => `${names[at]} ${exact(changes[to])}`).join(", ") }),
    });
    const link = d3.linkHorizontal();
    order.forEach((at, to) => {
      const same = changes[to] < 1e-4;
      const kind = same ? "same" : "other";
      picture.append(
        T.svg("path", { class: `link ${kind}`, d: link({ source: [left, y(at)], target: [right, y(to)] }), "stroke-width": 2 + 8 * Math.min(1, changes[to]) }),
        T.svg("text", { x: left - 8, y: y(at) + 5, "text-anchor": "end", class: "token" }, names[at]),
        T.svg("text", { x: right + 8, y: y(to) + 5, class: "token" }, names[at]),
        T.svg("text", { x: room - 4, y: y(to) + 5, "text-anchor": "end", class: `change ${kind}` }, exact(changes[to])),
      );
    });
    return picture;
  }

  // ---- the clock

  function turned(state, position = Math.max(0, Math.min(LAST, Number(state.position) || 0))) {
    const pairs = width() / 2;
    const values = Float64Array.from({ length: pairs }, (_, j) => position * BASE ** ((-2 * j) / width()));
    const shown = Math.round(position);
    parts.position.set(shown);
    T.fill(parts.turn, T.say(stop ? "vectors.pause" : "vectors.turn"));
    const picture = T.dials(parts.clock, { values, width: pairs }, 0);
    picture.setAttribute("aria-label", T.say("vectors.clock.label", { position: shown }));
    T.fill(
      parts.clock,
      T.figure({
        name: "clock",
        title: T.say("vectors.clock.at", { position: shown }),
        caption: T.say("vectors.clock.caption"),
        picture,
        table: () => ({
          head: [T.say("vectors.pair"), T.say("vectors.angle"), "sin", "cos"],
          rows: T.range(pairs).map((j) => [String(j), T.short(values[j]), T.number(Math.sin(values[j])), T.number(Math.cos(values[j]))]),
        }),
      }),
      clockEquation(shown),
    );
  }

  function clockEquation(position) {
    const power = sup(n("10000"), T.math("mrow", {}, o("−"), n("2"), o("·"), n("5"), o("/"), n(String(width()))));
    const angle = position * BASE ** (-10 / width());
    return T.formulaBox(
      T.say("vectors.clock"),
      T.equation(
        ...[sub(i("p"), T.math("mrow", {}, n(String(position)), o(","), n("10"))), o("="), i("sin"), o("("), n(String(position)), o("·")],
        ...[power, o(")"), o("="), i("sin"), o("("), n(T.short(angle)), o(")"), o("="), n(T.short(Math.sin(angle)))],
      ),
      T.html("p", { class: "hint" }, T.say("vectors.clock.formula")),
    );
  }

  const FRAME = 40, // milliseconds
    SLOW = 900;

  /** The hands turn; by whole positions for those who want no motion. */
  function play() {
    let position = Math.round(Number(T.state().position) || 0);
    const step = T.still() ? 1 : FRAME / SLOW;
    stop = T.playing(
      () => {
        position = position + step > LAST ? 0 : position + step;
        turned(T.state(), position);
        parts.at = Math.round(position);
      },
      T.still() ? SLOW : FRAME,
    );
    T.fill(parts.turn, T.say("vectors.pause"));
  }

  function halt() {
    if (!stop) return;
    stop();
    stop = null;
    set({ position: parts.at ?? T.state().position });
  }

  // ---- dot products

  function dots(state) {
    parts.dotsOf = `${T.dark()} ${state.position} ${innerWidth}`;
    const all = T.range(POSITIONS).map(positionVector);
    const values = new Float32Array(POSITIONS ** 2);
    all.forEach((one, r) =>
      all.forEach((other, c) => {
        if (r !== c) values[r * POSITIONS + c] = E.dot(one, 0, other, 0, width());
      }),
    );
    const numbers = T.range(POSITIONS).map(String);
    const most = T.largest(values),
      least = Math.min(...values.filter(Boolean));
    const colour = (value) => T.weightBytes(Math.max(0, value - least) / (most - least));
    T.fill(
      parts.dots,
      T.figure({
        name: "dots",
        title: T.say("vectors.dots"),
        caption: T.say("vectors.dots.caption", { itself: String(width() / 2) }),
        picture: T.heatMap(parts.dots, {
          hole: (r, c) => r === c,
          ...{ rows: numbers, columns: numbers, values, cell: 25, row: T.place(state.position, POSITIONS) },
          rowTitle: T.say("vectors.position"),
          columnTitle: T.say("vectors.position"),
          label: T.say("vectors.dots"),
          colour,
          tell: (r, c) => [`${r} · ${c}`, r === c ? T.say("vectors.itself") : T.short(values[r * POSITIONS + c])],
          choose: (position) => set({ position }),
        }),
        note: T.legend(1, { format: (end) => T.short(end ? most : least) }),
        table: () => ({
          head: ["", ...numbers],
          rows: numbers.map((name, r) => [name, ...numbers.map((_, c) => T.short(values[r * POSITIONS + c]))]),
        }),
      }),
    );
  }
})(window.Transduce);
