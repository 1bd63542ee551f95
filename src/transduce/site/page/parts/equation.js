/* Equations with the page's own numbers, as MathML. */
"use strict";
(function (T) {
  const SIGN = /^[=≈+−×·÷()[\]|,∑<>]$/;

  /** A number, sign or name as MathML. What is MathML already stays. */
  function part(each) {
    if (each instanceof Node) return each;
    if (typeof each === "number") return T.math("mn", {}, T.short(each));
    if (SIGN.test(each)) return T.math("mo", { stretchy: "false" }, each);
    return T.math(each.length > 1 ? "mtext" : "mi", {}, each);
  }

  const row = (parts) => T.math("mrow", {}, [parts].flat().map(part));

  T.equation = (...parts) => T.math("math", { display: "block", class: "formula" }, T.math("mrow", {}, parts));
  T.equationParts = {
    i: (text) => T.math("mi", {}, text),
    b: (text) => T.math("mi", { mathvariant: "bold-italic" }, text),
    o: (text) => T.math("mo", {}, text),
    n: (value) => T.math("mn", {}, typeof value !== "number" ? value : value < 0 ? `(${T.short(value)})` : T.short(value)),
    subsup: (base, below, above) => T.math("msubsup", {}, base, below, above),
    sub: (base, below) => T.math("msub", {}, part(base), row(below)),
    sup: (base, above) => T.math("msup", {}, part(base), row(above)),
    fraction: (above, below) => T.math("mfrac", {}, row(above), row(below)),
    sum: (below) => T.math("munder", {}, T.math("mo", {}, "∑"), below),
  };

  /** A box that scrolls sideways. label: what it is, for those who listen. */
  T.formulaBox = (label, ...content) =>
    T.html("div", { class: "formula-box", tabindex: "0", role: "group", "aria-label": label }, content);

  /** An equation in such a box, of numbers, signs and names. */
  T.mathLine = (label, ...parts) => T.formulaBox(label, T.equation(row(parts)));
})(window.Transduce);
