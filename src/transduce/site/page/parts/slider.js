/* Sliders. */
"use strict";
(function (T) {
  /** A slider with its number beside it: {node, set(value)}. show(value) -> text; change(value): it was moved. */
  T.slider = ({ id, label, min, max, step, value, show, change }) => {
    const told = T.html("output", { for: id, id: `${id}-told` }, show(value));
    const input = T.html("input", { type: "range", id, min, max, step, value: String(value), "aria-valuetext": show(value) });
    input.addEventListener("input", () => change(Number(input.value)));
    const set = (now) => {
      if (document.activeElement !== input || Number(input.value) !== now) input.value = String(now);
      T.fill(told, show(now));
      input.setAttribute("aria-valuetext", show(now));
    };
    return { node: T.html("label", { class: "slider" }, label, input, told), set };
  };
})(window.Transduce);
