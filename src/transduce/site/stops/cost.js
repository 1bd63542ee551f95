/* Cost and kin: what convolutions, recurrence, attention and linear attention do for a length of the reader's own. */
"use strict";
(function (T) {
  const m = T.math;
  const KINDS = ["cnn", "rnn", "attention", "linear"];
  /* Seconds of a forward and backward pass over one text of n tokens: benchmarks/results/limits/cost.json. */
  const MEASURED = {
    commit: "b7e6268570",
    machine: "AMD EPYC, 1 thread, fp32, torch 2.13.0+cpu, 2026-11-24",
    lengths: [256, 512, 1024, 2048, 4096, 8192, 16384, 32768],
    seconds: {
      rnn: [0.092, 0.178, 0.362, 0.771, 1.631, 3.313, 6.335, 13.289],
      attention: [0.038, 0.083, 0.257, 1.074, 4.069],
      linear: [0.028, 0.043, 0.071, 0.145, 0.3, 0.585, 1.231, 2.548],
    },
  };
  const KERNELS = { mean: [1 / 3, 1 / 3, 1 / 3], edge: [-1, 0, 1], shift: [1, 0, 0], sharp: [-1, 3, -1] };
  const SIGNAL = "1_1_2_2_6_7_7_6_2_2_1_1";
  let parts = null; // what is drawn once; the rest is told again

  const log = (base, value) => Math.log(value) / Math.log(base);
  /** A position reads itself and the k - 1 before it, so L layers lead (k - 1) L positions back. */
  const layersPlain = (n, k) => Math.ceil((n - 1) / (k - 1));
  /** Dilated by 1, k, k² ..: L layers lead k^L - 1 positions back. */
  const layersDilated = (n, k) => Math.ceil(log(k, n) - 1e-9);

  /** {operations of a layer, steps that wait for each other, path: steps between the first and the last position}. */
  function costs({ n, d, k, stack }) {
    return {
      cnn: { operations: k * n * d * d, steps: 1, path: stack === "dilated" ? layersDilated(n, k) : layersPlain(n, k) },
      rnn: { operations: n * d * d, steps: n, path: n - 1 },
      attention: { operations: n * n * d, steps: 1, path: 1 },
      linear: { operations: n * d * d, steps: 1, path: 1 },
    };
  }

  /** Heads that look at fixed offsets: softmax_j(-sharp (j - i - offset)²) of each i, over all j. */
  function headAt(offset, count, sharp) {
    return T.range(count).map((i) => {
      const powers = T.range(count).map((j) => Math.exp(-sharp * (j - i - offset) ** 2));
      const total = powers.reduce((sum, each) => sum + each, 0);
      return powers.map((each) => each / total);
    });
  }

  /** What the heads give together, each times its number of the kernel; and the convolution itself. */
  function convolved(signal, kernel, sharp) {
    const heads = kernel.map((_, h) => headAt(h - 1, signal.length, sharp));
    const read = (row) => row.reduce((sum, weight, j) => sum + weight * signal[j], 0);
    const attention = signal.map((_, i) => kernel.reduce((sum, weight, h) => sum + weight * read(heads[h][i]), 0));
    const convolution = signal.map((_, i) => kernel.reduce((sum, weight, h) => sum + weight * (signal[i + h - 1] ?? 0), 0));
    return { heads, attention, convolution };
  }

  T.costs = { costs, convolved, MEASURED, KERNELS };

  T.stop = {
    keeps: { n: "64", d: "128", k: "3", stack: "plain", kernel: "edge", sharp: "0.5", signal: SIGNAL },
    draw(area) {
      if (!parts || !area.contains(parts.told)) begin(area);
      show();
    },
  };

  const bounded = (text, least, most, otherwise) => Math.max(least, Math.min(most, Math.round(Number(text)) || otherwise));
  function settings() {
    const { n, d, k, stack } = T.state();
    return { n: bounded(n, 2, 65536, 64), d: bounded(d, 8, 4096, 128), k: bounded(k, 2, 15, 3), stack };
  }

  /** A slider of what the link keeps under `id`. to: its place as the number, from: the number as its place. */
  const slider = (id, { to = (place) => place, from = (value) => value, show = T.whole, ...range }) => {
    const change = (place) => T.go({ [id]: to(place) }, true);
    const made = T.slider({ id, label: T.say(`cost.${id}`), ...range, value: range.min, show: (place) => show(to(place)), change });
    return { node: made.node, set: (value) => made.set(from(value)) };
  };

  function begin(area) {
    const power = { to: (v) => Math.round(2 ** v), from: (v) => Math.log2(v) };
    parts = {
      length: slider("n", { min: 1, max: 16, step: 0.25, ...power, show: (n) => T.say("cost.words", { n: T.whole(n) }) }),
      width: slider("d", { min: 3, max: 12, step: 1, ...power }),
      kernel: slider("k", { min: 2, max: 15, step: 1 }),
      sharp: slider("sharp", { min: 0, max: 4, step: 0.1, show: T.short }),
      text: T.html("input", { class: "typed", id: "own", spellcheck: "false", placeholder: T.say("cost.own.example"), on: { input: counted } }),
      told: T.html("div", { class: "stack" }),
      kin: T.html("div", { class: "stack" }),
    };
    T.fill(
      area,
      T.html("label", { class: "field" }, T.html("span", {}, T.say("cost.own")), parts.text),
      T.html("div", { class: "sliders" }, parts.length.node, parts.width.node, parts.kernel.node),
      parts.told,
      T.html("h2", {}, T.say("cost.kin")),
      T.html("p", { class: "seen" }, T.say("cost.kin.lead")),
      T.html("div", { class: "sliders" }, parts.sharp.node),
      parts.kin,
    );
  }

  /** The length of a text of the reader's own, in words. */
  function counted() {
    const count = T.pieces(parts.text.value).filter((piece) => piece.word).length;
    if (count > 1) T.go({ n: Math.min(count, 65536) }, true);
  }

  function show() {
    const now = settings();
    parts.length.set(now.n);
    parts.width.set(now.d);
    parts.kernel.set(now.k);
    const found = costs(now);
    T.fill(parts.told, paths(parts.told, now, found), bars(parts.told, now, found), measured(parts.told, now));
    showKin();
  }

  const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const raised = (count) => [...String(count)].map((digit) => RAISED[digit]).join("");
  /** A count, short: 12,345 or 1.7 × 10¹⁰. */
  function big(value) {
    if (value < 1e6) return T.whole(value);
    const power = Math.floor(Math.log10(value) + 1e-9);
    return `${(value / 10 ** power).toFixed(1)} × 10${raised(power)}`;
  }
  const nameOf = (kind) => T.say(`cost.${kind}`);
  const colourOf = (kind) => T.headColour(KINDS.indexOf(kind));

  /* How the last word hears of the first: each kind of layer, drawn for the first few positions. */
  const DRAWN = 9,
    PANEL = 190,
    HIGH = 170,
    DOT = 4;

  function paths(area, now, found) {
    const room = T.widthOf(area, 260, 860) - 34;
    const columns = room >= 4 * 170 ? 4 : 2;
    const wide = Math.min(PANEL, room / columns);
    const size = { width: wide * columns, height: (HIGH + 40) * Math.ceil(KINDS.length / columns) };
    const n = Math.min(now.n, DRAWN);
    const told = KINDS.map((kind) => `${nameOf(kind)} ${T.whole(found[kind].path)}`).join(", ");
    const label = T.say("cost.paths.label", { told });
    const picture = T.svg("svg", { class: "picture paths", viewBox: `0 0 ${size.width} ${size.height}`, ...size, role: "img", "aria-label": label });
    KINDS.forEach((kind, i) => {
      const [x, y] = [(i % columns) * wide, Math.floor(i / columns) * (HIGH + 40)];
      const group = T.svg("g", { transform: `translate(${x} ${y})` }, panel(kind, { ...now, n }, wide, found[kind].path));
      picture.append(group);
    });
    return T.figure({
      name: "paths",
      title: T.say("cost.paths"),
      caption: T.say("cost.paths.why"),
      picture,
      tools: T.choice(
        T.say("cost.stack"),
        now.stack,
        ["plain", "dilated"].map((each) => [each, T.say(`cost.stack.${each}`)]),
        (stack) => T.go({ stack }, true),
      ),
      note: now.n > n && T.say("cost.paths.drawn", { drawn: n, n: T.whole(now.n) }),
      table: () => ({ head: ["", T.say("cost.path")], rows: KINDS.map((kind) => [nameOf(kind), T.whole(found[kind].path)]) }),
    });
  }

  /** Layers of nodes: {links: [[layer, from, to]], path: [[layer, place]]}; layer 0 is the text. */
  const GRAPHS = {
    cnn({ n, k, stack }) {
      const count = stack === "dilated" ? layersDilated(n, k) : layersPlain(n, k);
      const stride = (layer) => (stack === "dilated" ? k ** layer : 1);
      const links = T.range(count).flatMap((layer) =>
        T.range(n).flatMap((to) =>
          T.range(k)
            .map((j) => to - j * stride(layer))
            .filter((from) => from >= 0)
            .map((from) => [layer, from, to]),
        ),
      );
      const path = [[count, n - 1]];
      for (let layer = count - 1, at = n - 1; layer >= 0; --layer) {
        at -= Math.min(k - 1, Math.floor(at / stride(layer))) * stride(layer);
        path.push([layer, at]);
      }
      return { layers: count, links, path };
    },
    rnn: ({ n }) => ({
      layers: 1,
      links: T.range(n).map((i) => [0, i, i]),
      chain: true,
      path: [[0, 0], ...T.range(n).map((i) => [1, i])],
    }),
    attention: ({ n }) => ({ layers: 1, links: T.range(n * n).map((i) => [0, i % n, Math.floor(i / n)]), path: [[0, 0], [1, n - 1]] }),
    linear: ({ n }) => ({ layers: 2, links: T.range(n).flatMap((i) => [[0, i, -1], [1, -1, i]]), sum: true, path: [[0, 0], [1, -1], [2, n - 1]] }),
  };

  function panel(kind, now, wide, path) {
    const graph = GRAPHS[kind](now);
    const [left, right] = [16, wide - 16];
    const top = 34;
    const x = (place) => (place < 0 ? wide / 2 : now.n > 1 ? left + ((right - left) * place) / (now.n - 1) : wide / 2);
    const y = (layer) => top + HIGH - 40 - ((HIGH - 60) * layer) / graph.layers;
    const nodes = T.range(graph.layers + 1).flatMap((layer) =>
      graph.sum && layer === 1
        ? [T.svg("rect", { x: wide / 2 - 15, y: y(1) - 13, width: 30, height: 26, rx: 6, class: "node-sum" }), T.svg("text", { x: wide / 2, y: y(1) + 5, "text-anchor": "middle", class: "node-sign" }, "Σ")]
        : T.range(now.n).map((i) => T.svg("circle", { cx: x(i), cy: y(layer), r: graph.layers > 5 ? 2.6 : DOT, class: "node" })),
    );
    const lines = graph.links.map(([layer, from, to]) => T.svg("line", { x1: x(from), y1: y(layer), x2: x(to), y2: y(layer + 1), class: "way" }));
    if (graph.chain) lines.push(T.svg("line", { x1: x(0), x2: x(now.n - 1), y1: y(1), y2: y(1), class: "way" }));
    const points = graph.path.map(([layer, place]) => `${x(place)},${y(layer)}`).join(" ");
    return [
      T.svg("text", { x: wide / 2, y: 16, "text-anchor": "middle", class: "kind", style: { fill: colourOf(kind) } }, nameOf(kind)),
      ...lines,
      T.svg("polyline", { points, class: "walked", style: { stroke: colourOf(kind) } }),
      ...nodes,
      T.svg("text", { x: wide / 2, y: top + HIGH - 8, "text-anchor": "middle", class: "count", "data-kind": kind }, T.say(path === 1 ? "cost.one" : "cost.steps.n", { path: T.whole(path) })),
    ];
  }

  /* Three groups of bars, each on a scale of powers of ten. */
  const LINE = 24;
  const MEASURES = ["operations", "steps", "path"];

  function bars(area, now, found) {
    const width = T.widthOf(area, 260, 860) - 34;
    const left = Math.max(...KINDS.map((kind) => T.textWidth(nameOf(kind), 14))) + 12;
    const room = width - left - 92;
    const group = 26 + LINE * KINDS.length + 10;
    const size = { width, height: group * MEASURES.length };
    const picture = T.svg("svg", { class: "picture costs", viewBox: `0 0 ${size.width} ${size.height}`, ...size, role: "img", "aria-label": T.say("cost.bars") });
    MEASURES.forEach((measure, g) => {
      const top = g * group;
      const most = Math.max(1, ...KINDS.map((kind) => Math.log10(found[kind][measure])));
      picture.append(T.svg("text", { x: 0, y: top + 16, class: "measure" }, T.say(`cost.${measure}`)));
      KINDS.forEach((kind, i) => {
        const [y, value] = [top + 26 + LINE * i, found[kind][measure]];
        const long = Math.max(2, (room * Math.log10(value)) / most);
        picture.append(
          T.svg("text", { x: left - 8, y: y + 16, "text-anchor": "end", class: "bar-name" }, nameOf(kind)),
          T.svg("rect", { x: left, y: y + 3, width: long, height: LINE - 8, rx: 3, style: { fill: colourOf(kind) } }),
          T.svg("text", { x: left + long + 7, y: y + 16, class: "bar-number", "data-cost": `${kind}-${measure}` }, big(value)),
        );
      });
    });
    const figure = T.figure({
      name: "costs",
      title: T.say("cost.bars"),
      caption: T.say("cost.bars.why"),
      picture,
      note: T.say(now.n < now.d ? "cost.shorter" : "cost.longer", { n: T.whole(now.n), d: T.whole(now.d) }),
      table: () => ({
        head: ["", ...MEASURES.map((measure) => T.say(`cost.${measure}`))],
        rows: KINDS.map((kind) => [nameOf(kind), ...MEASURES.map((measure) => T.whole(found[kind][measure]))]),
      }),
    });
    figure.append(equations(now, found));
    return figure;
  }

  const i = (text) => m("mi", {}, text);
  const o = (text) => m("mo", {}, text);
  const squared = (base) => m("msup", {}, base, m("mn", {}, "2"));
  const times = (all) => all.flatMap((each, place) => (place ? [o("·"), each] : [each]));

  /** The products with the reader's numbers. */
  function equations({ n, d, k }, found) {
    const [N, D, K] = [n, d, k].map((value) => m("mn", {}, T.whole(value)));
    const copy = (node) => node.cloneNode(true);
    const row = (kind, letters, numbers) =>
      T.html(
        "div",
        { class: "equation" },
        T.html("span", { class: "equation-name" }, T.html("span", { class: "swatch", style: { background: colourOf(kind) } }), " ", nameOf(kind)),
        m("math", { class: "formula" }, ...times(letters), o("="), ...times(numbers), o("="), m("mn", {}, found[kind].operations < 1e10 ? T.whole(found[kind].operations) : big(found[kind].operations))),
      );
    return T.html(
      "div",
      { class: "equations", tabindex: "0", role: "group", "aria-label": T.say("cost.operations") },
      row("cnn", [i("k"), i("n"), squared(i("d"))], [copy(K), copy(N), squared(copy(D))]),
      row("rnn", [i("n"), squared(i("d"))], [copy(N), squared(copy(D))]),
      row("attention", [squared(i("n")), i("d")], [squared(copy(N)), copy(D)]),
      row("linear", [i("n"), squared(i("d"))], [copy(N), squared(copy(D))]),
    );
  }

  /* What a stopwatch says. Both scales are powers of ten. */
  function measured(area, now) {
    const [width, height] = [T.widthOf(area, 260, 760) - 34, 260];
    const kinds = Object.keys(MEASURED.seconds);
    const x = d3.scaleLog([MEASURED.lengths[0], MEASURED.lengths.at(-1)], [50, width - 16]);
    const y = d3.scaleLog([0.02, 20], [height - 34, 12]);
    const picture = T.svg("svg", { class: "picture measured", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": T.say("cost.measured") });
    for (const tick of [0.1, 1, 10])
      picture.append(
        T.svg("line", { x1: 50, x2: width - 16, y1: y(tick), y2: y(tick), class: "grid" }),
        T.svg("text", { x: 44, y: y(tick) + 4, "text-anchor": "end", class: "tick" }, T.say("cost.seconds", { s: tick })),
      );
    for (const tick of [256, 1024, 4096, 16384])
      picture.append(T.svg("text", { x: x(tick), y: height - 14, "text-anchor": "middle", class: "tick" }, T.whole(tick)));
    const at = Math.max(MEASURED.lengths[0], Math.min(MEASURED.lengths.at(-1), now.n));
    picture.append(T.svg("line", { x1: x(at), x2: x(at), y1: 12, y2: height - 34, class: "cross-hair" }));
    for (const kind of kinds) {
      const points = MEASURED.seconds[kind].map((seconds, place) => [x(MEASURED.lengths[place]), y(seconds)]);
      picture.append(T.svg("path", { d: d3.line()(points), class: "curve", style: { stroke: colourOf(kind) } }));
      for (const [cx, cy] of points) picture.append(T.svg("circle", { cx, cy, r: 3, style: { fill: colourOf(kind) } }));
    }
    return T.figure({
      name: "measured",
      title: T.say("cost.measured"),
      caption: T.say("cost.measured.why"),
      picture,
      note: [
        ...kinds.map((kind) => T.html("span", { class: "key" }, T.html("span", { class: "swatch", style: { background: colourOf(kind) } }), T.say(`cost.measured.${kind}`))),
        T.html("span", { id: "nearest" }, nearest(now.n, kinds)),
        T.html("span", { class: "machine" }, ` ${MEASURED.machine}, ${MEASURED.commit}.`),
      ],
      table: () => ({
        head: ["n", ...kinds.map((kind) => T.say(`cost.measured.${kind}`))],
        rows: MEASURED.lengths.map((length, place) => [T.whole(length), ...kinds.map((kind) => MEASURED.seconds[kind][place] ?? "")]),
      }),
    });
  }

  /** What was measured at the length that is nearest. */
  function nearest(n, kinds) {
    const far = (length) => Math.abs(Math.log(length / n));
    const place = MEASURED.lengths.reduce((best, length, each) => (far(length) < far(MEASURED.lengths[best]) ? each : best), 0);
    const told = kinds
      .filter((kind) => MEASURED.seconds[kind][place] !== undefined)
      .map((kind) => `${T.say(`cost.measured.${kind}`)} ${T.say("cost.seconds", { s: MEASURED.seconds[kind][place] })}`);
    return T.say("cost.at", { n: T.whole(MEASURED.lengths[place]), told: told.join(", ") });
  }

  /* A convolution made of heads. */
  const MOST_SIGNAL = 8;
  const signalOf = (text) => {
    const found = text.split("_").map(Number);
    return found.length === 12 && found.every((value) => value >= 0 && value <= MOST_SIGNAL) ? found : SIGNAL.split("_").map(Number);
  };

  function showKin() {
    const state = T.state();
    const sharp = Math.max(0, Math.min(4, Number(state.sharp) || 0));
    const name = state.kernel in KERNELS ? state.kernel : "edge";
    const [kernel, signal] = [KERNELS[name], signalOf(state.signal)];
    const found = convolved(signal, kernel, sharp);
    parts.sharp.set(sharp);
    T.fill(parts.kin, headsFigure(parts.kin, found, kernel), signalFigure(parts.kin, { signal, kernel, name, found }));
  }

  /** Three heads, each of which looks at the place before, at itself, at the next. */
  function headsFigure(area, { heads }, kernel) {
    const count = heads[0].length;
    const room = T.widthOf(area, 260, 760) - 34;
    const cell = Math.min(16, (room - 40) / 3 / count);
    const each = cell * count;
    const size = { width: 3 * each + 40, height: each + 34 };
    const picture = T.svg("svg", { class: "picture shifted", viewBox: `0 0 ${size.width} ${size.height}`, ...size, role: "img", "aria-label": T.say("cost.heads") });
    heads.forEach((head, h) => {
      const x = h * (each + 20);
      picture.append(
        T.svg("text", { x: x + each / 2, y: 16, "text-anchor": "middle", class: "bar-name" }, T.say(`cost.head.${h}`)),
        T.svg("image", { x, y: 26, width: each, height: each, preserveAspectRatio: "none", class: "pixels", href: T.paint(head.flat(), count, count, T.weightBytes) }),
        T.svg("rect", { x, y: 26, width: each, height: each, class: "heat-frame" }),
      );
    });
    return T.figure({
      name: "heads",
      title: T.say("cost.heads"),
      caption: T.say("cost.heads.why"),
      picture,
      note: [T.legend(1), " ", T.say("cost.weights", { weights: kernel.map(T.short).join(", ") })],
      table: () => ({ head: ["", ...T.range(count).map((j) => j + 1)], rows: T.range(count).map((row) => [row + 1, ...heads[1][row].map(T.number)]) }),
    });
  }

  /** The signal, which one changes by a click; under it what both make of it. */
  function signalFigure(area, { signal, kernel, name, found }) {
    const room = T.widthOf(area, 260, 760) - 34;
    const [step, high, low] = [room / signal.length, 110, 150];
    const size = { width: room, height: high + low + 46 };
    const most = Math.max(1, ...found.attention.map(Math.abs), ...found.convolution.map(Math.abs));
    const zero = high + 40 + low / 2;
    const y = (value) => zero - (value / most) * (low / 2 - 6);
    const picture = T.walkedPicture("signal", size, T.say("cost.signal.role"), T.say("cost.signal"));
    const grown = (value) => (high - 18) * (value / MOST_SIGNAL);
    picture.append(
      T.svg("text", { x: 0, y: 12, class: "measure" }, T.say("cost.input")),
      T.svg("text", { x: 0, y: high + 32, class: "measure" }, T.say("cost.result")),
      T.svg("line", { x1: 0, x2: room, y1: zero, y2: zero, class: "grid" }),
      ...signal.map((value, place) => T.svg("rect", { x: place * step + 3, y: high + 6 - grown(value), width: step - 6, height: Math.max(1, grown(value)), rx: 2, class: "signal-bar" })),
      ...found.attention.map((value, place) => T.svg("rect", { x: place * step + 3, y: Math.min(zero, y(value)), width: step - 6, height: Math.max(1, Math.abs(y(value) - zero)), rx: 2, class: "attention-bar" })),
      ...found.convolution.map((value, place) => T.svg("line", { x1: place * step + 1, x2: (place + 1) * step - 1, y1: y(value), y2: y(value), class: "convolution-mark" })),
    );
    const inner = found.attention.slice(1, -1).map((value, place) => Math.abs(value - found.convolution[place + 1]));
    T.walkBoxes(picture, {
      boxes: signal.map((_, place) => ({ x: place * step, y: 16, width: step, height: size.height - 20 })),
      size,
      tell: (place) => [T.say("cost.place", { place: place + 1, value: signal[place] }), `${T.say("cost.key.attention")} ${T.short(found.attention[place])}`, `${T.say("cost.key.convolution")} ${T.short(found.convolution[place])}`],
      choose: (place) => T.go({ signal: signal.map((value, at) => (at === place ? (value + 1) % (MOST_SIGNAL + 1) : value)).join("_") }, true),
    });
    const figure = T.figure({
      name: "signal",
      title: T.say("cost.signal"),
      caption: T.say("cost.signal.why"),
      picture,
      tools: T.choice(T.say("cost.filter"), name, Object.keys(KERNELS).map((each) => [each, T.say(`cost.filter.${each}`)]), (to) => T.go({ kernel: to }, true)),
      note: [
        T.html("span", { class: "key" }, T.html("span", { class: "swatch attention-bar" }), T.say("cost.key.attention")),
        T.html("span", { class: "key" }, T.html("span", { class: "swatch convolution-mark" }), T.say("cost.key.convolution")),
        T.html("span", { id: "difference" }, T.say("cost.difference", { difference: T.short(Math.max(...inner)) })),
      ],
      table: () => ({
        head: ["", T.say("cost.input"), T.say("cost.key.attention"), T.say("cost.key.convolution")],
        rows: signal.map((value, place) => [place + 1, value, T.short(found.attention[place]), T.short(found.convolution[place])]),
      }),
    });
    figure.append(kinEquation(kernel));
    return figure;
  }

  function kinEquation(kernel) {
    const x = (index) => m("msub", {}, i("x"), m("mrow", {}, index));
    const terms = kernel.flatMap((weight, h) => [...(h ? [o("+")] : []), m("mn", {}, `(${T.short(weight)})`), x([i("i"), ...(h === 1 ? [] : [o(h ? "+" : "−"), m("mn", {}, "1")])])]);
    const inside = m("mrow", {}, o("−"), i("α"), m("msup", {}, m("mrow", {}, o("("), i("j"), o("−"), i("i"), o("−"), m("msub", {}, i("δ"), i("h")), o(")")), m("mn", {}, "2")));
    return T.html(
      "div",
      { class: "equation", tabindex: "0", role: "group", "aria-label": T.say("cost.signal") },
      m(
        "math",
        { display: "block", class: "formula" },
        ...[m("msub", {}, i("y"), i("i")), o("="), m("munder", {}, o("∑"), i("h")), m("msub", {}, i("w"), i("h")), m("munder", {}, o("∑"), i("j"))],
        ...[m("msub", {}, m("mtext", {}, "softmax"), i("j")), o("("), inside, o(")"), x([i("j")]), o("→"), ...terms],
      ),
    );
  }
})(window.Transduce);
