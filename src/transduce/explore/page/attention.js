/* The view of attention: all heads at a glance, and one of them large, as a matrix or as lines between words. */
"use strict";
(function (T) {
  T.views.attention = {
    needs: "exploration",
    async draw(area, scene) {
      const { exploration, state } = scene;
      const choice = T.chosen(exploration);
      if (!choice)
        return T.fill(area, T.heardFigure(area, { scene }), T.html("p", { class: "empty" }, T.noAttention()));
      const rollout = choice.over === "rollout" ? await T.ask.rollout(scene.model, scene.text, scene.tokens) : null;
      const worth = state.worth ? await T.worthOf(scene) : null;
      if (!scene.current()) return;
      if (rollout && !rollout[choice.kind]) throw new Error(T.say("rollout.none", { kind: T.kindName(choice.kind) }));
      const aside = T.html("div", { class: "aside" }),
        stage = T.html("div", { class: "stage stack" });
      T.fill(area, T.html("div", { class: "split" }, stage, aside));
      T.fill(
        stage,
        T.heardFigure(stage, { scene, choice, rollout }),
        large(stage, { scene, choice, rollout }),
        rowOf(stage, scene, choice),
        T.cutFigure(scene, choice),
        T.worthFigure(stage, { scene, worth }),
      );
      T.fill(aside, overview(aside, { scene, choice, worth }));
    },
  };

  /** The kinds that have a roll-out: of self-attention, and of cross-attention between layers of it. */
  function rolled({ exploration }) {
    const kinds = T.kinds(exploration),
      own = kinds.includes("decoder");
    const known = { encoder: true, decoder: true, cross: own };
    return kinds.filter((kind) => (T.offline ? exploration.rollout?.[kind] : known[kind]));
  }

  const rowOf = (area, { exploration, state }, choice) =>
    state.row !== "" && T.rowFigure(area, { exploration, choice, unit: state.unit, row: T.place(state.row, Infinity) });

  function overview(area, { scene, choice, worth }) {
    const picture = T.overview(area, {
      exploration: scene.exploration,
      choice,
      worth,
      rollout: rolled(scene),
      choose: (picked) => T.go(T.choiceState(picked)),
    });
    return T.figure({
      name: "overview",
      title: T.say("overview.title"),
      caption: T.say("overview.caption"),
      picture,
      table: () => strongestTable(scene.exploration),
    });
  }

  /** For each head where it looks most sharply: its largest weight, and between which words. */
  function strongestTable(exploration) {
    const rows = [];
    for (const layer of exploration.attention) {
      for (let head = 0; head < layer.shape[0]; head++) {
        const choice = { kind: layer.kind, layer, head, over: "layer" };
        const matrix = T.matrix(exploration, choice, "tokens");
        const most = T.largest(matrix.values),
          place = matrix.values.indexOf(most);
        const row = matrix.rows[Math.floor(place / matrix.S)].text,
          column = matrix.columns[place % matrix.S].text;
        rows.push([T.choiceName(choice), `${row} → ${column}`, T.number(most)]);
      }
    }
    return { head: [T.say("overview.head"), T.say("overview.strongest"), T.say("matrix.weight")], rows };
  }

  function large(area, { scene, choice, rollout }) {
    const { state, exploration } = scene;
    const matrix = T.matrix(exploration, choice, state.unit, rollout);
    const row = state.row === "" ? -1 : T.place(state.row, matrix.T);
    const drawing = {
      matrix,
      row,
      rowTitle: T.axisName(matrix.like.rows),
      columnTitle: T.axisName(matrix.like.columns),
      label: T.describe(matrix, T.choiceName(choice)),
      choose: (place) => T.go({ row: place === row || place < 0 ? "" : place }, true),
    };
    const most = T.darkest(matrix.values);
    return T.figure({
      name: "attention",
      title: T.choiceName(choice),
      caption: state.show === "lines" ? T.say("lines.caption") : T.sayOf(captionOf(choice)),
      picture:
        state.show === "lines"
          ? T.lines(area, { ...drawing, strands: strandsOf(exploration, choice, state.unit), tell: tellLines(matrix) })
          : matrixPicture(area, drawing, most),
      table: () => T.matrixTable(matrix),
      tools: tools(state),
      note:
        state.show === "lines" ? [headKey(choice), T.weightLegend(most, "attention"), T.say("lines.note")] : [T.weightLegend(most, "attention"), T.say("matrix.note")],
    });
  }

  const MOST_STRANDS = T.HEADS.length;
  const strandsShown = ({ layer, head }) => layer && head === null && layer.shape[0] <= MOST_STRANDS;

  /** Where the heads of one layer are averaged, lines show each head in its colour. */
  const strandsOf = (exploration, choice, unit) =>
    strandsShown(choice) &&
    T.range(choice.layer.shape[0]).map((head) => ({
      values: T.matrix(exploration, { ...choice, head }, unit).values,
      colour: T.headColour(head),
    }));

  const headKey = (choice) =>
    strandsShown(choice) &&
    T.range(choice.layer.shape[0]).map((head) =>
      T.html(
        "span",
        { class: "key" },
        T.html("span", { class: "swatch", style: { background: T.headColour(head) } }),
        T.say("choice.head", { head: head + 1 }),
      ),
    );

  const captionOf = ({ over, kind }) =>
    over !== "rollout" ? `caption.${kind}` : kind === "cross" ? "caption.rollout.cross" : "caption.rollout";

  const matrixPicture = (area, { matrix, row, rowTitle, columnTitle, label, choose }, most) =>
    T.weightsMap(area, matrix, most, { row, rowTitle, columnTitle, label, choose: (r) => choose(r) });

  /** The weights of `matrix` as a heat map, dark at `most`; what else `options` say of it. */
  T.weightsMap = (area, matrix, most, options) =>
    T.heatMap(area, {
      rows: matrix.rows.map((each) => each.text),
      columns: matrix.columns.map((each) => each.text),
      values: matrix.values,
      colour: (value) => T.weightBytes(value / most),
      print: T.cellNumber,
      hole: matrix.causal ? (r, c) => c > r && !matrix.values[r * matrix.S + c] : null,
      tell: tellCell(matrix),
      ...options,
    });

  /** What the tip says of a cell. */
  const tellCell = (matrix) => (r, c) => {
    const value = matrix.values[r * matrix.S + c];
    const hidden = matrix.causal && c > r && !value;
    return [
      `${matrix.rows[r].text} → ${matrix.columns[c].text}`,
      hidden ? T.say("matrix.hidden") : `${T.say("matrix.weight")} ${T.number(value)}`,
      T.say("matrix.place", { row: r + 1, column: c + 1 }),
    ];
  };

  const tellLines = (matrix) => (which, i) => {
    const [labels, others, weight] =
      which === "rows"
        ? [matrix.rows, matrix.columns, (j) => matrix.values[i * matrix.S + j]]
        : [matrix.columns, matrix.rows, (j) => matrix.values[j * matrix.S + i]];
    const best = T.range(others.length)
      .sort((one, other) => weight(other) - weight(one))
      .slice(0, 4);
    return [
      T.say(which === "rows" ? "lines.looks" : "lines.seen", { word: labels[i].text }),
      ...best.map((j) => `${others[j].text}  ${T.number(weight(j))}`),
    ];
  };

  const tools = (state) => [
    T.choice(
      T.say("show.label"),
      state.show,
      [
        ["matrix", T.say("show.matrix")],
        ["lines", T.say("show.lines")],
      ],
      (show) => T.go({ show }),
    ),
    T.choice(
      T.say("unit.label"),
      state.unit,
      [
        ["words", T.say("unit.words")],
        ["tokens", T.say("unit.tokens")],
      ],
      (unit) => T.go({ unit, row: "" }),
    ),
  ];

  /** A matrix in one sentence: its size, and the strongest link of the first rows. */
  T.describe = (matrix, name) => {
    const links = T.range(Math.min(matrix.T, 12)).map((r) => {
      const row = matrix.values.subarray(r * matrix.S, (r + 1) * matrix.S);
      return `${matrix.rows[r].text} → ${matrix.columns[row.indexOf(T.largest(row))]?.text}`;
    });
    return T.say("matrix.describe", { name, rows: matrix.T, columns: matrix.S, links: links.join(", ") });
  };

  T.matrixTable = (matrix, format = T.number) => ({
    head: ["", ...matrix.columns.map((each) => each.text)],
    rows: matrix.rows.map((row, r) => [
      row.text,
      ...matrix.columns.map((_, c) => format(matrix.values[r * matrix.S + c])),
    ]),
  });
})(window.Transduce);
