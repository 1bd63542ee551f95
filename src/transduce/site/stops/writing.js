/* Writing one token after the other: what the decoder reads, from its own words or from a teacher, and the causal mask. */
"use strict";
(function (T) {
  const { sub } = T.equationParts;
  const CHARACTERS = [..."机器学习"];
  const MISTAKE = { at: 1, says: "气" };
  const BEGIN = "<BEGIN>",
    END = "<END>";
  const STEPS = CHARACTERS.length + 1;
  const PAUSE = 1100;
  let parts = null; // what is drawn once, and then told again
  let stop = null; // ends the playing
  let scene = null; // what was computed last

  T.stop = {
    // step: how much of the notes' example is written, empty: all; fed: own or teacher; wrong: 1: with a mistake;
    // at: the place of the output in focus; said: at.id, the token that the reader makes the model say
    keeps: { text: T.sentence("tired"), step: "", fed: "own", wrong: "", at: "", said: "" },
    draw(area) {
      const first = parts === null;
      if (first || !area.contains(parts.box)) begin(area);
      if (first && !T.still() && !location.hash) play();
      show(T.state());
    },
  };

  const go = (patch) => T.go(patch, true);

  function begin(area) {
    parts = Object.fromEntries(["notes", "panel", "lanes", "mask"].map((name) => [name, T.html("div", { class: "stack" })]));
    parts.box = T.html("input", { class: "typed", id: "typed", lang: "en", spellcheck: "false", "aria-label": T.say("writing.sentence") });
    parts.box.addEventListener("input", () => parts.box.value.trim() && go({ text: parts.box.value, at: "", said: "" }));
    const title = T.html("h2", {}, T.say("writing.model"));
    T.fill(area, parts.notes, title, parts.box, parts.panel, parts.lanes, parts.mask);
  }

  function show(state) {
    T.fill(parts.notes, notesControls(state), notesFigure(state));
    if (document.activeElement !== parts.box) parts.box.value = state.text;
    scene = computed(state);
    T.fill(parts.panel, panel(state));
    T.fill(parts.lanes, lanesFigure(), sum());
    T.fill(parts.mask, maskFigure());
  }

  /* The notes' example: four characters, drawn as they appear. */

  /** What is read and said at each step: [{reads, says, wrong, unknown}]. */
  function written({ fed, wrong }) {
    const right = [...CHARACTERS, END];
    return right.map((says, t) => {
      const slips = wrong === "1" && t === MISTAKE.at;
      const led = wrong === "1" && fed === "own" && t > MISTAKE.at; // what follows its own mistake, nobody knows
      const mine = wrong === "1" && fed === "own" && t === MISTAKE.at + 1 ? MISTAKE.says : led ? "?" : right[t - 1];
      return { reads: t ? mine : BEGIN, says: slips ? MISTAKE.says : led ? "?" : says, truth: t ? right[t - 1] : BEGIN, slips, led };
    });
  }

  const stepOf = ({ step }) => (step === "" ? STEPS : Math.min(STEPS, Math.max(0, Math.floor(Number(step)) || 0)));

  function notesControls(state) {
    const button = (id, text, act, more = {}) => T.html("button", { type: "button", class: "quiet", id, ...more, on: { click: act } }, text);
    const step = stepOf(state);
    return T.html(
      "div",
      { class: "controls" },
      button("play", T.say(stop ? "writing.pause" : "writing.play"), () => (stop ? halt() : play()), { class: "primary" }),
      button("next", T.say("writing.next"), () => (halt(), go({ step: step >= STEPS ? 1 : step + 1 }))),
      T.choice(
        T.say("writing.fed"),
        state.fed,
        [
          ["own", T.say("writing.own")],
          ["teacher", T.say("writing.teacher")],
        ],
        (fed) => (halt(), go({ fed })),
      ),
      button("wrong", T.say("writing.wrong", MISTAKE), () => (halt(), go({ wrong: state.wrong ? "" : "1" })), { "aria-pressed": String(state.wrong === "1") }),
    );
  }

  function play() {
    go({ step: 0 });
    stop = T.playing((count) => {
      if (count >= STEPS) halt();
      go({ step: Math.min(count, STEPS) });
    }, PAUSE);
    show(T.state());
  }

  function halt() {
    stop?.();
    stop = null;
  }

  function notesFigure(state) {
    const steps = written(state);
    const step = stepOf(state);
    const own = state.fed === "own";
    return T.figure({
      name: "notes",
      title: T.say(own ? "writing.notes.own" : "writing.notes.teacher"),
      caption: T.say(own ? "writing.notes.own.caption" : "writing.notes.teacher.caption"),
      picture: row(parts.notes, steps, step, own),
      note: T.say("writing.notes.note"),
      table: () => ({ head: [T.say("writing.step"), T.say("writing.reads"), T.say("writing.says")], rows: steps.slice(0, step).map(({ reads, says }, t) => [String(t + 1), reads, says]) }),
    });
  }

  const TOP = 44, // the middle of what is said
    BAR = [86, 132], // the decoder
    BOTTOM = 176, // of what is read
    TRUTH = 240, // of what the teacher knows
    BOX = 42;

  function row(area, steps, step, own) {
    const width = T.widthOf(area, 280, 700) - 38;
    const each = width / steps.length;
    const height = own ? BOTTOM + 32 : TRUTH + 28;
    const x = (t) => (t + 0.5) * each;
    const label = T.say("writing.notes.label", { said: steps.slice(0, step).map(({ says }) => says).join(" ") });
    const picture = T.svg("svg", { class: "picture writer", id: "writer", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label });
    picture.append(
      T.svg("rect", { x: 4, y: BAR[0], width: width - 8, height: BAR[1] - BAR[0], rx: 10, class: "decoder" }),
      T.svg("text", { x: 14, y: BAR[0] + 18, class: "decoder-name" }, T.say("writing.decoder")),
    );
    steps.slice(0, step).forEach((now, t) => picture.append(column(now, { x: x(t), each, own, more: t + 1 < Math.min(step + 1, steps.length) })));
    if (step > 0) picture.append(seen(x, step));
    return picture;
  }

  /** One step: what is read, what is said, and where it goes. */
  function column({ reads, says, truth, slips, led }, { x, each, own, more }) {
    const arrow = (d, name) => T.svg("path", { d, class: `arrow ${name}` });
    const next = x + each;
    const back = `M${x + BOX / 2 + 1} ${TOP} C${next - 6} ${TOP}, ${x + 10} ${BOTTOM}, ${next - BOX / 2 - 3} ${BOTTOM}`;
    return T.svg(
      "g",
      {},
      arrow(`M${x} ${BOTTOM - BOX / 2}V${BAR[1] + 3}`, "up"),
      arrow(`M${x} ${BAR[0]}V${TOP + BOX / 2 + 3}`, "up"),
      own && more && arrow(back, slips ? "back slip" : "back"),
      !own && arrow(`M${x} ${TRUTH - BOX / 2}V${BOTTOM + BOX / 2 + 3}`, "up"),
      character(reads, x, BOTTOM, each, led || (own && reads === MISTAKE.says) ? "reads slip" : "reads"),
      character(says, x, TOP, each, slips || led ? "says slip" : "says"),
      !own && character(truth, x, TRUTH, each, "truth"),
    );
  }

  function character(text, x, y, each, name) {
    const wide = Math.min(each - 4, text.length > 1 ? 66 : BOX);
    return T.svg(
      "g",
      { class: name },
      T.svg("rect", { x: x - wide / 2, y: y - BOX / 2, width: wide, height: BOX, rx: 9 }),
      T.svg("text", { x, y: y + (text.length > 1 ? 4 : 8), "text-anchor": "middle", lang: "zh-Hans", class: text.length > 1 ? "mark-text" : "character" }, text),
    );
  }

  /** What the last step sees: everything that is read up to it, nothing behind. */
  const seen = (x, step) =>
    T.svg(
      "g",
      { class: "seen-by" },
      T.range(step).map((s) => T.svg("path", { d: `M${x(s)} ${BAR[1] - 5}Q${(x(s) + x(step - 1)) / 2} ${BAR[1] - 26},${x(step - 1)} ${BAR[0] + 4}` })),
    );

  /* The model: what it says by its own words, and where a teacher corrects what it reads. */

  const swapOf = ({ said }) => {
    const [at, id] = said.split(".").map(Number);
    return said && at >= 0 && id >= 0 && id < T.demo().model.output.shape[0] ? { at, id } : null;
  };

  /** Both ways with all that the model weighed: {truth, swap, teacher, own: [{reads, says, id, p, row}], at}. */
  function computed(state) {
    const { tokenizer, start } = T.demo().target;
    const whole = T.explored(state.text);
    const truth = [...tokenizer.ids(whole.nbest[0].tokens), tokenizer.end];
    const asked = swapOf(state);
    const swap = asked && asked.at < truth.length ? asked : null;
    const found = swap ? T.explored(state.text, { forced: [...truth.slice(0, swap.at), swap.id] }) : whole;
    const mine = swap ? [...tokenizer.ids(found.nbest[0].tokens), tokenizer.end] : truth;
    const lane = (ids, saying) => {
      const { said } = passed(state.text, ids.slice(0, -1));
      return said.map((row, t) => {
        const id = swap?.at === t ? swap.id : saying(row, t);
        return { reads: t ? name(ids[t - 1]) : name(start), says: name(id), id, p: Math.exp(row[id]), row, forced: swap?.at === t };
      });
    };
    const best = (row) => E.likeliest(row, 1, new Set(T.demo().target.forbidden))[0].token;
    const pronoun = T.pronounOf(whole);
    const own = lane(mine, (_, t) => mine[t]);
    return { whole, found, truth, swap, pronoun, own, teacher: lane(truth, best), at: T.place(state.at, own.length, pronoun?.at ?? 0) };
  }
  const E = T.engine;

  const known = new Map();
  function passed(text, ids) {
    const question = JSON.stringify([text, ids]);
    if (!known.has(question)) known.set(question, T.demo().pass(text, ids));
    return known.get(question);
  }

  const name = (id) => E.shown(T.demo().target.tokenizer.tokens([id])[0]);

  /** What could stand at the place in focus; each may be put there. */
  function panel(state) {
    const { own, at, swap, pronoun, truth } = scene;
    const { row, says, p } = own[at];
    const ids = E.likeliest(row, 6, new Set(T.demo().target.forbidden)).map(({ token }) => token);
    const other = pronoun && at === pronoun.at ? pronoun.ids.filter((id) => !ids.includes(id)) : [];
    const chip = (id) =>
      T.html(
        "button",
        { type: "button", class: "quiet", id: `say-${id}`, lang: "fr", "aria-pressed": String(id === own[at].id), on: { click: () => go({ at, said: id === truth[at] ? "" : `${at}.${id}` }) } },
        `${T.demo().target.tokenizer.tokens([id])[0]} ${T.percent(Math.exp(row[id]))}`,
      );
    const label = T.say("writing.panel", { place: at + 1, token: says, p: T.percent(p) });
    return T.html(
      "section",
      { class: "offer choosing" },
      T.html("h2", {}, label),
      T.html("p", {}, T.say("writing.panel.why")),
      T.html("div", { class: "chips", role: "group", "aria-label": label }, [...ids, ...other].map(chip)),
      T.html("p", { id: "followed", role: "status" }, swap ? followed(state) : /^▁?il$/.test(says) && T.say("writing.try")),
      swap && T.html("button", { type: "button", id: "mend", on: { click: () => go({ said: "" }) } }, T.say("writing.mend")),
    );
  }

  /** What came of the word that was put there: the greatest change of a probability behind it. */
  function followed() {
    const { own, teacher, swap } = scene;
    const changes = { forced: name(swap.id), now: T.demo().target.tokenizer.decode(own.map(({ id }) => id).slice(0, -1)) };
    const same = teacher.slice(swap.at + 1).every(({ id }, i) => own[swap.at + 1 + i]?.id === id);
    if (!same) return T.say("writing.followed", changes);
    let most = { size: -1 };
    own.slice(swap.at + 1).forEach(({ row }, i) => {
      const before = teacher[swap.at + 1 + i].row;
      row.forEach((value, id) => {
        if (id === own[swap.at + 1 + i].id) return;
        const size = Math.exp(value) - Math.exp(before[id]);
        if (size > most.size) most = { size, token: name(id), before: T.percent(Math.exp(before[id])), after: T.percent(Math.exp(value)) };
      });
    });
    return T.say("writing.unmoved", { ...changes, ...most });
  }

  const LINE = 30,
    HEAD = 34;

  function lanesFigure() {
    const { own, teacher, swap } = scene;
    const count = Math.max(own.length, teacher.length);
    const width = T.widthOf(parts.lanes, 280, 760) - 38;
    const half = (width - 34) / 2;
    const height = HEAD + count * LINE + 4;
    const picture = T.svg("svg", { class: "picture lanes", id: "lanes", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": T.say("writing.lanes") });
    const sides = [
      { rows: teacher, x: 28, title: T.say("writing.teacher"), id: "teacher" },
      { rows: own, x: 34 + half, title: T.say("writing.own"), id: "own" },
    ];
    T.range(count).forEach((t) => picture.append(T.svg("text", { x: 20, y: HEAD + (t + 0.5) * LINE + 4, "text-anchor": "end", class: "tick" }, t + 1)));
    for (const side of sides) {
      picture.append(T.svg("text", { x: side.x, y: 16, class: "lane-title" }, T.fit(side.title, half, 13)));
      side.rows.forEach((each, t) => picture.append(said(each, t, side, half, swap && t > swap.at && each.reads !== scene.teacher[t]?.reads)));
    }
    const rows = () => T.range(count).map((t) => [String(t + 1), ...sides.flatMap(({ rows }) => (rows[t] ? [rows[t].reads, `${rows[t].says} ${T.percent(rows[t].p)}`] : ["", ""]))]);
    const names = sides.flatMap(({ title }) => [`${title}: ${T.say("writing.reads")}`, T.say("writing.says")]);
    return T.figure({ name: "lanes", title: T.say("writing.lanes"), caption: T.say("writing.lanes.caption"), picture, note: T.say("writing.lanes.note"), table: () => ({ head: [T.say("writing.step"), ...names], rows: rows() }) });
  }

  /** One step of one way: what is read, an arrow, what is said with its probability. */
  function said({ reads, says, p, forced }, t, { x, id }, half, led) {
    const y = HEAD + t * LINE;
    const middle = y + LINE / 2 + 4.5;
    const wide = half - 4;
    const narrow = wide < 200;
    const arrow = x + wide * (narrow ? 0.37 : 0.4);
    const number = narrow && (p > 0.995 || forced) ? "" : T.percent(p); // where there is no room, what is certain or put there goes unsaid
    const room = x + wide - arrow - (number ? 26 : 16) - T.textWidth(number, 11);
    const on = t === scene.at && id === "own";
    const act = () => go({ at: t });
    const classes = ["step", id, forced && "forced", led && "led", on && "on"].filter(Boolean).join(" ");
    const shown = [T.fit(reads, arrow - x - 10, 13), T.fit(says, room, 14)];
    return T.svg(
      "g",
      { class: classes, id: `${id}-${t}`, ...(id === "own" ? { role: "button", tabindex: "0", "aria-pressed": String(on), "aria-label": `${shown[0]} → ${shown[1]} ${T.percent(p)}`, on: { click: act, keydown: pressed(act) } } : {}) },
      T.svg("rect", { x, y: y + 2, width: wide, height: LINE - 4, rx: 7, class: "step-back" }),
      T.svg("text", { x: x + 8, y: middle, class: "step-reads" }, shown[0]),
      " ",
      T.svg("text", { x: arrow, y: middle, class: "quiet-text" }, "→"),
      " ",
      T.svg("text", { x: arrow + (narrow ? 15 : 18), y: middle, class: "step-says" }, shown[1]),
      " ",
      T.svg("text", { x: x + wide - 6, y: middle, "text-anchor": "end", class: "tick" }, number),
    );
  }

  const pressed = (act) => (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  };

  /** log p of the output as the sum of its tokens'. */
  function sum() {
    const logs = scene.own.map(({ id, row }) => row[id]);
    const terms = logs.flatMap((value, t) => (t ? ["+", "(", value, ")"] : ["(", value, ")"]));
    const bar = ["(", sub("y", ["t"]), "|", sub("y", ["<", "t"]), ",", "x", ")"];
    const total = logs.reduce((all, value) => all + value, 0);
    return T.mathLine(T.say("writing.equation"), "log", "p", "(", "y", "|", "x", ")", "=", T.math("munder", {}, T.math("mo", {}, "∑"), T.math("mi", {}, "t")), "log", "p", ...bar, "=", ...terms, "=", total);
  }

  /* The causal mask: the decoder's attention to what is written so far. */
  function maskFigure() {
    const layer = T.layersOf(scene.found, "decoder").at(-1);
    const matrix = T.matrix(scene.found, { kind: "decoder", layer, head: null, over: "layer" }, "tokens");
    const picture = T.weightsMap(parts.mask, matrix, 1, {
      row: Math.min(scene.at, matrix.T - 1),
      rowTitle: T.say("axis.decoder_input"),
      columnTitle: T.say("axis.decoder_input"),
      label: T.describe(matrix, T.say("writing.mask")),
      cell: 34,
      choose: (at) => go({ at }),
    });
    picture.id = "mask";
    return T.figure({ name: "mask", title: T.say("writing.mask"), caption: T.say("writing.mask.caption"), picture, note: T.legend(1), table: () => T.matrixTable(matrix) });
  }
})(window.Transduce);
