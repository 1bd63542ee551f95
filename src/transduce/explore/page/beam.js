/* The beam as a tree that one can walk: every hypothesis kept, what it could have said next, and what was dropped. */
"use strict";
(function (T) {
  const ROW = 32,
    RADIUS = 4.5,
    LABEL = 13,
    EDGE = 14,
    LEAST_LANE = 110,
    MOST_LANE = 190;

  T.views.beam = {
    needs: "exploration",
    draw(area, scene) {
      const controls = T.html("div", { class: "controls" }, widths(scene), dropSwitch(scene));
      const lattice = scene.exploration.lattice;
      if (!lattice || !lattice.steps.length)
        return T.fill(area, controls, nothing(scene));
      const stage = T.html("div", { class: "stage" }),
        aside = T.html("div", { class: "aside" });
      T.fill(area, controls, T.html("div", { class: "split" }, stage, aside));
      const tree = treeOf(lattice, scene.state.dropped === "1", scene.state.node, T.widthOf(stage) - 38);
      const focus = tree.byKey.get(scene.state.node) || tree.best;
      const table = () => ({
        head: [T.say("beam.step"), T.say("beam.token"), "p", T.say("beam.total"), T.say("beam.fate")],
        rows: rows(tree),
      });
      T.fill(
        stage,
        T.figure({
          name: "beam",
          title: T.say("beam.title"),
          caption: T.say("beam.caption"),
          picture: drawn(tree, focus, scene),
          table,
          wide: true,
          note: T.say("beam.note"),
        }),
      );
      T.fill(aside, panel(tree, focus, lattice));
    },
  };

  function widths({ state, model }) {
    if (!T.answers(model)) return null;
    const all = [["", T.say("beam.recipe")], ...["2", "3", "5", "8", "12"].map((each) => [each, each])];
    return T.select("beam-width", T.say("beam.width"), all, state.beam ?? "", (beam) => T.go({ beam, node: "" }));
  }

  const USUAL = "5";

  /** Why there is no tree, and how to come to one. */
  function nothing({ state, model }) {
    if (!T.answers(model)) return T.html("p", { class: "empty" }, T.say("beam.none.offline"));
    if (state.beam) return T.html("p", { class: "empty" }, T.say("beam.none.empty"));
    return T.html(
      "section",
      { class: "offer" },
      T.html("h2", {}, T.say("beam.none.title")),
      T.html("p", {}, T.say("beam.none")),
      T.html(
        "button",
        { type: "button", class: "quiet", id: "search-beam", on: { click: () => T.go({ beam: USUAL, node: "" }) } },
        T.say("beam.none.search", { beam: USUAL }),
      ),
    );
  }

  const dropSwitch = ({ state, exploration }) =>
    exploration.lattice &&
    T.html(
      "label",
      {},
      T.html("input", {
        type: "checkbox",
        id: "dropped",
        checked: state.dropped === "1",
        on: { change: (event) => T.go({ dropped: event.target.checked ? "1" : "", node: state.node }) },
      }),
      T.say("beam.dropped"),
    );

  /**
   * The candidates as d3's hierarchy, placed from above: a row for each step, the best output straight down in the
   * first lane. `best` is the end of the best finished hypothesis. Branches that lead to no finished output are folded:
   * of those there are only the ones on the way to `wanted` and what follows it.
   */
  function treeOf(lattice, dropped, wanted, room) {
    const root = {
      key: "start",
      text: "<s>",
      children: [],
      step: -1,
      place: -1,
      total: 0,
      log_probability: 0,
      kept: true,
    };
    let before = [];
    lattice.steps.forEach((candidates, step) => {
      const nodes = candidates.map((candidate, place) => ({
        ...candidate,
        text: T.piece(candidate.text),
        step,
        place,
        key: `${step}.${place}`,
        children: [],
      }));
      for (const node of nodes) {
        const parent = node.parent < 0 ? root : before[node.parent];
        if (parent && (node.kept || dropped)) parent.children.push(node);
      }
      before = nodes;
    });
    const all = d3.hierarchy(root);
    const best = bestOf(all);
    const focus = all.find((node) => node.data.key === wanted) || best;
    if (!dropped) fold(all, best, focus);
    place(all, best, room);
    const byKey = new Map(all.descendants().map((node) => [node.data.key, node]));
    return { root: all, byKey, best };
  }

  /** Takes out what leads to no finished output, and counts it where it hung. */
  function fold(root, best, focus) {
    const ends = [best, ...root.leaves().filter((leaf) => leaf.data.finished && leaf.data.kept)];
    const shown = new Set([...ends, focus, ...(focus.children ?? [])].flatMap((node) => node.ancestors()));
    for (const node of root.descendants()) {
      if (!shown.has(node) || !node.children) continue;
      const open = node.children.filter((child) => shown.has(child));
      node.folded = node.children.length - open.length;
      node.children = open.length ? open : undefined;
    }
  }

  /** The lane of each node: children stay in that of their parent, their siblings take the next that is free. */
  function place(root, best, room) {
    const spine = new Set(best.ancestors());
    root.sort((one, other) => spine.has(other) - spine.has(one) || other.data.total - one.data.total);
    const taken = []; // of each lane the last step in it
    let lanes = 1;
    const chains = [[root]];
    while (chains.length) {
      const chain = chains.shift();
      for (let node = chain[0]; node.children; node = node.children[0]) {
        chain.push(node.children[0]);
        chains.push(...node.children.slice(1).map((child) => [child]));
      }
      chains.sort(([one], [other]) => one.depth - other.depth);
      const [first, last] = [chain[0], chain.at(-1)];
      let lane = first === root ? 0 : 1;
      while ((taken[lane] ?? -1) >= first.depth) lane++;
      taken[lane] = last.depth;
      lanes = Math.max(lanes, lane + 1);
      for (const node of chain) node.lane = lane;
    }
    root.laneWidth = Math.max(LEAST_LANE, Math.min(MOST_LANE, (room - 2 * EDGE) / lanes));
    root.lanes = lanes;
    for (const node of root.descendants()) {
      node.x = node.lane * root.laneWidth;
      node.y = node.depth * ROW;
    }
  }

  /** The finished hypothesis with the highest score a token, as the n-best list has it first. */
  function bestOf(hierarchy) {
    const ends = hierarchy.leaves().filter((leaf) => leaf.data.finished && leaf.data.kept);
    const candidates = ends.length ? ends : hierarchy.leaves();
    const wanted = T.shown?.log_probability;
    const exact = candidates.find((leaf) => Math.abs(leaf.data.total - wanted) < 1e-4);
    return exact || candidates.sort((one, other) => other.data.total / other.depth - one.data.total / one.depth)[0];
  }

  function drawn(tree, focus, scene) {
    const nodes = tree.root.descendants();
    const width = tree.root.lanes * tree.root.laneWidth + EDGE,
      height = Math.max(...nodes.map((node) => node.y)) + 2 * EDGE;
    const picture = T.svg("svg", {
      class: "picture beam",
      viewBox: `${-EDGE} ${-EDGE} ${width} ${height}`,
      width,
      height,
      role: "tree",
      "data-roving": "beam",
      "aria-label": T.say("beam.label", { count: nodes.length }),
    });
    const onBest = new Set(tree.best.ancestors()),
      onPath = new Set(focus.ancestors());
    const shape = d3
      .linkVertical()
      .source(({ source }) => [source.x, source.y + RADIUS])
      .target(({ target }) => [target.x, target.y - RADIUS]);
    for (const link of tree.root.links()) {
      const classes = [
        "branch",
        onBest.has(link.target) && "best",
        onPath.has(link.target) && "path",
        !link.target.data.kept && "lost",
      ];
      picture.append(
        T.svg("path", {
          d: shape(link),
          class: classes.filter(Boolean).join(" "),
          "stroke-width": 1 + 5 * Math.exp(link.target.data.log_probability),
        }),
      );
    }
    for (const node of nodes) picture.append(leaf(node, { focus, onBest, onPath, room: tree.root.laneWidth }));
    walk(picture, tree, focus, scene);
    return picture;
  }

  const chance = (data) => (data.step < 0 ? "" : T.percent(Math.exp(data.log_probability)));

  /** What a node is labelled with: its token, as much as there is room for, its probability, how many are folded. */
  function labelOf(node, room) {
    const p = chance(node.data),
      more = node.folded ? `+${node.folded}` : "";
    const rest = [p, more].filter(Boolean);
    const left = room - 30 - rest.reduce((sum, text) => sum + T.textWidth(text, 11) + 7, 0);
    const text = T.fit(node.data.text, Math.max(left, 16), LABEL);
    const width = T.textWidth(text, LABEL, 600) + room - 30 - left + 24;
    return { text, p, more, width };
  }

  function leaf(node, { focus, onBest, onPath, room }) {
    const { data } = node;
    const label = labelOf(node, room);
    const classes = [
      "node",
      onBest.has(node) && "best",
      onPath.has(node) && "path",
      !data.kept && "lost",
      data.finished && "finished",
      node === focus && "focus",
    ];
    return T.svg(
      "g",
      {
        class: classes.filter(Boolean).join(" "),
        transform: `translate(${node.x} ${node.y})`,
        role: "treeitem",
        "aria-level": node.depth + 1,
        "aria-selected": String(node === focus),
        tabindex: node === focus ? "0" : "-1",
        id: `node-${data.key}`,
        "data-key": data.key,
        "aria-label": spoken(node, label),
      },
      T.svg("rect", {
        x: -9,
        y: -11,
        width: label.width,
        height: 22,
        rx: 11,
        class: "node-back",
      }),
      T.svg("circle", { r: RADIUS, class: "node-dot" }),
      data.finished ? T.svg("circle", { r: RADIUS + 3, class: "node-ring" }) : null,
      T.svg(
        "text",
        { x: 10, y: 4.5, class: "node-text" },
        label.text,
        label.p && [" ", T.svg("tspan", { dx: 3, class: "node-p" }, label.p)],
        label.more && [" ", T.svg("tspan", { dx: 3, class: "node-more" }, label.more)],
      ),
    );
  }

  const fate = (data) => T.say(data.finished ? "beam.finished" : data.kept ? "beam.kept" : "beam.lost");

  /** What is known of a node beside its token, in lines. */
  const facts = ({ data }) =>
    data.step < 0
      ? [T.say("beam.start")]
      : [
          T.say("prediction.probability", { p: chance(data) }),
          `${T.say("beam.total")} ${T.short(data.total)}`,
          fate(data),
        ];

  /** A node's name. It begins with the label that is seen, so that people who speak to the page can name it. */
  const spoken = (node, { text, p, more }) =>
    [
      [text, p, more].filter(Boolean).join(" "),
      text !== node.data.text && node.data.text,
      ...facts(node).slice(node.depth ? 1 : 0),
      more && T.say("beam.folded", { count: node.folded }),
    ]
      .filter(Boolean)
      .join(", ");

  function walk(picture, tree, focus, scene) {
    const go = (node) => {
      if (!node || node === focus) return;
      T.go({ node: node.data.key }, true);
    };
    for (const node of picture.querySelectorAll(".node")) {
      const mine = tree.byKey.get(node.dataset.key);
      T.pointed(node, {
        show: (event) => T.tip(event.clientX, event.clientY, [mine.data.text, ...facts(mine)]),
        hide: T.untip,
        click: () => (node.focus(), go(mine)),
      });
    }
    picture.addEventListener("keydown", (event) => {
      const beside = (by) => {
        const level = tree.root
          .descendants()
          .filter((node) => node.depth === focus.depth)
          .sort((one, other) => one.x - other.x);
        return level[level.indexOf(focus) + by];
      };
      const to = {
        ArrowUp: () => focus.parent,
        ArrowDown: () => focus.children?.[0],
        ArrowLeft: () => beside(-1),
        ArrowRight: () => beside(1),
        Home: () => tree.root,
        End: () => tree.best,
      }[event.key];
      if (!to || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      go(to());
    });
    if (scene.state.node) requestAnimationFrame(() => scene.current() && reveal(picture, focus));
  }

  /** Scrolls the tree's own box until the node in focus is seen, and the page where the keys have come to it. */
  function reveal(picture, focus) {
    const box = picture.parentNode;
    if (!box) return;
    const x = focus.x + EDGE;
    if (x < box.scrollLeft || x > box.scrollLeft + box.clientWidth - LEAST_LANE) box.scrollLeft = x - box.clientWidth / 2;
    const node = document.activeElement;
    if (picture.contains(node)) node.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** The hypothesis in focus as text, and everything that could have followed it. */
  function panel(tree, focus, lattice) {
    const path = focus
      .ancestors()
      .reverse()
      .slice(1)
      .map((node) => node.data.text);
    const next =
      focus.data.step < 0
        ? lattice.steps[0] || []
        : (lattice.steps[focus.data.step + 1] || []).filter((each) => each.parent === focus.data.place);
    const rows = [...next].sort((one, other) => other.log_probability - one.log_probability);
    return T.html(
      "section",
      { class: "figure", "aria-live": "polite", id: "beam-panel" },
      T.html("h2", { class: "figure-title" }, T.say("beam.here")),
      T.html(
        "p",
        { class: "beam-path" },
        path.length ? path.map((text) => T.html("span", { class: "piece" }, text)) : T.say("beam.start"),
      ),
      T.html("p", { class: "caption" }, focus.data.step < 0 ? "" : facts(focus).join(" · ")),
      rows.length
        ? T.html(
            "ul",
            { class: "next" },
            rows.map((each) =>
              T.html(
                "li",
                { class: each.kept ? "" : "lost" },
                T.html("span", { class: "piece" }, T.piece(each.text)),
                T.meter(Math.exp(each.log_probability)),
                T.html("span", { class: "number" }, T.percent(Math.exp(each.log_probability))),
                T.html("span", { class: "hint" }, fate(each)),
              ),
            ),
          )
        : T.html("p", { class: "hint" }, T.say(focus.data.finished ? "beam.ended" : "beam.stopped")),
    );
  }

  /** A probability as a bar. */
  T.meter = (p) =>
    T.svg(
      "svg",
      {
        class: "meter",
        viewBox: "0 0 100 10",
        width: 100,
        height: 10,
        preserveAspectRatio: "none",
        "aria-hidden": "true",
      },
      T.svg("rect", { width: 100, height: 10, rx: 2, class: "share-rest" }),
      T.svg("rect", { width: Math.max(0.8, 100 * p), height: 10, rx: 2, fill: T.weightColour(0.75) }),
    );

  const rows = (tree) =>
    tree.root
      .descendants()
      .filter((node) => node.data.step >= 0)
      .map(({ data }) => [
        String(data.step + 1),
        data.text,
        T.percent(Math.exp(data.log_probability)),
        T.short(data.total),
        fate(data),
      ]);
})(window.Transduce);
