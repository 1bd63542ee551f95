/* A text cut into its sentences, and their outputs joined, as inference/sentences.py does it. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  const LINES = /[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+/g;
  const ENDS = /[.!?…\p{Sentence_Terminal}]+/gu;
  const MARKS = /^[.!?…\p{Sentence_Terminal}]+/u;
  const CLOSING = /^["'”’»)\]」』）]+/;
  const CLOSED = /^\s*["'”’“»›》」』]*$/; // of the rest of a quotation
  const NO_SENTENCE = /^[^\p{L}\p{N}_]*(?:\p{Nd}+|\p{L})[^\p{L}\p{N}_]*$/u; // "1.", "M.": the next words belong to it
  const QUOTES = [/"[^"]*"/, /«[^»]*»/, /“[^”]*”/, /„[^“]*“/, /‘[^’]*’/, /‹[^›]*›/, /《[^》]*》/, /「[^」]*」/, /『[^』]*』/];
  const OTHERS = [/[(（<{[][^)\]}>）]*[)\]}>）]/, /[\w.%+-]+@[\w.-]+/]; // brackets, addresses
  const BRACKET = /[(（<{[]/;
  const INSIDE = new RegExp([...QUOTES, ...OTHERS].map((each) => each.source).join("|"), "g");
  const EAST = new RegExp(
    "^[\\u1100-\\u115f\\u2e80-\\u303e\\u3041-\\ua4cf\\ua960-\\ua97c\\uac00-\\ud7a3\\uf900-\\ufaff\\ufe10-\\ufe6b" +
      "\\uff01-\\uff60\\uffe0-\\uffe6\\p{Emoji_Presentation}\\u{17000}-\\u{18cff}\\u{1b000}-\\u{1b2ff}" +
      "\\u{20000}-\\u{3fffd}]",
    "u",
  ); // East_Asian_Width W and F
  const HANGUL = /^[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]/;
  const RUNS_ON = /^[\u0e00-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\ua9ff\uaa60-\uaadf]/;

  /** Words before a full stop that ends no sentence, by language; those of English in German, too. */
  const ENGLISH =
    "a.m adj adv al apr art assn aug ave bldg blvd bros ca capt cf co col comdr corp dec dept dist dr e.g esq est etc feb " +
    "fig ft gen gov hon i.e inc jan jr ltd maj mar messrs mm mr mrs ms msgr mt nov oct op p.m ph.d pp prof rep rev " +
    "sen sept sgt sr st supt u.s univ v viz vol vs";
  const SHORT = {
    en: ENGLISH,
    de: `${ENGLISH} bzgl bzw d.h d.j ev evtl ggf mio mrd mwst nr o.ä sog std str u.a u.ä usf usw vgl z.b z.t`,
    fr: "a.m ann apr art auj av boul c.-à-d ca cf chap co dir e.g env ex fig fr i.e ibid id ltd m mm ms n.b p.ex pp vs",
    es: "admón av avda cap cf dr dra dto ee ej etc excmo fig gral ltd núm p.ej pág págs prof sr sra sres srta ud uds vol",
    pt: "adj adv art dr dra dras drs eng exmo fig gen op prof sr sra sras srs sto vs",
    ja: "",
  };
  const MONTHS = "Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember";
  /** What follows a mark where the sentence goes on, of languages that write "3. Mai". */
  const FOLLOWS = { de: new RegExp(`^(?:[^\\p{L}\\p{N}_]*[0-9a-z]|\\s*(?:${MONTHS})(?![\\p{L}]))`, "u") };

  const QUOTED = /^(?:“[^“”]*”|「[^「」]*」|『[^『』]*』)$/; // nothing but a quotation
  const JAPANESE_SAID = /^(?:と(?!ても|ころ[がで]|にかく|りあえず|きどき|うとう|つぜん|ある)|って)/;
  const CHINESE_SAID = /^[\u3400-\u9fff]{1,8}?(?:[说說问問答喊叫嚷]|(?<!知)道)[。！]/;

  /** [start, end) of every sentence of every line. */
  E.sentences = (text, language = "") => {
    const code = language.split(/[-_]/)[0].toLowerCase() || "en";
    const rules = { short: new Set((SHORT[code] ?? SHORT.en).split(" ")), follows: FOLLOWS[code] };
    return between(LINES, text).flatMap((line) => {
      const [start, end] = stripped(text, ...line);
      return start < end ? inLine(text, start, end, rules) : [];
    });
  };

  function inLine(text, start, end, rules) {
    const found = [];
    let begun = start;
    for (const last of [...ends(text.slice(start, end), rules).map((at) => start + at), end]) {
      if (last < end && isSaid(text, begun, last, end)) continue;
      const inner = stripped(text, begun, last);
      if (inner[0] === inner[1]) continue;
      const part = text.slice(...inner);
      if (last < end && NO_SENTENCE.test(part) && !Array.from(part).some(runsOn)) continue;
      found.push(inner);
      begun = last;
    }
    return found;
  }

  /** Whether `last` is before the end of a quotation, or before the words that tell who said it. */
  function isSaid(text, start, last, end) {
    if ("」』".includes(text[last])) return true;
    if (!"」』”’\"".includes(text[last - 1])) return false;
    const after = text.slice(last, end);
    return JAPANESE_SAID.test(after) || (CHINESE_SAID.test(after) && QUOTED.test(text.slice(start, last)));
  }

  /** Behind each mark that ends a sentence before the line's end, and what closes it. */
  function ends(line, rules) {
    const inside = Array.from(line.matchAll(INSIDE), (match) => [match.index, match.index + match[0].length]);
    const found = [];
    for (const match of line.matchAll(ENDS)) {
      let at = match.index + match[0].length;
      if (goesOn(match[0], line.slice(0, match.index), line.slice(at), rules)) continue;
      const around = inside.find(([from, to]) => from < at && at < to);
      if (around && (BRACKET.test(line[around[0]]) || !CLOSED.test(line.slice(at, around[1])))) continue;
      at = around ? around[1] : at;
      at += (around ? MARKS : CLOSING).exec(line.slice(at))?.[0].length ?? 0;
      const next = line.slice(at);
      if (around && /^[^\p{L}\p{N}_]*[0-9a-z]/u.test(next)) continue;
      if (next.trim()) found.push(at);
    }
    return found;
  }

  /** Whether a sentence goes on behind this mark. */
  function goesOn(mark, before, after, { short, follows }) {
    if (follows?.test(after)) return true;
    if (/^[0-9a-z]/.test(after) || /^\s*,/.test(after)) return true;
    if (mark.length > 1) return /^\s+[0-9a-z]/.test(after);
    if (mark !== ".") return /\s$/.test(before) && /^[^\p{L}\p{N}_]*[0-9a-z]/u.test(after);
    const word = before.split(/[\s/]/).at(-1).toLowerCase();
    if (short.has(word.replace(/^["'“‘«(]+/, ""))) return true;
    const initial = /(\S*)[\s.]+[A-Z]$|^()[A-Z]$/.exec(before);
    return initial !== null && (/^[A-Z]/.test(initial[1] ?? "") || /^\s*[A-Z]\.(\s|$)/.test(after));
  }

  /** A text with each of these parts replaced. What stands between stays, but for a space between two scripts. */
  E.rejoined = (text, cut, outputs) => {
    let [whole, done] = ["", 0];
    cut.forEach(([start, end], place) => {
      const output = outputs[place];
      let gap = text.slice(done, start);
      if (place && (gap === "" || gap === " ")) {
        const read = [lastOf(text.slice(0, done)), firstOf(text.slice(start))];
        const written = [lastOf(outputs[place - 1]), firstOf(output)];
        if (!gap && read.some(runsOn) && !written.some(runsOn)) gap = " ";
        else if (gap && !read.some(runsOn) && written.every(isWide)) gap = "";
      }
      whole += gap + output;
      done = end;
    });
    return whole + text.slice(done);
  };

  /** The tags before a text, with the white space behind them (data/tags.py): further tokens that no word looks like. */
  E.leadingTags = (tokenizer, text) => {
    const tags = tokenizer.added().filter((token) => !SPECIAL.includes(token) && TAG.test(token));
    if (!tags.length) return "";
    const known = tags.map((tag) => tag.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|");
    return new RegExp(`^(?:\\s*(?:${known}))+\\s*`, "u").exec(text)?.[0] ?? "";
  };

  const SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"];
  const TAG = /^(?![\p{L}\p{N}])\S+(?<![\p{L}\p{N}])$/u;
  const firstOf = (text) => Array.from(text.slice(0, 2))[0] ?? "";
  const lastOf = (text) => Array.from(text.slice(-2)).at(-1) ?? "";
  const isWide = (letter) => EAST.test(letter) && !HANGUL.test(letter);
  const runsOn = (letter) => isWide(letter) || RUNS_ON.test(letter);

  function between(breaks, text) {
    const found = [];
    let start = 0;
    for (const match of text.matchAll(breaks)) {
      found.push([start, match.index]);
      start = match.index + match[0].length;
    }
    return [...found, [start, text.length]];
  }

  function stripped(text, start, end) {
    const part = text.slice(start, end);
    if (!part.trim()) return [start, start];
    return [start + part.length - part.trimStart().length, end - part.length + part.trimEnd().length];
  }
})((window.Transduce ??= {}));
