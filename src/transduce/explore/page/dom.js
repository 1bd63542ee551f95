/* Elements made in one line. What a model wrote only ever becomes text nodes and attribute values, never markup. */
"use strict";
window.Transduce = window.Transduce || {};
(function (T) {
  /** {needs, draw(area, scene)} of each view. */
  T.views = {};
  /** By the kind that the server names: draw(area, scene, drawing). */
  T.drawings = {};

  const SPACES = { svg: "http://www.w3.org/2000/svg", math: "http://www.w3.org/1998/Math/MathML" };

  function apply(node, name, value) {
    if (value === null || value === undefined || value === false) return;
    if (name === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else if (name === "style") for (const [key, each] of Object.entries(value)) node.style.setProperty(key, each);
    else if (name === "value" || name === "checked" || name === "selected") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }

  function add(node, children) {
    for (const child of children.flat(Infinity)) {
      if (child === null || child === undefined || child === false) continue;
      node.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
    return node;
  }

  function make(space, tag, attributes, children) {
    const node = space ? document.createElementNS(SPACES[space], tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) apply(node, name, value);
    return add(node, children);
  }

  /** An HTML element: html("button", {class: "quiet", on: {click: act}}, "text", otherElement). */
  T.html = (tag, attributes, ...children) => make(null, tag, attributes, children);
  /** An SVG element. */
  T.svg = (tag, attributes, ...children) => make("svg", tag, attributes, children);
  /** A MathML element. */
  T.math = (tag, attributes, ...children) => make("math", tag, attributes, children);

  /** A labelled list to choose from; options: [value, text]; change(value) when another is chosen. */
  T.select = (id, label, options, value, change) =>
    T.html(
      "label",
      {},
      label,
      T.html(
        "select",
        { id, on: { change: (event) => change(event.target.value) } },
        options.map(([each, text]) =>
          T.html("option", { value: each, selected: String(each) === String(value) }, text),
        ),
      ),
    );

  /** Replaces what `node` holds. */
  T.fill = (node, ...children) => {
    node.replaceChildren();
    return add(node, children);
  };

  /** The pixels that an area has in width, within sensible bounds. */
  T.widthOf = (node, least = 260, most = 1400) => {
    const width = node.clientWidth || document.documentElement.clientWidth - 48;
    return Math.max(least, Math.min(most, width));
  };

  const ruler = document.createElement("canvas").getContext("2d");

  /** How wide a text is in the page's font. */
  T.textWidth = (text, size = 13, weight = 400) => {
    ruler.font = `${weight} ${size}px ${T.FONT}`;
    return ruler.measureText(text).width;
  };

  /** A text that fits into so many pixels, with an ellipsis where it was cut. */
  T.fit = (text, pixels, size = 13) => {
    if (T.textWidth(text, size) <= pixels) return text;
    const letters = T.graphemes(text);
    while (letters.length > 1 && T.textWidth(`${letters.join("")}…`, size) > pixels) letters.pop();
    return `${letters.join("")}…`;
  };

  T.FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Noto Sans CJK SC", sans-serif';
})(window.Transduce);
