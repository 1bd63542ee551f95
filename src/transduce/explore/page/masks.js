/* Who may see whom, and why: for the encoder, the decoder, and the decoder on its source. */
"use strict";
(function (T) {
  const CELL = 40;

  T.views.masks = {
    needs: "exploration",
    draw(area, scene) {
      const kinds = T.kinds(scene.exploration);
      const first = kinds.includes("decoder") ? "decoder" : T.chosen(scene.exploration)?.kind; // the triangle
      const choice = first && { kind: kinds.includes(scene.state.mask) ? scene.state.mask : first };
      if (!choice) return T.fill(area, T.html("p", { class: "empty" }, T.noAttention()));
      const layer = T.layersOf(scene.exploration, choice.kind)[0];
      const seen = visible(scene.exploration, choice.kind);
      const row = T.place(scene.state.query, seen.T, Math.floor(seen.T / 2));
      const figureBox = T.html("div", {}),
        why = T.html("section", { class: "figure" });
      T.fill(
        area,
        T.html(
          "div",
          { class: "controls" },
          T.choice(
            T.say("masks.of"),
            choice.kind,
            kinds.map((kind) => [kind, T.kindName(kind)]),
            (mask) => T.go({ mask, query: "" }),
          ),
        ),
        T.html("div", { class: "split" }, figureBox, T.html("div", { class: "aside" }, why, padding())),
      );
      T.fill(figureBox, figure(figureBox, { choice, layer, seen, row }));
      T.fill(why, reason(choice.kind, seen, row, layer));
    },
  };

  const MAY = 2,
    NEVER = 0,
    ZERO = 1;

  /** MAY where any head of any layer of the kind gives weight, NEVER where the order forbids it, ZERO where it is
      allowed and yet every head gave exactly nothing. */
  function visible(exploration, kind) {
    const layers = T.layersOf(exploration, kind);
    const like = layers[0];
    const [T_, S] = like.shape.slice(1);
    const values = new Float32Array(T_ * S);
    for (const layer of layers) {
      const weights = T.unpacked(layer),
        size = T_ * S;
      if (weights.length !== layer.shape[0] * size) continue;
      for (let i = 0; i < weights.length; i++) if (weights[i] > 0) values[i % size] = MAY;
    }
    for (let i = 0; i < values.length; i++) {
      if (values[i] === MAY) continue;
      values[i] = like.causal && i % S > Math.floor(i / S) ? NEVER : ZERO;
    }
    return {
      values,
      T: T_,
      S,
      rows: T.axis(exploration, like.rows, T_, "tokens"),
      columns: T.axis(exploration, like.columns, S, "tokens"),
      causal: like.causal,
    };
  }

  const state = (seen, r, c) => T.say(`masks.state.${["never", "zero", "may"][seen.values[r * seen.S + c]]}`);

  function figure(area, { choice, layer, seen, row }) {
    const picture = T.heatMap(area, {
      rows: seen.rows.map((each) => each.text),
      columns: seen.columns.map((each) => each.text),
      values: seen.values,
      cell: CELL,
      row,
      colour: (value) => (value === NEVER ? crossed() : T.weightBytes(value === MAY ? 0.62 : 0.1)),
      print: (value) => (value === NEVER ? "×" : ""),
      rowTitle: T.axisName(layer.rows),
      columnTitle: T.axisName(layer.columns),
      label: T.say("masks.label", { kind: T.kindName(choice.kind) }),
      tell: (r, c) => [`${seen.rows[r].text} → ${seen.columns[c].text}`, state(seen, r, c)],
      choose: (r) => T.go({ query: r }, true),
      atOnce: true,
    });
    return T.figure({
      name: "mask",
      title: T.say("masks.title", { kind: T.kindName(choice.kind) }),
      caption: T.say("masks.caption"),
      picture,
      note: key(seen),
      table: () => ({
        head: ["", ...seen.columns.map((each) => each.text)],
        rows: seen.rows.map((each, r) => [each.text, ...seen.columns.map((_, c) => state(seen, r, c))]),
      }),
    });
  }

  const crossed = () => (T.dark() ? [44, 52, 64] : [232, 229, 221]);

  function key(seen) {
    const found = new Set(seen.values);
    const sample = (bytes, text) =>
      T.html(
        "span",
        { class: "key" },
        T.html("span", { class: "swatch", style: { background: `rgb(${bytes.join(",")})` } }),
        text,
      );
    return [
      found.has(MAY) && sample(T.weightBytes(0.62), T.say("masks.state.may")),
      found.has(NEVER) && sample(crossed(), T.say("masks.state.never")),
      found.has(ZERO) && sample(T.weightBytes(0.1), T.say("masks.state.zero")),
    ];
  }

  function reason(kind, seen, row, layer) {
    const places = (wanted) => T.range(seen.S).filter((c) => seen.values[row * seen.S + c] === wanted);
    const listing = (wanted) => {
      const found = places(wanted).map((c) => seen.columns[c].text);
      return found.length > 24 ? [...found.slice(0, 23), "…"] : found;
    };
    const list = (name, texts) =>
      texts.length > 0 && [
        T.html("h3", {}, T.say(name)),
        T.html(
          "p",
          { class: "pieces" },
          texts.map((text) => T.html("span", { class: "piece" }, text)),
        ),
      ];
    return [
      T.html(
        "h2",
        { class: "figure-title" },
        T.say(layer.rows === "target" ? "masks.while" : "masks.of.word", { word: seen.rows[row].text, place: row + 1 }),
      ),
      T.html("p", {}, T.say(`masks.why.${kind === "decoder" && !seen.causal ? "free" : kind}`)),
      list("masks.sees", listing(MAY)),
      list("masks.not", listing(NEVER)),
      list("masks.zero", listing(ZERO)),
    ];
  }

  const padding = () =>
    T.html(
      "section",
      { class: "figure" },
      T.html("h2", { class: "figure-title" }, T.say("masks.padding")),
      T.html("p", {}, T.say("masks.padding.why")),
    );
})(window.Transduce);
