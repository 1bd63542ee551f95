/* A language model writes: a sample that goes on from a text, or an acrostic, shown while it is written. */
"use strict";
(function (T) {
  let going = null, // what stops the stream that is read
    last = null; // {written, seed}

  const NUMBERS = [
    ["temperature", { min: "0.01", max: "100", step: "any" }],
    ["top_k", { min: "1", step: "1" }],
    ["top_p", { min: "0.001", max: "1", step: "any" }],
    ["max_new", { min: "0", step: "1" }],
    ["seed", { min: "0", step: "1" }],
  ];

  const value = (id) => document.getElementById(id)?.value.trim() ?? "";

  /** What belongs below the box of a language model; null for other models, and where nothing can be written. */
  T.writingSettings = (model) => {
    if (!model.generates || T.offline) return null;
    const state = T.state();
    const ways = ["", "sample", ...(model.generates.lines ? ["acrostic"] : [])];
    const how = ways.includes(state.how) ? state.how : "";
    const numbers = NUMBERS.map(([name, attributes]) =>
      T.html(
        "label",
        {},
        T.say(`writing.${name}`),
        T.html("input", { type: "number", id: `writing-${name}`, value: state[name], ...attributes }),
      ),
    );
    const acrostic = T.html(
      "label",
      { class: "grow" },
      T.say("writing.acrostic"),
      T.html("input", { type: "text", id: "writing-acrostic", maxlength: "64", spellcheck: "false", value: state.acrostic }),
    );
    const drawn = T.html("div", { class: "controls writing-settings" }, acrostic, numbers);
    const area = T.html(
      "div",
      {},
      T.html(
        "div",
        { class: "controls" },
        T.select("writing-how", T.say("writing.how"), ways.map((each) => [each, T.say(`writing.how.${each || "search"}`)]), how, (way) => set(way)),
      ),
      drawn,
    );
    function set(way) {
      drawn.hidden = !way;
      acrostic.hidden = way !== "acrostic";
      const box = document.getElementById("sentence");
      if (box) box.hidden = way === "acrostic"; // the acrostic says how the lines begin
    }
    set(how);
    if (how === "acrostic") queueMicrotask(() => set(how)); // once the box is there
    return area;
  };

  /** Where the text appears while it is written. */
  T.writingPlace = (model) =>
    model.generates && !T.offline
      ? T.html("div", { id: "writing", "aria-busy": "false" }, last && T.state().written === last.written ? seedUsed() : null)
      : null;

  /** How to write the same text again. */
  const seedUsed = () => T.html("p", { class: "hint", id: "written-seed" }, T.say("writing.seed.used", { seed: last.seed }));

  /** Writes what is asked for below the box; false if the usual search should. */
  T.writes = (model, text) => {
    const how = model.generates && !T.offline ? value("writing-how") : "";
    if (!how) return false;
    const seed = value("writing-seed");
    const asked = { how, text: how === "acrostic" ? "" : text, acrostic: how === "acrostic" ? value("writing-acrostic") : "" };
    for (const [name] of NUMBERS) asked[name] = value(`writing-${name}`);
    if (how === "acrostic" && !asked.acrostic) told(T.say("writing.acrostic.empty"), true);
    else stream(model, asked, seed === "" ? crypto.getRandomValues(new Uint32Array(1))[0] : Number(seed));
    return true;
  };

  function told(text, wrong = false) {
    const place = document.getElementById("writing");
    if (place) T.fill(place, T.html("p", { class: wrong ? "hint wrong" : "hint", role: wrong ? "alert" : "status" }, text));
  }

  const body = (model, { text, acrostic, ...rest }, seed) => {
    const numbers = NUMBERS.map(([name]) => [name, rest[name]]).filter(([name, each]) => each !== "" && name !== "seed");
    return { model: model.name, text, acrostic, seed, ...Object.fromEntries(numbers.map(([name, each]) => [name, Number(each)])) };
  };

  async function stream(model, asked, seed) {
    going?.abort();
    const mine = (going = new AbortController());
    const place = document.getElementById("writing");
    const line = T.html("p", { class: "writing", lang: model.target || false, dir: "auto" });
    place.setAttribute("aria-busy", "true");
    T.fill(
      place,
      line,
      T.html("button", { type: "button", class: "quiet", id: "stop-writing", on: { click: () => mine.abort() } }, T.say("writing.stop")),
    );
    try {
      for await (const [name, data] of events(await T.post("/v1/generate", body(model, asked, seed), mine.signal))) {
        if (name === "error") throw new Error(data.error);
        if (name === "token") line.append(data.delta);
        else if (going === mine) finished(place, asked, seed, data.text);
      }
    } catch (error) {
      if (error.name === "AbortError" || mine.signal.aborted) told(T.say("writing.stopped"));
      else told(error.message, true);
    }
    if (going === mine) place.setAttribute("aria-busy", "false");
  }

  function finished(place, asked, seed, written) {
    last = { written, seed };
    T.fill(place, seedUsed());
    if (!written.trim()) return told(T.say("writing.nothing"), true);
    T.go({ ...asked, written, sentence: "", row: "", node: "", best: "", beam: "" });
  }

  /** Server-sent events as they come: [name, data]. */
  async function* events(response) {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "";
    for (;;) {
      const { value: part, done } = await reader.read();
      if (done) return;
      const blocks = (waiting + part).split("\n\n");
      waiting = blocks.pop();
      for (const block of blocks) {
        const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(block) || [];
        if (name) yield [name, JSON.parse(data)];
      }
    }
  }

  /** What was written, where it is too long to be looked into; null where nothing was. */
  T.unexplored = (scene) =>
    scene.state.written && [
      T.html("h2", {}, T.say("prediction.continued")),
      T.html("p", { class: "output", id: "output" }, T.verses(scene) || scene.state.written),
    ];

  /** A text with line marks, line by line; what an acrostic gave is marked. Null for a text of one line. */
  T.verses = ({ info, exploration, state }) => {
    const mark = info.generates?.lines,
      text = exploration?.target.text ?? state.written;
    if (!mark || !text.includes(mark)) return null;
    const given = state.written === text ? T.graphemes(state.acrostic) : [];
    return T.html(
      "span",
      { class: "verses", lang: info.target || false, dir: "auto" },
      text.split(mark).map((line, i) => {
        const first = given[i] && line.startsWith(given[i]) ? given[i] : "";
        return T.html("span", { class: "verse" }, first ? T.html("mark", {}, first) : null, line.slice(first.length), " ");
      }),
    );
  };
})(window.Transduce);
