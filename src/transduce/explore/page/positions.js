/* How the model knows where a word stands: the table, the clock, the dot products; or the bias by distance. */
"use strict";
(function (T) {
  const DIAL = 62,
    DIALS = 12,
    LENGTHS = ["20", "50", "100", "200"],
    DEFAULT_LENGTH = 50,
    MOST_WIDTH = 128;

  T.views.positions = {
    needs: "positions",
    async draw(area, scene) {
      const length = LENGTHS.includes(scene.state.length) ? Number(scene.state.length) : DEFAULT_LENGTH;
      const found = await T.ask.positions(scene.model, length);
      if (!scene.current()) return;
      const stack = T.html("div", { class: "stack" });
      T.fill(
        area,
        T.html(
          "p",
          { class: "lead" },
          T.say(T.says(`positions.${found.kind}`) ? `positions.${found.kind}` : "positions.other", {
            kind: found.kind,
          }),
        ),
        found.kind === "none" ? null : lengths(scene, found),
        stack,
      );
      const figures = [];
      if (found.table) figures.push(table(stack, found));
      if (found.clock) figures.push(clocks(stack, scene, found));
      if (found.dots) figures.push(dots(stack, found));
      if (found.bias) figures.push(...biases(stack, found));
      T.fill(stack, figures);
    },
  };

  const lengths = (scene, found) =>
    T.offline
      ? null
      : T.html(
          "div",
          { class: "controls" },
          T.choice(
            T.say("positions.length"),
            String(found.length || DEFAULT_LENGTH),
            LENGTHS.map((each) => [each, each]),
            (length) => T.go({ length }),
          ),
        );

  const numbers = (count, from = 0) => T.range(count).map((i) => String(i + from));

  /** A packed array of two axes. */
  function grid(packed, height, width) {
    const values =
      typeof packed === "string" ? T.floats(packed) : packed.weights ? T.unpacked(packed) : T.floats(packed.table);
    return { values, height, width: width || values.length / height };
  }

  function signedMap(area, { values, height, width }, { label, rowTitle, columnTitle, columns, rows }) {
    const most = Math.max(T.largest(values), T.largest(values.map((value) => -value))) || 1;
    const names = [rows || numbers(height), columns || numbers(width)];
    return [
      most,
      T.heatMap(area, {
        rows: names[0],
        columns: names[1],
        values,
        colour: (value) => T.signedBytes(value / most),
        print: T.cellNumber,
        rowTitle,
        columnTitle,
        label,
        cell: height > 24 ? 13 : 26,
        tell: (r, c) => [`${rowTitle} ${names[0][r]}, ${columnTitle} ${names[1][c]}`, T.number(values[r * width + c])],
      }),
    ];
  }

  const tableOf = ({ values, height, width }) => ({
    head: ["", ...numbers(width)],
    rows: T.range(height).map((r) => [String(r), ...T.range(width).map((c) => T.number(values[r * width + c]))]),
  });

  function table(area, found) {
    const whole = grid(found.table, found.length, found.width);
    const width = Math.min(whole.width, MOST_WIDTH);
    const values = Float32Array.from(
      { length: whole.height * width },
      (_, i) => whole.values[Math.floor(i / width) * whole.width + (i % width)],
    );
    const shown = { values, height: whole.height, width };
    const [most, picture] = signedMap(area, shown, {
      label: T.say("positions.table.label"),
      rowTitle: T.say("positions.position"),
      columnTitle: T.say("positions.dimension"),
    });
    return T.figure({
      name: "positions",
      title: T.say("positions.table"),
      caption: T.say("positions.table.caption"),
      picture,
      table: () => tableOf(shown),
      note: [
        T.legend(most, { signed: true }),
        width < whole.width && T.say("positions.cut", { shown: width, all: whole.width }),
      ],
    });
  }

  function clocks(area, scene, found) {
    const angles = grid(found.clock, found.length);
    const at = T.place(scene.state.position, found.length);
    const box = T.html("div", {});
    const slider = T.html("input", {
      type: "range",
      id: "position",
      min: "0",
      max: String(found.length - 1),
      value: String(at),
    });
    const told = T.html("output", { for: "position" }, String(at));
    const show = (position) => {
      T.fill(told, String(position));
      T.fill(
        box,
        T.figure({
          name: "clock",
          title: T.say("positions.clock"),
          caption: T.say("positions.clock.caption"),
          picture: dials(area, angles, position),
          table: () => dialTable(angles, position),
          tools: T.html("label", { class: "slider" }, T.say("positions.at"), slider, told),
        }),
      );
    };
    slider.addEventListener("input", () => {
      show(Number(slider.value));
      slider.focus();
    });
    slider.addEventListener("change", () => T.go({ position: slider.value }, true));
    show(at);
    return box;
  }

  /** Which of the frequencies are drawn, evenly chosen. */
  const chosenDials = (width) =>
    T.range(Math.min(DIALS, width)).map((i) => Math.round((i * (width - 1)) / Math.max(1, Math.min(DIALS, width) - 1)));

  const turns = (angle) => angle / (2 * Math.PI);
  const dialTable = (angles, position) => ({
    head: [T.say("positions.pair"), T.say("positions.angle"), "sin", "cos"],
    rows: chosenDials(angles.width).map((pair) => {
      const angle = angles.values[position * angles.width + pair];
      return [String(pair), T.short(angle), T.number(Math.sin(angle)), T.number(Math.cos(angle))];
    }),
  });

  /** Hands of clocks. angles: {values, width}: of each position, in radians. */
  T.dials = dials;
  function dials(area, angles, position) {
    const each = DIAL + 26,
      chosen = chosenDials(angles.width);
    const across = Math.max(3, Math.min(chosen.length, Math.floor(T.widthOf(area, 260, 1260) / each) || 3));
    const down = Math.ceil(chosen.length / across);
    const width = across * each,
      height = down * (each + 18);
    const picture = T.svg("svg", {
      class: "picture dials",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": T.say("positions.clock.label", { position }),
    });
    chosen.forEach((pair, i) =>
      picture.append(
        dial(
          (i % across) * each + each / 2,
          Math.floor(i / across) * (each + 18) + DIAL / 2 + 6,
          angles.values[position * angles.width + pair],
          pair,
        ),
      ),
    );
    return picture;
  }

  function dial(x, y, angle, pair) {
    const r = DIAL / 2,
      hand = [x + 0.82 * r * Math.sin(angle), y - 0.82 * r * Math.cos(angle)];
    return T.svg(
      "g",
      {},
      T.svg("circle", { cx: x, cy: y, r, class: "dial" }),
      T.range(12).map((hour) =>
        T.svg("line", {
          class: "dial-mark",
          x1: x + 0.9 * r * Math.sin((hour * Math.PI) / 6),
          y1: y - 0.9 * r * Math.cos((hour * Math.PI) / 6),
          x2: x + r * Math.sin((hour * Math.PI) / 6),
          y2: y - r * Math.cos((hour * Math.PI) / 6),
        }),
      ),
      T.svg("line", { x1: x, y1: y, x2: hand[0], y2: hand[1], class: "dial-hand" }),
      T.svg("circle", { cx: x, cy: y, r: 2.5, class: "dial-pin" }),
      T.svg(
        "text",
        { x, y: y + r + 16, "text-anchor": "middle", class: "tick" },
        T.say("positions.pair.short", { pair }),
      ),
      T.svg(
        "text",
        { x, y: y + r + 29, "text-anchor": "middle", class: "tick" },
        T.say("positions.turns", { turns: T.short(turns(angle)) }),
      ),
    );
  }

  function dots(area, found) {
    const square = grid(found.dots, found.length, found.length);
    const [most, picture] = signedMap(area, square, {
      label: T.say("positions.dots.label"),
      rowTitle: T.say("positions.position"),
      columnTitle: T.say("positions.other.position"),
    });
    return T.figure({
      name: "position-dots",
      title: T.say("positions.dots"),
      caption: T.say("positions.dots.caption"),
      picture,
      table: () => tableOf(square),
      note: T.legend(most, { signed: true }),
    });
  }

  function biases(area, found) {
    const [H, T_, S] = found.shape || found.bias.shape || shapeOf(found);
    const all = grid(found.bias, H * T_).values;
    return T.range(Math.min(H, 16)).map((head) => {
      const square = { values: all.slice(head * T_ * S, (head + 1) * T_ * S), height: T_, width: S };
      const title = T.say("positions.bias", { head: head + 1 });
      const [most, picture] = signedMap(area, square, {
        label: title,
        rowTitle: T.say("positions.query"),
        columnTitle: T.say("positions.key"),
      });
      return T.figure({
        name: `position-bias-${head + 1}`,
        title,
        caption: T.say("positions.bias.caption"),
        picture,
        table: () => tableOf(square),
        note: T.legend(most, { signed: true }),
      });
    });
  }

  function shapeOf(found) {
    const count = (typeof found.bias === "string" ? T.floats(found.bias) : T.unpacked(found.bias)).length;
    return [count / (found.length * found.length), found.length, found.length];
  }
})(window.Transduce);
