/* What is carried: values times weights, their sum; hard attention and the mean; and the sum as an expectation. */
"use strict";
(function (T) {
  const E = T.engine;
  const MODES = ["soft", "argmax", "uniform"];
  const MOST = 1000,
    PAUSE = 220,
    SEED = 1;
  const { i, b, o, n, sub, sum } = T.equationParts;
  let parts = null; // what is drawn once, and then told again
  let stop = null; // ends the drawing of samples by itself

  T.stop = {
    keeps: { ...T.askingKeeps(), layer: "2", head: "2", how: "soft", draws: "12", first: "0" },
    draw(area) {
      if (!parts || !area.contains(parts.stage)) begin(area);
      show(T.state());
    },
  };

  const set = (patch) => T.go(patch, true);
  const drawsOf = (state) => T.place(state.draws, MOST + 1);
  const modeOf = (state) => (MODES.includes(state.how) ? state.how : "soft");

  function begin(area) {
    parts = {
      asking: T.asking({ sentence: T.say("values.sentence"), who: T.say("values.who"), click: T.say("values.click") }),
      bar: T.html("div", { class: "controls" }),
      told: T.html("p", { class: "say", id: "told", "aria-live": "polite" }),
      stage: T.html("div", { class: "stack" }),
      said: T.html("p", { class: "say", id: "sampled" }),
      sampled: T.html("div", { class: "stack" }),
    };
    const button = (id, act, kind = "quiet") =>
      T.html("button", { type: "button", class: kind, id, on: { click: act } }, T.say(`values.${id}`));
    parts.play = button("play", () => (stop ? halt() : play()), "primary");
    const draw = (count) => () => (halt(), set({ draws: Math.min(MOST, drawsOf(T.state()) + count) }));
    const buttons = [button("one", draw(1)), button("ten", draw(10)), button("hundred", draw(100)), button("again", again)];
    T.fill(area, parts.bar, parts.asking.node, parts.told, parts.stage, T.html("h2", {}, T.say("values.expectation")));
    area.append(T.html("div", { class: "controls" }, parts.play, buttons), parts.said, parts.sampled);
  }

  /** Other samples, from the first one on. */
  const again = () => (halt(), set({ draws: 1, first: (Number(T.state().first) || 0) + 1 }));

  function play() {
    if (drawsOf(T.state()) >= MOST) set({ draws: 0 });
    stop = T.playing(() => {
      const before = drawsOf(T.state());
      if (before >= MOST) return halt();
      set({ draws: Math.min(MOST, before + Math.max(1, Math.round(before / 12))) });
    }, PAUSE);
    T.fill(parts.play, T.say("values.pause"));
  }

  function halt() {
    stop?.();
    stop = null;
    T.fill(parts.play, T.say("values.play"));
  }

  function show(state) {
    const mode = modeOf(state);
    const soft = T.computed(state);
    const { name, head } = soft.at;
    const d = mode === "soft" ? soft : T.computed(state, { [mode]: [{ name, head }] });
    T.fill(
      parts.bar,
      T.choice(
        T.say("values.how"),
        mode,
        MODES.map((each) => [each, T.say(`values.how.${each}`)]),
        (how) => set({ how }),
      ),
    );
    parts.asking.show(d);
    T.fill(parts.told, told(d, mode));
    T.fill(parts.stage, equation(d), carried(d, soft, mode), written(state, mode));
    sampling(soft, state);
  }

  const heaviest = (values) => values.indexOf(Math.max(...values));
  const distance = (one, other) => Math.hypot(...one.map((value, e) => value - other[e]));

  function told(d, mode) {
    const best = heaviest(d.weights);
    return T.say(`values.told.${mode}`, { query: d.query_token, key: d.columns[best], share: T.percent(d.weights[best]), all: d.columns.length });
  }

  /** z = α v + α v + …, and its first numbers. */
  function equation(d) {
    const order = T.range(d.weights.length)
      .sort((one, other) => d.weights[other] - d.weights[one])
      .filter((j, place) => place < 3 && d.weights[j] > 0);
    const terms = order.flatMap((j, place) => [
      o(place ? "+" : "="),
      n(T.number(d.weights[j])),
      sub(b("v"), T.math("mtext", {}, d.columns[j])),
    ]);
    const rest = d.weights.filter((weight) => weight > 0).length > order.length ? [o("+ …")] : [];
    const first = d.head_output.slice(0, 3).flatMap((value, e) => [e ? o(",") : null, n(T.short(value))]);
    return T.formulaBox(
      T.say("values.figure"),
      T.equation(b("z"), o("="), sum(i("j")), sub(i("α"), i("j")), sub(b("v"), i("j")), terms, rest, o("= ("), first.filter(Boolean), o(", … )")),
    );
  }

  // ---- what is carried

  const ROW = 30,
    TOP = 34,
    STRIP = 18,
    BAR = 92;

  function carried(d, soft, mode) {
    return T.figure({
      name: "values",
      title: T.say("values.figure"),
      caption: T.say("values.head", { layer: d.at.layer + 1, head: d.at.head + 1 }),
      picture: carriedPicture(parts.stage, d, soft, mode),
      note: T.say(mode === "soft" ? "values.strips" : "values.strips.other", {
        distance: T.ratio(distance(d.head_output, soft.head_output) / Math.hypot(...soft.head_output)),
      }),
      table: () => ({
        head: [T.say("values.word"), "α", ...T.range(d.width).map((e) => `v${e + 1}`)],
        rows: [
          ...d.columns.map((word, j) => [word, T.number(d.weights[j]), ...d.v[j].map(T.short)]),
          ["z", "", ...d.head_output.map(T.short)],
        ],
      }),
    });
  }

  const most = (lists) => Math.max(1e-9, ...lists.flat().map(Math.abs));

  function carriedPicture(area, d, soft, mode) {
    const room = T.widthOf(area, 300, 900) - 40;
    const narrow = room < 520;
    const [words, alpha, gap] = narrow ? [76, 34, 12] : [92, BAR, 24];
    const long = (room - words - alpha - 2 * gap - 8) / 2;
    const strip = { shown: d.width, cell: long / d.width };
    const columns = { alpha: words, v: words + alpha + gap, carried: words + alpha + 2 * gap + long };
    const meter = narrow ? alpha : alpha - 46;
    const bottom = TOP + ROW * d.columns.length;
    const rows = mode === "soft" ? 1 : 2;
    const height = bottom + 16 + rows * 32;
    const picture = T.svg("svg", {
      class: "picture steps carried",
      ...{ width: room, height, viewBox: `0 0 ${room} ${height}`, role: "img" },
      "aria-label": told(d, mode),
    });
    const text = (content, x, y, anchor = "end", kind = "number") =>
      picture.append(T.svg("text", { x, y, "text-anchor": anchor, class: kind }, content));
    text("α", columns.alpha + meter / 2, 20, "middle", "column-title");
    text("v", columns.v + long / 2, 20, "middle", "column-title");
    text("α v", columns.carried + long / 2, 20, "middle", "column-title");
    const scale = most(d.v);
    const scaleOfSum = most([...d.v.map((v, j) => v.map((value) => value * d.weights[j])), d.head_output, soft.head_output]);
    d.columns.forEach((word, j) => {
      const y = TOP + j * ROW;
      text(T.fit(word, words - 14), words - 12, y + 19, "end", j === d.at.query ? "column-title" : "word-text");
      bar(picture, d.weights[j], columns.alpha, y, meter);
      if (!narrow) text(T.number(d.weights[j]), columns.alpha + alpha - 4, y + 19);
      T.strip(picture, d.v[j], { x: columns.v, y: y + 6, strip, most: scale });
      const scaled = d.v[j].map((value) => value * d.weights[j]);
      T.strip(picture, scaled, { x: columns.carried, y: y + 6, strip, most: scaleOfSum });
    });
    picture.append(
      T.svg("line", { x1: columns.carried, x2: columns.carried + long, y1: bottom + 4, y2: bottom + 4, class: "rule" }),
    );
    text(T.say("values.z"), columns.carried - 10, bottom + 27, "end", "column-title");
    T.strip(picture, d.head_output, { x: columns.carried, y: bottom + 14, strip, most: scaleOfSum });
    if (rows > 1) {
      text(T.say("values.z.soft"), columns.carried - 10, bottom + 59, "end", "quiet-text");
      T.strip(picture, soft.head_output, { x: columns.carried, y: bottom + 46, strip, most: scaleOfSum });
    }
    return picture;
  }

  const bar = (picture, share, x, y, room, colour = T.weightColour(0.75)) =>
    picture.append(
      T.svg("rect", { x, y: y + 7, width: room, height: ROW - 14, rx: 3, class: "share-rest" }),
      T.svg("rect", { x, y: y + 7, width: Math.max(0.5, room * share), height: ROW - 14, rx: 3, fill: colour }),
    );

  /** What the model writes where all heads of its encoder attend so. */
  function written(state, mode) {
    const whole = T.explored(state.text).nbest[0].text;
    const layers = T.demo().model.encoder.blocks.map(({ self }) => ({ name: self.name }));
    const now = mode === "soft" ? whole : T.explored(state.text, { changes: { [mode]: layers } }).nbest[0].text;
    return T.html(
      "p",
      { class: "hint", "aria-live": "polite" },
      T.say(`values.writes.${mode}`),
      " ",
      T.html("span", { lang: "fr", id: "writes" }, now),
    );
  }

  // ---- the sum as an expectation: places drawn from α, and the mean of what stands there

  /** The first `count` places drawn from the weights. The random numbers are those of numpy's default_rng([1, first]). */
  function drawn(weights, count, first) {
    const uniform = E.uniforms(SEED, first);
    const upTo = weights.reduce((list, weight) => [...list, (list.at(-1) ?? 0) + weight], []);
    return T.range(count).map(() => {
      const share = uniform() * upTo.at(-1);
      return upTo.findIndex((total) => share < total);
    });
  }

  /** The distances of the means of the first 1, 2, .. values from z, as shares of its length; and the last mean. */
  function means(d, places) {
    const total = new Float64Array(d.width);
    const length = Math.hypot(...d.head_output);
    const distances = places.map((place, count) => {
      d.v[place].forEach((value, e) => (total[e] += value));
      return distance(Array.from(total, (value) => value / (count + 1)), d.head_output) / length;
    });
    return { distances, mean: Array.from(total, (value) => value / Math.max(1, places.length)) };
  }

  function sampling(d, state) {
    const count = drawsOf(state);
    const places = drawn(d.weights, count, Number(state.first) || 0);
    const found = means(d, places);
    const spread = Math.sqrt(
      d.weights.reduce((sum_, weight, j) => sum_ + weight * distance(d.v[j], d.head_output) ** 2, 0),
    ) / Math.hypot(...d.head_output);
    const last = places.at(-1);
    T.fill(
      parts.said,
      count
        ? T.say("values.sampled", { count: T.whole(count), word: d.columns[last], away: T.ratio(found.distances.at(-1)) })
        : T.say("values.sampled.none"),
    );
    T.fill(
      parts.sampled,
      T.figure({
        name: "sampling",
        title: T.say("values.sampling", { count: T.whole(count) }),
        caption: T.say("values.sampling.caption"),
        picture: samplingPicture(parts.sampled, d, places, found, spread),
        note: T.say("values.sampling.note"),
        table: () => samplesTable(d, places),
      }),
    );
  }

  function samplesTable(d, places) {
    const times = d.columns.map((_, j) => places.filter((place) => place === j).length);
    const part = (count) => (places.length ? T.number(count / places.length) : "");
    return {
      head: [T.say("values.word"), "α", T.say("values.times"), T.say("values.share")],
      rows: d.columns.map((word, j) => [word, T.number(d.weights[j]), String(times[j]), part(times[j])]),
    };
  }

  function samplingPicture(area, d, places, { distances, mean }, spread) {
    const room = T.widthOf(area, 300, 900) - 40;
    const across = room > 620;
    const left = across ? room * 0.46 : room;
    const right = across ? room - left - 30 : room;
    const tall = TOP + ROW * d.columns.length;
    const below = across ? tall : tall + 250;
    const height = below + 86;
    const picture = T.svg("svg", {
      class: "picture steps sampling",
      ...{ width: room, height, viewBox: `0 0 ${room} ${height}`, role: "img" },
      "aria-label": T.say("values.sampling", { count: places.length }),
    });
    counts(picture, d, places, left);
    const curve = T.svg("g", { transform: across ? `translate(${left + 30} 0)` : `translate(0 ${tall + 10})` });
    curveOf(curve, distances, spread, right, across ? tall - 4 : 230);
    picture.append(curve);
    const strip = { shown: d.width, cell: (room - 96) / d.width };
    const scale = most([d.head_output, mean]);
    for (const [values, name, y] of [
      [d.head_output, T.say("values.z"), below + 18],
      [mean, T.say("values.mean"), below + 52],
    ]) {
      picture.append(T.svg("text", { x: 86, y: y + 14, "text-anchor": "end", class: "column-title" }, name));
      T.strip(picture, values, { x: 96, y, strip, most: scale, height: 22 });
    }
    return picture;
  }

  /** For each word how often it was drawn, with a mark at what α asks for. */
  function counts(picture, d, places, room) {
    const words = 84;
    const bars = room - words - 48;
    const times = d.columns.map((_, j) => places.filter((place) => place === j).length);
    const reach = Math.max(...d.weights, ...times.map((count) => count / Math.max(1, places.length)));
    picture.append(
      T.svg("text", { x: words, y: 20, class: "column-title" }, T.say("values.drawn")),
    );
    d.columns.forEach((word, j) => {
      const y = TOP + j * ROW;
      const now = places.at(-1) === j;
      const found = times[j] / Math.max(1, places.length);
      if (now) picture.append(T.svg("rect", { class: "now", x: 0, y: y + 2, width: room, height: ROW - 4, rx: 8 }));
      picture.append(
        T.svg("text", { x: words - 12, y: y + 19, "text-anchor": "end", class: now ? "column-title" : "word-text" }, T.fit(word, words - 14)),
      );
      bar(picture, found / reach, words, y, bars);
      const mark = words + (bars * d.weights[j]) / reach;
      picture.append(
        T.svg("line", { class: "wanted", x1: mark, x2: mark, y1: y + 3, y2: y + ROW - 3 }),
        T.svg("text", { x: room - 4, y: y + 19, "text-anchor": "end", class: "number" }, String(times[j])),
      );
    });
  }

  /** The distance from z over the number of draws, both on logarithmic scales, and what is expected of it. */
  function curveOf(group, distances, spread, width, height) {
    const [left, top, bottom] = [44, 34, height - 26];
    const low = 0.003;
    const x = d3.scaleLog([1, MOST], [left, width - 12]);
    const y = d3.scaleLog([low, Math.max(3, spread * 2)], [bottom, top]).clamp(true);
    group.append(T.svg("text", { x: left, y: 20, class: "column-title" }, T.say("values.away")));
    for (const tick of [0.01, 0.1, 1]) {
      group.append(
        T.svg("line", { class: "grid", x1: left, x2: width - 12, y1: y(tick), y2: y(tick) }),
        T.svg("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end", class: "tick" }, T.percent(tick)),
      );
    }
    for (const tick of [1, 10, 100, 1000])
      group.append(T.svg("text", { x: x(tick), y: bottom + 18, "text-anchor": "middle", class: "tick" }, T.whole(tick)));
    const line = d3.line();
    const expected = [1, MOST].map((count) => [x(count), y(Math.max(low, spread / Math.sqrt(count)))]);
    group.append(T.svg("path", { class: "expected", d: line(expected) }));
    if (!distances.length) return;
    const points = distances.map((away, place) => [x(place + 1), y(Math.max(low, away))]);
    group.append(
      T.svg("path", { class: "falls", d: line(points) }),
      T.svg("circle", { class: "here", cx: points.at(-1)[0], cy: points.at(-1)[1], r: 4.5 }),
    );
  }
})(window.Transduce);
