/* The labels of words in their text: spans in their colours, each word's probabilities, and which label follows which. */
"use strict";
(function (T) {
  T.drawings.entity_marks = (area, scene, drawing) => {
    const stage = T.html("div", { class: "stage stack" }),
      aside = T.html("div", { class: "aside" });
    T.fill(area, T.html("div", { class: "split" }, stage, aside));
    const at = scene.state.row === "" ? focusOf(drawing) : T.place(scene.state.row, drawing.words.length);
    T.fill(stage, text(stage, drawing, at), drawing.transitions && transitions(stage, drawing));
    if (drawing.probabilities && drawing.words[at]) T.fill(aside, probabilities(aside, drawing, at));
  };

  const focusOf = ({ marks }) => marks[0]?.first ?? 0;
  const bytesOf = (colour) => [1, 3, 5].map((place) => parseInt(colour.slice(place, place + 2), 16));

  /** The number of each word's mark, -1 for none. */
  function marksOf({ words, marks }) {
    const found = words.map(() => -1);
    marks.forEach((mark, number) => T.range(mark.last - mark.first).forEach((i) => (found[mark.first + i] = number)));
    return found;
  }

  function text(area, drawing, at) {
    const { words, marks, spans } = drawing;
    const of = marksOf(drawing);
    const markOf = (i) => marks[of[i]];
    const told = marks.map((mark) => `${inText(drawing, mark)} ${mark.name}`).join(", ");
    return T.figure({
      name: "entities",
      title: T.say(spans ? "marks.title" : "marks.title.words"),
      caption: T.say(spans ? "marks.caption" : "marks.caption.words"),
      picture: T.wordFlow(area, {
        text: drawing.text,
        words,
        label: T.say("marks.label", { marks: told || T.say("marks.none") }),
        colour: (i) => (of[i] >= 0 ? bytesOf(markOf(i).colour) : null),
        joins: (i) => i > 0 && of[i] >= 0 && of[i] === of[i - 1],
        labels: (i) => (of[i] >= 0 && markOf(i).first === i ? markOf(i).name : ""),
        strong: (i) => i === at,
        tell: (i) => [words[i].text, `${words[i].label} ${T.percent(words[i].probability)}`, tellSpan(drawing, markOf(i))],
        choose: (row) => T.go({ row }),
        focus: at,
      }),
      note: T.say("marks.note"),
      table: () => ({
        head: [T.say("flow.word"), T.say("labels.label"), T.say("shares.p"), T.say("marks.start"), T.say("marks.end")],
        rows: words.map((word) => [word.text, word.label, T.percent(word.probability), word.start, word.end]),
      }),
    });
  }

  const inText = ({ text }, { start, end }) => Array.from(text).slice(start, end).join("");
  const tellSpan = (drawing, mark) =>
    drawing.spans &&
    mark &&
    T.say("marks.span", { text: inText(drawing, mark), kind: mark.name, p: T.percent(mark.probability) });

  function probabilities(area, { words, labels, probabilities }, at) {
    const row = T.unpacked(probabilities).subarray(at * labels.length, (at + 1) * labels.length);
    const title = T.say("marks.word", { word: words[at].text });
    return T.labelBars(area, { title, probabilities: Object.fromEntries(labels.map((name, i) => [name, row[i]])) });
  }

  /** Which label follows which, by the scores of the conditional random field. */
  function transitions(area, { labels, transitions }) {
    const scores = T.unpacked(transitions);
    const values = scores.map((value) => (Number.isFinite(value) ? value : 0));
    const most = Math.max(T.largest(values), T.largest(values.map((value) => -value))) || 1;
    const size = labels.length + 1;
    const rows = [...labels, T.say("marks.begin")],
      columns = [...labels, T.say("marks.stop")];
    const say = (value) => (Number.isFinite(value) ? T.number(value) : T.say("marks.forbidden"));
    return T.figure({
      name: "transitions",
      title: T.say("marks.transitions"),
      caption: T.say("marks.transitions.caption"),
      picture: T.heatMap(area, {
        rows,
        columns,
        values,
        cell: 44,
        rowTitle: T.say("marks.before"),
        columnTitle: T.say("marks.after"),
        colour: (value) => T.signedBytes(value / most),
        print: T.cellNumber,
        hole: (r, c) => !Number.isFinite(scores[r * size + c]),
        label: T.say("marks.transitions.label", { labels: labels.length }),
        tell: (r, c) => [`${rows[r]} → ${columns[c]}`, say(scores[r * size + c])],
      }),
      table: () => ({
        head: ["", ...columns],
        rows: rows.map((name, r) => [name, ...columns.map((_, c) => say(scores[r * size + c]))]),
      }),
    });
  }
})(window.Transduce);
