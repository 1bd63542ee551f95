/* Yours: a model file of the reader's own, opened and run in the page. */
"use strict";
(function (T) {
  const E = T.engine;
  const EXAMPLE = "The animal didn't cross the street because it was too tired.";
  let own = null; // {name, size, explorer, file, answers}
  let problem = ""; // why the last file was not opened
  let parts = null; // what is drawn once; the rest is told again

  /* What the explorer's view of attention asks of whoever answers it. */
  T.offline = true;
  T.answers = () => own !== null;
  T.ask = {
    predict: async (_, text) => explored(text),
    heads: async (_, text, tokens) => own.explorer.importance(text, tokens),
  };

  function explored(text, changes) {
    const question = JSON.stringify([text, changes]);
    if (!own.answers.has(question)) own.answers.set(question, own.explorer.explore(text, { changes }));
    return own.answers.get(question);
  }

  T.stop = {
    keeps: {},
    async draw(area) {
      if (!parts || !area.contains(parts.zone)) begin(area);
      await show(T.state());
    },
  };

  function begin(area) {
    parts = {
      file: T.html("input", { type: "file", id: "file", accept: ".safetensors", class: "unseen-file", on: { change: (event) => opened(event.target.files[0]) } }),
      told: T.html("div", { class: "stack", "aria-live": "polite", id: "told" }),
      box: T.html("input", { class: "typed", id: "typed", spellcheck: "false", "aria-label": T.say("yours.text"), placeholder: T.say("yours.text.hint"), on: { input: () => T.go({ text: parts.box.value, row: "" }, true) } }),
      output: T.html("p", { class: "say", id: "output", "aria-live": "polite" }),
      view: T.html("div", { class: "stack", id: "view" }),
    };
    parts.zone = T.html(
      "div",
      { class: "drop-zone", id: "drop" },
      T.html("p", { class: "drop-say" }, T.say("yours.drop")),
      T.html("label", { class: "drop-button" }, parts.file, T.html("span", {}, T.say("yours.choose"))),
      T.html("button", { type: "button", class: "quiet", id: "try", on: { click: () => tried() } }, T.say("yours.try")),
      T.html("p", { class: "note" }, T.say("yours.stays")),
    );
    for (const name of ["dragenter", "dragover"]) area.addEventListener(name, (event) => over(event, true));
    area.addEventListener("dragleave", (event) => over(event, false));
    area.addEventListener("drop", (event) => (over(event, false), opened(event.dataTransfer.files[0])));
    parts.running = T.html("div", { class: "stack", id: "running", hidden: true }, parts.box, parts.output, parts.view);
    T.fill(area, parts.zone, parts.told, parts.running);
  }

  function over(event, inside) {
    event.preventDefault();
    parts.zone.classList.toggle("over", inside);
  }

  /** Opens a file that was dropped or chosen. */
  async function opened(file) {
    if (!file) return;
    parts.file.value = "";
    T.fill(parts.told, T.html("p", { class: "hint" }, T.say("yours.opening", { name: file.name })));
    await read(file.name, await file.arrayBuffer());
  }

  /** The model of these pages, as if it had been dropped. */
  async function tried() {
    const bytes = Uint8Array.from(atob(T.stored.live.demo), (letter) => letter.charCodeAt(0));
    await read("model.safetensors", bytes.buffer, EXAMPLE);
  }

  async function read(name, buffer, text = "") {
    try {
      own = { name, size: buffer.byteLength, explorer: new E.Explorer(buffer, name), file: E.readModelFile(buffer), answers: new Map() };
      problem = "";
    } catch (error) {
      own = null;
      problem = T.say(error instanceof E.Unsupported ? "yours.refused" : "yours.broken", { name, reason: error.message });
    }
    const fresh = { text, layer: "mean", head: "mean", kind: "", row: "", worth: "" };
    T.go(own && !T.state().text ? fresh : { ...fresh, text: T.state().text || text }, true);
  }

  async function show(state) {
    parts.running.hidden = !own;
    if (problem) return T.fill(parts.told, T.html("p", { class: "error", role: "alert", id: "problem" }, problem));
    T.fill(parts.told, own && facts());
    if (!own) return;
    if (document.activeElement !== parts.box) parts.box.value = state.text;
    if (!state.text.trim()) {
      T.fill(parts.output);
      return T.fill(parts.view, T.html("p", { class: "hint" }, T.say("yours.type")));
    }
    await looked(state);
  }

  /** The output, and the explorer's own view of attention. */
  async function looked(state) {
    const info = { layers: explored(state.text).attention.map(({ name, kind }) => ({ name, kind, cuts: true })) };
    const exploration = explored(state.text, T.changesOf(state, info));
    const [best] = exploration.nbest;
    T.fill(parts.output, best.text || T.say("yours.nothing"));
    await T.views.attention.draw(parts.view, {
      exploration,
      state,
      info,
      model: own.name,
      text: state.text,
      tokens: best.tokens,
      shows: { importance: true },
      current: () => true,
    });
  }

  /** What the file says of itself. */
  function facts() {
    const { config, weights } = own.file;
    const model = config.model ?? {};
    const numbers = new Set(Object.values(weights));
    const parameters = [...numbers].reduce((sum, { shape }) => sum + shape.reduce((product, size) => product * size, 1), 0);
    const rows = [
      ["task", config.task?.kind ?? "translation"],
      ["kind", model.kind],
      ["layers", model.layers ?? `${model.encoder_layers} + ${model.decoder_layers}`],
      ["heads", model.heads],
      ["width", model.d_model],
      ["parameters", T.whole(parameters)],
      ["bytes", T.say("yours.megabytes", { size: (own.size / 1e6).toFixed(2) })],
    ];
    return T.html(
      "section",
      { class: "facts", id: "facts", "aria-label": own.name },
      T.html("h2", {}, own.name),
      T.html("dl", {}, rows.map(([key, value]) => T.html("div", {}, T.html("dt", {}, T.say(`yours.${key}`)), T.html("dd", { id: `fact-${key}` }, value)))),
    );
  }
})(window.Transduce);
