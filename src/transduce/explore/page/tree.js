/* A phrase-structure tree: phrases above, words in one line below. The server has placed them. */
"use strict";
(function (T) {
  const LETTER = 13,
    HIGH = 22,
    BEND = 30; // how far below a phrase its branches turn

  T.drawings.tree_drawing = (area, scene, { kind, text, nodes }) => {
    const labelled = kind === "labelled_tree_drawing";
    const stack = T.html("div", { class: "stack" });
    T.fill(area, stack);
    const width = Math.max(...nodes.map((node) => node.x + wide(node) / 2)) + 12;
    const size = { width: Math.ceil(width), height: Math.ceil(Math.max(...nodes.map((node) => node.y)) + 18) };
    const picture = T.walkedPicture("tree", size, T.say("tree.role"), T.say("tree.label", { text }));
    const below = nodes.map((_, i) => T.range(nodes.length).filter((j) => nodes[j].above === i));
    for (const node of nodes) if (node.above >= 0) picture.append(branch(nodes[node.above], node));
    for (const node of nodes) if (node.colour) picture.append(ground(node));
    const shown = nodes.map((node) =>
      T.svg(
        "text",
        { x: node.x, y: node.y + 4, "text-anchor": "middle", class: kindOf(node) },
        node.text,
      ),
    );
    picture.append(...shown);
    const covers = coveredBy(nodes, below);
    const words = (i) => covers[i].map((j) => nodes[j].text).join(" ");
    T.walkBoxes(picture, {
      boxes: nodes.map((node) => ({ x: node.x - wide(node) / 2, y: node.y - 13, width: wide(node), height: HIGH })),
      size,
      tell: (i) => [nodes[i].text, told(nodes[i], words(i))],
      next: along(nodes, below),
      shown: (at) => shown.forEach((each, i) => each.classList.toggle("covered", at >= 0 && covers[at].includes(i))),
    });
    T.fill(
      stack,
      T.figure({
        name: "tree",
        title: T.say(labelled ? "tree.title.labels" : "tree.title"),
        caption: T.say(labelled ? "tree.caption.labels" : "tree.caption"),
        picture,
        wide: true,
        note: T.say("tree.note"),
        table: () => ({
          head: [T.say("tree.phrase"), T.say("tree.words")],
          rows: T.range(nodes.length)
            .filter((i) => !nodes[i].is_word)
            .map((i) => [nodes[i].text, words(i)]),
        }),
      }),
    );
  };

  const told = (node, words) =>
    node.is_word ? node.tag || T.say("tree.word") : [node.tag, words].filter(Boolean).join(": ");

  T.drawings.labelled_tree_drawing = T.drawings.tree_drawing;

  const kindOf = (node) => `${node.is_word ? "tree-word" : "tree-phrase"}${node.colour ? " on-colour" : ""}`;

  const ground = (node) =>
    T.svg("rect", {
      x: node.x - wide(node) / 2,
      y: node.y - 10,
      width: wide(node),
      height: 20,
      rx: 5,
      fill: node.colour,
    });

  const wide = (node) => T.textWidth(node.text, LETTER, node.is_word ? 400 : 700) + 6;

  function branch(above, node) {
    const points = [
      [above.x, above.y + 7],
      [node.x, above.y + BEND],
      [node.x, node.y - 11],
    ];
    return T.svg("polyline", { points: points.map((each) => each.join(",")).join(" "), class: "tree-branch" });
  }

  /** Of each node the words below it. */
  function coveredBy(nodes, below) {
    const found = [];
    for (let i = nodes.length - 1; i >= 0; i--)
      found[i] = nodes[i].is_word ? [i] : below[i].flatMap((j) => found[j]);
    return found;
  }

  /** Up to the phrase, down to its first part, left and right to its neighbours. */
  const along = (nodes, below) => (i, key) => {
    if (key === "ArrowUp") return nodes[i].above < 0 ? null : nodes[i].above;
    if (key === "ArrowDown") return below[i][0];
    const side = nodes[i].above < 0 ? [i] : below[nodes[i].above];
    return side[side.indexOf(i) + (key === "ArrowLeft" ? -1 : 1)];
  };
})(window.Transduce);
