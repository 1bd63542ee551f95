/* Any figure as a file: SVG that looks the same without this page's styles, and PNG of twice its size. */
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

  /** A copy of a drawing that carries its own styles, size and background. */
  function standalone(picture) {
    const copy = picture.cloneNode(true);
    const from = [picture, ...picture.querySelectorAll("*")];
    const to = [copy, ...copy.querySelectorAll("*")];
    from.forEach((node, i) => settle(node, to[i]));
    for (const passing of copy.querySelectorAll("[data-passing]")) passing.remove();
    const { width, height } = picture.viewBox.baseVal;
    const size = [-MARGIN, -MARGIN, width + 2 * MARGIN, height + 2 * MARGIN];
    const paper = getComputedStyle(document.documentElement).getPropertyValue("--surface").trim();
    copy.prepend(T.svg("rect", { x: size[0], y: size[1], width: size[2], height: size[3], fill: paper }));
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

  /** The text of an SVG file. */
  T.svgText = (picture) =>
    `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(standalone(picture))}\n`;

  function save(blob, name) {
    const link = T.html("a", { href: URL.createObjectURL(blob), download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  T.saveSvg = (picture, name) => save(new Blob([T.svgText(picture)], { type: "image/svg+xml" }), `${name}.svg`);

  T.savePng = async (picture, name) => {
    const copy = standalone(picture);
    const [width, height] = ["width", "height"].map((side) => Number(copy.getAttribute(side)));
    const sharper = Math.min(SHARPER, MOST_PIXELS / Math.max(width, height));
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
    await image.decode();
    const canvas = T.html("canvas", { width: Math.round(width * sharper), height: Math.round(height * sharper) });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(blob, `${name}.png`), "image/png");
  };
})(window.Transduce);
