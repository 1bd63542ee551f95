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

  /** The views of a model; what its task draws comes first. */
  T.viewsOf = (info) => {
    if (info?.shows?.alone) return ["drawing", "training"];
    return T.drawings[info?.shows?.drawing] ? ["drawing", ...T.VIEWS] : T.VIEWS;
  };
  /** The view that is shown. */
  T.viewOf = (state, info) => {
    const views = T.viewsOf(info);
    return views.includes(state.view) ? state.view : views[0];
  };
  /** What the tab of a view is called. */
  T.viewName = (view, info) => T.say(view === "drawing" ? `view.${info.shows.drawing}` : `view.${view}`);
})(window.Transduce);
