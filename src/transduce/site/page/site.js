/* The frame of a stop: its language, theme and question; and what its own script draws, anew at each change.

   A stop is T.stop = {keeps, draw(area)}. keeps: {name: default}, what the link remembers, read by T.state() and set by
   T.go(). draw(area) draws everything from the state. */
"use strict";
(function (T) {
  const place = (id) => document.getElementById(id);
  T.language = () => document.documentElement.dataset.language;

  T.licence = "CC BY 4.0, Transduce"; // of pictures that are saved

  /** The demo's model, which translates English into French; an E.Explorer. */
  T.demo = () => T.live("demo");

  /** What it makes of a text, which then stands in pictures that are saved; options as E.Explorer.explore takes them.
      Equal questions are answered once. */
  const answers = new Map();
  T.explored = (text, options = {}) => {
    const question = JSON.stringify([text, options]);
    if (!answers.has(question)) answers.set(question, T.demo().explore(text, options));
    return (T.shown = answers.get(question));
  };

  /** Connections from queries to keys (places of tokens), cut in every head of these layers. */
  T.cutsBetween = (layers, queries, keys) =>
    layers.flatMap(({ name }) => queries.flatMap((query) => keys.map((key) => ({ name, query, key }))));

  const MOST = 400; // characters of a text, so that a page answers at once
  const problem = T.html("p", { class: "error", role: "alert", id: "problem-text", hidden: true });

  /** What is wrong with the text that is typed; "" where it can be read, or the page has none. */
  function wrongText() {
    if (!T.stop.keeps?.text) return "";
    const { text } = T.state();
    if (!text.trim()) return T.say("site.empty");
    return text.length > MOST ? T.say("site.long", { most: MOST }) : "";
  }

  let drawn = 0;
  /** Draws the stop from the state. The area's data-drawn counts, for whoever waits for it. */
  T.redraw = async () => {
    const root = document.documentElement;
    root.dataset.theme = T.dark() ? "dark" : "light";
    T.fill(place("theme"), T.say(T.dark() ? "theme.light" : "theme.dark"));
    place("language").hash = location.hash;
    const mine = ++drawn;
    const area = place("stop");
    const wrong = wrongText();
    T.fill(problem, wrong);
    problem.hidden = !wrong;
    try {
      if (!wrong) await T.keepingFocus(() => T.stop.draw(area));
    } catch (error) {
      console.error(error);
      T.fill(area, T.html("p", { class: "error", role: "alert" }, error.message));
    }
    if (mine === drawn) area.dataset.drawn = String(mine);
  };

  /** Plays: act(count) now and after each pause, until the function that this gives is called. */
  T.playing = (act, pause) => {
    let count = 0;
    const timer = setInterval(() => act(++count), pause);
    return () => clearInterval(timer);
  };
  T.still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

  function ask(form) {
    form.addEventListener("change", ({ target }) => {
      const reasons = [...form.querySelectorAll(".why")];
      reasons.forEach((reason, i) => (reason.hidden = String(i) !== target.value));
      T.announce(reasons[target.value].textContent);
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    Object.assign(T.texts[T.language()], JSON.parse(place("says").textContent));
    T.remember(T.stop.keeps ?? {});
    place("stop").before(problem);
    if (wrongText()) T.settle({ text: T.stop.keeps.text }); // a link with a text that cannot be read
    document.querySelector(".stops [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
    place("theme").addEventListener("click", () => T.go({ theme: T.dark() ? "light" : "dark" }, true));
    if (place("question")) ask(place("question"));
    T.onChange(T.redraw);
    T.onWidth(T.redraw);
    T.redraw();
  });
})(window.Transduce);
