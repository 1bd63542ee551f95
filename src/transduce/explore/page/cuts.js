/* Connections that are cut: the model answers anew (attention/interventions.py), by the server or in the page. */
"use strict";
(function (T) {
  const KINDS = ["encoder", "decoder", "cross"];

  /** The cuts of a state: [{kind, query, key}], places of tokens. */
  const cutsOf = ({ cut }) =>
    cut
      .split("_")
      .map((each) => each.split("."))
      .filter(([kind, query, key]) => KINDS.includes(kind) && query >= 0 && key >= 0)
      .map(([kind, query, key]) => ({ kind, query: Number(query), key: Number(key) }));
  const written = (cuts) => cuts.map(({ kind, query, key }) => `${kind}.${query}.${key}`).join("_");

  /** What is to be changed: each cut in all layers and heads of its kind; undefined where nothing is cut. */
  T.changesOf = (state, { layers }) => {
    const cut = cutsOf(state).flatMap(({ kind, query, key }) =>
      layers.filter((layer) => layer.kind === kind && layer.cuts).map(({ name }) => ({ name, query, key })),
    );
    return cut.length ? { cut } : undefined;
  };

  /** For the word in focus: what it looks at, each to be cut, and what the model then writes. */
  T.cutFigure = (scene, choice) => {
    const { state, exploration, model, info } = scene;
    const layers = info.layers.filter((each) => each.kind === choice.kind);
    const can = T.answers(model) && KINDS.includes(choice.kind) && layers.every((each) => each.cuts);
    if (state.row === "" || !can || state.written || exploration.recording) return null;
    const [layer] = T.layersOf(exploration, choice.kind);
    const first = { kind: choice.kind, layer, head: 0, over: "layer" };
    const { rows, columns, T: count } = T.matrix(exploration, first, state.unit);
    const row = rows[T.place(state.row, count)];
    const cuts = cutsOf(state);
    const buttons = columns.map((column, place) => {
      const pairs = row.tokens.flatMap((query) => column.tokens.map((key) => ({ kind: choice.kind, query, key })));
      return button(column.text, place, pairs, cuts);
    });
    const title = T.say("cut.title", { word: row.text });
    return T.html(
      "section",
      { class: "offer cuts" },
      T.html("h2", {}, title),
      T.html("p", {}, T.say("cut.caption")),
      T.html("div", { class: "chips", role: "group", "aria-label": title }, ...buttons),
      cuts.length ? outcome(scene) : null,
    );
  };

  function button(text, place, pairs, cuts) {
    const isSame = (one) => (other) => ["kind", "query", "key"].every((name) => one[name] === other[name]);
    const isCut = pairs.every((pair) => cuts.some(isSame(pair)));
    const others = cuts.filter((each) => !pairs.some(isSame(each)));
    const toggle = () => T.go({ cut: written(isCut ? others : [...others, ...pairs]) });
    const attributes = { type: "button", class: "quiet", id: `cut-${place}`, "aria-pressed": String(isCut) };
    return T.html("button", { ...attributes, on: { click: toggle } }, text);
  }

  /** The output with the cuts beside the one without, and the way back. */
  function outcome(scene) {
    const before = T.html("span", {}, "…");
    T.ask.predict(scene.model, scene.text, scene.state.beam).then((found) => T.fill(before, found.nbest[0].text));
    return [
      T.html("p", { id: "cut-now" }, T.say("cut.now"), " ", T.html("strong", {}, scene.exploration.nbest[0].text)),
      T.html("p", { id: "cut-before" }, T.say("cut.before"), " ", before),
      T.html(
        "button",
        { type: "button", id: "cut-none", on: { click: () => T.go({ cut: "" }) } },
        T.say("cut.restore"),
      ),
    ];
  }
})(window.Transduce);
