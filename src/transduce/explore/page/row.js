/* One query in every head of its kind: a row for each head, the same columns as the large matrix. */
"use strict";
(function (T) {
  const CELL = 30,
    SMALL = 20;

  /** choice: whose kind is shown; row: the query's place in `unit`. */
  T.rowFigure = (area, { exploration, choice, unit, row }) => {
    const heads = T.layersOf(exploration, choice.kind).flatMap((layer) =>
      T.range(layer.shape[0]).map((head) => ({ kind: choice.kind, layer, head, over: "layer" })),
    );
    const matrices = heads.map((each) => T.matrix(exploration, each, unit));
    const { S, rows, columns } = matrices[0];
    if (heads.length < 2 || !rows[row] || matrices.some((matrix) => matrix.S !== S)) return null;
    const values = new Float32Array(heads.length * S);
    matrices.forEach((matrix, i) => values.set(matrix.values.subarray(row * S, (row + 1) * S), i * S));
    const most = T.darkest(values),
      word = rows[row].text;
    const names = heads.map((each) => `${each.layer.layer + 1}.${each.head + 1}`);
    const marked =
      choice.layer && choice.head !== null
        ? heads.findIndex((each) => each.layer === choice.layer && each.head === choice.head)
        : -1;
    const picture = T.heatMap(area, {
      rows: names,
      columns: columns.map((each) => each.text),
      values,
      cell: heads.length > 12 ? SMALL : CELL,
      row: marked,
      rowTitle: T.say("overview.head"),
      columnTitle: T.axisName(matrices[0].like.columns),
      colour: (value) => T.weightBytes(value / most),
      print: T.cellNumber,
      label: T.say("row.label", { word }),
      tell: (r, c) => [
        `${word} → ${columns[c].text}`,
        T.choiceName(heads[r]),
        `${T.say("matrix.weight")} ${T.number(values[r * S + c])}`,
      ],
      choose: (r) => T.go({ ...T.choiceState(heads[r]), row }),
    });
    return T.figure({
      name: "row",
      title: T.say("row.title", { word }),
      caption: T.say("row.caption"),
      picture,
      note: T.weightLegend(most, "row"),
      table: () => ({
        head: [T.say("overview.head"), ...columns.map((each) => each.text)],
        rows: names.map((name, r) => [name, ...T.range(S).map((c) => T.number(values[r * S + c]))]),
      }),
    });
  };
})(window.Transduce);
