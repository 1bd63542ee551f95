/* Who answers my question? From x to q and k, from q · k to weights; and four ways to compare two vectors. */
"use strict";
(function (T) {
  const E = T.engine;
  const STEPS = ["project", "compare", "divide", "softmax"];
  const REACHED = { compare: ["score"], divide: ["score", "scale"], softmax: ["score", "scale", "weigh"] };
  const { i, b, o, n, sub, sup, subsup, sum } = T.equationParts;
  let parts = null; // what is drawn once, and then told again

  T.stop = {
    keeps: {
      ...T.askingKeeps(),
      step: "4",
      temperature: "0", // its binary logarithm
      divide: "1", // "": the scores are not divided by the root of d
      dim: "0", // the number of q and k that is worked out
      vectors: "", // whose vectors are compared: of the notes, or "model"
      q: "0.6_0.2_0.8",
      matrix: "swap", // of the bilinear score: swap, same
    },
    draw(area) {
      if (!parts || !area.contains(parts.stage)) begin(area);
      show(T.state());
    },
  };

  const set = (patch) => T.go(patch, true);

  function begin(area) {
    parts = {
      asking: T.asking({ sentence: T.say("scores.sentence"), who: T.say("scores.who"), click: T.say("scores.click") }),
      bar: T.html("div", { class: "controls" }),
      knobs: T.html("div", { class: "controls", id: "knobs" }),
      stage: T.html("div", { class: "stack" }),
      told: T.html("p", { class: "say", id: "told", "aria-live": "polite" }),
      knobsOfQ: T.html("div", { class: "controls", id: "knobs-q" }),
      ways: T.html("div", { class: "stack" }),
      choices: T.html("div", { class: "controls" }),
    };
    parts.heat = T.slider({
      id: "temperature",
      label: T.say("scores.temperature"),
      ...{ min: -4, max: 5, step: 0.25, value: 0, show: (value) => `τ = ${T.short(2 ** value)}` },
      change: (temperature) => set({ temperature }),
    });
    parts.dim = T.slider({
      id: "dim",
      label: T.say("scores.dim"),
      ...{ min: 1, max: width(), step: 1, value: 1, show: String, change: (dim) => set({ dim: dim - 1 }) },
    });
    parts.divide = T.html("input", { type: "checkbox", id: "divide" });
    parts.divide.addEventListener("change", () => set({ divide: parts.divide.checked ? "1" : "" }));
    parts.qs = T.range(3).map((place) =>
      T.slider({
        id: `q-${place + 1}`,
        label: `q${"₁₂₃"[place]}`,
        ...{ min: -1, max: 1, step: 0.1, value: 0, show: T.short },
        change: (value) => set({ q: questionOf(T.state()).with(place, value).join("_") }),
      }),
    );
    T.fill(parts.knobs, parts.dim.node, T.html("label", {}, parts.divide, T.say("scores.divided")), parts.heat.node);
    T.fill(parts.knobsOfQ, parts.qs.map((each) => each.node));
    T.fill(area, ...[parts.bar, parts.asking.node, parts.knobs, parts.told, parts.stage]);
    area.append(T.html("h2", {}, T.say("scores.ways")), parts.choices, parts.knobsOfQ, parts.ways);
  }

  const width = () => T.demo().model.encoder.blocks[0].self.width;
  const stepOf = (state) => STEPS[T.place(state.step, STEPS.length + 1, 4) - 1] ?? STEPS[0];
  const heatOf = (state) => 2 ** Math.max(-4, Math.min(5, Number(state.temperature) || 0));
  const questionOf = (state) => {
    const told = state.q.split("_").map(Number);
    return T.range(3).map((place) => Math.max(-1, Math.min(1, told[place] || 0)));
  };

  /** "Thinking Machines": q · k = 112 and 96, divided by √64 = 8 (Alammar). */
  function notes(state, heat) {
    const size = 64,
      scores = [112, 96];
    const divided = scores.map((score) => score / Math.sqrt(size));
    const weights = Array.from(E.NORMALIZERS.softmax(divided.map((each) => each / heat), [true, true]));
    const columns = ["Thinking", "Machines"];
    const v = columns.map((_, word) => T.range(size).map((e) => Number(e % 2 === word)));
    return {
      ...{ query_token: columns[0], columns, score: "scaled_dot", normalizer: "softmax", width: size },
      ...{ q: T.range(size).map(() => 1), k: scores.map((score) => T.range(size).map(() => score / size)), v },
      ...{ scores, divisor: Math.sqrt(size), scaled: divided, bias: null, mask: [true, true], weights },
      ...{ head_output: v[0].map((_, e) => weights[e % 2]), joined: [] },
    };
  }

  /** What softmax divides by besides: the temperature, and what undoes the division by √d. */
  const factor = (state, size) => heatOf(state) / (state.divide ? 1 : Math.sqrt(size));

  function computed(state) {
    if (state.example) return notes(state, factor(state, 64));
    const { name, head } = T.asked(state);
    return T.computed(state, { temperature: [{ name, head, value: factor(state, width()) }] });
  }

  function show(state) {
    const d = computed(state);
    const step = state.example && stepOf(state) === "project" ? "compare" : stepOf(state);
    parts.asking.show(d);
    bar(state, step);
    parts.dim.node.hidden = step !== "project";
    parts.divide.checked = Boolean(state.divide);
    parts.divide.parentNode.hidden = parts.heat.node.hidden = step !== "softmax";
    parts.heat.set(Number(state.temperature) || 0);
    parts.dim.set(T.place(state.dim, width()) + 1);
    T.fill(parts.told, told(d, step));
    T.fill(parts.stage, equation(d, step, state), figure(d, step, state), step === "softmax" && d.at && written(state));
    T.reveal(parts.stage);
    compare(state);
  }

  function bar(state, step) {
    const names = STEPS.filter((name) => !state.example || name !== "project");
    T.fill(
      parts.bar,
      T.choice(
        T.say("scores.numbers"),
        state.example,
        [
          ["", T.say("scores.mine")],
          ["1", T.say("scores.notes")],
        ],
        (example) => set({ example }),
      ),
      T.choice(
        T.say("scores.step"),
        step,
        names.map((name) => [name, `${STEPS.indexOf(name) + 1} ${T.say(`scores.step.${name}`)}`]),
        (name) => set({ step: STEPS.indexOf(name) + 1 }),
      ),
    );
  }

  const heaviest = (values) => values.indexOf(Math.max(...values));

  /** A weight, near 0 and near 1 with all the places that tell. */
  const exact = (weight) =>
    weight > 0.9995 && weight < 1 ? String(Number(weight.toFixed(8))) : weight < 0.0005 ? T.short(weight) : T.number(weight);

  function told(d, step) {
    if (step === "project") return T.say("scores.told.project", { query: d.query_token, width: d.width });
    const by = step === "compare" ? d.scores : step === "divide" ? d.scaled : d.weights;
    const best = heaviest(by);
    const entropy = d.weights.reduce((total, weight) => total - (weight > 0 ? weight * Math.log(weight) : 0), 0);
    return T.say(`scores.told.${step}`, {
      ...{ width: d.width, divisor: T.short(d.divisor), query: d.query_token, key: d.columns[best], all: d.columns.length },
      value: step === "softmax" ? exact(by[best]) : T.short(by[best]),
      count: T.short(Math.exp(entropy)),
    });
  }

  // ---- the equation of each step, with the numbers of the key that gets the most

  const EQUATIONS = {
    project(d, state) {
      const place = T.place(state.dim, d.width);
      const { weight, bias } = d.at.project.q;
      const terms = [0, 1].flatMap((e) => [o(e ? "+" : "="), n(d.at.project.x[e]), o("·"), n(weight[place][e])]);
      return [
        ...[sub(i("q"), n(String(place + 1))), o("="), sum(i("i")), sub(i("x"), i("i"))],
        ...[subsup(i("W"), T.math("mrow", {}, i("i"), n(String(place + 1))), i("Q")), o("+"), sub(i("b"), n(String(place + 1)))],
        ...[...terms, o("+ … +"), n(bias[place]), o("="), n(d.q[place])],
      ];
    },
    compare(d) {
      const j = heaviest(d.weights);
      const terms = [0, 1].flatMap((e) => [o(e ? "+" : "="), n(d.q[e]), o("·"), n(d.k[j][e])]);
      return [i("s"), o("="), b("q"), o("·"), b("k"), ...terms, o("+ … ="), n(d.scores[j])];
    },
    divide(d) {
      const j = heaviest(d.weights);
      const below = T.math("msqrt", {}, n(String(d.width)));
      const part = (above, under) => T.math("mfrac", {}, above, under);
      return [part(i("s"), T.math("msqrt", {}, i("d"))), o("="), part(n(d.scores[j]), below), o("="), n(d.scaled[j])];
    },
    softmax(d, state) {
      const order = T.range(d.weights.length).sort((one, other) => d.weights[other] - d.weights[one]);
      const by = factor(state, d.width);
      const power = (j) => sup(i("e"), n(T.short(d.scaled[j] / by)));
      const more = order.length > 2 ? [o("+ …")] : [];
      const below = T.math("mrow", {}, power(order[0]), o("+"), power(order[1]), more);
      return [i("α"), o("="), T.math("mfrac", {}, power(order[0]), below), o("="), n(exact(d.weights[order[0]]))];
    },
  };

  function equation(d, step, state) {
    if (step === "project") d.at.project = projected(state, d);
    const key = d.columns[heaviest(d.weights)];
    return T.formulaBox(
      T.say(`scores.step.${step}`),
      T.equation(...EQUATIONS[step](d, state)),
      T.html("p", { class: "hint" }, T.say(step === "project" ? "scores.for.query" : "scores.for.key", { query: d.query_token, key })),
    );
  }

  // ---- the figure of each step

  function figure(d, step, state) {
    const area = parts.stage;
    const picture =
      step === "project"
        ? projection(area, d, T.place(state.dim, d.width))
        : T.stepsPicture(area, shownWith(d, state), REACHED[step], d.at?.head ?? 0);
    return T.figure({
      name: "scores",
      title: T.say(`scores.figure.${step}`, { query: d.query_token, key: d.columns[heaviest(d.weights)] }),
      caption: d.at ? T.say("scores.head", { layer: d.at.layer + 1, head: d.at.head + 1 }) : T.say("scores.alammar"),
      picture,
      wide: true,
      note: T.say(step === "project" ? "scores.strips.project" : "scores.strips"),
      table: () => table(d),
    });
  }

  /** The computation as the steps that are taken: undivided without its divisor. */
  const shownWith = (d, state) =>
    stepOf(state) === "softmax"
      ? {
          ...d,
          divisor: state.divide ? d.divisor : null,
          normalizer: Number(state.temperature) ? `softmax, τ = ${T.short(heatOf(state))}` : "softmax",
        }
      : d;

  const table = (d) => ({
    head: [T.say("scores.word"), "q · k", `÷ √${d.width}`, "softmax"],
    rows: d.columns.map((word, j) => [word, T.short(d.scores[j]), T.short(d.scaled[j]), exact(d.weights[j])]),
  });

  /** x of the word that asks and of the one that answers most, and the rows of W^Q and W^K of this head. */
  function projected(state, d) {
    const call = E.watched(T.demo(), state.text, [], d.at.name);
    const { module, x } = call;
    const inputs = module.parts.query.weight.shape[1];
    const row = (place) => Array.from(x.subarray(place * inputs, (place + 1) * inputs));
    const rows = ({ weight, bias }, from) => ({
      weight: T.range(d.width).map((e) => Array.from(weight.data.subarray((from + e) * inputs, (from + e + 1) * inputs))),
      bias: T.range(d.width).map((e) => (bias ? bias.data[from + e] : 0)),
    });
    const key = heaviest(d.weights);
    return {
      ...{ key, x: row(d.at.query), xKey: row(key) },
      q: rows(module.parts.query, d.at.head * d.width),
      k: rows(module.parts.key_value, module.group(d.at.head) * d.width),
    };
  }

  const CELL = 9, // of a row of W
    SIDE = 26;

  /** x above, W below it, q beside W: a row of W times x is one number of q. */
  function projection(area, d, dim) {
    const { key, x, xKey, q, k } = d.at.project;
    const room = T.widthOf(area, 300, 860) - 44;
    const across = room > 640 ? 2 : 1;
    const each = room / across;
    const cell = Math.min(4, (each - SIDE * 3 - 34) / x.length);
    const tall = 84 + CELL * d.width + 26;
    const picture = T.svg("svg", {
      class: "picture steps projection",
      ...{ width: room, height: tall * (3 - across), viewBox: `0 0 ${room} ${tall * (3 - across)}` },
      role: "img",
      "aria-label": T.say("scores.projection", { query: d.query_token, key: d.columns[key] }),
    });
    const panels = [
      { x, ...q, out: d.q, matrix: "Q", name: "q", word: d.query_token },
      { x: xKey, ...k, out: d.k[key], matrix: "K", name: "k", word: d.columns[key] },
    ];
    panels.forEach((panel, place) =>
      picture.append(block(panel, { left: across === 2 ? place * each : 0, top: across === 2 ? 0 : place * tall, cell, dim })),
    );
    picture.addEventListener("click", (event) => {
      const box = picture.getBoundingClientRect();
      const y = ((event.clientY - box.top) * tall * (3 - across)) / box.height;
      const row = Math.floor(((y % tall) - 84) / CELL);
      if (row >= 0 && row < d.width) set({ dim: row });
    });
    return picture;
  }

  function block({ x, weight, out, matrix, name, word }, { left, top, cell, dim }) {
    const group = T.svg("g", { transform: `translate(${left} ${top})` });
    const from = SIDE,
      wide = cell * x.length,
      beside = from + wide + 14;
    const most = (values) => Math.max(1e-9, ...values.map(Math.abs));
    const title = (text, at, y, anchor = "end") =>
      group.append(T.svg("text", { x: at, y, "text-anchor": anchor, class: "column-title" }, text));
    title(`“${word}”`, from, 20, "start");
    title("x", from - 8, 46);
    T.strip(group, x, { x: from, y: 32, strip: { shown: x.length, cell }, most: most(x) });
    title(["W", T.svg("tspan", { dy: -6, "font-size": 9 }, matrix)], from - 3, 88 + (CELL * weight.length) / 2);
    const flat = Float32Array.from(weight.flat());
    const largest = most(Array.from(flat));
    const href = T.paint(flat, weight.length, x.length, (value) => T.signedBytes(value / largest));
    const image = { x: from, y: 84, width: wide, height: CELL * weight.length, preserveAspectRatio: "none" };
    group.append(T.svg("image", { ...image, class: "pixels", href }));
    title(name, beside + 9, 76, "middle");
    const scale = most(out);
    out.forEach((value, row) =>
      group.append(
        T.svg("rect", { x: beside, y: 84 + row * CELL, width: 18, height: CELL - 0.6, fill: T.signedColour(value / scale) }),
      ),
    );
    group.append(
      T.svg("rect", { class: "mine", x: from - 1, y: 83 + dim * CELL, width: beside + 20 - from, height: CELL + 1.4, rx: 2 }),
      T.svg("text", { class: "number", x: beside + 24, y: 84 + (dim + 0.5) * CELL + 4.5 }, T.short(out[dim])),
    );
    return group;
  }

  /** What the model writes with this temperature in every head of its encoder. */
  function written(state) {
    const whole = T.explored(state.text).nbest[0].text;
    const value = factor(state, width());
    const layers = T.demo().model.encoder.blocks.map(({ self }) => ({ name: self.name, value }));
    const now = value === 1 ? whole : T.explored(state.text, { changes: { temperature: layers } }).nbest[0].text;
    return T.html(
      "p",
      { class: "hint", "aria-live": "polite" },
      T.say(value === 1 ? "scores.writes" : "scores.writes.so"),
      " ",
      T.html("span", { lang: "fr", id: "writes" }, now),
    );
  }

  // ---- four ways to compare, on the same vectors

  const KEYS = { The: [0.6, 0.2, 0.8], weather: [0.2, 0.3, 0.1], is: [0.9, 0.1, 0.8], nice: [0.4, 0.1, 0.4], today: [0.4, 0.1, 0.6] };
  const GAIN = 10;
  const unit = (size) => ({ shape: [size, size], data: T.range(size * size).map((at) => Number(at % (size + 1) === 0)) });
  const swapped = { shape: [3, 3], data: [0, 0, 1, 0, 1, 0, 1, 0, 0] };

  /** {words, q, keys, bilinear: {q, keys, weight}}: of the notes, or of the head above. */
  function vectors(state) {
    if (!state.vectors) {
      const [words, keys] = [Object.keys(KEYS), Object.values(KEYS)];
      const q = questionOf(state);
      return { words, q, keys, bilinear: { q, keys, weight: state.matrix === "same" ? unit(3) : swapped } };
    }
    const d = T.computed(state);
    return { words: d.columns, q: d.q, keys: d.k, bilinear: ofWords(state, d), query: d.at.query };
  }

  /** The dot product of q and k as a bilinear score of the words' own vectors: [x, 1] (W^Q)ᵀ W^K [x, 1]. */
  function ofWords(state, d) {
    const { x, rows } = E.watched(T.demo(), state.text, [], d.at.name);
    const { q, k } = projected(state, d);
    const size = q.weight[0].length + 1;
    const wide = (part) => part.weight.map((row, e) => [...row, part.bias[e]]);
    const [left, right] = [wide(q), wide(k)];
    const data = Float64Array.from({ length: size * size }, (_, at) =>
      left.reduce((total, row, e) => total + row[Math.floor(at / size)] * right[e][at % size], 0),
    );
    const vector = (place) => [...x.subarray(place * (size - 1), (place + 1) * (size - 1)), 1];
    return { q: vector(d.at.query), keys: T.range(rows).map(vector), weight: { shape: [size, size], data } };
  }

  function ways({ q, keys, bilinear }) {
    const size = q.length;
    const learned = { key: { weight: unit(size) }, query: { weight: unit(size) }, reader_A: { data: T.range(size).map(() => 1) } };
    const scored = (name, given = {}, { q: asks, keys: asked } = { q, keys }) => {
      const kind = E.SCORES[name];
      const [query, ...all] = [asks, ...asked].map((each) => Float32Array.from(each));
      const once = kind.keys ? all.map((key) => kind.keys(key, given)) : all;
      return Array.from(E.scored(kind, query, once, given, null));
    };
    return [
      { name: "dot", formula: "q · k", scores: scored("dot") },
      { name: "scaled_dot", formula: `q · k / √${size}`, scores: scored("scaled_dot") },
      { name: "cosine", formula: `${GAIN} q · k / |q| |k|`, scores: scored("cosine", { gain: { data: [GAIN] } }) },
      { name: "additive", formula: "vᵀ tanh(W q + U k)", scores: scored("additive", learned) },
      { name: "bilinear", formula: size > 3 ? "xᵀ W x" : "qᵀ W k", scores: scored("bilinear", { weight_EF: bilinear.weight }, bilinear) },
    ].map((way) => ({ ...way, weights: Array.from(E.NORMALIZERS.softmax(way.scores, way.scores.map(() => true))) }));
  }

  function compare(state) {
    const given = vectors(state);
    const found = ways(given);
    T.fill(
      parts.choices,
      T.choice(
        T.say("scores.vectors"),
        state.vectors,
        [
          ["", T.say("scores.vectors.notes")],
          ["model", T.say("scores.vectors.model")],
        ],
        (vectors) => set({ vectors }),
      ),
      !state.vectors &&
        T.choice(
          "W",
          state.matrix,
          [
            ["swap", T.say("scores.matrix.swap")],
            ["same", T.say("scores.matrix.same")],
          ],
          (matrix) => set({ matrix }),
        ),
    );
    parts.knobsOfQ.hidden = Boolean(state.vectors);
    questionOf(state).forEach((value, place) => parts.qs[place].set(value));
    T.fill(
      parts.ways,
      T.figure({
        name: "ways",
        title: T.say("scores.ways.figure"),
        caption: T.say(state.vectors ? "scores.ways.model" : "scores.ways.notes"),
        picture: panels(parts.ways, found, given),
        note: T.say(state.vectors ? "scores.ways.note.model" : "scores.ways.note"),
        table: () => ({
          head: [T.say("scores.word"), ...found.flatMap((way) => [way.formula, "softmax"])],
          rows: given.words.map((word, j) => [word, ...found.flatMap((way) => [T.short(way.scores[j]), T.number(way.weights[j])])]),
        }),
      }),
    );
  }

  const ROW = 24,
    PANEL = 246;

  /** A panel for each score: a row for each key, its score, its weight. */
  function panels(area, found, { words, keys, query }) {
    const room = T.widthOf(area, 280, 900) - 40;
    const across = Math.max(1, Math.floor(room / PANEL));
    const each = room / across;
    const tall = 58 + ROW * words.length;
    const height = tall * Math.ceil(found.length / across);
    const picture = T.svg("svg", {
      class: "picture ways",
      ...{ width: room, height, viewBox: `0 0 ${room} ${height}`, role: "img" },
      "aria-label": T.say("scores.ways.label", {
        found: found.map((way) => `${T.say(`scores.way.${way.name}`)}: ${words[heaviest(way.weights)]}`).join(", "),
      }),
    });
    found.forEach((way, place) => {
      const group = T.svg("g", { transform: `translate(${(place % across) * each} ${Math.floor(place / across) * tall})` });
      panel(group, way, { words, keys, each, query });
      picture.append(group);
    });
    return picture;
  }

  function panel(group, way, { words, each, query }) {
    const name = Math.min(70, Math.max(...words.map((word) => T.textWidth(word, 13, 600))) + 8);
    const number = 64;
    const room = each - name - number - 66;
    const text = (content, x, y, anchor, kind) =>
      group.append(T.svg("text", { x, y, "text-anchor": anchor, class: kind }, content));
    text(T.say(`scores.way.${way.name}`), 0, 18, "start", "way-name");
    text(way.formula, 0, 36, "start", "quiet-text");
    const best = heaviest(way.weights);
    words.forEach((word, j) => {
      const y = 46 + j * ROW;
      text(T.fit(word, 66), name - 4, y + 16, "end", j === query ? "way-mine" : j === best ? "way-best" : "word-text");
      text(T.short(way.scores[j]), name + number - 8, y + 16, "end", "number");
      group.append(
        T.svg("rect", { x: name + number, y: y + 4, width: room, height: ROW - 8, rx: 3, class: "share-rest" }),
        T.svg("rect", {
          ...{ x: name + number, y: y + 4, width: Math.max(0.5, room * way.weights[j]), height: ROW - 8, rx: 3 },
          fill: T.weightColour(0.3 + 0.55 * way.weights[j]),
        }),
      );
      text(T.number(way.weights[j]), name + number + room + 44, y + 16, "end", "number");
    });
  }
})(window.Transduce);
