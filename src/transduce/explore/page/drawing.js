/* The picture of a task: the words that a classifier looked at, labels of words, an answer in its text, a tree. */
"use strict";
(function (T) {
  T.views.drawing = {
    needs: "exploration",
    draw(area, scene) {
      const kind = scene.exploration.drawing?.kind;
      if (!T.drawings[kind]) return T.fill(area, T.html("p", { class: "empty" }, T.say("drawing.none")));
      return T.drawings[kind](area, scene, scene.exploration.drawing);
    },
  };

  /** Whether a model has something to show in a view. */
  const OFFERED = {
    drawing: ({ shows }) => T.drawings[shows.drawing],
    attention: ({ layers, accepts_audio }) => layers.length || accepts_audio,
    probabilities: ({ shows }) => shows.writes,
    beam: ({ shows }) => shows.beam,
    steps: ({ shows }) => shows.steps,
    masks: ({ layers, shows }) =>
      layers.some(({ kind }) => kind === "encoder" || kind === "decoder" || (kind === "cross" && shows.writes)),
    positions: ({ shows }) => shows.positions !== "none",
    compare: ({ layers }) => layers.length,
    training: ({ shows }) => shows.training,
  };
  const BESIDE_A_DRAWING = ["drawing", "training"]; // where the drawing is all there is

  /** The views that a model has something to show in; what its task draws comes first. None before it is known. */
  T.viewsOf = (info) => {
    if (!info) return [];
    const possible = info.shows.alone ? BESIDE_A_DRAWING : ["drawing", ...T.VIEWS];
    const views = possible.filter((view) => OFFERED[view](info));
    return views.length ? views : ["attention"];
  };
  /** The view that is shown: the one asked for, where the model has it. */
  T.viewOf = (state, info) => {
    const views = T.viewsOf(info);
    return views.includes(state.view) ? state.view : views[0];
  };
  /** What the tab of a view is called. */
  T.viewName = (view, info) => T.say(view === "drawing" ? `view.${info.shows.drawing}` : `view.${view}`);
})(window.Transduce);
