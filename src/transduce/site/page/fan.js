/* What one word of a sentence attends to: curves from it to each word, which swing when the weights change. */
"use strict";
(function (T) {
  const LINE = 32,
    TOP = 22,
    SIZE = 16,
    THICKEST = 13;
  const SHAPE = d3.linkHorizontal();

  /** A picture that stays, and is told again: {node, show({words, query, weights, cut, label})}.
      toggle(place): a word at the right was chosen, by pointer or keys. */
  T.fan = (toggle) => {
    const node = T.svg("svg", { class: "picture fan", role: "group" });
    let shape = "";
    const show = (o) => {
      const size = measure(node.parentNode, o);
      const now = JSON.stringify([o.words.length, o.query, size]);
      if (now !== shape) build(node, o, size, toggle);
      shape = now;
      node.setAttribute("aria-label", o.label);
      update(node, o);
    };
    return { node, show };
  };

  function measure(area, { words }) {
    const width = T.widthOf(area, 260, 760);
    const wide = Math.min(width * 0.36, Math.max(...words.map((word) => T.textWidth(word, SIZE, 700))) + 20);
    return { width, left: wide, right: width - wide, height: TOP + LINE * words.length + 6 };
  }

  const middle = (i) => TOP + (i + 0.5) * LINE;

  function build(node, { words, query }, { width, left, right, height }, toggle) {
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` }))
      node.setAttribute(name, value);
    const d = (i) => SHAPE({ source: [left + 4, middle(query)], target: [right - 6, middle(i)] });
    const act = (i) => ({
      click: () => toggle(i),
      keydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle(i);
      },
    });
    T.fill(
      node,
      words.map((_, i) => T.svg("text", { class: "asks", x: left, y: middle(i) + 5, "text-anchor": "end" })),
      words.map((_, i) => T.svg("path", { class: "curve", d: d(i) })),
      words.map((_, i) => T.svg("path", { class: "reach", d: d(i), "data-passing": true, on: { click: () => toggle(i) } })),
      words.map((_, i) =>
        T.svg(
          "g",
          { class: "asked", id: `asked-${i}`, tabindex: "0", role: "button", on: act(i) },
          T.svg("rect", { x: right - 2, y: middle(i) - 14, width: width - right, height: 28, rx: 5 }),
          T.svg("text", { x: right + 5, y: middle(i) + 5 }),
        ),
      ),
    );
  }

  function update(node, { words, query, weights, cut }) {
    node.querySelectorAll(".asks").forEach((text, i) => {
      T.fill(text, words[i]);
      text.classList.toggle("query", i === query);
    });
    node.querySelectorAll(".curve").forEach((curve, i) => {
      curve.classList.toggle("cut", cut.has(i));
      curve.style.strokeWidth = cut.has(i) ? 1.5 : Math.max(0.5, weights[i] * THICKEST);
      curve.style.strokeOpacity = cut.has(i) ? 0.9 : 0.12 + 0.88 * weights[i];
    });
    node.querySelectorAll(".asked").forEach((group, i) => {
      const [back, text] = group.children;
      T.fill(text, words[i]);
      group.classList.toggle("cut", cut.has(i));
      group.setAttribute("aria-pressed", String(cut.has(i)));
      group.setAttribute("aria-label", `${words[i]} ${T.number(weights[i])}`);
      back.style.fill = weights[i] > 0.02 ? T.weightColour(weights[i]) : "transparent";
      text.style.fill = weights[i] > 0.02 ? T.weightText(weights[i]) : "";
    });
  }
})(window.Transduce);
