/* What does "it" mean? One adjective turns the attention of "it", and the French pronoun with it. */
"use strict";
(function (T) {
  const PAUSE = 2600;
  const LARGEST = 3; // weights in the equation
  let parts = null; // what is drawn once, and then told again
  let stop = null; // ends the playing

  T.stop = {
    keeps: { text: T.sentence("tired") },
    draw(area) {
      if (!parts || !area.contains(parts.output)) {
        const first = parts === null;
        begin(area);
        if (first && !T.still() && !location.hash) play();
      }
      show(T.state());
    },
  };

  function begin(area) {
    parts = { output: T.html("p", { class: "say", "aria-live": "polite", id: "output", lang: "fr" }) };
    parts.fan = T.fan(toggle);
    parts.box = T.html("input", { class: "typed", id: "typed", lang: "en", spellcheck: "false", on: { input: typed } });
    parts.box.setAttribute("aria-label", T.say("it.sentence"));
    parts.play = T.html("button", { type: "button", class: "primary", id: "play", on: { click: () => (stop ? halt() : play()) } });
    parts.hint = T.html("p", { class: "hint", id: "hint", role: "status" });
    const say = (adjective) =>
      T.html("button", { type: "button", class: "quiet", id: adjective, lang: "en", on: { click: () => (halt(), say_(adjective)) } }, adjective);
    const mend = T.html("button", { type: "button", class: "quiet", id: "mend", on: { click: () => T.go({ cut: "" }, true) } }, T.say("it.mend"));
    parts.mend = mend;
    parts.sum = T.html("div", {});
    T.fill(
      area,
      T.html("div", { class: "controls" }, parts.play, T.ADJECTIVES.map(say), mend),
      parts.box,
      parts.output,
      T.figure({
        name: "it",
        title: T.say("it.figure"),
        caption: headName(),
        picture: parts.fan.node,
        note: T.legend(1),
        table,
      }),
      parts.sum,
      parts.hint,
    );
  }

  const say_ = (adjective) => T.go({ text: T.sentence(adjective) }, true);
  const headName = () => T.say("it.head", { layer: T.stored.head.layer + 1, head: T.stored.head.head + 1 });

  function play() {
    let turn = T.ADJECTIVES.indexOf(T.state().text.split(" ").at(-1).replace(".", ""));
    stop = T.playing(() => say_(T.ADJECTIVES[(turn = (turn + 1) % 2)]), PAUSE);
    T.fill(parts.play, T.say("it.pause"));
  }

  function halt() {
    stop?.();
    stop = null;
    T.fill(parts.play, T.say("it.play"));
  }

  function typed() {
    halt();
    T.go({ text: parts.box.value }, true);
  }

  /** The words that are cut, by their places. */
  const cutOf = ({ cut }) => new Set(cut.split("_").filter(Boolean).map(Number));

  function toggle(place) {
    halt();
    const cut = cutOf(T.state());
    if (!cut.delete(place)) cut.add(place);
    T.go({ cut: [...cut].sort((a, b) => a - b).join("_") }, true);
  }

  /** The weights of one word of the sentence in the head that is shown, word by word. */
  function looked(text, cut) {
    const whole = T.explored(text);
    const words = T.axis(whole, "source", whole.source.tokens.length, "words");
    const query = T.pronounIn(words);
    const tokens = (places) => [...places].flatMap((place) => words[place]?.tokens ?? []);
    const layers = T.layersOf(whole, "encoder");
    const changes = query >= 0 && cut.size ? { cut: T.cutsBetween(layers, words[query].tokens, tokens(cut)) } : undefined;
    const found = T.explored(text, { changes });
    const layer = T.layersOf(found, "encoder")[T.stored.head.layer];
    const matrix = T.matrix(found, { kind: "encoder", layer, head: T.stored.head.head, over: "layer" }, "words");
    const row = Math.max(0, query);
    return { found, whole, words, query, weights: matrix.values.slice(row * matrix.S, (row + 1) * matrix.S) };
  }

  let shown = null;
  function show(state) {
    if (document.activeElement !== parts.box) parts.box.value = state.text;
    T.fill(parts.play, T.say(stop ? "it.pause" : "it.play"));
    const cut = cutOf(state);
    parts.mend.hidden = !cut.size;
    shown = looked(state.text, cut);
    const { found, whole, words, query, weights } = shown;
    T.fill(parts.output, T.marked(found.nbest[0].text));
    const texts = words.map((word) => word.text);
    const word = texts[Math.max(0, query)];
    parts.fan.show({ words: texts, query: Math.max(0, query), weights, cut, label: T.say("it.label", { word }) });
    T.fill(parts.sum, sum(texts, word, weights));
    T.fill(parts.hint, hint(shown, cut));
  }

  /** z = sum over j of alpha_j v_j, of which the largest are written out. */
  function sum(texts, word, weights) {
    const { sub } = T.equationParts;
    const heaviest = T.range(texts.length).sort((one, other) => weights[other] - weights[one]);
    const terms = heaviest.slice(0, LARGEST).flatMap((place) => ["+", weights[place], sub("v", [texts[place]])]);
    return T.mathLine(T.say("it.sum"), sub("z", [word]), "=", ...terms.slice(1), "+", "…");
  }

  function hint({ found, whole, words, query }, cut) {
    const [now, before] = [found, whole].map(({ nbest }) => nbest[0].text);
    if (cut.size) return now === before ? T.say("it.cut.same") : T.say("it.cut", { before });
    const strange = words.filter(({ text, tokens }) => tokens.length > 1 && /^\p{L}+$/u.test(text)).map(({ text }) => text);
    if (strange.length) return T.say("it.words", { words: strange.join(", ") });
    return T.say(query < 0 ? "it.none" : "it.click");
  }

  const table = () => ({
    head: [T.say("it.word"), T.say("matrix.weight")],
    rows: shown.words.map((word, i) => [word.text, T.number(shown.weights[i])]),
  });
})(window.Transduce);
