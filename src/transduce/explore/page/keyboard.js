/* Keys that work everywhere, and the dialog that lists them all. */
"use strict";
(function (T) {
  const PAGES = ["attention", "probabilities", "beam", "steps", "masks", "positions", "compare", "training"];
  T.VIEWS = PAGES;

  const HELP = [
    ["?", "keys.help"],
    ["/", "keys.sentence"],
    ["1 – 9", "keys.views"],
    ["m  l", "keys.show"],
    ["w", "keys.unit"],
    ["h  H", "keys.head"],
    ["j  k", "keys.layer"],
    ["d", "keys.theme"],
    ["← ↑ ↓ →", "keys.walk"],
    ["Enter", "keys.enter"],
    ["Esc", "keys.escape"],
  ];

  const ACTS = {
    "?": () => T.help(),
    "/": () => document.getElementById("sentence")?.focus(),
    m: () => T.go({ view: "attention", show: "matrix" }),
    l: () => T.go({ view: "attention", show: "lines" }),
    w: () => T.go({ unit: T.state().unit === "words" ? "tokens" : "words", row: "" }),
    d: () => T.go({ theme: T.dark() ? "light" : "dark" }, true),
    h: () => T.nextHead(1),
    H: () => T.nextHead(-1),
    j: () => T.nextLayer(1),
    k: () => T.nextLayer(-1),
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") T.untip();
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.matches("input, textarea, select") || document.querySelector("dialog[open]")) return;
    const view = T.viewsOf(T.model)[Number(event.key) - 1];
    const act = /^[1-9]$/.test(event.key) && view ? () => T.go({ view }) : ACTS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  /** The next head of the layer shown; after the last their mean. */
  T.nextHead = (by) =>
    withChoice((choice, layers) => {
      const layer = choice.layer || layers.at(-1),
        count = layer.shape[0] + 1;
      const at = choice.head === null ? layer.shape[0] : choice.head;
      const head = (at + by + count) % count;
      return { ...choice, over: "layer", layer, head: head === layer.shape[0] ? null : head };
    });

  /** The next layer, through all kinds. */
  T.nextLayer = (by) =>
    withChoice((choice, layers, exploration) => {
      const all = T.kinds(exploration).flatMap((kind) => T.layersOf(exploration, kind));
      const at = choice.layer ? all.indexOf(choice.layer) : all.indexOf(layers.at(-1)) - by;
      const layer = all[(at + by + all.length) % all.length];
      return {
        kind: layer.kind,
        layer,
        over: "layer",
        head: choice.head !== null && choice.head < layer.shape[0] ? choice.head : null,
      };
    });

  function withChoice(pick) {
    const exploration = T.shown;
    const choice = exploration && T.chosen(exploration);
    if (choice) T.go(T.choiceState(pick(choice, T.layersOf(exploration, choice.kind), exploration)));
  }

  /** Opens the dialog of keys. */
  T.help = () => {
    const dialog = T.html(
      "dialog",
      { "aria-labelledby": "keys-title", on: { close: () => dialog.remove() } },
      T.html(
        "div",
        { class: "dialog-head" },
        T.html("h2", { id: "keys-title" }, T.say("keys.title")),
        T.html(
          "button",
          { type: "button", class: "quiet", id: "close-help", on: { click: () => dialog.close() } },
          T.say("keys.close"),
        ),
      ),
      T.html(
        "dl",
        { class: "keys" },
        HELP.map(([keys, text]) =>
          T.html(
            "div",
            {},
            T.html(
              "dt",
              {},
              keys.split(/\s{2,}/).map((key) => [T.html("kbd", {}, key), " "]),
            ),
            T.html("dd", {}, T.say(text)),
          ),
        ),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
  };
})(window.Transduce);
