/* What a language model looks back at: the text once a line, with the words before the one that is read shaded.

   The picture of Cheng et al. 2016, figure 1. */
"use strict";
(function (T) {
  const LINE = 26,
    GAP = 7,
    MOST = 60;

  T.drawings.look_back = (area, scene, drawing) => {
    const { exploration, state } = scene;
    const causal = { ...exploration, attention: exploration.attention.filter((layer) => layer.causal) };
    const choice = T.chosen(causal);
    if (!choice) return T.fill(area, T.html("p", { class: "empty" }, T.say("attention.none")));
    const whole = state.upto === "all";
    const lines = linesOf(exploration, T.matrix(causal, choice, "words"), whole ? Infinity : drawing.prompt);
    const stack = T.html("div", { class: "stack" });
    T.fill(
      area,
      T.html("div", { class: "controls" }, T.choiceSelects(causal, choice), extent(whole)),
      stack,
    );
    T.fill(stack, figure(lines, choice));
  };

  const extent = (whole) =>
    T.choice(
      T.say("back.upto"),
      whole ? "all" : "",
      [
        ["", T.say("back.typed")],
        ["all", T.say("back.all")],
      ],
      (upto) => T.go({ upto }),
    );

  /** The words in the order in which they were read, and what each gives to the start and to each word. */
  function linesOf({ target }, matrix, tokens) {
    const read = T.range(matrix.T).filter((r) => r && Math.max(...matrix.rows[r].tokens) <= tokens);
    const shown = read.slice(0, MOST);
    const spaced = (r) => {
      const word = target.words.find((each) => each.tokens.includes(matrix.rows[r].tokens.at(-1) - 1));
      return !word || /^(\s|$)/u.test(Array.from(target.text).slice(word.end, word.end + 1).join(""));
    };
    return {
      start: matrix.columns[0].text,
      words: shown.map((r) => ({ text: matrix.rows[r].text, spaced: spaced(r) })),
      weights: shown.map((r) => [0, ...shown].map((c) => matrix.values[r * matrix.S + c])),
      all: read.length,
    };
  }

  function figure({ start, words, weights, all }, choice) {
    const most = T.darkest(...weights.map((row) => row.slice(1)));
    const picture = drawn({ start, words, weights, most }, T.choiceName(choice));
    return T.figure({
      name: "look-back",
      title: T.say("back.title"),
      caption: T.say("back.caption"),
      picture,
      wide: true,
      note: [
        T.weightLegend(most, "look-back"),
        T.say("back.note"),
        words.length < all && ` ${T.say("back.cut", { shown: words.length, all })}`,
      ],
      table: () => ({
        head: ["", start, ...words.map((word) => word.text)],
        rows: words.map((word, r) => [word.text, ...weights[r].map((weight, c) => (c <= r + 1 ? T.number(weight) : ""))]),
      }),
    });
  }

  function drawn({ start, words, weights, most }, name) {
    const columns = [];
    let right = 4;
    for (const { text, spaced } of [{ text: start, spaced: true }, ...words]) {
      const width = T.textWidth(text, 14, 700) + 4;
      columns.push({ text, x: right, width });
      right += width + (spaced ? GAP : 1);
    }
    const size = { width: Math.max(160, Math.ceil(right)), height: LINE * Math.max(1, words.length) + 4 };
    const links = words.map(({ text }, r) => `${text} → ${columns[weights[r].indexOf(T.largest(weights[r]))].text}`);
    const label = T.say("back.label", { name, links: links.slice(1, 13).join(", ") });
    const picture = T.walkedPicture("look-back", size, T.say("back.role"), label);
    const boxes = [],
      told = [];
    words.forEach((word, r) => {
      const y = 2 + LINE * r;
      columns.forEach(({ text, x, width }, c) => {
        const state = c === r + 1 ? "now" : c > r ? "later" : "before";
        const share = Math.min(1, weights[r][c] / most);
        const bytes = state === "before" ? T.weightBytes(share) : null;
        const box = { x, y: y + 1, width, height: LINE - 3 };
        if (bytes)
          picture.append(T.svg("rect", { ...box, rx: 3, class: "word-back", fill: `rgb(${bytes.join(",")})` }));
        picture.append(
          T.svg(
            "text",
            {
              x: x + width / 2,
              y: y + 17,
              "text-anchor": "middle",
              class: `back-word ${state}`,
              style: bytes ? { fill: T.readableOn(bytes) } : {},
            },
            text,
          ),
        );
        if (state === "later") return;
        boxes.push(box);
        const itself = state === "now" && !weights[r][c];
        told.push([
          `${word.text} → ${text}`,
          itself ? T.say("back.now") : `${T.say("matrix.weight")} ${T.number(weights[r][c])}`,
        ]);
      });
    });
    T.walkBoxes(picture, { boxes, size, tell: (i) => told[i] });
    return picture;
  }
})(window.Transduce);
