/* The links that changed most between A and B: from a ring to a dot. */
"use strict";
(function (T) {
  const ROW = 34,
    NUMBERS = 110,
    TOP = 26,
    MOVES = 10;

  /** difference: see moved.js. */
  T.movesFigure = (area, difference) => {
    const moves = T.largestMoves(difference, MOVES);
    if (!moves.length) return T.html("p", { class: "empty" }, T.say("compare.still"));
    return T.figure({
      name: "compare-moves",
      title: T.say("compare.moves"),
      caption: T.say("compare.moves.caption"),
      picture: drawn(area, moves),
      table: () => ({
        head: [T.say("compare.link"), "A", "B", "B − A"],
        rows: moves.map((each) => [nameOf(each), T.number(each.before), T.number(each.after), T.number(each.change)]),
      }),
    });
  };

  const nameOf = (each) => `${each.row} → ${each.column}`;
  const change = (each) => `${T.number(each.before)} → ${T.number(each.after)}`;

  function drawn(area, moves) {
    const width = T.widthOf(area, 260, 640) - 38,
      height = moves.length * ROW + TOP;
    const left = Math.min(width * 0.45, Math.max(...moves.map((each) => T.textWidth(nameOf(each), 13))) + 14);
    const most = Math.max(...moves.flatMap((each) => [each.before, each.after]));
    const x = d3.scaleLinear([0, most], [left + 8, width - NUMBERS]);
    const told = moves.map((each) => `${nameOf(each)} ${change(each)}`).join("; ");
    const picture = T.svg("svg", {
      class: "picture moves",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": T.say("compare.moves.label", { moves: told }),
    });
    picture.append(T.svg("text", { x: left + 8, y: 14, class: "quiet-text" }, T.say("compare.moves.key")));
    moves.forEach((each, i) => picture.append(row(each, { x, y: TOP + (i + 0.5) * ROW, left, width })));
    return picture;
  }

  function row(each, { x, y, left, width }) {
    const colour = T.signedColour(each.change > 0 ? 0.75 : -0.75);
    return T.svg(
      "g",
      {},
      T.svg("text", { x: left - 6, y: y + 4.5, "text-anchor": "end" }, T.fit(nameOf(each), left - 8)),
      T.svg("line", { x1: x(each.before), x2: x(each.after), y1: y, y2: y, class: "move", style: { stroke: colour } }),
      T.svg("circle", { cx: x(each.before), cy: y, r: 5, class: "from" }),
      T.svg("circle", { cx: x(each.after), cy: y, r: 6, class: "to", style: { fill: colour } }),
      T.svg("text", { x: width - 2, y: y + 4.5, "text-anchor": "end", class: "number" }, change(each)),
    );
  }
})(window.Transduce);
