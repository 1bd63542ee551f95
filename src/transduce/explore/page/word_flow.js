/* A text as a picture: its words in lines, each with a colour behind it, bars above and below it, or a label below.

   What stands between two words stays as it is, so that a script without spaces gets none. Offsets count code points. */
"use strict";
(function (T) {
  const SIZE = 17,
    LINE = 30,
    BAR = 20,
    LABEL = 11,
    PAD = 2;

  /** text, words: [{text, start, end}]; from, to: the characters that are shown. label: for those who do not see it.
      colour(i) -> bytes behind a word or null; strong(i): whether it stands out. above, below: {values, most, name}.
      labels(i): what stands below a word; joins(i): whether its colour goes on from the word before.
      tell, choose: of T.walkBoxes; focus: the word that keys begin at. */
  T.wordFlow = (area, options) => {
    const o = { from: 0, to: Infinity, colour: () => null, strong: () => false, ...options };
    const bars = Boolean(o.above || o.below);
    const high = bars ? LINE + 2 * BAR : LINE + (o.labels ? LABEL + 8 : 2);
    const { places, size } = laidOut(parts(o), T.widthOf(area, 200, 900) - 42, o, high);
    const picture = T.walkedPicture("word-flow", size, T.say("flow.role"), o.label);
    const top = bars ? BAR : 1;
    const boxes = [];
    for (const { text, word, x, y, width } of places) {
      const bytes = word >= 0 ? o.colour(word) : null;
      const box = { x: x - PAD, y: y + top + 2, width: width + 2 * PAD, height: LINE - 4 };
      if (word >= 0) boxes[word] = { ...box, y: y + 1, height: high - 2 };
      if (bytes && o.joins?.(word)) picture.prepend(...bridge(box, boxes[word - 1], bytes));
      if (bytes) picture.append(T.svg("rect", { ...box, rx: 4, class: "word-back", fill: `rgb(${bytes.join(",")})` }));
      if (word >= 0 && bars) picture.append(...barsOf(o, word, { x, y, width }));
      const fill = bytes ? { fill: T.readableOn(bytes) } : {};
      const name = `flow-text${word < 0 ? " between" : ""}${word >= 0 && o.strong(word) ? " strong" : ""}`;
      picture.append(T.svg("text", { x, y: y + top + LINE - 10, class: name, style: fill }, text));
      const label = word >= 0 && o.labels?.(word);
      if (label) picture.append(T.svg("text", { x, y: y + top + LINE + LABEL, class: "flow-label" }, label));
    }
    T.walkBoxes(picture, { boxes, size, tell: o.tell, choose: o.choose, next: inOrder(boxes), start: o.focus ?? 0 });
    return picture;
  };

  /** The colour between two words of a line, which lie side by side in either direction. */
  function bridge(box, before, bytes) {
    if (!before || before.y !== box.y - 2) return [];
    const [left, right] = before.x < box.x ? [before, box] : [box, before];
    const width = Math.max(0, right.x - left.x - left.width) + 8;
    const place = { ...box, x: left.x + left.width - 4, width };
    return [T.svg("rect", { ...place, class: "word-back", fill: `rgb(${bytes.join(",")})` })];
  }

  /** The text cut into words and what stands between them: [{text, word}], -1 for no word. */
  function parts({ text, words, from, to }) {
    const letters = Array.from(text),
      out = [];
    let at = from;
    words.forEach((word, i) => {
      if (word.start > at) out.push({ text: letters.slice(at, word.start).join(""), word: -1 });
      out.push({ text: letters.slice(Math.max(at, word.start), word.end).join("") || word.text, word: i });
      at = Math.max(at, word.end);
    });
    const rest = letters.slice(at, to).join("");
    return rest ? [...out, { text: rest, word: -1 }] : out;
  }

  function laidOut(all, room, o, height) {
    const places = [];
    let x = PAD,
      y = 0,
      widest = 120;
    const end = () => ([x, y] = [PAD, y + height]);
    for (const { text, word } of all) {
      const solid = word >= 0 ? [text] : text.split(/(\s+)/u).filter(Boolean);
      for (const piece of solid) {
        const blank = !piece.trim();
        const label = (word >= 0 && o.labels?.(word)) || "";
        const own = blank ? SIZE / 3.4 : T.textWidth(piece, SIZE, word >= 0 && o.strong(word) ? 700 : 400);
        const width = Math.max(own, label && T.textWidth(label, LABEL, 700) + 4);
        if (!blank && x > PAD && x + width > room) end();
        if (!blank) places.push({ text: piece, word, x, y, width });
        x += width;
        widest = Math.max(widest, x + PAD);
      }
    }
    if (T.rightToLeft(o.text)) for (const each of places) each.x = widest - each.x - each.width;
    return { places, size: { width: Math.ceil(widest), height: y + height } };
  }

  /** How likely something is at a word, as high as its share of the likeliest. */
  function barsOf(o, word, { x, y, width }) {
    const bar = (given, name, top) => {
      const high = given ? (BAR - 3) * Math.min(1, given.values[word] / given.most) : 0;
      if (high < 0.4) return [];
      return [T.svg("rect", { x, y: top(high), width, height: high, rx: 1.5, class: name })];
    };
    return [
      ...bar(o.above, "bar-above", (high) => y + BAR - high),
      ...bar(o.below, "bar-below", () => y + BAR + LINE),
    ];
  }

  /** Left and right go from word to word, up and down to the nearest of the other line. */
  const inOrder = (boxes) => (i, key) => {
    if (key === "ArrowLeft" || key === "ArrowRight") {
      const to = i + (key === "ArrowLeft" ? -1 : 1);
      return boxes[to] ? to : null;
    }
    const down = key === "ArrowDown" ? 1 : -1;
    const lines = [...new Set(boxes.map((box) => box.y))].sort((one, other) => one - other);
    const line = lines[lines.indexOf(boxes[i].y) + down];
    const middle = (box) => box.x + box.width / 2;
    const there = T.range(boxes.length).filter((j) => boxes[j].y === line);
    return there.sort((j, k) => distance(j) - distance(k))[0];
    function distance(j) {
      return Math.abs(middle(boxes[j]) - middle(boxes[i]));
    }
  };
})(window.Transduce);
