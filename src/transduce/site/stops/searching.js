/* Searching: the notes' two tables, greedy, exhaustive and beam search over them, and the model's own beam. */
"use strict";
(function (T) {
  const { fraction, sup } = T.equationParts;
  const E = T.engine;
  const SENTENCE = "The animal didn't cross the street because it was too good.";
  // What follows each prefix: p of A, B, C and the end; every other prefix is taken to be uniform.
  const TABLE = {
    "": [0.5, 0.2, 0.2, 0.1],
    A: [0.1, 0.4, 0.3, 0.2],
    AB: [0.2, 0.2, 0.4, 0.2],
    ABC: [0, 0.2, 0.2, 0.6],
    AC: [0.1, 0.6, 0.2, 0.1],
    ACB: [0.1, 0.2, 0.1, 0.6],
  };
  const UNIFORM = [0.25, 0.25, 0.25, 0.25];
  const LETTERS = "ABCe"; // e: the end
  const LONGEST = 4;
  const GREEDY = "ABCe",
    BETTER = "ACBe";
  const WIDEST = 5;
  let parts = null; // what is drawn once, and then told again

  T.stop = {
    // path: what is chosen in the table; width, alpha: of the beam; open: branches that are unfolded, of both beams
    keeps: { path: GREEDY, width: "2", alpha: "0.75", open: "", text: SENTENCE },
    draw(area) {
      if (!parts || !area.contains(parts.box)) begin(area);
      show(T.state());
    },
  };

  const go = (patch) => T.go(patch, true);
  const named = (letter) => (letter === "e" ? "<eos>" : letter);
  const spelled = (path) => [...path].map(named).join(" ");
  const next = (prefix) => TABLE[prefix] ?? UNIFORM;

  function begin(area) {
    parts = Object.fromEntries(["table", "beam", "ranking", "model"].map((name) => [name, T.html("div", { class: "stack" })]));
    const width = { id: "width", label: T.say("searching.width"), min: 1, max: WIDEST, step: 1, value: 2, show: String };
    const alpha = { id: "alpha", label: "α", min: 0, max: 1.5, step: 0.05, value: 0.75, show: String };
    parts.width = T.slider({ ...width, change: (width) => go({ width, open: "" }) });
    parts.alpha = T.slider({ ...alpha, change: (alpha) => go({ alpha, open: "" }) });
    parts.box = T.html("input", { class: "typed", id: "typed", lang: "en", spellcheck: "false", "aria-label": T.say("searching.sentence") });
    parts.box.addEventListener("input", () => parts.box.value.trim() && go({ text: parts.box.value, open: "" }));
    const settings = T.html("div", { class: "controls" }, parts.width.node, parts.alpha.node);
    T.fill(area, parts.table, settings, parts.beam, parts.ranking, T.html("h2", {}, T.say("searching.model")), parts.box, parts.model);
  }

  const numberIn = (text, least, most, otherwise) => {
    const value = Number(text);
    return text === "" || Number.isNaN(value) ? otherwise : Math.min(most, Math.max(least, value));
  };

  function show(state) {
    const width = Math.round(numberIn(state.width, 1, WIDEST, 2));
    const alpha = numberIn(state.alpha, 0, 1.5, 0.75);
    parts.width.set(width);
    parts.alpha.set(alpha);
    if (document.activeElement !== parts.box) parts.box.value = state.text;
    T.fill(parts.table, tableFigure(pathOf(state)), product(pathOf(state)));
    const searched = beamOf(width, alpha);
    T.fill(parts.beam, beamFigure(searched, state));
    T.fill(parts.ranking, rankingFigure(searched, width, alpha), score(searched.best, alpha));
    T.fill(parts.model, modelFigure(state, width, alpha));
  }

  /* The tables: choose a word at each step, and the next column is what follows it. */

  /** As much of the link's path as is one. */
  const pathOf = ({ path }) => (/^[ABC]{0,4}|/.exec(path)[0] + (/^[ABC]{0,3}e/.test(path) ? "e" : "")).slice(0, LONGEST);

  const CELL = [74, 40],
    SIDE = 54,
    HEAD = 30;

  function tableFigure(path) {
    const rows = [...LETTERS];
    const columns = T.range(LONGEST).filter((t) => t <= path.length && !path.slice(0, t).includes("e"));
    const room = T.widthOf(parts.table, 260, 600) - 42;
    const wide = Math.min(CELL[0] + 30, (room - SIDE) / LONGEST);
    const [width, height] = [SIDE + wide * LONGEST + 2, HEAD + CELL[1] * rows.length + 2];
    const picture = T.svg("svg", { class: "picture choice-table", id: "table", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": T.say("searching.table") });
    rows.forEach((letter, r) => picture.append(T.svg("text", { x: SIDE - 10, y: HEAD + (r + 0.5) * CELL[1] + 5, "text-anchor": "end", class: "cell-name" }, named(letter))));
    for (const t of T.range(LONGEST)) picture.append(T.svg("text", { x: SIDE + (t + 0.5) * wide, y: 18, "text-anchor": "middle", class: "tick" }, T.say("searching.step", { step: t + 1 })));
    for (const t of columns) rows.forEach((letter, r) => picture.append(cell(path, t, letter, r, wide)));
    const told = columns.map((t) => path.slice(0, t));
    const unknown = told.some((prefix) => !(prefix in TABLE));
    const button = (id, to, text) => T.html("button", { type: "button", class: "quiet", id, "aria-pressed": String(path === to), on: { click: () => go({ path: to }) } }, text);
    return T.figure({
      name: "table",
      title: T.say("searching.table"),
      caption: T.say("searching.table.caption"),
      picture,
      tools: [button("greedy", GREEDY, T.say("searching.greedy")), button("better", BETTER, T.say("searching.better"))],
      note: T.say(unknown ? "searching.table.uniform" : "searching.table.note"),
      table: () => ({ head: ["", ...told.map((prefix) => `p( · | ${spelled(prefix)} )`)], rows: rows.map((letter, r) => [named(letter), ...told.map((prefix) => T.number(next(prefix)[r]))]) }),
    });
  }

  function cell(path, t, letter, r, wide) {
    const p = next(path.slice(0, t))[r];
    const on = path[t] === letter;
    const best = p === Math.max(...next(path.slice(0, t)));
    const [x, y] = [SIDE + t * wide, HEAD + r * CELL[1]];
    const act = () => p > 0 && go({ path: path.slice(0, t) + letter });
    const number = p ? p.toFixed(2).replace(/^0/, "").replace(/0$/, "") : "0";
    const label = `${number} ${T.say("searching.cell", { token: named(letter), step: t + 1 })}`;
    return T.svg(
      "g",
      { class: ["cell", on && "on", best && "best"].filter(Boolean).join(" "), id: `cell-${t}-${letter}`, role: "button", tabindex: "0", "aria-pressed": String(on), "aria-label": label, on: { click: act, keydown: pressed(act) } },
      T.svg("rect", { x: x + 2, y: y + 2, width: wide - 4, height: CELL[1] - 4, rx: 6, fill: T.weightColour(p), class: "cell-back" }),
      T.svg("text", { x: x + wide / 2, y: y + CELL[1] / 2 + 5, "text-anchor": "middle", style: { fill: T.weightText(p) } }, number),
    );
  }

  const pressed = (act) => (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  };

  const probabilities = (path) => [...path].map((letter, t) => next(path.slice(0, t))[LETTERS.indexOf(letter)]);
  const times = (numbers) => numbers.reduce((all, each) => all * each, 1);

  function product(path) {
    const numbers = probabilities(path);
    const p = times(numbers);
    const factors = numbers.flatMap((each, i) => (i ? ["×", each] : [each]));
    const line = path ? [...(numbers.length > 1 ? [...factors, "="] : []), p, ",", " −log p ", "=", -Math.log(p)] : ["1"];
    return T.mathLine(T.say("searching.product"), "p", "(", spelled(path) || "…", ")", "=", ...line);
  }

  /* The beam over the tables: the engine's own search, with the tables in the place of a model. */

  const IDS = "·eABC"; // 0: the start
  const COLUMN = { start: 0, tokenizer: { end: 1 }, forbidden: [0], forbiddenFirst: [] };
  const MODEL = {
    extend([last], prefix) {
      const now = last ? prefix + IDS[last] : prefix;
      return { said: [Float64Array.from(IDS, (letter) => Math.log(next(now)[LETTERS.indexOf(letter)] ?? 0))], state: now };
    },
  };

  /** {best, found: outputs, best first, lattice} of a beam of this width. */
  function beamOf(width, alpha) {
    const lattice = { steps: [] };
    const settings = { method: "beam", beam: width, nbest: width, length_rule: "power", alpha };
    const found = E.search(MODEL, "", COLUMN, LONGEST, settings, {}, [], lattice);
    const outputs = found.map(({ tokens }) => tokens.map((id) => IDS[id]).join(""));
    const steps = lattice.steps.map((step) => step.map((each) => ({ ...each, text: named(IDS[each.token]) })));
    return { best: outputs[0], outputs, lattice: { steps } };
  }

  /** Every output that ends within the longest: [{path, p}]. */
  const everything = [];
  (function grow(path, p) {
    LETTERS.split("").forEach((letter, r) => {
      const more = p * next(path)[r];
      if (!more) return;
      if (letter === "e" || path.length + 1 === LONGEST) everything.push({ path: path + letter, p: more });
      else grow(path + letter, more);
    });
  })("", 1);
  const ended = everything.filter(({ path }) => path.endsWith("e"));

  /** The keys of the branches that are open, of one of both beams. */
  const openOf = ({ open }, which) => new Set(open.split("_").filter((key) => key.startsWith(which)).map((key) => key.slice(1)));
  const toggled = (which) => (key) => {
    const all = new Set(T.state().open.split("_").filter(Boolean));
    if (!all.delete(which + key)) all.add(which + key);
    go({ open: [...all].join("_") });
  };

  const beamTable = (lattice) => ({
    head: [T.say("beam.step"), T.say("beam.token"), "p", T.say("beam.total"), T.say("beam.fate")],
    rows: lattice.steps.flatMap((step, t) =>
      step.map((each) => [String(t + 1), T.piece(each.text), T.number(Math.exp(each.log_probability)), T.short(each.total), T.say(each.finished ? "beam.finished" : each.kept ? "beam.kept" : "beam.lost")]),
    ),
  });

  function beamFigure({ best, lattice }, state) {
    const label = T.say("searching.spine.label", { best: spelled(best) });
    const picture = T.spine({ lattice, best: [...best].map(named), open: openOf(state, "t"), toggle: toggled("t"), label, id: "t" });
    return T.figure({ name: "beam", title: T.say("searching.beam"), caption: T.say("searching.beam.caption"), picture, wide: true, note: weighedNote(lattice), table: () => beamTable(lattice) });
  }

  const weighedNote = (lattice) => {
    const all = lattice.steps.flat();
    return T.say("searching.weighed", { all: all.length, kept: all.filter(({ kept }) => kept).length });
  };

  /* Which output wins: all that end, by their scores. */

  const SHOWN = 6,
    BAR = 34;
  const scored = ({ path, p }, alpha) => ({ path, p, score: E.normalised(Math.log(p), path.length, { alpha }) });

  function rankingFigure({ best }, width, alpha) {
    const all = ended.map((each) => scored(each, alpha)).sort((a, b) => b.score - a.score || a.path.length - b.path.length);
    const top = all.filter(({ path }, place) => place < SHOWN || [GREEDY, BETTER, best].includes(path));
    const area = T.widthOf(parts.ranking, 260, 760) - 38;
    const left = 104;
    const x = d3.scaleLinear([0, Math.min(...top.map(({ score }) => score))], [0, area - left - 56]);
    const height = top.length * BAR + 4;
    const picture = T.svg("svg", { class: "picture ranking", id: "ranking", viewBox: `0 0 ${area} ${height}`, width: area, height, role: "img", "aria-label": T.say("searching.ranking.label", { best: spelled(all[0].path), score: T.number(all[0].score) }) });
    const equal = all.filter(({ score }) => Math.abs(score - all[0].score) < 1e-9).map(({ path }) => path);
    const names = (path) => [path === GREEDY && T.say("searching.greedy"), path === best && T.say("searching.by.beam", { width }), equal.includes(path) && T.say("searching.exhaustive")].filter(Boolean);
    top.forEach(({ path, score }, i) => {
      const y = i * BAR + 2;
      const told = names(path).join(", ");
      const wide = Math.max(2, x(score));
      const inside = T.textWidth(told, 12) + 14 < wide;
      picture.append(
        T.svg("text", { x: left - 10, y: y + 20, "text-anchor": "end", class: path === best ? "output-name best" : "output-name" }, spelled(path)),
        T.svg("rect", { x: left, y: y + 3, width: wide, height: BAR - 8, rx: 4, class: path === best ? "score best" : "score" }),
        T.svg("text", { x: left + wide + 6, y: y + 20, class: "number" }, T.number(score)),
        T.svg("text", { x: inside ? left + 8 : left + wide + 54, y: y + 20, class: `who${path === best ? " best" : ""}${inside ? " inside" : ""}` }, inside ? told : T.fit(told, area - left - wide - 56, 12)),
      );
    });
    const table = () => ({
      head: [T.say("searching.output"), "p", "−log p", T.say("searching.score"), T.say("searching.found")],
      rows: top.map(({ path, p, score }) => [spelled(path), T.number(p), T.number(-Math.log(p)), T.number(score), names(path).join(", ")]),
    });
    const told = { count: everything.length, best: equal.map(spelled).join(T.say("searching.or")), p: T.number(all[0].p) };
    return T.figure({ name: "ranking", title: T.say("searching.ranking"), caption: T.say("searching.ranking.caption"), picture, note: T.html("span", { id: "winner" }, T.say("searching.winner", told)), table });
  }

  function score(path, alpha) {
    const total = Math.log(times(probabilities(path)));
    const one = fraction(["1"], [sup("L", ["α"])]);
    const here = fraction(["1"], [sup(path.length, [alpha])]);
    return T.mathLine(T.say("searching.score"), T.say("searching.score"), "(", spelled(path), ")", "=", one, "log", "p", "=", here, "(", total, ")", "=", E.normalised(total, path.length, { alpha }));
  }

  /* The model's own beam for a sentence. */

  function modelFigure(state, width, alpha) {
    const found = T.explored(state.text, { beam: width, search: { alpha } });
    const [first] = found.nbest;
    const end = T.demo().target.tokenizer.tokens([T.demo().target.end])[0];
    const best = [...first.tokens, ...(found.ended ? [end] : [])];
    const label = T.say("searching.spine.label", { best: first.text });
    const picture = T.spine({ lattice: found.lattice, best, open: openOf(state, "m"), toggle: toggled("m"), label, id: "m" });
    const outputs = found.nbest.map((each) => [each.text || "…", T.percent(Math.exp(each.log_probability)), T.number(-each.log_probability), T.number(each.score)]);
    const title = T.say("searching.nbest", { width });
    return [
      T.html("p", { class: "say", id: "output", lang: "fr", "aria-live": "polite" }, first.text),
      T.figure({ name: "model-beam", title: T.say("searching.own"), caption: T.say("searching.own.caption"), picture, wide: true, note: weighedNote(found.lattice), table: () => beamTable(found.lattice) }),
      T.html("section", { class: "figure", id: "nbest" }, T.html("h2", { class: "figure-title" }, title), T.table({ head: [T.say("searching.output"), "p", "−log p", T.say("searching.score")], rows: outputs }, title)),
    ];
  }
})(window.Transduce);
