/* One word that asks, in one head: a sentence to type, its tokens to choose from, shaded by what they weigh. */
"use strict";
(function (T) {
  /** What the link keeps of it: the head of the first page. query "" = "it", or the first token. */
  T.askingKeeps = () => {
    const { layer, head } = T.stored.head;
    return { text: T.sentence("tired"), layer: String(layer), head: String(head), query: "" };
  };

  const settings = () => T.demo().model.settings;
  const moduleOf = (layer) => `encoder.blocks.${layer}.self_attention`;

  /** {name, layer, head, tokens, query} of the state, whatever the link said. */
  T.asked = (state) => {
    const layer = T.place(state.layer, settings().encoder_layers);
    const head = T.place(state.head, settings().heads);
    const tokens = T.demo().sourceTokens(state.text).map((token) => token.text);
    const it = Math.max(0, tokens.indexOf("it"));
    return { name: moduleOf(layer), layer, head, tokens, query: T.place(state.query, tokens.length, it) };
  };

  /** The computation of the word that asks, as the explorer's steps; changes: inside the softmax. */
  T.computed = (state, changes) => {
    const at = T.asked(state);
    return { ...T.demo().steps(state.text, [], at.name, at.head, at.query, { changes }), at };
  };

  /** {node, show(d)}: what stays while the state changes. says: {sentence, who, click}, its texts. */
  T.asking = (says) => {
    const box = T.html("input", {
      class: "typed",
      id: "typed",
      lang: "en",
      spellcheck: "false",
      "aria-label": says.sentence,
      on: { input: () => box.value.trim() && T.go({ text: box.value, query: "" }, true) },
    });
    const choosers = T.html("div", { class: "controls" });
    const words = T.html("div", { class: "asking", id: "asking", role: "group", lang: "en", "aria-label": says.who });
    const node = T.html("div", { class: "stack" }, box, words, choosers);
    const show = (d) => {
      const state = T.state();
      if (document.activeElement !== box) box.value = state.text;
      chips(words, d.columns, d.weights, d.at?.query ?? 0, (query) => T.go({ query }, true));
      box.hidden = choosers.hidden = !d.at;
      if (d.at) choose(choosers, d.at, says.click);
    };
    return { node, show };
  };

  function choose(area, at, click) {
    const numbers = (count) => T.range(count).map((i) => [i, i + 1]);
    const { encoder_layers, heads } = settings();
    const before = document.activeElement?.id;
    T.fill(
      area,
      T.select("layer", T.say("steps.layer"), numbers(encoder_layers), at.layer, (layer) => T.go({ layer }, true)),
      T.select("head", T.say("steps.head"), numbers(heads), at.head, (head) => T.go({ head }, true)),
      T.html("span", { class: "hint" }, click),
    );
    if (before === "layer" || before === "head") document.getElementById(before).focus();
  }

  /** Tokens as buttons; the one that asks is framed. */
  function chips(area, tokens, weights, query, choose) {
    while (area.children.length > tokens.length) area.lastChild.remove();
    while (area.children.length < tokens.length) {
      const place = area.children.length;
      const button = T.html("button", { type: "button", id: `ask-${place}`, on: { click: () => choose(place) } });
      area.append(button);
    }
    tokens.forEach((token, i) => {
      const button = area.children[i];
      T.fill(button, token);
      button.setAttribute("aria-pressed", String(i === query));
      button.setAttribute("aria-label", `${token} ${T.number(weights[i])}`);
      button.style.background = weights[i] > 0.02 ? T.weightColour(weights[i]) : "";
      button.style.color = weights[i] > 0.02 ? T.weightText(weights[i]) : "";
    });
  }

  /** A share as per cent, also one of more than the whole. */
  T.ratio = (value) => (value > 0.9995 ? `${T.whole(Math.round(100 * value))}%` : T.percent(value));
})(window.Transduce);
