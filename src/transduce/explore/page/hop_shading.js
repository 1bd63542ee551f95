/* Which sentence each hop of a memory network read: a line a sentence, a column a hop, and all answers as bars.

   The picture of Sukhbaatar et al. 2015, figure 2. */
"use strict";
(function (T) {
  const LINE = 26,
    CELL = 58,
    HEAD = 24,
    LETTER = 14,
    LEAST = 0.005; // a weight that is written into its cell

  T.drawings.hop_shading = (area, scene, drawing) => {
    const stage = T.html("div", { class: "stage" }),
      aside = T.html("div", { class: "aside" });
    T.fill(area, T.html("div", { class: "split" }, stage, aside));
    T.fill(stage, story(stage, drawing));
    T.fill(aside, T.labelBars(aside, drawing));
  };

  /** {text, fact, weights} of each sentence, the last line that of the empty slots. */
  function linesOf({ sentences, hops, empty, facts }) {
    const lines = sentences.map((text, i) => ({ text, fact: facts.includes(i), weights: hops.map((hop) => hop[i]) }));
    return hops.length ? [...lines, { text: T.say("hops.empty"), weights: empty, nobody: true }] : lines;
  }

  function story(area, drawing) {
    const { hops, question, facts } = drawing;
    const lines = linesOf(drawing);
    const name = (k) => T.say("shading.hop", { hop: k + 1 });
    const room = Math.max(160, T.widthOf(area, 320, 900) - CELL * hops.length - 20);
    const wide = (line) => T.textWidth(shown(line), LETTER, line.fact ? 700 : 400);
    const left = Math.min(room, Math.max(...lines.map(wide)) + 16);
    const size = { width: Math.ceil(left + CELL * hops.length + 4), height: HEAD + LINE * lines.length + 4 };
    const [answer] = Object.keys(drawing.probabilities);
    const read = hops.map((hop, k) => `${name(k)}: ${drawing.sentences[hop.indexOf(T.largest(hop))]}`);
    const label = T.say("hops.label", { question, answer, read: read.join("; ") });
    const picture = T.walkedPicture("hops", size, T.say("hops.role"), label);
    hops.forEach((_, k) =>
      picture.append(
        T.svg("text", { x: left + CELL * (k + 0.5), y: HEAD - 8, "text-anchor": "middle", class: "tick" }, name(k)),
      ),
    );
    const boxes = [],
      told = [];
    lines.forEach((line, i) => {
      const y = HEAD + LINE * i;
      const kind = line.fact ? "hop-sentence strong" : line.nobody ? "hop-sentence nobody" : "hop-sentence";
      picture.append(T.svg("text", { x: 2, y: y + 18, class: kind }, T.fit(shown(line), left - 8, LETTER)));
      line.weights.forEach((weight, k) => {
        const box = { x: left + CELL * k + 1, y: y + 1, width: CELL - 2, height: LINE - 2 };
        const bytes = T.weightBytes(Math.min(1, weight));
        const ink = T.readableOn(bytes);
        picture.append(
          T.svg("rect", { ...box, rx: 3, class: "hop-cell", fill: `rgb(${bytes.join(",")})` }),
          T.svg(
            "text",
            { x: box.x + box.width / 2, y: y + 18, "text-anchor": "middle", class: "hop-weight", style: { fill: ink } },
            weight >= LEAST ? T.number(weight) : "",
          ),
        );
        boxes.push(box);
        told.push([line.text, `${name(k)}: ${T.number(weight)}`, line.fact && T.say("hops.fact")]);
      });
    });
    if (boxes.length) T.walkBoxes(picture, { boxes, size, tell: (i) => told[i] });
    return T.figure({
      name: "hops",
      title: question,
      caption: T.say(hops.length ? "hops.caption" : "hops.none"),
      picture,
      note: hops.length > 0 && [T.legend(1), " ", T.say("hops.note"), facts.length > 0 && ` ${T.say("hops.facts")}`],
      table: () => ({
        head: [T.say("hops.sentence"), ...hops.map((_, k) => name(k)), ...(facts.length ? [T.say("hops.fact")] : [])],
        rows: lines.map((line) => [
          line.text,
          ...line.weights.map((weight) => T.number(weight)),
          ...(facts.length ? [line.fact ? "*" : ""] : []),
        ]),
      }),
    });
  }

  const shown = (line) => (line.fact ? `${line.text} *` : line.text);
})(window.Transduce);
