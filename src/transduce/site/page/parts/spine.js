/* A beam as a straight spine: the best output runs down, other hypotheses branch off, folded until they are opened. */
"use strict";
(function (T) {
  const ROW = 34,
    LEFT = 34,
    SIZE = 14,
    HIGH = 24,
    WIDEST = 128;

  /** The picture. lattice: {steps}, each candidate with its text; best: the texts of the best output, its end included;
      open: keys of the branches that are unfolded; toggle(key); id: what the ids of its parts begin with. */
  T.spine = ({ lattice, best, open, toggle, label, id }) => {
    const lines = linesOf(lattice, best, open);
    const wide = widthOf(lines);
    const columns = 1 + Math.max(...lines.map((line) => line.column));
    const [width, height] = [LEFT + columns * (wide + 22) + 4, ROW * lattice.steps.length + 8];
    const picture = T.svg("svg", { class: "picture spine", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label });
    const x = (column) => LEFT + column * (wide + 22);
    const y = (step) => 4 + step * ROW + ROW / 2;
    lattice.steps.forEach((_, step) => picture.append(T.svg("text", { x: LEFT - 12, y: y(step) + 4, "text-anchor": "end", class: "tick" }, step + 1)));
    for (const line of lines) picture.append(links(line, x, y));
    for (const line of lines) line.nodes.forEach((node, i) => picture.append(pill(node, line, i, { x: x(line.column), y: y(node.step), wide, toggle, id })));
    return picture;
  };

  /** The candidates that were kept, as a tree: {step, children, ...candidate}. */
  function treeOf(lattice) {
    const root = { step: -1, children: [] };
    let before = [];
    lattice.steps.forEach((candidates, step) => {
      const nodes = candidates.map((each, place) => ({ ...each, step, key: `${step}-${place}`, children: [] }));
      for (const node of nodes) if (node.kept) (node.parent < 0 ? root : before[node.parent]).children.push(node);
      before = nodes;
    });
    return root;
  }

  /** Lines from top to bottom, the spine first: {nodes, from, column, folded: how many nodes are hidden below}. */
  function linesOf(lattice, best, open) {
    const root = treeOf(lattice);
    const main = [];
    for (let at = root, i = 0; i < best.length; ++i) {
      at = at.children.find(({ text }) => text === best[i]);
      if (!at) break;
      main.push(at);
    }
    const lines = [{ nodes: main, from: null, column: 0, folded: 0 }];
    const taken = new Set(main.map(({ step }) => `${step} 0`));
    const waiting = branches(root, main, null);
    while (waiting.length) {
      waiting.sort((a, b) => a.node.step - b.node.step || b.node.total - a.node.total);
      const { node, from } = waiting.shift();
      const nodes = open.has(node.key) ? straight(node) : [node];
      let column = (from?.column ?? 0) + 1;
      while (nodes.some(({ step }) => taken.has(`${step} ${column}`))) ++column;
      nodes.forEach(({ step }) => taken.add(`${step} ${column}`));
      const line = { nodes, from: from && { ...from }, column, folded: hidden(node), open: open.has(node.key) };
      lines.push(line);
      if (line.open) waiting.push(...branches(null, nodes, line));
    }
    return lines;
  }

  /** What branches off a line: {node, from: the column and step where it does}. */
  const branches = (root, nodes, line) => {
    const parents = root ? [root, ...nodes] : nodes;
    return parents.flatMap((parent) => {
      const others = parent.children.filter((child) => !nodes.includes(child));
      return others.map((node) => ({ node, from: parent === root ? null : { column: line?.column ?? 0, step: parent.step } }));
    });
  };

  /** A node and, below it, its likeliest children. */
  function straight(node) {
    const nodes = [node];
    for (let at = node; at.children.length; nodes.push(at)) at = at.children.reduce((a, b) => (b.total > a.total ? b : a));
    return nodes;
  }

  const hidden = (node) => node.children.reduce((sum, child) => sum + 1 + hidden(child), 0);

  function widthOf(lines) {
    const texts = lines.flatMap(({ nodes }) => nodes.map(({ text }) => T.textWidth(T.piece(text), SIZE, 600)));
    return Math.min(Math.max(...texts, 20), WIDEST - 50) + 74;
  }

  function links({ nodes, from, column }, x, y) {
    const first = nodes[0];
    const side = column > 0 && T.svg("path", { class: "branch", d: turn(from, first, column, x, y), "stroke-width": thick(first) });
    const down = nodes.slice(1).map((node) =>
      T.svg("path", { class: column ? "branch" : "branch best", d: `M${x(column) + 16} ${y(node.step - 1) + HIGH / 2}V${y(node.step) - HIGH / 2}`, "stroke-width": thick(node) }),
    );
    return T.svg("g", {}, side, down);
  }

  function turn(from, node, column, x, y) {
    const [x0, y0] = [x(from?.column ?? 0) + 16, from ? y(from.step) + HIGH / 2 : y(0) - HIGH / 2 - 3];
    const [x1, y1] = [x(column), y(node.step)];
    if (!from) return `M${x0} ${y0}C${x1 - 20} ${y0 - 2}, ${x1 - 20} ${y1}, ${x1} ${y1}`;
    return `M${x0} ${y0}C${x0} ${y0 + 9}, ${x0 + 40} ${y1 - HIGH / 2 - 3}, ${x1 - 24} ${y1 - HIGH / 2 + 2}S${x1 - 8} ${y1}, ${x1} ${y1}`;
  }

  const thick = (node) => 1 + 4 * Math.exp(node.log_probability);

  function pill(node, line, i, { x, y, wide, toggle, id }) {
    const folds = i === 0 && line.column > 0 && line.folded > 0;
    const text = T.fit(T.piece(node.text), wide - 74, SIZE);
    const p = T.percent(Math.exp(node.log_probability));
    const sign = folds ? (line.open ? "▾" : `▸${line.folded}`) : "";
    const classes = ["pill", line.column === 0 && "best", node.finished && "finished", folds && "folds"].filter(Boolean).join(" ");
    const spoken = [`${text} ${p}${sign ? ` ${sign}` : ""}`, `${T.say("beam.total")} ${T.short(node.total)}`, T.say(node.finished ? "beam.finished" : "beam.kept")];
    const act = () => toggle(node.key);
    const acting = folds
      ? { role: "button", tabindex: "0", "aria-expanded": String(Boolean(line.open)), "aria-label": spoken.join(", "), on: { click: act, keydown: pressed(act) } }
      : {};
    return T.svg(
      "g",
      { class: classes, id: `${id}-${node.key}`, ...acting },
      folds ? null : T.svg("title", {}, spoken.join("\n")),
      T.svg("rect", { x, y: y - HIGH / 2, width: wide, height: HIGH, rx: HIGH / 2 }),
      T.svg("text", { x: x + 11, y: y + 5, class: "pill-text" }, text),
      " ",
      T.svg("text", { x: x + wide - (sign ? 32 : 10), y: y + 4, "text-anchor": "end", class: "tick" }, p),
      sign && [" ", T.svg("text", { x: x + wide - 9, y: y + 4, "text-anchor": "end", class: "tick" }, sign)],
    );
  }

  const pressed = (act) => (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  };
})(window.Transduce);
