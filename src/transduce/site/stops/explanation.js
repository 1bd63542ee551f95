/* Does attention explain? Cuts inside the softmax, by word, layer and head; and what each of them did to the pronoun. */
"use strict";
(function (T) {
  const { fraction } = T.equationParts;
  const MOST_TRIED = 12;
  let parts = null; // what is drawn once, and then told again
  let scene = null; // what was computed last

  T.stop = {
    // cut: places of words, with - between; layer, head: where they are cut, from 0, empty: in all; tried: earlier cuts
    keeps: { text: T.sentence("tired"), cut: "", layer: "", head: "", tried: "", measured: "" },
    draw(area) {
      if (!parts || !area.contains(parts.output)) begin(area);
      scene = computed(T.state());
      show(T.state());
      measure(T.state());
    },
  };

  const settings = () => T.demo().model.settings;
  const go = (patch) => T.go(patch, true);

  function begin(area) {
    parts = { output: T.html("p", { class: "say", "aria-live": "polite", id: "output", lang: "fr" }) };
    parts.fan = T.fan((place) => go(trying({ cut: toggled(T.state().cut, place) })));
    parts.box = T.html("input", { class: "typed", id: "typed", lang: "en", spellcheck: "false", "aria-label": T.say("explanation.sentence") });
    parts.box.addEventListener("input", () => parts.box.value.trim() && go(fresh(parts.box.value)));
    parts.controls = T.html("div", { class: "controls" });
    for (const name of ["look", "tried", "heads"]) parts[name] = T.html("div", { class: "stack" });
    T.fill(area, parts.box, parts.output, parts.controls, parts.look, parts.tried, parts.heads);
  }

  /** Another sentence, nothing cut in it yet. */
  const fresh = (text) => ({ text, cut: "", layer: "", head: "", tried: "", measured: "" });

  const placesOf = (cut) => cut.split("-").filter(Boolean).map(Number);
  function toggled(cut, place) {
    const places = new Set(placesOf(cut));
    if (!places.delete(place)) places.add(place);
    return [...places].sort((a, b) => a - b).join("-");
  }

  /** A cut as the link keeps it: "1-12.3.0"; everywhere: "1-12..". */
  const spelled = ({ cut, layer, head }) => [cut, layer, head].join(".");
  const read = (text) => {
    const [cut, layer, head] = text.split(".");
    return { cut, layer, head };
  };
  const triedOf = ({ tried }) => tried.split("_").filter(Boolean);

  /** The patch of a new cut, which joins what was tried. */
  function trying(patch) {
    const state = { ...T.state(), ...patch };
    const all = triedOf(state);
    const mine = spelled(state);
    if (state.cut && !all.includes(mine)) all.push(mine);
    return { ...patch, tried: all.slice(-MOST_TRIED).join("_") };
  }

  /** What the sentence is, its pronoun on both sides, and what the cut of the state does. */
  function computed(state) {
    const whole = T.explored(state.text);
    const words = T.axis(whole, "source", whole.source.tokens.length, "words");
    const query = T.pronounIn(words);
    const pronoun = query < 0 ? null : T.pronounOf(whole);
    const at = { text: state.text, whole, words, query, pronoun, layers: T.layersOf(whole, "encoder") };
    const changes = changesOf(at, state);
    return { ...at, changes, found: changes ? T.explored(state.text, { changes }) : whole };
  }

  /** A cut of the state as the engine takes it; undefined where nothing is cut. */
  function changesOf({ words, query, layers }, { cut, layer, head }) {
    const keys = placesOf(cut).flatMap((place) => words[place]?.tokens ?? []);
    if (query < 0 || !keys.length) return undefined;
    const within = layer === "" ? layers : [layers[T.place(layer, layers.length)]];
    const all = T.cutsBetween(within, words[query].tokens, keys);
    return { cut: head === "" ? all : all.map((each) => ({ ...each, head: T.place(head, settings().heads) })) };
  }

  function show(state) {
    if (document.activeElement !== parts.box) parts.box.value = state.text;
    T.fill(parts.output, T.marked(scene.found.nbest[0].text));
    T.fill(parts.controls, choosers(state));
    if (scene.query < 0 || !scene.pronoun) {
      T.fill(parts.look, T.html("p", { class: "hint", id: "none" }, T.say("explanation.none")));
      return T.fill(parts.tried), T.fill(parts.heads);
    }
    look(state);
    T.fill(parts.tried, triedFigure(state));
    T.fill(parts.heads, headsFigures(state));
  }

  const layerName = (layer) => T.say("explanation.layer", { number: Number(layer) + 1 });
  const headName = (head) => T.say("explanation.head", { number: Number(head) + 1 });

  function choosers(state) {
    const layers = [["", T.say("explanation.layer.all")], ...T.range(settings().encoder_layers).map((i) => [i, layerName(i)])];
    const heads = [["", T.say("explanation.head.all")], ...T.range(settings().heads).map((i) => [i, headName(i)])];
    const quiet = (id, text, act, more = {}) => T.html("button", { type: "button", class: "quiet", id, ...more, on: { click: act } }, text);
    return [
      T.ADJECTIVES.map((adjective) => quiet(adjective, adjective, () => go(fresh(T.sentence(adjective))), { lang: "en" })),
      T.select("cut-layer", T.say("explanation.in"), layers, state.layer, (layer) => go(trying({ layer }))),
      T.select("cut-head", T.say("explanation.and"), heads, state.head, (head) => go(trying({ head }))),
      state.cut && quiet("mend", T.say("explanation.mend"), () => go({ cut: "", layer: "", head: "" })),
    ];
  }

  /** The head that is looked at: the one that is cut, else that of the first page. */
  const headShown = ({ layer, head }) => ({
    layer: layer === "" ? T.stored.head.layer : T.place(layer, settings().encoder_layers),
    head: head === "" ? T.stored.head.head : T.place(head, settings().heads),
  });

  /** The weights of the pronoun in a head, word by word. */
  function weightsOf(found, { layer, head }) {
    const matrix = T.matrix(found, { kind: "encoder", layer: T.layersOf(found, "encoder")[layer], head, over: "layer" }, "words");
    return matrix.values.slice(scene.query * matrix.S, (scene.query + 1) * matrix.S);
  }

  function look(state) {
    const at = headShown(state);
    const texts = scene.words.map((word) => word.text);
    const word = texts[scene.query];
    const weights = weightsOf(scene.found, at);
    const table = () => ({
      head: [T.say("explanation.word"), T.say("matrix.weight")],
      rows: texts.map((text, i) => [text, T.number(weights[i])]),
    });
    const hint = T.html("p", { class: "hint", role: "status", id: "hint" }, state.cut ? told(state) : T.say("explanation.click", { word }));
    const caption = T.say("explanation.head.shown", { layer: at.layer + 1, head: at.head + 1 });
    T.fill(
      parts.look,
      T.figure({ name: "attention", title: T.say("explanation.look", { word }), caption, picture: parts.fan.node, note: T.legend(1), table }),
      hint,
    );
    parts.fan.show({ words: texts, query: scene.query, weights, cut: new Set(placesOf(state.cut)), label: T.say("explanation.label", { word }) });
  }

  /** What the cut did, in a sentence. */
  function told(state) {
    const own = scene.pronoun.own;
    const now = outcome(state);
    const word = (which) => scene.pronoun.words[which];
    return T.say(now.own === own ? "explanation.same" : "explanation.flipped", { cut: named(state), before: word(own), now: word(now.own) });
  }

  /** log p of both pronouns after a cut, and the likelier of both. */
  function outcome(cut) {
    const odds = T.pronounOdds(scene.text, scene.pronoun, changesOf(scene, cut));
    return { odds, own: odds[0] >= odds[1] ? 0 : 1 };
  }

  /** "animal, tired · layer 4, head 1". */
  function named({ cut, layer, head }) {
    const words = placesOf(cut).map((place) => scene.words[place]?.text ?? "?");
    if (!words.length) return T.say("explanation.nothing");
    const where = [layer !== "" && layerName(layer), head !== "" && headName(head)];
    const named = where.filter(Boolean);
    return `${words.join(", ")} · ${named.length ? named.join(", ") : T.say("explanation.everywhere")}`;
  }

  /* What was tried: a line for each cut, both pronouns on a scale of log p. */
  const ROW = 50,
    TOP = 26,
    RADIUS = 6;

  function triedFigure(state) {
    const all = [".."].concat(triedOf(state)).map((text) => ({ text, ...read(text) }));
    const rows = all.map((each) => ({ ...each, name: named(each), ...outcome(each) }));
    const [masculine, feminine] = scene.pronoun.words;
    const table = () => ({
      head: [T.say("explanation.cut"), T.say("explanation.pronoun"), `log p(${masculine})`, `log p(${feminine})`],
      rows: rows.map(({ name, own, odds }) => [name, scene.pronoun.words[own], ...odds.map(T.number)]),
    });
    const now = rows.find(({ text }) => text === spelled(state)) ?? rows[0];
    return [
      T.figure({
        name: "tried",
        title: T.say("explanation.tried"),
        caption: T.say("explanation.tried.caption"),
        picture: scale(rows, spelled(state)),
        note: T.pronounKey(scene.pronoun.words),
        table,
      }),
      difference(now),
    ];
  }

  function scale(rows, current) {
    const width = T.widthOf(parts.tried, 260, 860) - 38;
    const least = Math.min(-1, ...rows.flatMap(({ odds }) => odds)) * 1.05;
    const x = d3.scaleLinear([least, 0], [14, width - 74]);
    const height = TOP + ROW * rows.length;
    const label = T.say("explanation.tried.label", { count: rows.length });
    const picture = T.svg("svg", { class: "picture tried", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label });
    x.ticks(Math.max(3, Math.floor(width / 110))).forEach((tick) =>
      picture.append(
        T.svg("line", { x1: x(tick), x2: x(tick), y1: TOP - 8, y2: height, class: "grid" }),
        T.svg("text", { x: x(tick), y: 12, "text-anchor": "middle", class: "tick" }, T.short(tick)),
      ),
    );
    picture.append(T.svg("text", { x: width, y: 12, "text-anchor": "end", class: "tick" }, "log p"));
    rows.forEach((row, i) => picture.append(attempt(row, { x, y: TOP + i * ROW, width, on: row.text === current || (!i && current.startsWith(".")), i })));
    return picture;
  }

  function attempt({ cut, layer, head, name, odds, own }, { x, y, width, on, i }) {
    const act = () => go({ cut, layer, head });
    const line = y + 33;
    const dot = (value, which) => T.svg("circle", { cx: x(value), cy: line, r: RADIUS + (which === own ? 2 : 0), class: which === own ? "dot own" : "dot", style: { fill: T.headColour(which) } });
    const shown = T.fit(name, width - 90, 13);
    const whole = shown === name ? "" : `${name}, `;
    const spoken = `${shown} ${scene.pronoun.words[own]}, ${whole}${odds.map((value, which) => `log p(${scene.pronoun.words[which]}) ${T.number(value)}`).join(", ")}`;
    return T.svg(
      "g",
      { class: on ? "attempt on" : "attempt", id: `tried-${i}`, role: "button", tabindex: "0", "aria-pressed": String(on), "aria-label": spoken, on: { click: act, keydown: pressed(act) } },
      T.svg("rect", { x: 0.5, y: y + 1, width: width - 1, height: ROW - 4, rx: 7, class: "attempt-back" }),
      T.svg("text", { x: 12, y: y + 18, class: "attempt-name" }, shown),
      " ",
      T.svg("line", { x1: x(odds[0]), x2: x(odds[1]), y1: line, y2: line, class: "between" }),
      [1 - own, own].map((which) => dot(odds[which], which)),
      T.svg("text", { x: width - 12, y: y + 32, "text-anchor": "end", class: "attempt-word" }, scene.pronoun.words[own]),
    );
  }

  const pressed = (act) => (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  };

  /** ln p(il) / p(elle) in the numbers of the cut that is shown. */
  function difference({ odds }) {
    const [masculine, feminine] = scene.pronoun.words;
    const p = (word) => ["p", "(", word, ")"];
    const ratio = fraction(p(masculine), p(feminine));
    return T.mathLine(T.say("explanation.equation"), "log", ratio, "=", odds[0], "−", "(", odds[1], ")", "=", odds[0] - odds[1]);
  }

  /* All heads: what the pronoun looks at in each, and what a cut in that head alone changes. */
  const CELL = 46;
  const effects = new Map(); // (text, cut) -> the change of log p(own) - log p(other) in each head

  /** The words that all heads are asked about: those that are cut, else the one that the head shown looks at most. */
  function asked(state) {
    const cut = placesOf(state.cut);
    if (cut.length) return cut;
    const weights = weightsOf(scene.whole, T.stored.head);
    return [weights.indexOf(T.largest(weights))];
  }

  const askedKey = (state) => `${state.text}\n${asked(state).join("-")}`;

  function headsFigures(state) {
    const words = asked(state);
    const names = words.map((place) => scene.words[place].text).join(", ");
    const { encoder_layers, heads } = settings();
    const all = T.range(encoder_layers * heads).map((i) => ({ layer: Math.floor(i / heads), head: i % heads }));
    const weights = Float32Array.from(all, (at) => words.reduce((sum, place) => sum + weightsOf(scene.whole, at)[place], 0));
    const effect = effects.get(askedKey(state));
    const word = scene.words[scene.query].text;
    const first = grid({ name: "weights", title: T.say("explanation.weights", { word, words: names }), caption: T.say("explanation.weights.caption"), values: weights, signed: false, most: 1, state });
    const second = effect
      ? grid({ name: "effects", title: T.say("explanation.effects"), caption: T.say("explanation.effects.caption", { margin: T.short(margin(undefined)) }), values: effect, signed: true, most: Math.abs(margin(undefined)), state })
      : offer(state);
    return T.html("div", { class: "pair" }, first, second);
  }

  function offer(state) {
    const wait = state.measured === "1";
    return T.html(
      "section",
      { class: "offer", "aria-busy": String(wait) },
      T.html("h2", {}, T.say("explanation.effects")),
      T.html("p", {}, T.say("explanation.guess")),
      T.html("button", { type: "button", id: "measure", disabled: wait, on: { click: () => go({ measured: "1" }) } }, T.say(wait ? "explanation.measuring" : "explanation.measure")),
    );
  }

  /** A head a cell; a click cuts in that head alone. */
  function grid({ name, title, caption, values, signed, most, state }) {
    const { encoder_layers, heads } = settings();
    const rows = T.range(encoder_layers).map(layerName);
    const columns = T.range(heads).map(headName);
    const marked_ = state.layer === "" ? -1 : T.place(state.layer, encoder_layers);
    const picture = T.heatMap(parts.heads, {
      rows,
      columns,
      values,
      cell: CELL,
      row: marked_,
      colour: (value) => (signed ? T.signedBytes(value / most) : T.weightBytes(value / most)),
      print: signed ? (value) => T.short(Math.round(value * 10) / 10) : T.cellNumber,
      label: title,
      tell: (r, c) => [`${rows[r]}, ${columns[c]}`, T.number(values[r * heads + c])],
      choose: (layer, head) => go(trying({ layer, head, cut: state.cut || asked(state).join("-") })),
    });
    picture.id = name;
    const table = () => ({ head: ["", ...columns], rows: rows.map((row, r) => [row, ...columns.map((_, c) => T.number(values[r * heads + c]))]) });
    return T.figure({ name, title, caption, picture, note: T.legend(most, { signed }), table });
  }

  /** How much likelier the pronoun that the model writes is than the other: log p of it less log p of the other. */
  function margin(changes) {
    const odds = T.pronounOdds(scene.text, scene.pronoun, changes);
    return odds[scene.pronoun.own] - odds[1 - scene.pronoun.own];
  }

  /** One head after the other, so that the page stays awake; then the figure is drawn anew. */
  async function measure(state) {
    if (state.measured !== "1" || scene.query < 0 || !scene.pronoun || effects.has(askedKey(state))) return;
    const { encoder_layers, heads } = settings();
    const key = askedKey(state);
    const cut = asked(state).join("-");
    const before = margin(undefined);
    const found = new Float32Array(encoder_layers * heads);
    for (let i = 0; i < found.length; ++i) {
      await new Promise((resolve) => setTimeout(resolve));
      if (T.state().measured !== "1" || askedKey(T.state()) !== key) return;
      const changes = changesOf(scene, { cut, layer: String(Math.floor(i / heads)), head: String(i % heads) });
      found[i] = margin(changes) - before;
    }
    effects.set(key, found);
    T.fill(parts.heads, headsFigures(T.state()));
  }
})(window.Transduce);
