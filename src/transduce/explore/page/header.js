/* The head of the page: name, language, colours, link, help. */
"use strict";
(function (T) {
  T.header = () => [
    T.html(
      "div",
      { class: "brand" },
      mark(),
      T.html("h1", {}, "Transduce"),
      T.html("span", { class: "tagline" }, T.say("tagline")),
    ),
    T.html(
      "div",
      { class: "settings", role: "group", "aria-label": T.say("settings.label") },
      T.html("button", { type: "button", class: "quiet", id: "copy-link", on: { click: copy } }, T.say("link.copy")),
      T.html(
        "button",
        {
          type: "button",
          class: "quiet",
          id: "theme",
          on: { click: () => T.go({ theme: T.dark() ? "light" : "dark" }, true) },
        },
        T.say(T.dark() ? "theme.light" : "theme.dark"),
      ),
      T.html(
        "button",
        {
          type: "button",
          class: "quiet",
          id: "language",
          lang: T.language() === "en" ? "zh-Hans" : "en",
          on: { click: () => T.go({ lang: T.language() === "en" ? "zh" : "en" }, true) },
        },
        T.language() === "en" ? "中文" : "English",
      ),
      T.html(
        "button",
        { type: "button", class: "quiet", id: "help", "aria-haspopup": "dialog", on: { click: T.help } },
        T.say("help"),
      ),
    ),
  ];

  /** A small attention matrix, in the scale's own colours. */
  function mark() {
    const weights = [0.9, 0.15, 0.05, 0.2, 0.75, 0.3, 0.05, 0.35, 1];
    return T.svg(
      "svg",
      { viewBox: "0 0 30 30", width: 30, height: 30, "aria-hidden": "true" },
      weights.map((weight, i) =>
        T.svg("rect", {
          x: (i % 3) * 10 + 0.5,
          y: Math.floor(i / 3) * 10 + 0.5,
          width: 9,
          height: 9,
          rx: 2,
          fill: T.weightColour(weight),
        }),
      ),
    );
  }

  async function copy(event) {
    const button = event.currentTarget;
    const link = location.href.split("#")[0] + T.linkTo({ lang: T.language() });
    try {
      await navigator.clipboard.writeText(link);
      T.fill(button, T.say("link.copied"));
      T.announce(T.say("link.copied"));
    } catch {
      prompt(T.say("link.here"), link);
    }
    setTimeout(() => T.fill(button, T.say("link.copy")), 1600);
  }
})(window.Transduce);
