/* What a model reads and writes besides the tokens of a text, as data/columns/tokens.py has it. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  /**
   * A column of a model file. tokenizer: of a column of tokens. positions: how many a model has for a row with what
   * stands around it; a longer row is cut to its first tokens. null = any number.
   *
   * Of labels: {labels}. Of tokens:
   * tokenizer: with the column's own special tokens.
   * start, end: the ids before an output and behind it.
   * forced: what an output begins with, always, behind the start.
   * forbidden: what search never chooses. forbiddenFirst: what it does not choose first besides, behind `forced`.
   * separator: what stands between two texts that are read as one.
   * closed(ids): with what stands before and behind, the start apart: what a translator reads of a source.
   * framed(ids): with the start, too, where there is one: what other models read of a text by itself.
   */
  E.column = (table, tokenizer, positions = null) => {
    if (table.kind === "label") return { labels: table.labels };
    if (table.kind !== "tokens") throw new E.Unsupported(`column: the kind ${table.kind} is not known here.`);
    return tokens(table, tokenizer.withRoles(table.roles ?? {}), positions);
  };

  function tokens({ starts, ends, stream, ...named }, tokenizer, positions) {
    const ids = (key) => tokenizer.ids(named[key] ?? []);
    const { end } = tokenizer,
      before = ids("before"),
      after = ids("after"),
      between = ids("between");
    const forced = starts ? before.slice(1) : before;
    const behind = after.length ? after : ends || stream ? [end] : [];
    const start = before.length && starts ? before[0] : stream && !starts ? end : tokenizer.start;
    const room = positions === null ? Infinity : Math.max(1, positions - behind.length - forced.length);
    const closed = (row) => [...forced, ...row.slice(0, room), ...behind];
    const framed = (row) => {
      if (stream) return [start, ...row, end];
      return starts ? [start, ...closed(row)] : closed(row);
    };
    const never = named.never == null ? [tokenizer.pad, tokenizer.start, tokenizer.unknown] : ids("never");
    return {
      ...{ tokenizer, start, end, forced, closed, framed },
      separator: between.length ? between : [end],
      forbidden: inOrder(never.filter((id) => id !== end && id >= 0)),
      forbiddenFirst: inOrder(ids("never_first")),
    };
  }

  const inOrder = (ids) => [...new Set(ids)].sort((one, other) => one - other);
})((window.Transduce ??= {}));
