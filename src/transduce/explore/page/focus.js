/* What stays as it was when a page is drawn anew: the focus; and when it has to be, as its window has another width. */
"use strict";
(function (T) {
  const place = (id) => document.getElementById(id);

  /** Draws, and gives the focus back to what has the same id. */
  T.keepingFocus = async (draw) => {
    const active = document.activeElement;
    const id = active && active.id;
    const figure = active && active.closest && active.closest("[data-name]")?.dataset.name;
    const roving = active && active.closest && active.closest("[data-roving]")?.dataset.roving;
    const isPicture = active && active.classList && active.classList.contains("picture");
    await draw();
    if (active && document.contains(active)) return;
    const again = roving
      ? document.querySelector(`[data-roving="${roving}"] [tabindex="0"]`)
      : id
        ? place(id)
        : isPicture
          ? document.querySelector(`[data-name="${figure}"] .picture`)
          : null;
    again?.focus({ preventScroll: true });
  };

  /** Calls `act` when the window has another width and rests. */
  T.onWidth = (act) => {
    let width = innerWidth,
      waiting;
    addEventListener("resize", () => {
      clearTimeout(waiting);
      if (innerWidth !== width) waiting = setTimeout(() => ((width = innerWidth), act()), 150);
    });
  };
})(window.Transduce);
