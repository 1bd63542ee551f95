/* Where a translation says il or elle, and how likely either is there: for the stops that ask it. */
"use strict";
(function (T) {
  const WORDS = [
    ["il", "elle"],
    ["ils", "elles"],
  ];
  const PAIRS = WORDS.flatMap((pair) => [pair, pair.map((word) => `▁${word}`)]);

  /** The pronoun of a translation: {at, written: ids before it, words, ids: of the masculine and the feminine, own: which
      of both the model wrote}; null where it has none. */
  T.pronounOf = (found) => {
    const { tokenizer } = T.demo().target;
    const { tokens } = found.nbest[0];
    const at = tokens.findIndex((token) => PAIRS.flat().includes(token));
    if (at < 0) return null;
    const pair = PAIRS.find((each) => each.includes(tokens[at]));
    const written = tokenizer.ids(tokens.slice(0, at));
    return { at, written, words: pair.map(T.piece), ids: tokenizer.ids(pair), own: pair.indexOf(tokens[at]) };
  };

  const known = new Map();
  /** log p of the masculine and of the feminine pronoun, behind what is written before it. */
  T.pronounOdds = (text, pronoun, changes) => {
    const question = JSON.stringify([text, pronoun.written, changes]);
    if (!known.has(question)) {
      const row = T.demo().pass(text, pronoun.written, changes).said.at(-1);
      known.set(
        question,
        pronoun.ids.map((id) => row[id]),
      );
    }
    return known.get(question);
  };

  /** A name of each colour: il, elle. */
  T.pronounKey = (words) =>
    words.map((word, which) =>
      T.html(
        "span",
        { class: "key" },
        T.html("span", { class: "swatch", style: { background: T.headColour(which) } }),
        T.html("span", { lang: "fr" }, word),
      ),
    );
})(window.Transduce);
