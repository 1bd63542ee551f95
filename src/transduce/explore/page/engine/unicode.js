/* Text as the library `tokenizers` sees it: what a character is, composed or not, and where it came from.

The library's tables are of older versions of Unicode than a browser's. Where both differ, the library's hold. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  /** Signs that the library takes for punctuation, besides those of ASCII: of Unicode 8. */
  const PUNCTUATION =
    "a1 a7 ab b6-b7 bb bf 37e 387 55a-55f 589-58a 5be 5c0 5c3 5c6 5f3-5f4 609-60a 60c-60d 61b 61e-61f 66a-66d 6d4 " +
    "700-70d 7f7-7f9 830-83e 85e 964-965 970 af0 df4 e4f e5a-e5b f04-f12 f14 f3a-f3d f85 fd0-fd4 fd9-fda " +
    "104a-104f 10fb 1360-1368 1400 166d-166e 169b-169c 16eb-16ed 1735-1736 17d4-17d6 17d8-17da 1800-180a " +
    "1944-1945 1a1e-1a1f 1aa0-1aa6 1aa8-1aad 1b5a-1b60 1bfc-1bff 1c3b-1c3f 1c7e-1c7f 1cc0-1cc7 1cd3 2010-2027 " +
    "2030-2043 2045-2051 2053-205e 207d-207e 208d-208e 2308-230b 2329-232a 2768-2775 27c5-27c6 27e6-27ef " +
    "2983-2998 29d8-29db 29fc-29fd 2cf9-2cfc 2cfe-2cff 2d70 2e00-2e2e 2e30-2e42 3001-3003 3008-3011 3014-301f " +
    "3030 303d 30a0 30fb a4fe-a4ff a60d-a60f a673 a67e a6f2-a6f7 a874-a877 a8ce-a8cf a8f8-a8fa a8fc a92e-a92f " +
    "a95f a9c1-a9cd a9de-a9df aa5c-aa5f aade-aadf aaf0-aaf1 abeb fd3e-fd3f fe10-fe19 fe30-fe52 fe54-fe61 fe63 " +
    "fe68 fe6a-fe6b ff01-ff03 ff05-ff0a ff0c-ff0f ff1a-ff1b ff1f-ff20 ff3b-ff3d ff3f ff5b ff5d ff5f-ff65 " +
    "10100-10102 1039f 103d0 1056f 10857 1091f 1093f 10a50-10a58 10a7f 10af0-10af6 10b39-10b3f 10b99-10b9c " +
    "11047-1104d 110bb-110bc 110be-110c1 11140-11143 11174-11175 111c5-111c9 111cd 111db 111dd-111df 11238-1123d " +
    "112a9 114c6 115c1-115d7 11641-11643 1173c-1173e 12470-12474 16a6e-16a6f 16af5 16b37-16b3b 16b44 1bc9f " +
    "1da87-1da8b";

  /** Characters newer than Unicode 9 that the library's NFC and NFD leave as they are, and in their places. */
  const NEVER_COMPOSED =
    "7fd 897-89f 8ca-8d3 9fe c3c d3b-d3c eba 1715 1abf-1add 1ae0-1aeb 1df6-1dfa a82c 105c9 105d2 105da 105e4 " +
    "10d24-10d27 10d69-10d6d 10eab-10eac 10efa-10efb 10efd-10eff 10f46-10f50 10f82-10f85 11070 1133b 11382-11385 " +
    "1138b 1138e 11390-11391 113b8 113bb 113c2 113c5 113c7-113c9 113ce-113d0 1145e 11839-1183a 11930 11935 11938 " +
    "1193d-1193e 11943 119e0 11a34 11a47 11a99 11d42 11d44-11d45 11d97 11f41-11f42 1611e-16129 1612f 16d63 " +
    "16d67-16d6a 16ff0-16ff1 1e08f 1e130-1e136 1e2ae 1e2ec-1e2ef 1e4ec-1e4ef 1e5ee-1e5ef 1e6e3 1e6e6 1e6ee-1e6ef " +
    "1e6f5";

  /** Letters newer than the library's \p{L}. */
  const NO_LETTERS =
    "88f c5c cdc a7ce-a7cf a7d2 a7d4 a7f1 10940-10959 10ec5-10ec7 11db0-11ddb 16ea0-16eb8 16ebb-16ed3 16ff2-16ff3 " +
    "187f8-187ff 18d09-18d1e 18d80-18df2 1e6c0-1e6de 1e6e0-1e6e2 1e6e4-1e6e5 1e6e7-1e6ed 1e6f0-1e6f4 1e6fe-1e6ff " +
    "2b73a-2b73f 2cea2-2cead 323b0-33479";

  /** Numbers newer than the library's \p{N}. */
  const NO_NUMBERS = "11de0-11de9 16ff4-16ff6";

  const ranged = (list) => list.replace(/[0-9a-f]+/g, "\\u{$&}").replaceAll(" ", "");
  const LETTER = `(?![${ranged(NO_LETTERS)}])\\p{L}`;
  const NUMBER = `(?![${ranged(NO_NUMBERS)}])\\p{N}`;
  const SPACE = "\\p{White_Space}";
  const OTHER = `(?!${SPACE}|${LETTER}|${NUMBER})[^]`;

  E.PUNCTUATION = new RegExp(`[!-/:-@[-\`{-~${ranged(PUNCTUATION)}]`, "gu");

  /** How GPT-2 cuts a text into words: a space belongs to the word behind it (Radford et al. 2019). */
  const RUNS = [LETTER, NUMBER, OTHER].map((one) => ` ?(?:${one})+`).join("|");
  E.BYTE_LEVEL_WORDS = new RegExp(`'(?:s|t|re|ve|m|ll|d)|${RUNS}|${SPACE}+(?!\\P{White_Space})|${SPACE}+`, "gu");

  /* A piece of a text: {chars, from, to, shift}. chars[i] is a code point; it came from the code points from[i] to
     to[i] of the text. The piece itself begins at `shift`, in code points of the text. */

  /** A text as one piece. */
  E.piece = (text, shift = 0) => {
    const chars = Array.from(text);
    return { chars, from: chars.map((_, i) => shift + i), to: chars.map((_, i) => shift + i + 1), shift };
  };

  /** The characters [first, last) of a piece. */
  E.cut = (piece, first, last) => ({
    chars: piece.chars.slice(first, last),
    from: piece.from.slice(first, last),
    to: piece.to.slice(first, last),
    shift: piece.from[first],
  });

  /** Other characters in their place, [[char, change]]: 0 for a replaced one, 1 for one more, -n: n are dropped. */
  E.changed = (piece, changes) => {
    const from = [],
      to = [];
    let at = 0;
    for (const [, change] of changes) {
      const origin = change > 0 ? at - 1 : at;
      from.push(origin < 0 ? piece.shift : piece.from[origin]);
      to.push(origin < 0 ? piece.shift : piece.to[origin]);
      if (change <= 0) at += 1 - change;
    }
    return { chars: changes.map(([char]) => char), from, to, shift: piece.shift };
  };

  /** Where a pattern is found, in characters of the piece: [[first, last]]. */
  E.found = (piece, pattern) => {
    const text = piece.chars.join(""),
      places = [];
    let unit = 0,
      char = 0;
    const forward = (end) => {
      for (; unit < end; char++) unit += piece.chars[char].length;
      return char;
    };
    for (const match of text.matchAll(pattern))
      places.push([forward(match.index), forward(match.index + match[0].length)]);
    return places;
  };

  /** What is found becomes `content`, which comes from the last character found. */
  E.replaced = (piece, pattern, content) => {
    const kept = { chars: [], from: [], to: [], shift: piece.shift };
    const take = (first, last) => {
      for (let i = first; i < last; i++) add(piece.chars[i], i);
    };
    const add = (char, i) => {
      kept.chars.push(char);
      kept.from.push(piece.from[i]);
      kept.to.push(piece.to[i]);
    };
    const put = Array.from(content);
    let at = 0;
    for (const [first, last] of E.found(piece, pattern)) {
      take(at, first);
      for (const char of put) add(char, last - 1);
      at = last;
    }
    take(at, piece.chars.length);
    return kept;
  };

  /** Each character in lower case by itself: a Σ at the end of a word is σ as elsewhere. */
  E.lowercased = (piece) =>
    E.changed(
      piece,
      piece.chars.flatMap((char) => Array.from(char.toLowerCase(), (each, i) => [each, Number(i > 0)])),
    );

  const INERT = new RegExp(`[${ranged(NEVER_COMPOSED)}]`, "u");
  const nfd = (text) => text.normalize("NFD");

  /** A piece in the form "NFC" or "NFD" (Unicode Standard Annex 15). */
  E.normalized = (piece, form) => {
    const text = piece.chars.join("");
    if (text.normalize(form) === text) return piece;
    const runs = [[]];
    for (const char of piece.chars)
      if (INERT.test(char)) runs.push([[char, 0]], []);
      else runs.at(-1).push(char);
    const written = (run) => (form === "NFD" ? decomposed(run) : recomposed(decomposed(run)));
    return E.changed(
      piece,
      runs.flatMap((run) => (Array.isArray(run[0]) ? run : written(run))),
    );
  };

  /** NFD with changes. Marks are put in order; which came first of equal ones stays so. */
  function decomposed(chars) {
    const changes = new Map(); // of each character, in the order of the text
    for (const char of chars)
      Array.from(nfd(char)).forEach((part, i) => {
        if (!changes.has(part)) changes.set(part, []);
        changes.get(part).push(Number(i > 0));
      });
    const taken = new Map();
    return Array.from(nfd(chars.join("")), (part) => {
      const place = taken.get(part) ?? 0;
      taken.set(part, place + 1);
      return [part, changes.get(part)[place]];
    });
  }

  const HIGHEST = "\u0345"; // the mark with the highest combining class
  const isMark = (char) => char > "\u02ff" && (char === HIGHEST || nfd(HIGHEST + char) !== HIGHEST + char);
  const sameClass = (first, second) => nfd(second + first) === second + first; // of two marks in order

  /** The one character that two make; null where they make none. */
  function composed(first, second) {
    if (second <= "\u02ff") return null;
    const made = (first + second).normalize("NFC");
    return made.length <= 2 && Array.from(made).length === 1 ? made : null;
  }

  /** NFC of what `decomposed` gave, with changes. */
  function recomposed(parts) {
    const found = [];
    let base = null, // the place in `found` of what marks may join
      last = null; // the last mark behind it that did not
    for (const [char, change] of parts) {
      const mark = isMark(char);
      const blocked = last !== null && (!mark || sameClass(last, char));
      const made = base === null || blocked ? null : composed(found[base][0], char);
      if (made !== null) {
        found[base] = [made, found[base][1] + change - 1];
        continue;
      }
      found.push([char, change]);
      if (!mark) [base, last] = [found.length - 1, null];
      else if (base !== null) last = char;
    }
    return found;
  }
})((window.Transduce ??= {}));
