/* A formula in one line, from its parts: numbers, signs and names. */
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
  T.fraction = (above, below) => T.math("mfrac", {}, row(above), row(below));
  T.below = (base, below) => T.math("msub", {}, part(base), row(below));
  T.above = (base, above) => T.math("msup", {}, part(base), row(above));

  /** The formula in a box that scrolls sideways. label: what it is, for those who listen. */
  T.mathLine = (label, ...parts) =>
    T.html(
      "div",
      { class: "formula-box", tabindex: "0", role: "group", "aria-label": label },
      T.math("math", { display: "block", class: "formula" }, row(parts)),
    );
})(window.Transduce);
