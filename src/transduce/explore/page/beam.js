/* The beam as a tree that one can walk: every hypothesis kept, what it could have said next, and what was dropped. */
"use strict";
(function (T) {
  const ROW = 26,
    RADIUS = 4.5,
    LABEL = 13,
    LEVEL_GAP = 16;

  T.views.beam = {
    needs: "exploration",
    draw(area, scene) {
      const controls = T.html("div", { class: "controls" }, widths(scene), dropSwitch(scene));
      const lattice = scene.exploration.lattice;
      if (!lattice || !lattice.steps.length)
        return T.fill(area, controls, nothing(scene));
      const stack = T.html("div", { class: "stack" });
      T.fill(area, controls, stack);
      const tree = treeOf(lattice, scene.state.dropped === "1");
      const focus = tree.byKey.get(scene.state.node) || tree.best;
      const table = () => ({
        head: [T.say("beam.step"), T.say("beam.token"), "p", T.say("beam.total"), T.say("beam.fate")],
        rows: rows(tree),
      });
      T.fill(
        stack,
        T.figure({
          name: "beam",
          title: T.say("beam.title"),
          caption: T.say("beam.caption"),
          picture: drawn(tree, focus, scene),
          table,
          wide: true,
          note: T.say("beam.note"),
        }),
        panel(tree, focus, lattice),
      );
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

  /** The candidates as d3's tree; `best` is the end of the best finished hypothesis. */
  function treeOf(lattice, dropped) {
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
    const hierarchy = d3.hierarchy(root).sort((one, other) => other.data.total - one.data.total);
    const widest = Math.max(...hierarchy.descendants().map((node) => T.textWidth(node.data.text, LABEL)), 24);
    d3.tree().nodeSize([ROW, Math.min(widest, 112) + 58 + LEVEL_GAP])(hierarchy);
    const byKey = new Map(hierarchy.descendants().map((node) => [node.data.key, node]));
    return { root: hierarchy, byKey, best: bestOf(hierarchy) };
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
    const top = Math.min(...nodes.map((node) => node.x)) - ROW,
      bottom = Math.max(...nodes.map((node) => node.x)) + ROW;
    const right = Math.max(...nodes.map((node) => node.y)) + 150;
    const picture = T.svg("svg", {
      class: "picture beam",
      viewBox: `-14 ${top} ${right} ${bottom - top}`,
      width: right,
      height: bottom - top,
      role: "tree",
      "data-roving": "beam",
      "aria-label": T.say("beam.label", { count: nodes.length }),
    });
    const onBest = new Set(tree.best.ancestors()),
      onPath = new Set(focus.ancestors());
    const shape = d3
      .linkHorizontal()
      .source(({ source }) => [source.y + wide(source.data) - 10, source.x])
      .target(({ target }) => [target.y - RADIUS, target.x]);
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
    for (const node of nodes) picture.append(leaf(node, { focus, onBest, onPath }));
    walk(picture, tree, focus, scene);
    return picture;
  }

  const chance = (data) => (data.step < 0 ? "" : T.percent(Math.exp(data.log_probability)));

  /** How wide a node's label is, its dot included. */
  const wide = (data) => {
    const p = chance(data);
    return Math.min(T.textWidth(data.text, LABEL, 600), 112) + (p ? T.textWidth(p, 11) + 32 : 24);
  };

  function leaf(node, { focus, onBest, onPath }) {
    const { data } = node;
    const classes = [
      "node",
      onBest.has(node) && "best",
      onPath.has(node) && "path",
      !data.kept && "lost",
      data.finished && "finished",
      node === focus && "focus",
    ];
    const p = chance(data);
    return T.svg(
      "g",
      {
        class: classes.filter(Boolean).join(" "),
        transform: `translate(${node.y} ${node.x})`,
        role: "treeitem",
        "aria-level": node.depth + 1,
        "aria-selected": String(node === focus),
        tabindex: node === focus ? "0" : "-1",
        id: `node-${data.key}`,
        "data-key": data.key,
        "aria-label": spoken(node),
      },
      T.svg("rect", {
        x: -9,
        y: -11,
        width: wide(data),
        height: 22,
        rx: 11,
        class: "node-back",
      }),
      T.svg("circle", { r: RADIUS, class: "node-dot" }),
      data.finished ? T.svg("circle", { r: RADIUS + 3, class: "node-ring" }) : null,
      T.svg(
        "text",
        { x: 10, y: 4.5, class: "node-text" },
        T.fit(data.text, 112, LABEL),
        p && [" ", T.svg("tspan", { dx: 3, class: "node-p" }, p)],
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
  const spoken = (node) =>
    [`${node.data.text} ${chance(node.data)}`.trim(), ...facts(node).slice(node.depth ? 1 : 0)].join(", ");

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
        ArrowLeft: () => focus.parent,
        ArrowRight: () => focus.children?.find((child) => tree.best.ancestors().includes(child)) || focus.children?.[0],
        ArrowUp: () => beside(-1),
        ArrowDown: () => beside(1),
        Home: () => tree.root,
        End: () => tree.best,
      }[event.key];
      if (!to || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      go(to());
    });
    if (scene.state.node) requestAnimationFrame(() => scene.current() && reveal(picture, focus));
  }

  /** Scrolls the tree's own box, never the page, until the node in focus is seen. */
  function reveal(picture, focus) {
    const box = picture.parentNode;
    if (!box) return;
    const x = (focus.y + 14) * (picture.getBoundingClientRect().width / picture.viewBox.baseVal.width);
    if (x < box.scrollLeft + 60 || x > box.scrollLeft + box.clientWidth - 160) box.scrollLeft = x - box.clientWidth / 2;
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
