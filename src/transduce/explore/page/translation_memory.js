/* Of a model that consults a translation memory: from which of its pairs each token of the output came. */
"use strict";
(function (T) {
  /** A table with a row for each token; null where nothing was consulted, or another output is looked at. */
  T.fromMemory = ({ exploration, state }) => {
    const { memory, target, nbest } = exploration;
    if (!memory || T.place(state.best, nbest.length) > 0) return null;
    const rows = memory.origins.map((origin, i) => [
      target.tokens[i]?.text ?? origin.token,
      origin.entries.length ? T.percent(origin.share) : "—",
      origin.entries.length ? pair(origin.entries[0], memory, T.piece(origin.token)) : "—",
    ]);
    const title = T.say("origins.title");
    return T.html(
      "section",
      { class: "figure origins", id: "origins" },
      T.html("h2", { class: "figure-title" }, title),
      T.html("p", { class: "caption" }, T.say("origins.caption")),
      T.table({ head: ["token", "share", "pair"].map((name) => T.say(`origins.${name}`)), rows }, title),
    );
  };

  /** The pair of the entry that weighs most; the token is marked where it stands in the pair's target just once. */
  function pair({ pair, weight }, memory, token) {
    const { source, target } = memory.origin_pairs[pair];
    const parts = token ? target.split(token) : [];
    const said = parts.length === 2 ? [parts[0], T.html("mark", {}, token), parts[1]] : [target];
    const facts = T.say("origins.entry", { pair, p: T.percent(weight) });
    return [`${source} → `, ...said, " ", T.html("span", { class: "nbest-facts" }, facts)];
  }
})(window.Transduce);
