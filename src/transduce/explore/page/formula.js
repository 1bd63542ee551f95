/* Formulas, as MathML, which browsers set by themselves. */
"use strict";
(function (T) {
  const m = T.math;
  const i = (text) => m("mi", {}, text);
  const b = (text) => m("mi", { mathvariant: "bold-italic" }, text);
  const o = (text) => m("mo", {}, text);
  const n = (text) => m("mn", {}, text);
  const word = (text) => m("mtext", {}, text);
  const row = (...parts) => m("mrow", {}, parts);
  const sub = (base, below) => m("msub", {}, base, below);
  const sup = (base, above) => m("msup", {}, base, above);
  const fraction = (above, below) => m("mfrac", {}, above, below);
  const sum = (below) => m("munder", {}, o("∑"), below);

  const value = (number) => n(T.short(number));
  const product = () => row(b("q"), o("·"), sub(b("k"), i("j")));

  /** Each step's formula with the numbers of one key in it. d: the computation; j: the key. */
  const FORMULAS = {
    score: (d, j) =>
      row(
        sub(i("s"), i("j")),
        o("="),
        T.isDot(d) ? product() : row(word("score"), o("("), b("q"), o(","), sub(b("k"), i("j")), o(")")),
        o("="),
        value(d.scores[j]),
      ),
    scale: (d, j) =>
      row(
        fraction(sub(i("s"), i("j")), m("msqrt", {}, i("d"))),
        o("="),
        fraction(value(d.scores[j]), value(d.divisor)),
        o("="),
        value(d.scaled[j]),
      ),
    bias: (d, j) =>
      row(
        sub(i("s"), i("j")),
        o("+"),
        sub(i("b"), i("j")),
        o("="),
        value(d.scaled[j]),
        o("+"),
        value(d.bias[j]),
        o("="),
        value(d.scaled[j] + d.bias[j]),
      ),
    mask: () =>
      row(
        sub(i("s"), i("j")),
        o("="),
        o("−"),
        n("∞"),
        m("mspace", { width: "0.6em" }),
        word(T.say("steps.mask.where")),
      ),
    weigh: (d, j) =>
      d.normalizer && d.normalizer !== "softmax"
        ? row(sub(i("α"), i("j")), o("="), word(d.normalizer), o("("), i("s"), o(")"), o("="), value(d.weights[j]))
        : row(
            sub(i("α"), i("j")),
            o("="),
            fraction(sup(i("e"), sub(i("s"), i("j"))), row(sum(i("l")), sup(i("e"), sub(i("s"), i("l"))))),
            o("="),
            value(d.weights[j]),
          ),
    sum: () => row(b("z"), o("="), sum(i("j")), sub(i("α"), i("j")), sub(b("v"), i("j"))),
    join: (d) =>
      row(
        b("c"),
        o("="),
        o("["),
        ...T.range(headsOf(d))
          .flatMap((head) => [head ? o(";") : null, sub(b("z"), n(head + 1))])
          .filter(Boolean),
        o("]"),
      ),
    besides: () =>
      row(
        b("z"),
        o("="),
        sum(i("j")),
        sub(i("α"), i("j")),
        o("("),
        sub(b("v"), i("j")),
        o("+"),
        sub(b("a"), i("j")),
        o(")"),
      ),
    output: () => row(b("o"), o("="), b("c"), sup(b("W"), i("O"))),
  };

  const MOST_HEADS = 8;
  const headsOf = (d) => Math.min(MOST_HEADS, Math.max(1, Math.round(d.joined.length / d.head_output.length)));

  /** Whether its score is a dot product, maybe divided. */
  T.isDot = (d) => ["dot", "scaled_dot"].includes(d.score);

  T.formula = (name, d, j) =>
    T.math(
      "math",
      { display: "block", class: "formula" },
      FORMULAS[name === "sum" && d.read_besides ? "besides" : name](d, j),
    );
})(window.Transduce);
