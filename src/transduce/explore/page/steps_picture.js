/* One query's computation drawn: a row for every key, from left to right what happens to it. */
"use strict";
(function (T) {
  const ROW = 30,
    HEAD = 74,
    GAP = 26,
    STRIP = 18,
    MOST_ROWS = 30,
    NUMBER = 74,
    BAR = 110;

  /** d: the computation; reached: names of the steps shown; head: which head's it is. */
  T.stepsPicture = (area, d, reached, head) => {
    const keys = shownKeys(d);
    const now = reached.at(-1);
    const strip = stripOf(d.width);
    const columns = layout(d, strip);
    const width = columns.at(-1).x + columns.at(-1).width + 8;
    const below = HEAD + keys.length * ROW;
    const height =
      below +
      (reached.includes("sum") ? 54 : 10) +
      (reached.includes("join") ? 66 : 0) +
      (reached.includes("output") ? 44 : 0);
    const most = scales(d);
    const picture = T.svg("svg", {
      class: "picture steps",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": T.say("steps.label", {
        query: d.query_token,
        reached: reached.map((name) => T.say(`step.${name}`)).join(", "),
      }),
    });
    for (const column of columns)
      if (reached.includes(column.step)) drawColumn(picture, column, { d, keys, now, most, strip });
    keyNames(picture, d, keys, columns[0].x);
    queryStrip(
      picture,
      d,
      columns.find((column) => column.kind === "k"),
      most,
      strip,
    );
    if (reached.includes("sum"))
      sumStrip(
        picture,
        d,
        columns.find((column) => column.kind === "v"),
        { below, most, strip, now },
      );
    if (reached.includes("join")) joinStrip(picture, d, { y: below + 70, width, head, now });
    if (reached.includes("output")) outputStrip(picture, d, { y: below + 132, width, now });
    return picture;
  };

  /** All keys, or those with the most weight, in their order. */
  function shownKeys(d) {
    const all = T.range(d.columns.length);
    if (all.length <= MOST_ROWS) return all;
    return all
      .sort((one, other) => d.weights[other] - d.weights[one])
      .slice(0, MOST_ROWS)
      .sort((one, other) => one - other);
  }

  /** How many numbers of a vector are drawn, and how wide each is. */
  function stripOf(width) {
    const shown = Math.min(width, 64);
    return { shown, cell: Math.max(3, Math.min(7, 220 / shown)) };
  }

  function layout(d, strip) {
    const long = strip.shown * strip.cell;
    const names = Math.min(
      124,
      Math.max(...[...d.columns, `q  ${d.query_token}`].map((text) => T.textWidth(text, 13, 700)), 50) + 14,
    );
    const wanted = [
      { kind: "k", step: "score", width: long, title: "k" },
      { kind: "scores", step: "score", width: NUMBER, title: T.isDot(d) ? "q · k" : T.say("step.score.short") },
      d.divisor && { kind: "scaled", step: "scale", width: NUMBER, title: `÷ √${T.short(d.divisor ** 2)}` },
      d.bias && { kind: "bias", step: "bias", width: NUMBER, title: T.say("step.bias.short") },
      !d.mask.every(Boolean) && { kind: "mask", step: "mask", width: NUMBER, title: T.say("step.mask") },
      { kind: "weights", step: "weigh", width: BAR, title: d.normalizer || "softmax" },
      { kind: "v", step: "sum", width: long, title: "α · v" },
    ].filter(Boolean);
    let x = names + 8;
    return wanted.map((column) => {
      const placed = { ...column, x };
      x += column.width + GAP;
      return placed;
    });
  }

  const greatest = (lists) => Math.max(1e-9, ...lists.flat().map(Math.abs));
  const scales = (d) => ({
    q: greatest([d.q || []]),
    k: greatest(d.k || []),
    v: greatest(d.v || []),
    z: greatest([d.head_output]),
  });

  function keyNames(picture, d, keys, x) {
    const group = T.svg("g", { class: "names" });
    keys.forEach((key, i) =>
      group.append(
        T.svg("text", { x: x - 12, y: HEAD + (i + 0.5) * ROW + 4.5, "text-anchor": "end" }, T.fit(d.columns[key], 112)),
      ),
    );
    picture.append(group);
  }

  function drawColumn(picture, column, context) {
    const { d, keys, now } = context;
    const bottom = HEAD + keys.length * ROW;
    if (column.step === now)
      picture.append(
        T.svg("rect", { class: "now", x: column.x - 10, y: 2, width: column.width + 20, height: bottom - 2, rx: 8 }),
      );
    picture.append(
      T.svg(
        "text",
        { x: column.x + column.width / 2, y: 20, "text-anchor": "middle", class: "column-title" },
        column.title,
      ),
    );
    keys.forEach((key, i) => cell(picture, column, { ...context, key, y: HEAD + i * ROW }));
  }

  function cell(picture, column, { d, key, y, most, strip }) {
    const { kind, x, width } = column;
    const middle = y + ROW / 2 + 4.5;
    const number = (text, name = "") =>
      picture.append(
        T.svg("text", { x: x + width - 12, y: middle, "text-anchor": "end", class: `number ${name}` }, text),
      );
    if (kind === "k") vector(picture, d.k?.[key], { x, y: y + 6, strip, most: most.k });
    else if (kind === "v")
      vector(
        picture,
        d.v?.[key]?.map((value) => value * d.weights[key]),
        { x, y: y + 6, strip, most: most.v * Math.max(...d.weights) },
      );
    else if (kind === "scores") number(T.short(d.scores[key]));
    else if (kind === "scaled") number(T.short(d.scaled[key]));
    else if (kind === "bias") number(T.short(d.bias[key]));
    else if (kind === "mask") number(d.mask[key] ? "✓" : "−∞", d.mask[key] ? "may" : "may-not");
    else weight(picture, d.weights[key], { x, y, width, middle });
  }

  function weight(picture, value, { x, y, width, middle }) {
    const room = width - 46;
    picture.append(
      T.svg("rect", { x, y: y + 7, width: room, height: ROW - 14, rx: 3, class: "share-rest" }),
      T.svg("rect", {
        x,
        y: y + 7,
        width: Math.max(0.5, room * value),
        height: ROW - 14,
        rx: 3,
        fill: T.weightColour(0.75),
      }),
      T.svg("text", { x: x + width, y: middle, "text-anchor": "end", class: "number" }, T.number(value)),
    );
  }

  /** A vector as a strip of coloured cells. strip: {shown: how many, cell: how wide}; most: of the darkest. */
  T.strip = vector;
  function vector(picture, values, { x, y, strip, most, height = STRIP }) {
    if (!values) return;
    const shown = values.slice(0, strip.shown);
    const group = T.svg(
      "g",
      {},
      T.svg("title", {}, `${shown.slice(0, 16).map(T.short).join("  ")}${values.length > 16 ? " …" : ""}`),
    );
    shown.forEach((value, i) =>
      group.append(
        T.svg("rect", {
          x: x + i * strip.cell,
          y,
          width: strip.cell - (strip.cell > 4 ? 0.6 : 0),
          height,
          fill: T.signedColour(value / most),
        }),
      ),
    );
    group.append(
      T.svg("rect", {
        x: x - 0.5,
        y: y - 0.5,
        width: shown.length * strip.cell + 1,
        height: height + 1,
        class: "strip-frame",
      }),
    );
    picture.append(group);
  }

  function queryStrip(picture, d, column, most, strip) {
    picture.append(
      T.svg(
        "g",
        { class: "names" },
        T.svg(
          "text",
          { x: column.x - 12, y: 52, "text-anchor": "end", class: "chosen" },
          T.fit(`q  ${d.query_token}`, 112),
        ),
      ),
    );
    vector(picture, d.q, { x: column.x, y: 38, strip, most: most.q });
  }

  function sumStrip(picture, d, column, { below, most, strip, now }) {
    const y = below + 16;
    if (now === "sum")
      picture.append(
        T.svg("rect", { class: "now", x: column.x - 10, y: below - 4, width: column.width + 20, height: 46, rx: 8 }),
      );
    picture.append(
      T.svg("line", { x1: column.x, x2: column.x + column.width, y1: below + 6, y2: below + 6, class: "rule" }),
      T.svg("text", { x: column.x - 12, y: y + 13, "text-anchor": "end", class: "column-title" }, "z ="),
    );
    vector(picture, d.head_output, { x: column.x, y, strip, most: most.z });
  }

  /** All heads of this query side by side; the one computed above is framed. */
  function joinStrip(picture, d, { y, width, head, now }) {
    const room = width - 104,
      each = room / d.joined.length,
      most = greatest([d.joined]);
    const mine = d.head_output.length * each;
    if (now === "join") picture.append(T.svg("rect", { class: "now", x: 0, y: y - 14, width, height: 58, rx: 8 }));
    picture.append(T.svg("text", { x: 12, y: y + 14, class: "column-title" }, "c = [z₁; …]"));
    fine(picture, d.joined, { x: 98, y, each, most });
    picture.append(
      T.svg("rect", { class: "mine", x: 98 + head * mine, y: y - 2, width: mine, height: STRIP + 4, rx: 3 }),
      T.svg(
        "text",
        {
          x: Math.max(98, Math.min(width - 8, 98 + (head + 0.5) * mine)),
          y: y + STRIP + 18,
          "text-anchor": "middle",
          class: "quiet-text",
        },
        T.say("steps.this", { head: head + 1 }),
      ),
    );
  }

  function outputStrip(picture, d, { y, width, now }) {
    const room = width - 104;
    if (now === "output") picture.append(T.svg("rect", { class: "now", x: 0, y: y - 10, width, height: 40, rx: 8 }));
    picture.append(T.svg("text", { x: 12, y: y + 14, class: "column-title" }, "o = c Wᴼ"));
    fine(picture, d.output, { x: 98, y, each: room / d.output.length, most: greatest([d.output]) });
  }

  /** A long vector, painted as one image. */
  function fine(picture, values, { x, y, each, most }) {
    picture.append(
      T.svg("image", {
        x,
        y,
        width: each * values.length,
        height: STRIP,
        preserveAspectRatio: "none",
        class: "pixels",
        href: T.paint(values, 1, values.length, (value) => T.signedBytes(value / most)),
      }),
      T.svg("rect", {
        x: x - 0.5,
        y: y - 0.5,
        width: each * values.length + 1,
        height: STRIP + 1,
        class: "strip-frame",
      }),
    );
  }
})(window.Transduce);
