/* Any figure as a file that explains itself: its title, the sentence, the picture and the legend on white ground.

   SVG looks the same without this page's styles; PNG has twice its size. The page itself is saved, too, as one file in
   which the model runs. */
"use strict";
(function (T) {
  const LOOKS = [
    "fill",
    "fill-opacity",
    "stroke",
    "stroke-width",
    "stroke-opacity",
    "stroke-dasharray",
    "stroke-linecap",
    "opacity",
    "font-family",
    "font-size",
    "font-weight",
    "font-style",
    "text-anchor",
    "dominant-baseline",
    "image-rendering",
  ];
  const MARGIN = 12;
  const SHARPER = 2;
  const MOST_PIXELS = 16000;

  /** A copy of a drawing that carries its own styles and size. */
  function standalone(picture) {
    const copy = picture.cloneNode(true);
    const from = [picture, ...picture.querySelectorAll("*")];
    const to = [copy, ...copy.querySelectorAll("*")];
    from.forEach((node, i) => settle(node, to[i]));
    for (const passing of copy.querySelectorAll("[data-passing]")) passing.remove();
    const { width, height } = picture.viewBox.baseVal;
    const size = [-MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN];
    for (const name of ["class", "style", "tabindex", "role", "aria-describedby", "data-roving"])
      copy.removeAttribute(name);
    for (const [name, value] of [
      ["viewBox", size.join(" ")],
      ["width", size[2]],
      ["height", size[3]],
    ]) {
      copy.setAttribute(name, value);
    }
    return copy;
  }

  function settle(node, copy) {
    if (node.hasAttribute("class")) {
      const look = getComputedStyle(node);
      for (const name of LOOKS) copy.setAttribute(name, look.getPropertyValue(name));
      copy.removeAttribute("class");
    }
    for (const name of ["tabindex", "role", "aria-checked", "style"]) copy.removeAttribute(name);
  }

  const LEAST_WIDTH = 420,
    TITLE = 16,
    SMALL = 12.5,
    LINE = 18,
    MOST_SENTENCE = 400;

  /** A text in lines of so many pixels, cut between words, or anywhere in a script without spaces. */
  function wrapped(text, pixels, size, weight) {
    const lines = [""];
    for (const { text: piece } of T.pieces(text)) {
      const longer = lines.at(-1) + piece;
      if (T.textWidth(longer.trim(), size, weight) <= pixels || !lines.at(-1).trim()) lines[lines.length - 1] = longer;
      else lines.push(piece);
    }
    return lines.map((line) => line.trim()).filter(Boolean);
  }

  /** What the picture is of: the text and what the model made of it. */
  function sentence() {
    const found = T.shown;
    if (!found) return "";
    const source = found.recording ? T.soundName(T.state().text) : found.text;
    const told = [...new Set([source, found.target.text])].filter(Boolean).join(" → ");
    return T.cutShort(told, MOST_SENTENCE);
  }

  const words = (text, x, y, size, more = {}) =>
    T.svg("text", { x, y, "font-family": T.FONT, "font-size": size, fill: "#1d2530", ...more }, text);

  /** The scales and swatches of a figure's note, from the left. Gives how far down they reach. */
  function legends(sheet, figure, left, y) {
    let x = left;
    for (const legend of figure.querySelectorAll(".legend")) {
      const [from, to] = [...legend.querySelectorAll("span")].map((each) => each.textContent);
      const bar = legend.querySelector("canvas");
      sheet.append(words(from, x, y + 10, SMALL));
      x += T.textWidth(from, SMALL) + 6;
      sheet.append(T.svg("image", { x, y, width: 120, height: 10, href: bar.toDataURL(), preserveAspectRatio: "none" }));
      sheet.append(words(to, x + 126, y + 10, SMALL));
      x += 126 + T.textWidth(to, SMALL) + 20;
    }
    for (const key of figure.querySelectorAll(".note .key")) {
      const fill = getComputedStyle(key.querySelector(".swatch")).backgroundColor;
      const text = key.textContent.trim();
      sheet.append(T.svg("rect", { x, y: y - 1, width: 12, height: 12, rx: 3, fill, stroke: "#8a8f98" }));
      sheet.append(words(text, x + 18, y + 10, SMALL));
      x += 18 + T.textWidth(text, SMALL) + 18;
    }
    return [x, x > left ? y + 24 : y];
  }

  /** A figure of the page as one drawing: title, sentence, caption, picture, legend, on white; and T.licence, if the page
      has one. */
  T.sheet = (figure) => {
    const picture = standalone(figure.querySelector(".picture"));
    const [, , wide, high] = picture.getAttribute("viewBox").split(" ").map(Number);
    const width = Math.max(wide, LEAST_WIDTH),
      room = width - 2 * MARGIN;
    const sheet = T.svg("svg", {});
    let y = MARGIN;
    const write = (text, size, more) => {
      for (const line of wrapped(text, room, size, more["font-weight"] ?? 400))
        sheet.append(words(line, MARGIN, (y += LINE), size, more));
    };
    write(figure.querySelector(".figure-title").textContent, TITLE, { "font-weight": 600 });
    write(sentence(), SMALL + 1, {});
    write(figure.querySelector(".caption")?.textContent ?? "", SMALL, { fill: "#5a6270" });
    y += 6;
    for (const [name, value] of Object.entries({ x: 0, y, width: wide, height: high })) picture.setAttribute(name, value);
    sheet.append(picture);
    const [right, end] = legends(sheet, figure, MARGIN, y + high + 2);
    if (T.licence) sheet.append(words(T.licence, MARGIN, end + SMALL, SMALL, { fill: "#5a6270" }));
    const bottom = end + (T.licence ? LINE : 0);
    const size = { width: Math.ceil(Math.max(width, right)), height: Math.ceil(bottom + MARGIN) };
    sheet.prepend(T.svg("rect", { x: 0, y: 0, ...size, fill: "#ffffff" }));
    for (const [name, value] of Object.entries({ ...size, viewBox: `0 0 ${size.width} ${size.height}` }))
      sheet.setAttribute(name, value);
    return sheet;
  };

  /** Draws a figure in the light theme, whatever is shown, so that its colours suit white ground. */
  async function onWhite(name, take) {
    const { theme } = T.state();
    const find = () => document.querySelector(`figure[data-name="${CSS.escape(name)}"]`);
    if (!T.dark()) return take(find());
    T.settle({ theme: "light" });
    await T.redraw();
    try {
      return await take(find());
    } finally {
      T.settle({ theme });
      await T.redraw();
    }
  }

  const xml = (sheet) => new XMLSerializer().serializeToString(sheet);

  function save(blob, name) {
    const link = T.html("a", { href: URL.createObjectURL(blob), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  T.saveSvg = (name) =>
    onWhite(name, (figure) => {
      const text = `<?xml version="1.0" encoding="UTF-8"?>\n${xml(T.sheet(figure))}\n`;
      save(new Blob([text], { type: "image/svg+xml" }), `${name}.svg`);
    });

  T.savePng = (name) =>
    onWhite(name, async (figure) => {
      const sheet = T.sheet(figure);
      const [width, height] = ["width", "height"].map((side) => Number(sheet.getAttribute(side)));
      const sharper = Math.min(SHARPER, MOST_PIXELS / Math.max(width, height));
      const image = new Image();
      image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(xml(sheet))}`;
      await image.decode();
      const canvas = T.html("canvas", { width: Math.round(width * sharper), height: Math.round(height * sharper) });
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
      save(blob, `${name}.png`);
    });

  const DRAWN = ["head", "compose", "prediction", "views", "view", "foot"];

  /** This very file, without what the scripts have drawn into it. */
  function itself() {
    const copy = document.documentElement.cloneNode(true);
    for (const id of DRAWN) copy.querySelector(`#${id}`).replaceChildren();
    for (const node of copy.querySelectorAll("body > .tip, body > .unseen, dialog")) node.remove();
    for (const name of copy.getAttributeNames()) if (name !== "lang") copy.removeAttribute(name);
    return new Blob([`<!doctype html>\n${copy.outerHTML}\n`], { type: "text/html" });
  }

  /** The page as one file in which the model runs, if it is one that can; of what a language model wrote there is none. */
  T.savePage = async () => {
    const [model, text] = [T.model.name, T.shown?.text ? T.state().text || T.shown.text : ""];
    const blob = T.offline ? itself() : await (await T.post("/v1/explore/page", { model, text })).blob();
    save(blob, `${model}.html`);
  };
  T.canSavePage = () => Boolean(T.model && (T.offline || (T.shown && !T.state().written)));
})(window.Transduce);
