/* Attention as lines between words: on the left who looks, on the right what is looked at. */
"use strict";
(function (T) {
  const SHAPE = d3.linkHorizontal();
  const MOST_LINES = 800,
    FAINTEST = 0.015,
    SPREAD = 2.5;
  const LABEL = 14;

  /** The strongest weights of all strands as {r, c, weight, colour, shift}, the heaviest last. */
  function strongest(strands, S) {
    const found = [];
    strands.forEach(({ values, colour }, strand) => {
      const shift = SPREAD * (strand - (strands.length - 1) / 2);
      for (let i = 0; i < values.length; i++) {
        if (values[i] >= FAINTEST) found.push({ r: Math.floor(i / S), c: i % S, weight: values[i], colour, shift });
      }
    });
    return found.sort((one, other) => one.weight - other.weight).slice(-MOST_LINES);
  }

  function measure(area, matrix, rowTitle) {
    const room = Math.min(860, T.widthOf(area) - 4);
    const most = room * 0.34;
    const wide = (labels) =>
      Math.min(most, Math.max(...labels.map((label) => T.textWidth(label.text, LABEL)), 20)) + 16;
    const count = Math.max(matrix.T, matrix.S);
    const line = count > 80 ? 15 : count > 30 ? 20 : 28;
    const left = Math.max(wide(matrix.rows), T.textWidth(rowTitle, 12) + 4),
      right = wide(matrix.columns);
    return {
      line,
      left,
      right,
      most,
      top: 30,
      width: Math.max(300, Math.min(room, left + right + 460)),
      height: 38 + line * count,
    };
  }

  /** matrix: see weights.js. strands: several heads as [{values, colour}], whose mean the matrix is.
      row: the row in focus, -1 for none; choose(row). label: its name for those who listen. */
  T.lines = (area, { matrix, strands, row, choose, label, rowTitle, columnTitle, tell }) => {
    const size = measure(area, matrix, rowTitle);
    const xs = [size.left, size.width - size.right];
    const offset = (count) => size.top + ((Math.max(matrix.T, matrix.S) - count) * size.line) / 2;
    const y = (count) => (i) => offset(count) + (i + 0.5) * size.line;
    const [yRow, yColumn] = [y(matrix.T), y(matrix.S)];
    const drawn = strands || [{ values: matrix.values, colour: null }];
    const most = T.darkest(...drawn.map((strand) => strand.values));
    const threads = T.svg("g", { class: "threads" });
    const paths = strongest(drawn, matrix.S).map(({ r, c, weight, colour, shift }) => {
      const path = T.svg("path", {
        d: SHAPE({ source: [xs[0] + 6, yRow(r) + shift], target: [xs[1] - 6, yColumn(c) + shift] }),
        "stroke-width": 0.6 + (strands ? 2.4 : 4.4) * (weight / most),
        class: "thread",
        style: colour ? { stroke: colour } : {},
      });
      threads.append(path);
      return { r, c, weight, path };
    });
    const picture = T.svg("svg", {
      class: "picture lines",
      viewBox: `0 0 ${size.width} ${size.height}`,
      width: size.width,
      height: size.height,
      tabindex: "0",
      role: "application",
      "aria-roledescription": T.say("lines.role"),
      "aria-label": label,
    });
    const names = [
      side(matrix.rows, { x: xs[0], y: yRow, end: true, size, which: "rows" }),
      side(matrix.columns, { x: xs[1], y: yColumn, end: false, size, which: "columns" }),
    ];
    picture.append(
      T.svg(
        "g",
        { class: "axis-names" },
        T.svg("text", { x: xs[0], y: 14, "text-anchor": "end" }, rowTitle),
        T.svg("text", { x: xs[1], y: 14 }, columnTitle),
      ),
      threads,
      ...names,
    );
    interact(picture, { matrix, paths, most, row, choose, tell, names, size });
    return picture;
  };

  function side(labels, { x, y, end, size, which }) {
    const group = T.svg("g", { class: `names ${which}` });
    labels.forEach((label, i) => {
      const width = (end ? size.left : size.right) - 4;
      group.append(
        T.svg(
          "g",
          { class: "word", "data-i": i },
          T.svg("rect", {
            x: end ? x - width : x,
            y: y(i) - size.line / 2 + 1,
            width,
            height: size.line - 2,
            rx: 4,
            class: "shade",
          }),
          T.svg(
            "text",
            { x: end ? x - 6 : x + 6, y: y(i) + 4.5, "text-anchor": end ? "end" : "start", class: "word-text" },
            T.fit(label.text, size.most, LABEL),
          ),
        ),
      );
    });
    return group;
  }

  function interact(picture, o) {
    const focus = { side: "rows", i: o.row };
    const light = (which, i) => show(picture, o, which, i);
    const rest = () => {
      light("rows", o.row);
      T.untip();
    };
    for (const group of picture.querySelectorAll(".word")) {
      const which = group.parentNode.classList.contains("rows") ? "rows" : "columns";
      const i = Number(group.dataset.i);
      T.pointed(group, {
        show(event) {
          light(which, i);
          T.tip(event.clientX, event.clientY, o.tell(which, i));
        },
        hide: rest,
        click: which === "rows" ? () => o.choose(i === o.row ? -1 : i) : null,
      });
    }
    picture.addEventListener("focus", () => picture.matches(":focus-visible") && move(0));
    picture.addEventListener("blur", rest);
    picture.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      if (event.key === "ArrowDown") move(1);
      else if (event.key === "ArrowUp") move(-1);
      else if (event.key === "ArrowLeft" || event.key === "ArrowRight")
        turn(event.key === "ArrowLeft" ? "rows" : "columns");
      else if (event.key === "Enter" || event.key === " ")
        focus.side === "rows" && o.choose(focus.i === o.row ? -1 : focus.i);
      else if (event.key === "Escape") rest();
      else return;
      event.preventDefault();
    });
    function turn(which) {
      focus.side = which;
      move(0);
    }
    function move(by) {
      const count = focus.side === "rows" ? o.matrix.T : o.matrix.S;
      focus.i = Math.max(0, Math.min(count - 1, focus.i + by));
      light(focus.side, focus.i);
      const box = picture.querySelector(`.${focus.side} [data-i="${focus.i}"]`).getBoundingClientRect();
      const lines = o.tell(focus.side, focus.i);
      T.tip(box.right, box.top, lines);
      T.announce(lines.join(", "));
    }
    rest();
  }

  /** Only the lines of one word, and the words at their ends shaded by weight; all lines where no word is in focus. */
  function show(picture, { matrix, paths, most }, which, i) {
    const heaviest = T.darkest(matrix.values);
    for (const { r, c, weight, path } of paths) {
      const mine = i < 0 || (which === "rows" ? r : c) === i;
      path.setAttribute(
        "stroke-opacity",
        mine ? (i < 0 ? 0.08 + 0.72 * (weight / most) : 0.15 + 0.85 * (weight / most)) : 0,
      );
    }
    for (const word of picture.querySelectorAll(".word")) {
      const place = Number(word.dataset.i);
      const here = word.parentNode.classList.contains("rows") ? "rows" : "columns";
      const [shade, text] = word.children;
      let weight = 0;
      if (i >= 0 && here !== which)
        weight = which === "rows" ? matrix.values[i * matrix.S + place] : matrix.values[place * matrix.S + i];
      word.classList.toggle("chosen", i >= 0 && here === which && place === i);
      shade.style.fill = weight > 0.005 ? T.weightColour(weight / heaviest) : "transparent";
      text.style.fill = weight > 0.005 ? T.weightText(weight / heaviest) : "";
    }
  }
})(window.Transduce);
