/* A text with its tokens and words, as interpret/token_spans.py has it. Places are counted in code points. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  /** {text, start, end} of each id, without the white space around its characters [start, end) of the text. */
  E.tokensAt = (tokenizer, ids, spans, text) => {
    const characters = Array.from(text);
    return tokenizer.tokens(ids).map((name, place) => {
      const [start, end] = trimmed(characters, ...spans[place]);
      return { text: shown(name), start, end };
    });
  };

  /** A token without the mark of a word's beginning. */
  const shown = (name) => name.replaceAll("▁", " ").trim() || name;
  E.shown = shown;

  /** The token that ends a text, behind its last character. */
  E.endToken = (tokenizer, text) => {
    const length = Array.from(text).length;
    return { text: tokenizer.tokens([tokenizer.end])[0], start: length, end: length };
  };

  /** The characters that each token of an output wrote. */
  E.writtenSpans = (tokenizer, ids, text) => {
    const most = Array.from(text).length;
    const ends = [0];
    for (let count = 1; count <= ids.length; ++count) {
      const length = Array.from(tokenizer.decode(ids.slice(0, count))).length;
      ends.push(Math.max(ends.at(-1), Math.min(most, length)));
    }
    return ids.map((_, place) => [ends[place], ends[place + 1]]);
  };

  /** {text, tokens, words}: neighbouring tokens that begin in the same word are one. */
  E.side = (text, tokens) => {
    const characters = Array.from(text);
    const ends = wordEnds(text);
    const words = [];
    let before;
    tokens.forEach((token, place) => {
      const word = belonging(token, ends, place, characters.length);
      if (word !== before) words.push({ tokens: [] });
      words.at(-1).tokens.push(place);
      before = word;
    });
    return { text, tokens, words: words.map(({ tokens: places }) => named(characters, tokens, places)) };
  };

  function wordEnds(text) {
    let done = 0;
    const ends = [];
    for (const piece of T.pieces(text)) {
      done += Array.from(piece.text).length;
      if (piece.word) ends.push(done);
    }
    return ends;
  }

  /** The number of a token's word; a special token is a word of its own. */
  function belonging(token, ends, place, length) {
    const around = Array.from(token.text)[0] + Array.from(token.text).at(-1);
    const isSpecial = token.start === token.end && (token.start === length || around === "<>" || around === "[]");
    if (isSpecial) return -1 - place;
    return ends.filter((end) => end <= token.start).length;
  }

  function named(characters, tokens, places) {
    const own = places.map((place) => tokens[place]);
    const solid = own.filter((token) => token.end > token.start);
    const [from, to] = solid.length ? [solid[0].start, solid.at(-1).end] : [own[0].start, own.at(-1).end];
    const [start, end] = trimmed(characters, from, to);
    const text = characters.slice(start, end).join("") || own.map((token) => token.text).join("");
    return { text, start, end, tokens: places };
  }

  function trimmed(characters, start, end) {
    const isSpace = (place) => !characters[place].trim();
    let [first, last] = [start, end];
    while (first < last && isSpace(first)) ++first;
    while (last > first && isSpace(last - 1)) --last;
    return first === last ? [start, end] : [first, last];
  }
})(window.Transduce);
