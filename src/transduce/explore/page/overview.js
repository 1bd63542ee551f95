/* All heads at a glance: for each kind its layers below each other, heads side by side, means at the end. */
"use strict";
(function (T) {
  const GAP = 4,
    HEADING = 22,
    SIDE = 26,
    TOP = 18,
    LARGEST = 54,
    SMALLEST = 14,
    PIXELS = 48;

  /** choose(choice): a small picture was picked. rollout: kinds that have one; worth(name, head) -> change. */
  T.overview = (area, { exploration, choice, choose, rollout, worth }) => {
    const kinds = T.kinds(exploration);
    const tiles = [];
    const room = T.widthOf(area, 200, 420);
    let y = 0,
      width = 0;
    const picture = T.svg("svg", {
      class: "picture overview",
      role: "radiogroup",
      "data-roving": "overview",
      "aria-label": T.say("overview.label"),
    });
    for (const kind of kinds) {
      const block = blockOf(exploration, kind, room, rollout.includes(kind));
      picture.append(T.svg("text", { x: 0, y: y + 14, class: "block-name" }, T.kindName(kind)));
      block.drawInto(picture, y + HEADING);
      for (const tile of block.tiles) tiles.push({ ...tile, y: tile.y + y + HEADING });
      y += HEADING + block.height + 16;
      width = Math.max(width, block.width);
    }
    for (const tile of tiles) picture.append(drawn(exploration, tile, choice, worth));
    const height = Math.max(y - 10, 10);
    for (const [name, value] of Object.entries({
      viewBox: `0 0 ${Math.max(width, 180)} ${height}`,
      width: Math.max(width, 180),
      height,
    })) {
      picture.setAttribute(name, value);
    }
    walk(picture, tiles, choose);
    return picture;
  };

  function blockOf(exploration, kind, room, rolled) {
    const layers = T.layersOf(exploration, kind);
    const heads = Math.max(...layers.map((layer) => layer.shape[0]));
    const columns = heads + (heads > 1 ? 1 : 0);
    const size = Math.max(SMALLEST, Math.min(LARGEST, (room - SIDE) / columns - GAP));
    const place = (column, row) => ({ x: SIDE + column * (size + GAP), y: TOP + row * (size + GAP), size });
    const tiles = [];
    layers.forEach((layer, row) => {
      for (let head = 0; head < layer.shape[0]; head++) {
        tiles.push({ ...place(head, row), choice: { kind, layer, head, over: "layer" } });
      }
      if (heads > 1) tiles.push({ ...place(heads, row), choice: { kind, layer, head: null, over: "layer" } });
    });
    const wide = [];
    if (T.canMean(layers)) wide.push({ kind, layer: null, head: null, over: "mean" });
    if (rolled) wide.push({ kind, layer: null, head: null, over: "rollout" });
    const bottom = TOP + layers.length * (size + GAP);
    wide.forEach((choice, i) => tiles.push({ x: SIDE, y: bottom + i * 30, size: 26, choice, caption: true }));
    return {
      tiles,
      width: SIDE + columns * (size + GAP),
      height: bottom + wide.length * 30,
      drawInto: (picture, y) => names(picture, y, { layers, heads, size }),
    };
  }

  function names(picture, y, { layers, heads, size }) {
    const small = (x, top, text, anchor = "middle") =>
      picture.append(T.svg("text", { x, y: y + top, "text-anchor": anchor, class: "tick" }, text));
    const skip = Math.ceil(16 / (size + GAP));
    for (let head = 0; head < heads; head += skip) small(SIDE + head * (size + GAP) + size / 2, TOP - 6, head + 1);
    if (heads > 1) small(SIDE + heads * (size + GAP) + size / 2, TOP - 6, size > 24 ? T.say("overview.mean") : "⌀");
    layers.forEach((layer, row) => small(SIDE - 7, TOP + row * (size + GAP) + size / 2 + 4, layer.layer + 1, "end"));
  }

  const same = (one, other) =>
    one.kind === other.kind && one.layer === other.layer && one.head === other.head && one.over === other.over;

  /** A head's weights, small: painted once per theme. */
  const painted = new Map();
  function thumbnail(exploration, choice) {
    const key = [T.dark(), T.state().stretch, exploration.model, exploration.text, choice.kind, choice.layer?.name, choice.head].join(
      "\n",
    );
    if (!painted.has(key)) {
      const matrix = T.matrix(exploration, choice, "tokens");
      const small = T.shrunk(matrix.values, matrix.T, matrix.S, PIXELS);
      const most = T.darkest(small.values);
      if (painted.size > 600) painted.clear();
      painted.set(
        key,
        T.paint(small.values, small.T, small.S, (value) => T.weightBytes(value / most)),
      );
    }
    return painted.get(key);
  }

  /** The sign of a product. A path, since text would count as the tile's label. */
  const product = (x, y) => `M${x + 6} ${y + 7.5}h14m-11 0v11m8 -11v11`;

  function drawn(exploration, tile, chosen, worth) {
    const { x, y, size, choice } = tile;
    const on = same(choice, chosen);
    const change = worth && choice.head !== null && choice.layer ? worth(choice.layer.name, choice.head) : undefined;
    const name =
      T.choiceName(choice) + (change === undefined ? "" : `: ${T.say("worth.of", { change: T.scientific(change) })}`);
    tile.node = T.svg(
      "g",
      {
        class: on ? "tile on" : "tile",
        role: "radio",
        "aria-checked": String(on),
        tabindex: on ? "0" : "-1",
        "aria-label": name,
        id: `tile-${T.key(`${choice.kind} ${choice.layer ? choice.layer.name : choice.over} ${choice.head}`)}`,
      },
      T.svg("rect", { class: "tile-frame", x: x - 1.5, y: y - 1.5, width: size + 3, height: size + 3, rx: 4 }),
      choice.over === "rollout"
        ? T.svg("path", { d: product(x, y), class: "tile-sign" })
        : T.svg("image", {
            x,
            y,
            width: size,
            height: size,
            preserveAspectRatio: "none",
            class: "pixels",
            href: thumbnail(exploration, choice),
          }),
      tile.caption &&
        T.svg(
          "text",
          { x: x + size + 10, y: y + 17, class: "tile-caption" },
          T.say(choice.over === "rollout" ? "overview.rollout" : "overview.mean.all"),
        ),
    );
    const show = (event) => T.tip(event.clientX, event.clientY, [name]);
    T.pointed(tile.node, { show, hide: T.untip, click: T.untip, atOnce: true });
    return tile.node;
  }

  function walk(picture, tiles, choose) {
    tiles.forEach((tile) => tile.node.addEventListener("click", () => choose(tile.choice)));
    picture.addEventListener("keydown", (event) => {
      const from = tiles.find((tile) => tile.node === document.activeElement);
      const to = from && next(tiles, from, event.key);
      if (!to) return;
      event.preventDefault();
      to.node.focus();
      choose(to.choice);
    });
  }

  const AHEAD = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  /** The nearest tile in the direction of a key. */
  function next(tiles, from, key) {
    if (!AHEAD[key]) return null;
    const [dx, dy] = AHEAD[key];
    let best = null,
      least = Infinity;
    for (const tile of tiles) {
      const ahead = (tile.x - from.x) * dx + (tile.y - from.y) * dy;
      const aside = Math.abs((tile.x - from.x) * dy) + Math.abs((tile.y - from.y) * dx);
      if (ahead <= 1 || aside + 4 * ahead >= least || (dx && aside > from.size / 2)) continue;
      [best, least] = [tile, aside + 4 * ahead];
    }
    return best;
  }
})(window.Transduce);
