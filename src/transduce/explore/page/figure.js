/* The frame around every figure: what it shows, a table of its numbers, and one button that saves it. */
"use strict";
(function (T) {
  const shownAsTable = new Set();

  function button(label, title, act, more) {
    return T.html("button", { type: "button", class: "quiet", title, on: { click: act }, ...more }, label);
  }

  /** name: the file's name and the figure's key. picture: an svg element. table: () => {head: [..], rows: [[..]]}.
      note: a sentence below; caption: a sentence above, beneath the title. tools: controls of its own.
      wide: the picture keeps its size, and its box scrolls sideways. */
  T.figure = ({ name, title, caption, picture, table, note, tools, wide = false, level = 2 }) => {
    const body = T.html("div", { class: "figure-body" });
    const heading = T.html(`h${level}`, { class: "figure-title" }, title);
    const switchTable =
      table && button(T.say("figure.table"), T.say("figure.table.why"), flip, { "data-figure": name });
    function flip() {
      if (!shownAsTable.delete(name)) shownAsTable.add(name);
      draw();
    }
    function draw() {
      const asTable = table && shownAsTable.has(name);
      if (switchTable) switchTable.setAttribute("aria-pressed", String(Boolean(asTable)));
      T.fill(body, asTable ? T.table(table(), title) : wide ? scrolling(picture, title) : picture);
    }
    draw();
    return T.html(
      "figure",
      { class: "figure", "data-name": name },
      T.html(
        "figcaption",
        {},
        T.html(
          "div",
          { class: "figure-head" },
          heading,
          T.html(
            "div",
            { class: "figure-tools", role: "group", "aria-label": T.say("figure.tools", { title }) },
            tools,
            switchTable,
            saving(name),
          ),
        ),
        caption && T.html("p", { class: "caption" }, caption),
      ),
      body,
      note && T.html("p", { class: "note" }, note),
    );
  };

  /** One button, and behind it the files that there are. */
  function saving(name) {
    const open = (on) => {
      list.hidden = !on;
      opener.setAttribute("aria-expanded", String(on));
    };
    const file = (label, kind, act) =>
      button(label, undefined, () => (open(false), opener.focus(), attempt(act)), { "data-save": kind });
    const list = T.html(
      "span",
      { class: "save-list", hidden: true },
      file(T.say("save.png"), "png", () => T.savePng(name)),
      file(T.say("save.svg"), "svg", () => T.saveSvg(name)),
      T.canSavePage() && file(T.say("save.page"), "page", T.savePage),
    );
    const opener = button(T.say("save"), T.say("save.why"), () => open(list.hidden), {
      "data-saves": name,
      "aria-expanded": "false",
    });
    const box = T.html("span", { class: "save" }, opener, list);
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || list.hidden) return;
      open(false);
      opener.focus();
    });
    return box;
  }

  async function attempt(act) {
    try {
      await act();
      T.announce(T.say("save.done"));
    } catch (error) {
      console.debug(error);
      alert(T.say("save.failed", { why: error.message }));
    }
  }

  /** A picture in a box that scrolls sideways, by keys, too: by those of the picture, or else the box takes the focus. */
  function scrolling(picture, title) {
    const walked = picture.matches("[tabindex]") || picture.querySelector("[tabindex], a");
    const reached = walked ? {} : { tabindex: "0", role: "group", "aria-label": title };
    return T.html("div", { class: "scroll", ...reached }, picture);
  }

  const MOST_CELLS = 20000;

  /** An HTML table in a box that scrolls by itself. */
  T.table = ({ head, rows }, title) => {
    const shown = rows.slice(0, Math.max(1, Math.floor(MOST_CELLS / Math.max(1, head.length))));
    return T.html(
      "div",
      { class: "table-box", tabindex: "0", role: "region", "aria-label": title },
      T.html(
        "table",
        {},
        T.html(
          "thead",
          {},
          T.html(
            "tr",
            {},
            head.map((text) => (text ? T.html("th", { scope: "col" }, text) : T.html("td", {}))),
          ),
        ),
        T.html(
          "tbody",
          {},
          shown.map((row) =>
            T.html(
              "tr",
              {},
              row.map((text, i) => (i ? T.html("td", {}, text) : T.html("th", { scope: "row" }, text))),
            ),
          ),
        ),
      ),
      shown.length < rows.length &&
        T.html("p", { class: "note" }, T.say("figure.table.cut", { rows: shown.length, all: rows.length })),
    );
  };

  /** A row of buttons of which one is on. options: [[value, label]]; a disabled one has a third entry, the reason. */
  T.choice = (label, value, options, choose) =>
    T.html(
      "div",
      { class: "choice", role: "group", "aria-label": label },
      options.map(([each, text, reason]) =>
        T.html(
          "button",
          {
            type: "button",
            "aria-pressed": String(each === value),
            disabled: Boolean(reason),
            title: reason,
            id: `choice-${T.key(label)}-${T.key(each)}`,
            on: { click: () => choose(each) },
          },
          text,
        ),
      ),
    );

  T.key = (text) => String(text).replace(/[^\p{L}\p{N}]+/gu, "-");
})(window.Transduce);
