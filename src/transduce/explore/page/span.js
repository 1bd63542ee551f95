/* An answer in its text: how likely each word begins or ends it, what the question looks at, what the answer looks at. */
"use strict";
(function (T) {
  T.drawings.answer_span = (area, scene, drawing) => {
    const stack = T.html("div", { class: "stack" });
    T.fill(area, stack);
    const found = { ...drawing, inside: insideOf(drawing) };
    T.fill(stack, answer(stack, found), asked(stack, scene, found), answering(stack, scene, found));
  };

  /** Which words of the text hold a character of the answer. */
  const insideOf = ({ answer, words }) =>
    answer ? T.range(words.length).filter((i) => words[i].start < answer[1] && words[i].end > answer[0]) : [];

  /** The characters of the text that the model read in one window. */
  const extent = ({ words }) => ({ from: words[0]?.start ?? 0, to: words.at(-1)?.end ?? 0 });

  function answer(area, found) {
    const { words, start, end, inside } = found;
    const most = Math.max(T.largest(start), T.largest(end)) || 1;
    const text = inside.map((i) => words[i].text).join(" ");
    const told = { answer: text || T.say("span.none"), p: T.percent(found.probability), none: T.percent(found.no_answer) };
    const best = (values) => `${words[values.indexOf(T.largest(values))]?.text ?? ""} ${T.percent(T.largest(values))}`;
    return T.figure({
      name: "answer",
      title: T.say("span.title"),
      caption: [
        T.say("span.told", told),
        found.windows > 1 && ` ${T.say("span.window", { window: found.window, windows: found.windows })}`,
      ],
      picture: T.wordFlow(area, {
        ...found,
        ...extent(found),
        label: T.say("span.label", { ...told, start: best(start), end: best(end) }),
        above: { values: start, most },
        below: { values: end, most },
        strong: (i) => inside.includes(i),
        colour: (i) => (inside.includes(i) ? highlight() : null),
        tell: (i) => [
          words[i].text,
          T.say("span.begins", { p: T.percent(start[i]) }),
          T.say("span.ends", { p: T.percent(end[i]) }),
        ],
        focus: inside[0] ?? 0,
      }),
      note: [key("bar-above", "span.key.start"), key("bar-below", "span.key.end")],
      table: () => ({
        head: [T.say("flow.word"), T.say("span.start"), T.say("span.end")],
        rows: words.map((word, i) => [word.text, T.number(start[i]), T.number(end[i])]),
      }),
    });
  }

  const highlight = () => (T.dark() ? [88, 70, 12] : [255, 233, 168]);
  const key = (name, text) =>
    T.html("span", { class: "key" }, T.html("span", { class: `swatch ${name}` }), T.say(text));

  /** Row `row` of a packed matrix, or the mean of the rows `rows`. */
  function rowsOf(packed, rows) {
    const width = packed.shape[1];
    const values = T.unpacked(packed);
    return T.mean(rows.map((row) => values.subarray(row * width, (row + 1) * width)));
  }

  /** Each of the question's words leads to what it looks at in the text. */
  function asked(area, { state }, found) {
    const { question, words } = found;
    if (!question.length || !words.length) return null;
    const one = state.query === "" ? -1 : T.place(state.query, question.length);
    const values = rowsOf(found.asks, one < 0 ? T.range(question.length) : [one]);
    const title = one < 0 ? T.say("span.asked") : T.say("span.asked.word", { word: question[one].text });
    return T.figure({
      name: "asked",
      title,
      caption: T.say("span.asked.caption"),
      picture: shaded(area, { ...found, ...extent(found), title, words, values }),
      note: T.weightLegend(T.darkest(values), "asked"),
      tools: chooser("asked-word", question, one, (query) => T.go({ query })),
      table: () => table(words, values),
    });
  }

  /** Each word of the text leads to what it looks at in the question; the answer's words by themselves. */
  function answering(area, { state }, found) {
    const { question, words, inside } = found;
    if (!question.length || !words.length) return null;
    const one = state.row === "" ? -1 : T.place(state.row, words.length);
    const rows = one < 0 ? (inside.length ? inside : T.range(words.length)) : [one];
    const values = rowsOf(found.reads, rows);
    const whole = inside.length ? "span.answering" : "span.reading";
    const title = one < 0 ? T.say(whole) : T.say("span.answering.word", { word: words[one].text });
    return T.figure({
      name: "answering",
      title,
      caption: T.say("span.answering.caption"),
      picture: shaded(area, { text: found.text, from: 0, to: question.at(-1).end, title, words: question, values }),
      note: T.weightLegend(T.darkest(values), "answering"),
      tools: chooser("answering-word", words, one, (row) => T.go({ row })),
      table: () => table(question, values),
    });
  }

  function shaded(area, { values, title, words, ...more }) {
    const most = T.darkest(values);
    const strongest = words[values.indexOf(T.largest(values))]?.text ?? "";
    return T.wordFlow(area, {
      ...more,
      words,
      label: T.say("span.looks", { title, word: strongest }),
      colour: (i) => (values[i] >= 0.01 ? T.weightBytes(values[i] / most) : null),
      tell: (i) => [words[i].text, `${T.say("matrix.weight")} ${T.number(values[i])}`],
    });
  }

  const chooser = (id, words, one, change) =>
    T.select(
      id,
      T.say("span.of"),
      [["", T.say("span.all")], ...words.map((word, i) => [i, `${i + 1} ${word.text}`])],
      one < 0 ? "" : one,
      change,
    );

  const table = (words, values) => ({
    head: [T.say("flow.word"), T.say("matrix.weight")],
    rows: words.map((word, i) => [word.text, T.number(values[i])]),
  });
})(window.Transduce);
