/* What a model of speech heard and wrote: the spectrogram, under it when each character looked where, and its sound. */
"use strict";
(function (T) {
  const LEFT = 62,
    RIGHT = 16,
    TOP = 8,
    HEIGHT = 170,
    AXIS = 30,
    ROW = 26,
    GAP = 4,
    LABEL = 15;
  const PACE = 600; // milliseconds a character, when they appear one after another
  const LOWEST = 20; // Hz, where the first filter begins; as data/filterbank.py
  const mel = (hertz) => 1127 * Math.log1p(hertz / 700);

  /** A figure with its controls, or null where the model read text. choice: the attention that is looked at. */
  T.heardFigure = (area, { scene, choice, rollout }) => {
    const { exploration } = scene;
    const { recording } = exploration;
    if (!recording) return null;
    const rows = rowsOf(exploration, crossOf(exploration, choice), rollout);
    const width = T.widthOf(area, 280, 1240) - 40;
    const x = d3.scaleLinear([0, recording.seconds], [LEFT, width - RIGHT]);
    const height = TOP + HEIGHT + AXIS + rows.length * (ROW + GAP) + 4;
    const picture = T.svg("svg", {
      class: "picture heard",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      tabindex: "0",
      role: "application",
      "aria-roledescription": T.say("heard.role"),
      "aria-label": T.say("heard.label", { seconds: T.short(recording.seconds), text: exploration.target.text }),
    });
    const lines = rows.map((row, i) => line(row, i, { x, recording, most: mostOf(rows) }));
    const head = T.svg("line", { class: "playhead", y1: TOP, y2: height, visibility: "hidden", "data-passing": true });
    picture.append(spectrogram(recording, x), axis(recording, x), ...lines, head);
    const writing = writer({ rows, lines, exploration });
    pointing(picture, { rows, x, recording, width, writing });
    const figure = T.figure({
      name: "heard",
      title: T.say("heard.title"),
      caption: T.say(rows.some((row) => row.weights) ? "heard.caption" : "heard.caption.none"),
      picture,
      tools: [soundButton(recording, { head, x, picture }), writing.button],
      table: () => table(rows, recording),
      note: T.say("heard.note"),
    });
    figure.append(writing.panel);
    return figure;
  };

  /** The cross-attention that is looked at, or its mean where something else is; null if there is none. */
  function crossOf(exploration, choice) {
    if (choice?.kind === "cross") return choice;
    const found = T.chosen(exploration, { kind: "cross", layer: "mean", head: "mean" });
    return found?.kind === "cross" ? found : null;
  }

  /** What was written: {name, token, p, weights of the encoder's positions or null, others: [{token, p}]}. */
  function rowsOf(exploration, choice, rollout) {
    const matrix = choice && T.matrix(exploration, choice, "tokens", choice.over === "rollout" ? rollout : null);
    const logs = exploration.nbest[0].token_log_probabilities;
    return exploration.target.tokens.map((token, i) => ({
      name: token.text === "</s>" ? T.say("heard.end") : token.text,
      p: Math.exp(logs[i] ?? -Infinity),
      weights: matrix && i < matrix.T ? matrix.values.subarray(i * matrix.S, (i + 1) * matrix.S) : null,
      others: (exploration.alternatives[i] || []).map((each) => ({ token: each.token, p: Math.exp(each.log_probability) })),
    }));
  }

  const mostOf = (rows) => Math.max(...rows.map((row) => (row.weights ? T.largest(row.weights) : 0)), 1e-9);
  const step = (recording) => recording.frames_a_position * recording.shift;

  /** The features as a picture, low filters below. The darkest and the lightest hundredth are cut. */
  function spectrogram(recording, x) {
    const [columns, filters] = recording.features.shape;
    const values = T.unpacked(recording.features);
    const sorted = Float32Array.from(values).sort();
    const low = sorted[Math.floor(0.02 * sorted.length)],
      high = sorted[Math.floor(0.99 * (sorted.length - 1))];
    const turned = new Float32Array(values.length);
    for (let c = 0; c < columns; c++)
      for (let f = 0; f < filters; f++) turned[(filters - 1 - f) * columns + c] = values[c * filters + f];
    const end = Math.min(recording.seconds, columns * recording.frames_a_column * recording.shift);
    return T.svg(
      "g",
      {},
      T.svg("image", {
        x: x(0),
        y: TOP,
        width: x(end) - x(0),
        height: HEIGHT,
        preserveAspectRatio: "none",
        class: "pixels",
        href: T.paint(turned, filters, columns, (value) => T.weightBytes((value - low) / (high - low || 1))),
      }),
      ...hertz(recording),
    );
  }

  /** Names of frequencies at their places on the mel scale; features from elsewhere have none. */
  function hertz({ rate }) {
    if (!rate) return [];
    const place = d3.scaleLinear([mel(LOWEST), mel(rate / 2)], [TOP + HEIGHT, TOP]);
    return [250, 500, 1000, 2000, 4000, 8000]
      .filter((each) => each < 0.9 * (rate / 2))
      .map((each) =>
        T.svg(
          "text",
          { x: LEFT - 7, y: place(mel(each)) + 4, "text-anchor": "end", class: "tick" },
          each < 1000 ? `${each} Hz` : `${each / 1000} kHz`,
        ),
      );
  }

  function axis(recording, x) {
    const y = TOP + HEIGHT;
    const [from, to] = x.range();
    return T.svg(
      "g",
      {},
      x.ticks(Math.max(2, Math.floor((to - from) / 90))).map((tick) => [
        T.svg("line", { x1: x(tick), x2: x(tick), y1: y, y2: y + 5, class: "time-mark" }),
        T.svg("text", { x: x(tick), y: y + 19, "text-anchor": "middle", class: "tick" }, T.say("heard.seconds", { seconds: T.short(tick) })),
      ]),
    );
  }

  const top = (i) => TOP + HEIGHT + AXIS + i * (ROW + GAP);

  /** One character: its name, and the weights of the encoder's positions at their times. */
  function line(row, i, { x, recording, most }) {
    const y = top(i);
    const group = T.svg("g", { class: "heard-row", "data-i": i });
    const [from, to] = x.range();
    group.append(
      T.svg("rect", { x: from, y, width: to - from, height: ROW, rx: 3, class: "heard-back" }),
      T.svg("text", { x: LEFT - 9, y: y + ROW / 2 + 5, "text-anchor": "end", class: "heard-name" }, T.fit(row.name, LEFT - 12, LABEL)),
    );
    if (row.weights) {
      const end = Math.min(recording.seconds, row.weights.length * step(recording));
      group.append(
        T.svg("image", {
          x: from,
          y,
          width: x(end) - from,
          height: ROW,
          preserveAspectRatio: "none",
          class: "pixels",
          href: T.paint(row.weights, 1, row.weights.length, (value) => T.weightBytes(value / most)),
        }),
      );
    }
    group.append(T.svg("rect", { x: from - 1, y: y - 1, width: to - from + 2, height: ROW + 2, rx: 4, class: "heard-frame" }));
    return group;
  }

  function soundButton(recording, { head, x, picture }) {
    if (!recording.sound) return null;
    const button = T.html("button", { type: "button", class: "quiet", id: "play-sound", "aria-pressed": "false" }, T.say("heard.play"));
    let going = false;
    const rest = () => {
      going = false;
      head.setAttribute("visibility", "hidden");
      button.setAttribute("aria-pressed", "false");
      T.fill(button, T.say("heard.play"));
    };
    const follow = (seconds) => {
      if (!picture.isConnected) return T.hush();
      for (const [name, value] of Object.entries({ x1: x(seconds), x2: x(seconds), visibility: "visible" }))
        head.setAttribute(name, value);
      picture.dataset.at = seconds.toFixed(2);
    };
    button.addEventListener("click", () => {
      if (going) return T.hush();
      try {
        T.play(recording, follow, rest);
        going = true;
        button.setAttribute("aria-pressed", "true");
        T.fill(button, T.say("heard.stop"));
      } catch {
        T.announce(T.say("heard.unplayable"));
        T.fill(button, T.say("heard.unplayable"));
      }
    });
    return button;
  }

  /** The characters one after another, each with what else it could have been: {panel, button, choose, count}. */
  function writer({ rows, lines, exploration }) {
    const all = rows.length - 1;
    let reached = all,
      chosen = 0,
      timer;
    const begins = exploration.target.tokens.at(-1)?.text === "</s>";
    const chips = rows.map((row, i) =>
      T.html(
        "button",
        { type: "button", class: "chip", id: `char-${i}`, tabindex: i ? "-1" : "0", "data-i": i, on: { click: () => choose(i, true) } },
        row.name,
      ),
    );
    const share = T.html("div", { class: "heard-share", id: "heard-share" });
    function choose(i, aloud) {
      chosen = Math.max(0, Math.min(all, i));
      chips.forEach((chip, place) => {
        chip.setAttribute("aria-pressed", String(place === chosen));
        chip.tabIndex = place === chosen ? 0 : -1;
      });
      lines.forEach((each, place) => each.classList.toggle("chosen", place === chosen && chosen <= reached));
      T.fill(share, distribution(rows[chosen]));
      if (aloud) T.announce(spoken(rows[chosen]));
    }
    function reach(i) {
      reached = i;
      for (const each of [chips, lines]) each.forEach((part, place) => part.classList.toggle("unwritten", place > i));
      chips.forEach((chip, place) => (chip.disabled = place > i));
      if (i >= 0) choose(i, true);
      else T.fill(share);
      T.fill(button, T.say(T.still() && i < all ? "heard.next" : "heard.write"));
    }
    function next() {
      if (!share.isConnected) return;
      reach(reached + 1);
      if (reached < all) timer = setTimeout(next, PACE);
    }
    const button = T.html("button", { type: "button", class: "quiet", id: "write-out" }, T.say("heard.write"));
    button.addEventListener("click", () => {
      clearTimeout(timer);
      if (!T.still()) {
        reach(-1);
        timer = setTimeout(next, PACE);
      } else reach(reached >= all ? -1 : reached + 1); // step by step: nothing moves by itself
    });
    const row = T.html(
      "div",
      { class: "chips", role: "group", "aria-label": T.say("heard.characters") },
      begins ? T.html("span", { class: "chip begin" }, T.say("heard.begin")) : null,
      chips,
    );
    row.addEventListener("keydown", (event) => {
      const to = { ArrowRight: chosen + 1, ArrowLeft: chosen - 1, Home: 0, End: reached }[event.key];
      if (to === undefined || to < 0 || to > reached) return;
      event.preventDefault();
      choose(to, true);
      chips[to].focus();
    });
    if (rows.length) choose(0, false);
    return { panel: T.html("div", { class: "heard-panel" }, row, share), button, choose, at: () => chosen, reached: () => reached };
  }

  const MOST = 5;

  /** What could have stood there, the likeliest first. */
  function distribution(row) {
    return [
      T.html("p", { class: "caption" }, T.say("heard.instead", { token: row.name, p: T.percent(row.p) })),
      T.html(
        "ul",
        { class: "next" },
        row.others.slice(0, MOST).map((each) =>
          T.html(
            "li",
            {},
            T.html("span", { class: "piece" }, each.token === "</s>" ? T.say("heard.end") : each.token),
            T.meter(each.p),
            T.html("span", { class: "number" }, T.percent(each.p)),
          ),
        ),
      ),
      T.html(
        "a",
        { href: T.linkTo({ view: "probabilities" }), on: { click: (event) => (event.preventDefault(), T.go({ view: "probabilities" })) } },
        T.say("heard.all"),
      ),
    ];
  }

  const spoken = (row) => T.say("heard.spoken", { token: row.name, p: T.percent(row.p) });

  /** Numbers under the pointer; up and down with the arrow keys from character to character. */
  function pointing(picture, { rows, x, recording, width, writing }) {
    const under = (event) => {
      const box = picture.getBoundingClientRect(),
        scale = width / box.width;
      const i = Math.floor(((event.clientY - box.top) * scale - top(0)) / (ROW + GAP));
      const seconds = x.invert((event.clientX - box.left) * scale);
      return { i, seconds, inside: seconds >= 0 && seconds <= recording.seconds };
    };
    T.pointed(picture, {
      show(event) {
        const { i, seconds, inside } = under(event);
        if (!inside) return T.untip();
        const row = i >= 0 && i <= writing.reached() ? rows[i] : null;
        T.tip(event.clientX, event.clientY, [T.say("heard.at", { seconds: seconds.toFixed(2) }), ...(row ? weightAt(row, seconds, recording) : [])]);
        return i;
      },
      hide: T.untip,
      click(event) {
        const { i } = under(event);
        if (i >= 0 && i <= writing.reached() && rows[i]) writing.choose(i, true);
      },
    });
    picture.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") return T.untip();
      if (!by || !rows.length) return;
      event.preventDefault();
      writing.choose(Math.min(writing.reached(), writing.at() + by), false);
      const row = rows[writing.at()];
      T.announce([spoken(row), ...strongest(row, recording)].join(", "));
    });
  }

  function weightAt(row, seconds, recording) {
    const weight = row.weights?.[Math.min(row.weights.length - 1, Math.floor(seconds / step(recording)))];
    return [`${row.name} ${T.percent(row.p)}`, weight === undefined ? "" : `${T.say("matrix.weight")} ${T.number(weight)}`];
  }

  function strongest(row, recording) {
    if (!row.weights) return [];
    const most = T.largest(row.weights);
    return [T.say("heard.strongest", { seconds: (row.weights.indexOf(most) * step(recording)).toFixed(2), weight: T.number(most) })];
  }

  function table(rows, recording) {
    const places = rows.find((row) => row.weights)?.weights.length || 0;
    const times = T.range(places).map((place) => T.say("heard.seconds", { seconds: (place * step(recording)).toFixed(2) }));
    return {
      head: [T.say("shares.token"), T.say("shares.p"), ...times],
      rows: rows.map((row) => [row.name, T.percent(row.p), ...T.range(places).map((place) => T.number(row.weights[place]))]),
    };
  }
})(window.Transduce);
