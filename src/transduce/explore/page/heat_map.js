/* A matrix as a picture: a colour for every cell, names on both sides, numbers for pointer and keys.

   Small ones are drawn as shapes; above 60 x 60 the cells are one painted image, which stays fast. */
"use strict";
(function (T) {
  const LARGEST_CELL = 56,
    SMALLEST_CELL = 1.5,
    NUMBER_CELL = 33,
    SHAPES = 3600;
  const LABEL = 13,
    LINE = 14,
    LONGEST_LABEL = 130;
  const SLANT = Math.PI / 4;

  /** rows, columns: [text]. values: row after row. colour(value) -> [r, g, b] bytes; print(value) -> text in a cell.
      tell(row, column) -> lines of the tip. row: the row marked; choose(row, column): a click or Enter, and of a finger
      the second tap on a cell, or every one where `atOnce`.
      label: what it is, for those who do not see it. rowTitle, columnTitle: names of the axes. */
  T.heatMap = (area, options) => {
    const o = { row: -1, print: null, choose: null, hole: null, ...options };
    const size = measure(area, o);
    const picture = T.svg("svg", {
      class: "picture heat-map",
      viewBox: `0 0 ${size.width} ${size.height}`,
      width: size.width,
      height: size.height,
      tabindex: "0",
      role: "application",
      "aria-roledescription": T.say("matrix.role"),
      "aria-label": o.label,
    });
    const cells = o.values.length > SHAPES ? painted(o, size) : shapes(o, size);
    const marks = marking(o, size);
    picture.append(axisNames(o, size), columnNames(o, size), rowNames(o, size), cells, marks.group);
    walking(picture, o, size, marks);
    return picture;
  };

  function measure(area, o) {
    const room = T.widthOf(area) - 4;
    const longest = (texts) => Math.max(...texts.slice(0, 400).map((text) => T.textWidth(text, LABEL)), 8);
    const limit = Math.min(LONGEST_LABEL, room / 3.2);
    const title = o.rowTitle ? LINE + 6 : 0;
    const left = Math.min(longest(o.rows), limit) + 10 + title;
    const rise = Math.min(longest(o.columns), limit) * Math.sin(SLANT) + 14;
    const overhang = Math.max(8, Math.min(T.textWidth(o.columns.at(-1) ?? "", LABEL), limit) * Math.cos(SLANT) - 4);
    const across = (room - left - overhang) / o.columns.length;
    const cell = Math.max(SMALLEST_CELL, Math.min(o.cell || LARGEST_CELL, across));
    const top = rise + (o.columnTitle ? LINE + 6 : 0);
    return {
      cell,
      left,
      top,
      limit,
      title,
      width: Math.max(left + cell * o.columns.length + overhang, title + 120),
      height: top + cell * o.rows.length + 4,
    };
  }

  function shapes(o, { cell, left, top }) {
    const gap = cell > 8 ? 1 : 0;
    const S = o.columns.length;
    const group = T.svg("g", {});
    for (let i = 0; i < o.values.length; i++) {
      const row = Math.floor(i / S),
        column = i % S;
      if (o.hole && o.hole(row, column)) continue;
      const x = left + column * cell,
        y = top + row * cell;
      const bytes = o.colour(o.values[i]);
      group.append(
        T.svg("rect", {
          x,
          y,
          width: cell - gap,
          height: cell - gap,
          rx: cell > 16 ? 2.5 : 0,
          fill: `rgb(${bytes.join(",")})`,
        }),
      );
      const number = o.print && cell >= NUMBER_CELL ? o.print(o.values[i]) : "";
      if (number) {
        group.append(
          T.svg(
            "text",
            {
              x: x + cell / 2,
              y: y + cell / 2 + 4,
              "text-anchor": "middle",
              class: "cell-number",
              style: { fill: T.readableOn(bytes) },
            },
            number,
          ),
        );
      }
    }
    return group;
  }

  /** Cells as an image, a pixel each, stretched. */
  T.paint = (values, height, width, colour) => {
    const canvas = T.html("canvas", { width, height });
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    for (let i = 0; i < height * width; i++) {
      const bytes = colour(values[i]);
      image.data[4 * i] = bytes[0];
      image.data[4 * i + 1] = bytes[1];
      image.data[4 * i + 2] = bytes[2];
      image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
    return canvas.toDataURL("image/png");
  };

  function painted(o, { cell, left, top }) {
    const T_ = o.rows.length,
      S = o.columns.length;
    return T.svg("image", {
      x: left,
      y: top,
      width: cell * S,
      height: cell * T_,
      preserveAspectRatio: "none",
      class: "pixels",
      href: T.paint(o.values, T_, S, o.colour),
    });
  }

  const every = (cell) => Math.ceil(LINE / cell);

  function columnNames(o, { cell, left, top, limit }) {
    const group = T.svg("g", { class: "names columns" });
    o.columns.forEach((text, i) => {
      if (i % every(cell)) return;
      const x = left + (i + 0.5) * cell,
        y = top - 7;
      group.append(T.svg("text", { x, y, transform: `rotate(-45 ${x} ${y})`, "data-i": i }, T.fit(text, limit)));
    });
    return group;
  }

  function rowNames(o, { cell, left, top, limit }) {
    const group = T.svg("g", { class: "names rows" });
    o.rows.forEach((text, i) => {
      if (i % every(cell)) return;
      const y = top + (i + 0.5) * cell + 4.5;
      group.append(
        T.svg(
          "text",
          {
            x: left - 8,
            y,
            "text-anchor": "end",
            "data-i": i,
            class: i === o.row ? "chosen" : null,
          },
          T.fit(text, limit),
        ),
      );
    });
    return group;
  }

  function axisNames(o, { left, top, cell, title }) {
    const group = T.svg("g", { class: "axis-names" });
    if (o.columnTitle) group.append(T.svg("text", { x: left, y: LINE - 2 }, `${o.columnTitle} →`));
    const y = top + (cell * o.rows.length) / 2;
    if (o.rowTitle && T.textWidth(o.rowTitle, 12) + 20 < cell * o.rows.length) {
      group.append(
        T.svg(
          "text",
          { x: title - 8, y, "text-anchor": "middle", transform: `rotate(-90 ${title - 8} ${y})` },
          `← ${o.rowTitle}`,
        ),
      );
    }
    return group;
  }

  /** The band of the row, the band of the column, and the cell, where the pointer or the focus is. */
  function marking(o, { cell, left, top }) {
    const T_ = o.rows.length,
      S = o.columns.length;
    const band = () => T.svg("rect", { class: "band", visibility: "hidden" });
    const [row, column, spot] = [band(), band(), T.svg("rect", { class: "spot", visibility: "hidden", rx: 3 })];
    const chosen =
      o.row >= 0 &&
      T.svg("rect", {
        class: "chosen-row",
        x: left - 2,
        y: top + o.row * cell - 1.5,
        width: cell * S + 3,
        height: cell + 2,
        rx: 4,
      });
    const place = (rect, x, y, width, height) => {
      for (const [name, value] of Object.entries({ x, y, width, height, visibility: "visible" }))
        rect.setAttribute(name, value);
    };
    return {
      group: T.svg("g", {}, chosen, T.svg("g", { "data-passing": true }, row, column, spot)),
      show(r, c) {
        place(row, left - 1, top + r * cell - 1, cell * S + 1, cell + 1);
        place(column, left + c * cell - 1, top - 1, cell + 1, cell * T_ + 1);
        place(spot, left + c * cell - 1.5, top + r * cell - 1.5, cell + 2, cell + 2);
      },
      hide: () => [row, column, spot].forEach((rect) => rect.setAttribute("visibility", "hidden")),
    };
  }

  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  function walking(picture, o, size, marks) {
    const last = [o.rows.length - 1, o.columns.length - 1];
    let at = [Math.max(0, o.row), 0];
    const show = (x, y, aloud) => {
      marks.show(...at);
      emphasise(picture, at);
      const lines = o.tell(...at);
      T.tip(x, y, lines);
      if (aloud) T.announce(lines.join(", "));
    };
    const hide = () => {
      marks.hide();
      emphasise(picture, [-1, -1]);
      T.untip();
    };
    const atFocus = () => {
      const box = picture.getBoundingClientRect();
      const scale = box.width / size.width;
      show(
        box.left + (size.left + (at[1] + 0.5) * size.cell) * scale,
        box.top + (size.top + (at[0] + 0.5) * size.cell) * scale,
        true,
      );
    };
    const under = (event) => {
      const box = picture.getBoundingClientRect();
      const scale = size.width / box.width;
      const row = Math.floor(((event.clientY - box.top) * scale - size.top) / size.cell);
      const column = Math.floor(((event.clientX - box.left) * scale - size.left) / size.cell);
      return row < 0 || column < 0 || row > last[0] || column > last[1] ? null : [row, column];
    };
    T.pointed(picture, {
      show(event) {
        const found = under(event);
        if (!found) return hide();
        at = found;
        show(event.clientX, event.clientY, false);
        return found;
      },
      hide,
      click(event) {
        const found = under(event);
        if (found && o.choose) o.choose(...found);
      },
      atOnce: o.atOnce,
    });
    picture.addEventListener("blur", hide);
    picture.addEventListener("focus", () => picture.matches(":focus-visible") && atFocus());
    picture.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "Escape") return hide();
      if (event.key === "Enter" || event.key === " ") o.choose && o.choose(...at);
      else if (event.key === "Home") at = [at[0], 0];
      else if (event.key === "End") at = [at[0], last[1]];
      else if (STEPS[event.key]) at = at.map((place, i) => Math.max(0, Math.min(last[i], place + STEPS[event.key][i])));
      else return;
      event.preventDefault();
      atFocus();
    });
  }

  function emphasise(picture, [row, column]) {
    for (const [name, i] of [
      ["rows", row],
      ["columns", column],
    ]) {
      for (const text of picture.querySelectorAll(`.names.${name} .near`)) text.classList.remove("near");
      picture.querySelector(`.names.${name} [data-i="${i}"]`)?.classList.add("near");
    }
  }

  /** The weight that has the darkest colour: 1, so that pictures can be compared; where somebody stretches the colours,
      the largest of `several` arrays. */
  T.darkest = (...several) => (T.state().stretch === "1" && Math.max(...several.map(T.largest))) || 1;

  /** The legend of weights up to `darkest`, and the switch that stretches their colours. name: of the figure. */
  T.weightLegend = (darkest, name) => {
    const stretched = T.state().stretch === "1";
    return [
      T.legend(darkest),
      " ",
      T.html(
        "button",
        {
          type: "button",
          class: "quiet stretch",
          id: `stretch-${name}`,
          "aria-pressed": String(stretched),
          title: T.say("stretch.why"),
          on: { click: () => T.go({ stretch: stretched ? "" : "1" }, true) },
        },
        T.say("stretch"),
      ),
      " ",
      stretched && T.html("strong", { class: "stretched" }, T.say("stretch.now", { most: T.number(darkest) })),
      " ",
    ];
  };

  /** The colours' legend: from 0 (or -most) to most. */
  T.legend = (most, { signed = false, format = T.number } = {}) => {
    const width = 120;
    const canvas = T.html("canvas", { width, height: 10, class: "legend-bar", "aria-hidden": "true" });
    const context = canvas.getContext("2d");
    for (let x = 0; x < width; x++) {
      const part = x / (width - 1);
      const bytes = signed ? T.signedBytes(2 * part - 1) : T.weightBytes(part);
      context.fillStyle = `rgb(${bytes.join(",")})`;
      context.fillRect(x, 0, 1, 10);
    }
    return T.html(
      "span",
      { class: "legend" },
      T.html("span", {}, format(signed ? -most : 0)),
      canvas,
      T.html("span", {}, format(most)),
    );
  };
})(window.Transduce);
