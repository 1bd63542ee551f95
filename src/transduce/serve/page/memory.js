/* Pairs of the translation memory whose sources are nearly the text, as the server found them. */
"use strict";
(function (T) {
  const place = (id) => document.getElementById(id);

  /** matches: {similarity, source, target, pair}, some of them perhaps twice. */
  T.showMatches = (matches) => {
    const pairs = new Map(matches.map((each) => [each.pair, each]));
    const sorted = [...pairs.values()].sort((a, b) => b.similarity - a.similarity || a.pair - b.pair);
    place("memory").hidden = !sorted.length;
    place("memory-list").replaceChildren(...sorted.map(entry));
  };

  function entry({ similarity, source, target }) {
    const item = document.createElement("li");
    const parts = { b: `${similarity} %`, q: source, span: target };
    for (const [kind, words] of Object.entries(parts)) {
      const part = document.createElement(kind);
      part.dir = "auto";
      part.textContent = words;
      item.append(part, " ");
    }
    return item;
  }
})(window.Transduce);
