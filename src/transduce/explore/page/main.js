/* The page put together: head, sentence, prediction, the views to choose from, and the one that is shown. */
"use strict";
(function (T) {
  const place = (id) => document.getElementById(id);
  let turn = 0;

  /** Draws everything from the state; what was asked for before and comes late is thrown away. */
  T.redraw = async () => {
    const mine = ++turn;
    const current = () => mine === turn;
    const area = place("view");
    area.setAttribute("aria-busy", "true");
    frame();
    try {
      const scene = await load(current);
      if (scene && current()) await timed(scene, () => T.keepingFocus(() => T.views[scene.view].draw(area, scene)));
      if (scene && current()) settle(area);
    } catch (error) {
      if (current()) failed(area, error);
    }
  };

  /** Draws, and leaves how long that took, up to the layout, where the browser's own tools show it. */
  async function timed(scene, draw) {
    const start = performance.now();
    await draw();
    place("view").getBoundingClientRect();
    performance.measure(`draw ${scene.view}`, { start, end: performance.now() });
  }

  /** Theme, language and the names of things, which need nobody's answer. */
  function frame() {
    const root = document.documentElement;
    root.dataset.theme = T.dark() ? "dark" : "light";
    root.lang = T.languageTag();
    document.title = T.say("title");
    T.fill(place("skip"), T.say("skip"));
    T.keepingFocus(() => T.fill(place("head"), T.header()));
    place("views").setAttribute("aria-label", T.say("views.label"));
    T.keepingFocus(() => T.fill(place("views"), tabs()));
    T.fill(place("foot"), T.say(T.offline ? "foot.offline" : "foot"));
  }

  function tabs() {
    const view = T.viewOf(T.state(), T.model);
    return T.html(
      "ul",
      {},
      T.viewsOf(T.model).map((name) =>
        T.html(
          "li",
          {},
          T.html(
            "a",
            {
              href: T.linkTo({ view: name }),
              id: `tab-${name}`,
              "aria-current": name === view ? "page" : false,
              on: { click: (event) => follow(event, name) },
            },
            T.viewName(name, T.model),
          ),
        ),
      ),
    );
  }

  function follow(event, view) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    T.go({ view });
  }

  /** The model that is shown; its views may be others than those of the one before. */
  function choose(info) {
    const before = T.viewsOf(T.model).join() + T.model?.shows.drawing;
    T.model = info;
    if (before !== T.viewsOf(info).join() + info.shows.drawing)
      T.keepingFocus(() => T.fill(place("views"), tabs()));
  }

  async function load(current) {
    const state = T.state();
    const models = await T.ask.models();
    if (!current()) return null;
    const info = models.find((each) => each.name === state.model) || models[0];
    choose(info);
    const view = T.viewOf(state, info);
    const text = state.text || (state.written ? "" : T.opening(info));
    compose(models, info, text);
    const scene = {
      state,
      view,
      models,
      info,
      model: info.name,
      text,
      shows: info.shows,
      current,
      exploration: null,
      problem: null,
    };
    if (asked(scene) !== answered) place("prediction").classList.add("before");
    if (text || state.written) await predicted(scene);
    if (!current()) return null;
    const opened = T.openedAt(scene);
    if (opened) scene.state = T.settle(opened);
    if (scene.exploration && !scene.exploration.recording) scene.text = scene.exploration.text; // one sentence of all
    T.shown = scene.exploration;
    scene.tokens = scene.exploration?.nbest[0].tokens;
    predict(scene);
    if (scene.problem && T.views[view].needs === "exploration") throw scene.problem;
    if (!scene.exploration && T.views[view].needs === "exploration") {
      T.fill(place("view"), T.html("p", { class: "empty" }, T.say(info.accepts_audio ? "empty.sound" : "empty")));
      return settle(place("view"));
    }
    return scene;
  }

  async function predicted(scene) {
    try {
      const { beam, sentence, written } = scene.state;
      const changes = T.changesOf(scene.state, scene.info);
      scene.exploration = await (written
        ? T.ask.written(scene.model, written)
        : T.ask.predict(scene.model, scene.text, beam, sentence, changes));
    } catch (error) {
      scene.problem = error;
    }
  }

  let composed = "";
  /** The sentence box is only made anew when something about it changed, so that nobody's typing is lost. */
  function compose(models, model, text) {
    const now = JSON.stringify([models.map((each) => each.name), model.name, text, T.language()]);
    if (now === composed) return;
    composed = now;
    T.keepingFocus(() => T.fill(place("compose"), T.composer({ models, model, text })));
  }

  const asked = ({ model, state }) => JSON.stringify([model, state.text, state.sentence, state.beam, state.written, state.cut]);
  let answered = "", // what was asked for that stands there
    told = "";
  /** What the model made of this very sentence; of another nothing is left, least of all beside an error. */
  function predict(scene) {
    const { exploration, problem } = scene;
    answered = exploration ? asked(scene) : "";
    place("prediction").classList.remove("before");
    const beside = problem && T.views[scene.view].needs !== "exploration" ? problem.message : "";
    const now = JSON.stringify([answered, beside, scene.state.written, T.language(), T.dark()]);
    if (now === told) return;
    told = now;
    T.fill(
      place("prediction"),
      exploration ? T.prediction(scene) : T.unexplored(scene) || (beside && T.html("p", { class: "hint", role: "alert" }, beside)),
    );
  }

  const settle = (area) => area.setAttribute("aria-busy", "false");

  function failed(area, error) {
    console.debug(error);
    if (error instanceof T.KeyNeeded) return keyForm(area);
    const offline = error instanceof T.Unavailable;
    T.fill(
      area,
      T.html(
        "div",
        { class: offline ? "empty" : "error", role: "alert" },
        offline ? null : T.html("strong", {}, T.say("error.title")),
        " ",
        error.message,
      ),
    );
    settle(area);
  }

  function keyForm(area) {
    const box = T.html("input", { type: "password", id: "api-key", autocomplete: "off" });
    T.fill(
      area,
      T.html(
        "form",
        {
          class: "empty controls",
          on: { submit: (event) => (event.preventDefault(), T.useKey(box.value), T.redraw()) },
        },
        T.hasKey() ? T.html("p", { class: "hint", role: "alert", id: "key-wrong" }, T.say("key.wrong")) : null,
        T.html("label", {}, T.say("key.label"), box),
        T.html("button", { type: "submit", class: "primary" }, T.say("key.use")),
      ),
    );
    settle(area);
  }

  function start() {
    place("skip").addEventListener("click", (event) => {
      event.preventDefault();
      place("view").focus();
    });
    T.onChange(T.redraw);
    T.onWidth(T.redraw);
    T.redraw();
  }

  document.addEventListener("DOMContentLoaded", start);
})(window.Transduce);
