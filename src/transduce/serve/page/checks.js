/* What to look at in a translation: what it lacks of the text, how sure the model is, and the glossary that it follows. */
"use strict";
(function (T) {
  const place = (id) => document.getElementById(id);
  const MOST = 200; // characters of a term
  /** The server's sentences, by the page's. */
  const TOLD = [
    [/^"(?<part>.*)" is not in the output\.$/s, "check.missing"],
    [/^the output repeats "(?<part>.*)" (?<times>\d+) times\.$/s, "check.repeats"],
    [/^most words of this text are unknown to the model\.$/, "check.unknown"],
  ];

  let shown = { warnings: [], confidence: null };

  /** warnings: the server's sentences. confidence: the share of words that are right, as it is expected, or null. */
  T.showChecks = (told) => {
    shown = told;
    write();
  };

  /** In the page's language. */
  function write() {
    const { warnings, confidence } = shown;
    place("checks").hidden = !warnings.length && confidence === null;
    const percent = confidence === null ? "" : T.say("check.confidence", { percent: Math.round(100 * confidence) });
    place("confidence").textContent = percent;
    place("warnings").replaceChildren(...[...new Set(warnings)].map(entry));
  }

  function entry(warning) {
    const item = document.createElement("li");
    const [found, key] = TOLD.map(([pattern, name]) => [warning.match(pattern), name]).find(([match]) => match) ?? [];
    item.textContent = found ? T.say(key, { ...found.groups }) : warning;
    return item;
  }

  T.writeChecks = write;

  /** The terms that are typed, a line each: a term, an equals sign, and its translation. */
  T.glossary = () => {
    const terms = place("terms")
      .value.split("\n")
      .map((line) => line.split("=").map((side) => side.trim()));
    return Object.fromEntries(terms.filter((pair) => pair.length === 2 && pair.every((side) => side && side.length <= MOST)));
  };
})(window.Transduce);
