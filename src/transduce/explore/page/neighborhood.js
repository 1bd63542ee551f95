/* The graph around a node, or a whole graph: each edge as wide as what its one end reads of the other weighs. */
"use strict";
(function (T) {
  const RADIUS = 14,
    RING = 18, // of what a node reads of itself
    THICK = 9, // pixels of the weight 1
    BEND = 0.12, // of an edge, as a share of its length: the edge back is another line
    NAME = 12, // characters of a name
    TOLD = 6; // neighbours that a tip names

  T.drawings.neighborhood_drawing = (area, scene, drawing) => {
    const stage = T.html("div", { class: "stage" }),
      aside = T.html("div", { class: "aside" });
    T.fill(area, T.html("div", { class: "split" }, stage, aside));
    T.fill(stage, graph(scene, drawing));
    T.fill(aside, T.labelBars(aside, drawing));
  };

  /** {layer, head, values}: the layer and head that the link names, head null for the mean; by default the last layer. */
  function chosen({ layer, head }, { layers }) {
    if (!layers.length) return { layer: 0, head: null, values: [], heads: 0 };
    const place = layer === "mean" ? layers.length - 1 : T.place(layer, layers.length);
    const [edges, heads] = layers[place].shape;
    const one = head === "mean" ? null : T.place(head, heads);
    const all = T.unpacked(layers[place]);
    const row = (edge) => all.subarray(edge * heads, (edge + 1) * heads);
    const mean = (each) => each.reduce((sum, value) => sum + value, 0) / heads;
    return { layer: place, head: one, heads, values: T.range(edges).map((e) => (one === null ? mean(row(e)) : row(e)[one])) };
  }

  function graph({ state }, drawing) {
    const { node_names: nodes, centre, left_out: left } = drawing;
    const choice = chosen(state, drawing);
    const [[label]] = T.likeliest(drawing.probabilities);
    const title = centre < 0 ? T.say("graph.title") : T.say("graph.around", { node: nodes[centre] });
    return T.figure({
      name: "neighborhood",
      title,
      caption: [
        T.say(centre < 0 ? "graph.caption" : "graph.around.caption", { label }),
        left > 0 && ` ${T.say("graph.left", { left })}`,
      ],
      picture: pictured(drawing, choice, title),
      wide: true,
      tools: drawing.layers.length > 0 && tools(drawing, choice),
      note: [T.say(T.offline || centre < 0 ? "graph.note" : "graph.around.note"), " ", ...keys(drawing)],
      table: () => tableOf(drawing, choice.values),
    });
  }

  const tools = ({ layers }, { layer, head, heads }) => [
    T.select(
      "edge-layer",
      T.say("steps.layer"),
      layers.map((_, i) => [i, i + 1]),
      layer,
      (to) => T.go({ layer: to, head: "mean" }),
    ),
    heads > 1 &&
      T.select(
        "edge-head",
        T.say("graph.head"),
        [["mean", T.say("overview.mean")], ...T.range(heads).map((i) => [i, i + 1])],
        head ?? "mean",
        (to) => T.go({ layer, head: to }),
      ),
  ];

  /** Of each node the edges that it reads by, the heaviest first. */
  const readBy = ({ nodes, target }, values) =>
    nodes.map((_, i) => T.range(target.length).filter((e) => target[e] === i).sort((a, b) => values[b] - values[a]));

  function pictured(drawing, { values }, title) {
    const { node_names: nodes, places, source, target, centre, size } = drawing;
    const [width, height] = size;
    const picture = T.walkedPicture("neighborhood", { width, height }, T.say("graph.role"), T.say("graph.label", { title, nodes: nodes.length }));
    const lines = T.range(source.length).map((e) =>
      source[e] === target[e] ? ring(places[source[e]], values[e]) : line(places[source[e]], places[target[e]], values[e]),
    );
    const all = T.svg("g", {}, lines);
    picture.append(all, ...nodes.map((name, i) => node(drawing, name, i)));
    const reads = readBy(drawing, values);
    T.walkBoxes(picture, {
      boxes: places.map(([x, y]) => ({ x: x - RADIUS, y: y - RADIUS, width: 2 * RADIUS, height: 2 * RADIUS })),
      size: { width, height },
      start: Math.max(centre, 0),
      tell: (i) => told(drawing, values, reads[i], i),
      choose: (i) => centre >= 0 && !T.offline && T.go({ text: nodes[i] }),
      shown: (at) => {
        all.classList.toggle("walked", at >= 0);
        const most = at < 0 ? 0 : values[reads[at][0]];
        lines.forEach((each, e) => {
          each.classList.toggle("now", target[e] === at);
          each.setAttribute("stroke-width", thick(target[e] === at && most ? (0.7 * values[e]) / most : values[e]));
        });
      },
    });
    return picture;
  }

  /** From the node that is read to the one that reads. */
  function line([x, y], [right, below], weight) {
    const [across, down] = [(y - below) * BEND, (right - x) * BEND];
    const bend = [(x + right) / 2 + across, (y + below) / 2 + down].map((each) => each.toFixed(1)).join(" ");
    return T.svg("path", { d: `M${x} ${y}Q${bend} ${right} ${below}`, class: "edge", "stroke-width": thick(weight) });
  }

  const ring = ([x, y], weight) => T.svg("circle", { cx: x, cy: y, r: RING, class: "own", "stroke-width": thick(weight) });
  const thick = (weight) => (THICK * weight).toFixed(2);

  function node(drawing, name, i) {
    const [x, y] = drawing.places[i];
    const share = drawing.shares.length ? drawing.shares[i] / T.largest(drawing.shares) : null;
    const style = drawing.labels.length ? { stroke: colour(drawing, drawing.labels[i]) } : share === null ? {} : { fill: T.weightColour(share) };
    return T.svg(
      "g",
      { "data-node": name },
      T.svg("circle", { cx: x, cy: y, r: RADIUS, class: "graph-node", style }),
      T.svg(
        "text",
        {
          x,
          y: y + 4,
          "text-anchor": "middle",
          class: `node-name${i === drawing.centre ? " centre" : ""}`,
          style: share === null ? {} : { fill: T.weightText(share) },
        },
        name.length > NAME ? `${name.slice(0, NAME - 1)}…` : name,
      ),
    );
  }

  const colour = ({ names }, label) => T.headColour(names.indexOf(label));

  function told({ node_names: nodes, source, labels, certain, shares }, values, edges, i) {
    const name = (e) => (source[e] === i ? T.say("graph.itself") : nodes[source[e]]);
    const named = edges.slice(0, TOLD).map((e) => `${name(e)} ${T.number(values[e])}`);
    return [
      T.say("graph.node", { node: nodes[i] }),
      labels.length > 0 && `${labels[i]} ${T.percent(certain[i])}`,
      shares.length > 0 && T.say("graph.counts", { share: T.number(shares[i]) }),
      named.length > 0 && T.say("graph.reads", { nodes: named.join(", ") + (edges.length > TOLD ? " …" : "") }),
    ];
  }

  /** Which colour is which label, or which share. */
  function keys(drawing) {
    if (drawing.shares.length) return [T.legend(T.largest(drawing.shares))];
    const shown = drawing.names.filter((name) => drawing.labels.includes(name));
    return shown.map((name) =>
      T.html("span", { class: "key" }, T.html("span", { class: "swatch", style: { background: colour(drawing, name) } }), name),
    );
  }

  function tableOf(drawing, values) {
    const { node_names: nodes, source } = drawing;
    return {
      head: [T.say("graph.reader"), T.say("graph.read"), T.say("matrix.weight")],
      rows: readBy(drawing, values).flatMap((edges, i) => edges.map((e) => [nodes[i], nodes[source[e]], T.number(values[e])])),
    };
  }
})(window.Transduce);
