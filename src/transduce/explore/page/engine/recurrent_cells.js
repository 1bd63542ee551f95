/* Recurrent cells, stacks of them, and encoders in one or both directions, as layers/recurrent.py has them. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  const sigmoid = (x) => 1 / (1 + Math.exp(-x));
  const zeros = (width) => new Float32Array(width);

  /**
   * Each: {gates, parts, begin(parts, cell), step(projected, state, cell, note)}.
   * A state is a list of vectors, the output h first. projected: what the input gives to the gates. cell: its weights.
   * note: told the weights of a cell that attends.
   */
  E.CELLS = {
    tanh: {
      gates: 1,
      parts: 1,
      begin: (parts) => parts,
      step: (projected, [h], cell) => [E.added(projected, recalled(h, cell)).map(Math.tanh)],
    },
    gru: {
      gates: 3,
      parts: 1,
      begin: (parts) => parts,
      step(projected, [h], cell) {
        const [width, old] = [h.length, recalled(h, cell)];
        return [
          h.map((before, d) => {
            const reset = sigmoid(projected[d] + old[d]);
            const keep = sigmoid(projected[width + d] + old[width + d]);
            const proposed = Math.tanh(projected[2 * width + d] + reset * old[2 * width + d]);
            return proposed + keep * (before - proposed);
          }),
        ];
      },
    },
    lstm: {
      gates: 4,
      parts: 2,
      begin: (parts) => parts,
      step: (projected, [h, c], cell) => throughGates(E.added(projected, recalled(h, cell)), c),
    },
    lstmn: {
      gates: 5,
      parts: 2,
      begin: ([h, c], cell) => [h, c, zeros(h.length), [entry(h, c, cell)]],
      step(projected, [h, , before, tape], cell, note) {
        const [width, gates] = [h.length, 4 * h.length];
        const asked = E.added(projected.subarray(gates), recalled(before, rowsOf(cell, gates, 5 * width)));
        const weights = overTape(asked, tape, cell.reader_H.data);
        note(weights);
        const read = (part) => {
          const out = zeros(width);
          E.gathered(weights, tape.map((each) => each[part]), out);
          return out;
        };
        const read_h = read("h");
        const sums = E.added(projected.subarray(0, gates), recalled(read_h, rowsOf(cell, 0, gates)));
        const [next_h, next_c] = throughGates(sums, read("c"));
        return [next_h, next_c, read_h, [...tape, entry(next_h, next_c, cell)]];
      },
    },
  };

  const recalled = (h, { weight_hh, bias_hh }) => E.linear(h, 1, weight_hh, bias_hh);
  const entry = (h, c, { key }) => ({ h, c, key: E.linear(h, 1, key.weight) });

  /** The part of a cell's recurrent weights that belongs to the gates [from, to). */
  function rowsOf({ weight_hh, bias_hh }, from, to) {
    const width = weight_hh.shape[1];
    return {
      weight_hh: { shape: [to - from, width], data: weight_hh.data.subarray(from * width, to * width) },
      bias_hh: { data: bias_hh.data.subarray(from, to) },
    };
  }

  function throughGates(sums, c) {
    const width = c.length;
    const next_c = c.map(
      (before, d) => sigmoid(sums[width + d]) * before + sigmoid(sums[d]) * Math.tanh(sums[2 * width + d]),
    );
    return [next_c.map((value, d) => sigmoid(sums[3 * width + d]) * Math.tanh(value)), next_c];
  }

  function overTape(asked, tape, reader) {
    const scores = Float64Array.from(tape, ({ key }) =>
      reader.reduce((sum, v, a) => sum + v * Math.tanh(asked[a] + key[a]), 0),
    );
    return E.NORMALIZERS.softmax(scores, Array.from(scores, () => true));
  }

  /** A cell of a model. axes: see E.noted, of the weights of a cell that attends. */
  class Cell {
    constructor(kind, name, weights, axes) {
      Object.assign(this, { name, axes, kind: E.CELLS[kind], weights: E.partsOf(weights, name) });
      this.width = this.weights.weight_hh.shape[1];
    }

    begin = (parts) => this.kind.begin(parts, this.weights);
    empty = () => this.begin(Array.from({ length: this.kind.parts }, () => zeros(this.width)));
    project = (x, rows) => E.linear(x, rows, this.weights.weight_ih, this.weights.bias_ih);

    /** {outputs, state}: the outputs of all rows after `state`, and the state after the last. */
    unrolled(projected, rows, state, run) {
      const outputs = new Float32Array(rows * this.width);
      const span = projected.length / rows;
      const alphas = [];
      for (let row = 0; row < rows; ++row) {
        const given = projected.subarray(row * span, (row + 1) * span);
        state = this.kind.step(given, state, this.weights, (weights) => alphas.push(weights));
        outputs.set(state[0], row * this.width);
      }
      if (alphas.length) this.note(run, alphas);
      return { outputs, state };
    }

    /** The tape grows with each step; what was not yet there has weight 0. */
    note(run, alphas) {
      const columns = alphas.at(-1).length;
      const data = new Float32Array(alphas.length * columns);
      alphas.forEach((weights, row) => data.set(weights, row * columns));
      E.noted(run, this.name, { axes: this.axes, heads: 1, rows: alphas.length, columns, data });
    }
  }

  const OWN_PAST = { kind: "decoder", rows: "decoder_input", columns: "decoder_input", tape: true, still: true };
  const UNSEEN = { kind: "other", rows: "other", columns: "other", still: true };

  /** A forward stack of cells, each of which reads the outputs of the one below. */
  E.RecurrentStack = class {
    constructor(name, weights, { cell, residual }, layers) {
      const made = (_, layer) => new Cell(cell, `${name}.cells.${layer}`, weights, OWN_PAST);
      Object.assign(this, { residual, cells: Array.from({ length: layers }, made) });
    }

    begin = (parts) => this.cells.map((cell, layer) => cell.begin(parts[layer]));
    empty = () => this.cells.map((cell) => cell.empty());
    project = (x, rows) => this.cells[0].project(x, rows);

    /** {outputs, states} of the top cell. projected: what is given to the first cell's gates. */
    extend(projected, rows, states, run) {
      const first = this.cells[0].unrolled(projected, rows, states[0], run);
      let below = first.outputs;
      const after = [first.state];
      this.cells.slice(1).forEach((cell, place) => {
        const { outputs, state } = cell.unrolled(cell.project(below, rows), rows, states[place + 1], run);
        below = this.residual ? E.added(below, outputs) : outputs;
        after.push(state);
      });
      return { outputs: below, states: after };
    }
  };

  const DIRECTIONS = { forward: [false], backward: [true], both: [false, true] };

  /** An encoder with one state for each row, and the last states of each layer. */
  E.RecurrentEncoder = class {
    constructor(name, weights, { cell, residual, direction, encoder_layers }) {
      this.backward = DIRECTIONS[direction];
      this.residual = residual;
      this.layers = Array.from({ length: encoder_layers }, (_, layer) =>
        this.backward.map((__, side) => new Cell(cell, `${name}.layers.${layer}.${side}`, weights, UNSEEN)),
      );
    }

    read(x, rows, run) {
      const last = this.layers.map((cells, layer) => {
        const sides = cells.map((cell, side) => read(cell, x, rows, this.backward[side], run));
        const outputs = E.beside(sides.map((each) => each.outputs), rows);
        x = layer && this.residual ? E.added(x, outputs) : outputs;
        return E.range(cells[0].kind.parts).map((part) => E.concatenated(sides.map((each) => each.state[part])));
      });
      return { states: x, last };
    }
  };

  function read(cell, x, rows, backward, run) {
    const turned = (y) => (backward ? reversed(y, rows) : y);
    const { outputs, state } = cell.unrolled(cell.project(turned(x), rows), rows, cell.empty(), run);
    return { outputs: turned(outputs), state };
  }

  function reversed(x, rows) {
    const width = x.length / rows;
    const y = new Float32Array(x.length);
    for (let row = 0; row < rows; ++row) y.set(x.subarray(row * width, (row + 1) * width), (rows - 1 - row) * width);
    return y;
  }
})(window.Transduce);
