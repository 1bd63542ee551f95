/* Beyond text: what attention looks like in other tasks, recorded; and a memory that runs in the page. */
"use strict";
(function (T) {
  const E = T.engine;
  const TASKS = ["speech", "labels", "spans", "trees", "graph", "memory"];
  const BITS = 8;
  const MOST = 20; // vectors
  T.offline = true; // what is recorded asks no server

  T.stop = {
    keeps: { task: "speech", example: "0", bits: "", unit: "tokens" },
    async draw(area) {
      const state = T.state();
      const task = TASKS.includes(state.task) ? state.task : TASKS[0];
      const found = await recorded(task);
      const view = T.html("div", { class: "stack", id: "view" });
      const now = T.html("div", { class: "stack" });
      T.fill(
        area,
        T.choice(
          T.say("beyond-text.tasks"),
          task,
          TASKS.map((each) => [each, T.say(`beyond-text.${each}`)]),
          (to) => T.go({ task: to, example: "0", row: "", query: "", layer: "mean", head: "mean" }),
        ),
        T.html("p", { class: "seen", id: "what" }, T.say(`beyond-text.${task}.what`)),
        now,
        view,
        record(found, task),
      );
      if (found.model) return machine(now, view, found, state);
      return example(now, view, found, state);
    },
  };

  const loaded = new Map();
  /** The recording of a task, from a script beside this one: pages that are opened as files may read no other way. */
  function recorded(task) {
    if (!loaded.has(task)) {
      const script = T.html("script", { src: `../assets/recordings/${task}.js` });
      const come = new Promise((done, fail) => {
        script.addEventListener("load", () => done(opened(T.recordings[task])));
        script.addEventListener("error", () => fail(new Error(T.say("beyond-text.missing"))));
      });
      loaded.set(task, come);
      document.head.append(script);
    }
    return loaded.get(task);
  }

  /** With the features of sounds as the explorer's pictures take them. */
  function opened(found) {
    for (const each of found.examples ?? []) if (each.recording) each.recording.features = spread(each.recording.features);
    return found;
  }

  /** A byte a number -> fp32. */
  function spread({ shape, low, high, bytes }) {
    const steps = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
    return packed(shape, Float32Array.from(steps, (step) => low + (step / 255) * (high - low)));
  }

  /** A matrix as a server sends it: little-endian fp32 in base64. */
  function packed(shape, values) {
    const bytes = new Uint8Array(Float32Array.from(values).buffer);
    return { shape, weights: btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")) };
  }

  /** One of the recorded examples, in the explorer's own picture of the task. */
  function example(now, view, { examples }, state) {
    const place = T.place(state.example, examples.length);
    const exploration = examples[place];
    const names = examples.map((each, i) => [String(i), nameOf(each)]);
    const choose = (to) => T.go({ example: to, row: "", query: "", layer: "mean", head: "mean" });
    T.fill(now, T.html("div", { class: "controls" }, T.select("example", T.say("beyond-text.examples"), names, String(place), choose)));
    const scene = { exploration, state, model: "", info: { layers: [] }, shows: {}, current: () => true };
    if (exploration.recording) return T.fill(view, T.heardFigure(view, { scene, choice: T.chosen(exploration), rollout: null }));
    const picture = T.html("div", { class: "stack" });
    const attention = T.html("div", { class: "stack" });
    T.fill(view, picture, attention);
    T.drawings[exploration.drawing.kind](picture, scene, exploration.drawing);
    return exploration.attention.length ? T.views.attention.draw(attention, scene) : null;
  }

  /** What an example is called: the question, the sentence, what was heard, the node. */
  function nameOf({ text, drawing, nbest }) {
    if (!drawing) return nbest[0].text;
    if (drawing.kind === "neighborhood_drawing") return T.say("beyond-text.page", { page: text });
    return text.split("\t")[0];
  }

  function record({ record: said }, task) {
    const value = T.say(`beyond-text.metric.${said.metric}`, { value: said.value });
    return T.html(
      "p",
      { class: "note", id: "record" },
      T.say("beyond-text.record", { updates: T.whole(said.updates), parameters: T.whole(said.parameters), value }),
      " ",
      said.url ? [T.html("a", { href: said.url }, said.data), `, ${said.licence}. `] : `${T.say("beyond-text.generated")} `,
      T.say(task === "memory" ? "beyond-text.live" : "beyond-text.stored"),
    );
  }

  /* A Neural Turing Machine (Graves et al. 2014), as layers/external_memory.py computes it. */
  const sigmoid = (x) => 1 / (1 + Math.exp(-x));
  const softplus = (x) => (x > 20 ? x : Math.log1p(Math.exp(x)));
  const TINY_LENGTH = 1e-8,
    TINY_WEIGHT = 1e-12;

  function softmax(values) {
    const most = Math.max(...values);
    const powers = values.map((value) => Math.exp(value - most));
    const total = powers.reduce((sum, each) => sum + each, 0);
    return powers.map((each) => each / total);
  }

  /** matrix (rows, columns) times x, plus bias. */
  function times({ shape, data }, x, bias) {
    const [rows, columns] = shape;
    return T.range(rows).map((row) => {
      let sum = bias ? bias.data[row] : 0;
      for (let column = 0; column < columns; ++column) sum += data[row * columns + column] * x[column];
      return sum;
    });
  }

  function unit(x) {
    const length = Math.sqrt(x.reduce((sum, value) => sum + value * value, 0) + TINY_LENGTH);
    return x.map((value) => value / length);
  }
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);

  class Machine {
    constructor({ config, weights }) {
      const { hidden, slots, width, read_heads: read = 1, write_heads: write = 1, shift = 1, constant = 1e-6, controller = "lstm" } = config.model;
      if (controller !== "lstm") throw new E.Unsupported(`model.controller = "${controller}"`);
      Object.assign(this, { weights, hidden, slots, width, read, write, shift, constant });
    }

    /** {outputs, added, read, weighting, memory} of each step. inputs: (T, F). */
    trace(inputs) {
      const { weights } = this;
      const rows = (name, count) => T.range(count).map((row) => Array.from(weights[name].data.subarray(row * (weights[name].data.length / count), (row + 1) * (weights[name].data.length / count))));
      let state = {
        hidden: Array(this.hidden).fill(0),
        cell: Array(this.hidden).fill(0),
        memory: T.range(this.slots).map(() => Array(this.width).fill(this.constant)),
        weighting: rows("memory.weighting", this.read + this.write).map(softmax),
        read: rows("memory.read", this.read),
      };
      return inputs.map((x) => (state = this.step(x, state)));
    }

    step(x, before) {
      const { weights } = this;
      const inner = times(weights.recurrent, [...before.read.flat(), ...before.hidden]);
      const gates = times(weights["input.weight"], x, weights["input.bias"]).map((value, i) => value + inner[i]);
      const part = (which) => gates.slice(which * this.hidden, (which + 1) * this.hidden);
      const [enter, keep, show] = [0, 1, 2].map((which) => part(which).map(sigmoid));
      const candidate = part(3).map(Math.tanh);
      const cell = before.cell.map((value, i) => keep[i] * value + enter[i] * candidate[i]);
      const hidden = cell.map((value, i) => show[i] * Math.tanh(value));
      const after = this.heads(times(weights["memory.heads.weight"], hidden, weights["memory.heads.bias"]), before);
      const logits = times(weights["output.weight"], [...hidden, ...after.read.flat()], weights["output.bias"]);
      return { ...after, hidden, cell, outputs: logits.map(sigmoid) };
    }

    /** All heads address the memory (equations 5 to 9), read from it, and then write to it (2 to 4). */
    heads(said, before) {
      const heads = this.read + this.write;
      const take = (count) => said.splice(0, count);
      const keys = T.range(heads).map(() => take(this.width));
      const [strengths, exponents] = [take(heads).map(softplus), take(heads).map((value) => softplus(value) + 1)];
      const gates = take(heads).map(sigmoid);
      const erased = T.range(this.write).map(() => take(this.width).map(sigmoid));
      const shifts = T.range(heads).map(() => softmax(take(2 * this.shift + 1)));
      const added = T.range(this.write).map(() => take(this.width).map(Math.tanh));
      const units = before.memory.map(unit);
      const weighting = T.range(heads).map((head) =>
        this.addressed(unit(keys[head]), units, before.weighting[head], { strength: strengths[head], exponent: exponents[head], gate: gates[head], shift: shifts[head] }),
      );
      const read = T.range(this.read).map((head) => T.range(this.width).map((m) => before.memory.reduce((sum, slot, n) => sum + weighting[head][n] * slot[m], 0)));
      const written = weighting.slice(this.read);
      const memory = before.memory.map((slot, n) =>
        slot.map((value, m) => {
          const kept = written.reduce((left, weights, head) => left * (1 - weights[n] * erased[head][m]), value);
          return written.reduce((sum, weights, head) => sum + weights[n] * added[head][m], kept);
        }),
      );
      return { weighting, read, memory, added };
    }

    addressed(key, units, before, { strength, exponent, gate, shift }) {
      const content = softmax(units.map((slot) => strength * dot(key, slot)));
      const mixed = before.map((value, n) => value + gate * (content[n] - value));
      const moved = mixed.map((_, n) => shift.reduce((sum, share, s) => sum + share * mixed[(n - (s - this.shift) + this.slots) % this.slots], 0));
      return softmax(moved.map((value) => exponent * Math.log(value + TINY_WEIGHT)));
    }
  }
  T.Machine = Machine;

  const LOOKED_AT = 0.05;

  /** What interpret/memory_drawing.py draws of a sequence. */
  function drawingOf(inputs, trace, reads) {
    const steps = inputs.length;
    const answers = (steps - 1) / 2;
    const outputs = trace.map((each, t) => (t < steps - answers ? each.outputs.map(() => 0) : each.outputs));
    const peaks = trace[0].weighting[0].map((_, n) => Math.max(...trace.flatMap((each) => each.weighting.map((weights) => weights[n]))));
    const slots = T.range(peaks.length).filter((n) => peaks[n] > LOOKED_AT);
    const panel = (title, columns, ofSlots = false) => ({
      title,
      slots: ofSlots,
      ...packed([columns[0].length, steps], columns[0].flatMap((_, row) => columns.map((each) => each[row]))),
    });
    const numbered = (name, head, all) => (all > 1 ? `${name} (head ${head + 1})` : name);
    const each = (name, of) => of(trace[0]).map((_, head, all) => panel(numbered(name, head, all.length), trace.map((now) => of(now)[head])));
    const heads = (name, of) => of(trace[0]).map((_, head, all) => panel(numbered(name, head, all.length), trace.map((now) => slots.map((n) => of(now)[head][n])), true));
    return {
      kind: "memory_drawing",
      panels: [
        panel("inputs", inputs),
        panel("outputs", outputs),
        ...each("added", (now) => now.added),
        ...each("read", (now) => now.read),
        ...heads("write weighting", (now) => now.weighting.slice(reads)),
        ...heads("read weighting", (now) => now.weighting.slice(0, reads)),
      ],
      slots,
      memory: packed([steps, slots.length, trace[0].memory[0].length], trace.flatMap((now) => slots.flatMap((n) => now.memory[n]))),
    };
  }

  const DRAWN = "b3_5a_0f_c6_99_e1_24_7e"; // bits of each vector, in hexadecimal

  /** (L, 8) bits of the link: a byte a vector. */
  function bitsOf(text) {
    const all = text.split("_").filter((each) => /^[0-9a-f]{2}$/.test(each));
    const bytes = (all.length && all.length <= MOST ? all : DRAWN.split("_")).map((each) => parseInt(each, 16));
    return bytes.map((byte) => T.range(BITS).map((bit) => (byte >> bit) & 1));
  }
  const written = (rows) => rows.map((row) => row.reduce((sum, bit, i) => sum + (bit << i), 0).toString(16).padStart(2, "0")).join("_");

  /** The copy task's input: the vectors, a mark, and silence while it answers. */
  const inputsOf = (rows) => [
    ...rows.map((row) => [...row, 0]),
    [...Array(BITS).fill(0), 1],
    ...rows.map(() => Array(BITS + 1).fill(0)),
  ];

  let built = null;
  function machine(now, view, found, state) {
    built ??= new Machine(E.readModelFile(Uint8Array.from(atob(found.model), (letter) => letter.charCodeAt(0)).buffer));
    const rows = bitsOf(state.bits);
    const inputs = inputsOf(rows);
    const trace = built.trace(inputs);
    const answer = trace.slice(-rows.length).map((each) => each.outputs.map((p) => (p > 0.5 ? 1 : 0)));
    const wrong = answer.flatMap((each, i) => each.map((bit, k) => (bit === rows[i][k] ? 0 : 1))).reduce((sum, each) => sum + each, 0);
    const change = (next) => T.go({ bits: written(next) }, true);
    const random = (count) => T.range(count).map(() => T.range(BITS).map(() => (Math.random() < 0.5 ? 0 : 1)));
    const show = (count) => T.say("beyond-text.vectors", { count });
    const resized = (count) => change([...rows, ...random(MOST)].slice(0, count));
    const range = { min: 1, max: MOST, step: 1, value: rows.length };
    const length = T.slider({ id: "length", label: T.say("beyond-text.length"), ...range, show, change: resized });
    T.fill(
      now,
      T.html(
        "div",
        { class: "sliders" },
        length.node,
        T.html("button", { type: "button", class: "quiet", id: "random", on: { click: () => change(random(rows.length)) } }, T.say("beyond-text.random")),
      ),
      T.html("p", { class: "caption" }, T.say("beyond-text.toggle")),
      grid(rows, answer, change),
      T.html("p", { class: "hint", id: "wrong", role: "status" }, T.say(wrong ? "beyond-text.wrong" : "beyond-text.right", { wrong, all: rows.length * BITS })),
    );
    T.drawings.memory_drawing(view, { state }, drawingOf(inputs, trace, built.read));
  }

  const CELL = 24;

  /** The bits, which a click turns; below them what the machine said, its mistakes ringed. */
  function grid(rows, answer, change) {
    const cell = Math.min(CELL, (T.widthOf(document.getElementById("stop"), 260, 860) - 90) / rows.length);
    const left = 74;
    const size = { width: left + cell * rows.length + 6, height: 2 * (BITS * cell) + 26 };
    const picture = T.walkedPicture("bits", size, T.say("beyond-text.bits.role"), T.say("beyond-text.bits"));
    const square = (bit, i, k, top, more = "") => T.svg("rect", { x: left + i * cell + 1, y: top + k * cell + 1, width: cell - 2, height: cell - 2, rx: 3, class: `bit${bit ? " on" : ""}${more}` });
    const below = BITS * cell + 18;
    picture.append(
      T.svg("text", { x: left - 10, y: (BITS * cell) / 2 + 5, "text-anchor": "end", class: "bits-name" }, T.say("beyond-text.given")),
      T.svg("text", { x: left - 10, y: below + (BITS * cell) / 2 + 5, "text-anchor": "end", class: "bits-name" }, T.say("beyond-text.said")),
      ...rows.flatMap((row, i) => row.map((bit, k) => square(bit, i, k, 2))),
      ...answer.flatMap((row, i) => row.map((bit, k) => square(bit, i, k, below, bit === rows[i][k] ? "" : " wrong"))),
    );
    T.walkBoxes(picture, {
      boxes: rows.flatMap((row, i) => row.map((_, k) => ({ x: left + i * cell, y: 2 + k * cell, width: cell, height: cell }))),
      size,
      tell: (at) => [T.say("beyond-text.bit", { vector: Math.floor(at / BITS) + 1, bit: (at % BITS) + 1 }), String(rows[Math.floor(at / BITS)][at % BITS])],
      choose: (at) => change(rows.map((row, i) => row.map((bit, k) => (i * BITS + k === at ? 1 - bit : bit)))),
    });
    picture.id = "bits";
    return T.html("div", { class: "scroll" }, picture);
  }
})(window.Transduce);
