/* What changed between two matrices where their words are alike. */
"use strict";
(function (T) {
  /** Pairs of places that go together: equal words in order, and between them words replaced one for one. */
  T.aligned = (ones, others) => {
    const common = T.common(
      ones.map((each) => each.text),
      others.map((each) => each.text),
    );
    const pairs = [];
    let from = [0, 0];
    for (const [i, j] of [...common, [ones.length, others.length]]) {
      if (i - from[0] === j - from[1]) for (let k = 0; k < i - from[0]; k++) pairs.push([from[0] + k, from[1] + k]);
      if (i < ones.length) pairs.push([i, j]);
      from = [i + 1, j + 1];
    }
    return pairs;
  };

  const name = (one, other) => (one.text === other.text ? one.text : `${one.text} / ${other.text}`);

  /** The second matrix less the first, over rows and columns that go together; with both weights of each cell. */
  T.difference = (one, other) => {
    const rows = T.aligned(one.rows, other.rows),
      columns = T.aligned(one.columns, other.columns);
    const before = new Float32Array(rows.length * columns.length),
      after = before.slice();
    rows.forEach(([i, j], r) =>
      columns.forEach(([k, l], c) => {
        before[r * columns.length + c] = one.values[i * one.S + k];
        after[r * columns.length + c] = other.values[j * other.S + l];
      }),
    );
    return {
      values: after.map((value, i) => value - before[i]),
      before,
      after,
      T: rows.length,
      S: columns.length,
      rows: rows.map(([i, j]) => ({ text: name(one.rows[i], other.rows[j]) })),
      columns: columns.map(([k, l]) => ({ text: name(one.columns[k], other.columns[l]) })),
    };
  };

  /** The cells that changed most, the largest change first. */
  T.largestMoves = (difference, count) =>
    T.range(difference.values.length)
      .sort((one, two) => Math.abs(difference.values[two]) - Math.abs(difference.values[one]))
      .slice(0, count)
      .filter((i) => Math.abs(difference.values[i]) > 0.005)
      .map((i) => ({
        row: difference.rows[Math.floor(i / difference.S)].text,
        column: difference.columns[i % difference.S].text,
        before: difference.before[i],
        after: difference.after[i],
        change: difference.values[i],
      }));
})(window.Transduce);
