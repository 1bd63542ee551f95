/* What a classifier looked at: the words shaded by its attention pooling, hop by hop, and all labels as bars. */
"use strict";
(function (T) {
  const BAR_LINE = 26,
    MOST_LABELS = 40;

  T.drawings.word_shading = (area, scene, drawing) => {
    const stage = T.html("div", { class: "stage" }),
      aside = T.html("div", { class: "aside" });
    T.fill(area, T.html("div", { class: "split" }, stage, aside));
    T.fill(stage, words(stage, scene, drawing));
    T.fill(aside, labels(aside, drawing));
  };

  function words(area, { state }, drawing) {
    const { hops } = drawing;
    const hop = state.head === "mean" || hops.length < 2 ? null : T.place(state.head, hops.length);
    const values = hop === null ? drawing.mean : hops[hop];
    const most = T.darkest(values);
    const name = (each) => T.say("shading.hop", { hop: each + 1 });
    const title = hop === null ? T.say("shading.title") : `${T.say("shading.title")}: ${name(hop)}`;
    const [[label]] = T.likeliest(drawing.probabilities);
    const strongest = T.range(values.length)
      .sort((one, other) => values[other] - values[one])
      .slice(0, 5)
      .map((i) => `${drawing.words[i].text} ${T.number(values[i])}`);
    const picture = T.wordFlow(area, {
      ...drawing,
      label: T.say("shading.label", { label, words: strongest.join(", ") }),
      colour: (i) => (hops.length && values[i] >= 0.01 ? T.weightBytes(values[i] / most) : null),
      tell: (i) => [drawing.words[i].text, hops.length > 0 && `${T.say("matrix.weight")} ${T.number(values[i])}`],
      focus: hops.length ? values.indexOf(T.largest(values)) : 0,
    });
    return T.figure({
      name: "shading",
      title,
      caption: T.say(hops.length ? "shading.caption" : "shading.none", { label }),
      picture,
      note: hops.length > 0 && [T.weightLegend(most, "shading"), T.say("shading.note")],
      tools:
        hops.length > 1 &&
        T.select(
          "hop",
          T.say("shading.of"),
          [["mean", T.say("overview.mean")], ...hops.map((_, i) => [i, name(i)])],
          hop ?? "mean",
          (head) => T.go({ head }),
        ),
      table: () => ({
        head: [T.say("flow.word"), ...(hops.length > 1 ? [T.say("overview.mean")] : []), ...hops.map((_, i) => name(i))],
        rows: drawing.words.map((word, i) => [
          word.text,
          ...(hops.length > 1 ? [T.number(drawing.mean[i])] : []),
          ...hops.map((each) => T.number(each[i])),
        ]),
      }),
    });
  }

  /** [name, probability] of each label, the likeliest first: JavaScript puts names that are numbers in front. */
  T.likeliest = (probabilities) => Object.entries(probabilities).sort(([, one], [, other]) => other - one);

  /** A bar for each label, the likeliest first. */
  T.labelBars = labels;
  function labels(area, { probabilities, title }) {
    const all = T.likeliest(probabilities);
    const shown = all.slice(0, MOST_LABELS);
    const width = Math.min(T.widthOf(area, 200, 520) - 42, 460);
    const left = Math.min(Math.max(...shown.map(([name]) => T.textWidth(name, 14, 700))) + 12, width / 2);
    const room = width - left - 56;
    const height = BAR_LINE * shown.length + 4;
    const told = shown.map(([name, p]) => `${name} ${T.percent(p)}`).join(", ");
    const picture = T.svg("svg", {
      class: "picture label-bars",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "img",
      "aria-label": told,
    });
    shown.forEach(([name, p], i) => {
      const y = BAR_LINE * i + 2;
      const strong = i ? "" : " strong";
      picture.append(
        T.svg("text", { x: 0, y: y + 17, class: `label-name${strong}` }, T.fit(name, left - 10, 14)),
        T.svg("rect", { x: left, y: y + 4, width: Math.max(1, room * p), height: BAR_LINE - 10, rx: 3, class: "label-bar" }),
        T.svg("text", { x: left + Math.max(1, room * p) + 8, y: y + 17, class: `label-name${strong}` }, T.percent(p)),
      );
    });
    return T.figure({
      name: "labels",
      title: title ?? T.say("labels.title"),
      caption: shown.length < all.length ? T.say("labels.cut", { shown: shown.length, all: all.length }) : null,
      picture,
      table: () => ({
        head: [T.say("labels.label"), T.say("shares.p")],
        rows: all.map(([name, p]) => [name, T.percent(p)]),
      }),
    });
  }
})(window.Transduce);
