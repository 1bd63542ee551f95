/* The page's own words and numbers, in the language that is shown; and what a word is of anybody's text. */
"use strict";
(function (T) {
  T.texts = T.texts || {};
  const LANGUAGES = { en: "en", zh: "zh-Hans" };

  /** The language shown: of the link, else of the browser. */
  T.language = () => {
    const asked = T.state().lang;
    if (asked in LANGUAGES) return asked;
    return (navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en";
  };
  T.languageTag = () => LANGUAGES[T.language()];

  /** The text of a key, {names} replaced. A key without text shows itself, so that a test sees it. */
  T.say = (key, values = {}) => {
    const text = T.texts[T.language()][key];
    if (text === undefined) {
      (T.missing ??= new Set()).add(key);
      return `⟨${key}⟩`;
    }
    return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
  };
  /** What a server answered, in the page's language where it is known; else as it came, and what it is. */
  T.told = (message) => {
    const language = T.language();
    if (language === "en") return message;
    for (const [pattern, text] of T.errors[language]) if (pattern.test(message)) return message.replace(pattern, text);
    return T.say("error.server", { message });
  };
  /** Whether there is such a text. */
  T.says = (key) => key in T.texts[T.language()];

  // Thai and Lao, Burmese, Khmer; Chinese and Japanese. This and what follows as interpret/words.py has it.
  const SPACELESS =
    "\\u0e00-\\u0eff\\u1000-\\u109f\\u1780-\\u17ff\\u3005-\\u3007\\u3040-\\u30ff\\u3400-\\u9fff\\uf900-\\ufaff" +
    "\\uff66-\\uff9f\\u{20000}-\\u{3ffff}";
  const LETTER = `(?:(?![${SPACELESS}])[\\p{L}\\p{N}_])`;
  const EXTENDING = "[\\p{M}\\u200c\\u200d\\uff9e\\uff9f\\u{1f3fb}-\\u{1f3ff}\\u{e0020}-\\u{e007f}]";
  const RUN = `${LETTER}(?:${LETTER}|${EXTENDING})*`;
  const JOINER = "(?:['’‐‑·\\-]|(?<=\\p{Nd})[.,](?=\\p{Nd}))";
  const WORD = new RegExp(`${RUN}(?:${JOINER}${RUN})*`, "uy");
  const SPACE = /\p{White_Space}+/uy;
  const clusters = new Intl.Segmenter("und", { granularity: "grapheme" });

  /** What a person counts as characters: an emoji of several code points, a flag, a letter with its marks are one. */
  T.graphemes = (text) => Array.from(clusters.segment(text), (each) => each.segment);

  /** A text in pieces that join to it again: [{text, word}]. A piece that is no word is white space. */
  T.pieces = (text) => {
    const parts = clusters.segment(text),
      found = [];
    for (let at = 0; at < text.length;) {
      const here = (pattern) => ((pattern.lastIndex = at), pattern.exec(text)?.[0]);
      const space = here(SPACE);
      const cluster = () => parts.containing(at);
      const piece = space ?? here(WORD) ?? text.slice(at, cluster().index + cluster().segment.length);
      found.push({ text: piece, word: space === undefined });
      at += piece.length;
    }
    return found;
  };

  /** A text of at most so many characters, with an ellipsis where it was cut. */
  T.cutShort = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);

  const STRONG = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]|\p{L}/u;
  const BACKWARDS = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

  /** Whether a text is written from right to left: its first letter says so. */
  T.rightToLeft = (text) => BACKWARDS.test(STRONG.exec(text)?.[0] ?? "");

  const two = d3.format(".2f"),
    three = d3.format(".3f"),
    short = d3.format(".3~g"),
    grouped = d3.format(",");
  const minus = (text) => text.replace(/^-/, "−");

  /** A weight: two or three places, as its size asks for. */
  T.number = (value) =>
    minus(
      Math.abs(value) >= 0.995 && Math.abs(value) <= 1.005
        ? two(value)
        : Math.abs(value) >= 10
          ? short(value)
          : three(value),
    );
  /** A weight in a cell, where there is room for two figures; nothing for next to nothing. */
  T.cellNumber = (value) => (Math.abs(value) < 0.015 ? "" : minus(two(value)).replace(/^(−?)0\./, "$1."));
  /** Any number, short. */
  T.short = (value) => {
    const size = Math.abs(value);
    if (size >= 1000) return minus(grouped(Math.round(value)));
    return minus(size < 1e-4 && value !== 0 ? d3.format(".1e")(value) : short(value));
  };
  /** A change of any size in scientific notation: −3.2 × 10⁻⁵; between 0.01 and 1000 it stands as it is. */
  T.scientific = (value) => {
    const size = Math.abs(value);
    if (value === 0 || (size >= 0.01 && size < 1000)) return minus(d3.format(".3~g")(value));
    const [digits, power] = value.toExponential(1).split("e");
    const raised = Array.from(String(Number(power)), (each) => (each === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[each])).join("");
    return `${minus(digits)} × 10${raised}`;
  };
  T.whole = (value) => grouped(value);
  /** A probability as per cent. */
  T.percent = (share) => {
    const cent = 100 * share;
    if (cent >= 99.95) return "100%";
    if (cent >= 9.95) return `${cent.toFixed(0)}%`;
    if (cent >= 0.095) return `${cent.toFixed(1)}%`;
    return cent < 0.005 ? "<0.01%" : `${cent.toFixed(2)}%`;
  };

  /** Which colours are shown: of the link, else of the system. */
  const system = matchMedia("(prefers-color-scheme: dark)");
  T.dark = () => (T.state().theme ? T.state().theme === "dark" : system.matches);
  system.addEventListener("change", () => T.state().theme || T.redraw());
})(window.Transduce);
