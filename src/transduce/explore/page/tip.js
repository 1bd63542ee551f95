/* Numbers beside the pointer or the focus, and the same in words for those who listen. */
"use strict";
(function (T) {
  const box = T.html("div", { class: "tip", "aria-hidden": "true", hidden: true });
  const voice = T.html("div", { class: "unseen", "aria-live": "polite", role: "status" });
  const GAP = 14;

  document.addEventListener("DOMContentLoaded", () => document.body.append(box, voice));

  /** Shows lines at a place of the window; the first is the heading. */
  T.tip = (x, y, lines) => {
    T.fill(
      box,
      lines.filter(Boolean).map((line, i) => T.html("div", { class: i ? "" : "tip-head" }, line)),
    );
    box.hidden = false;
    const { width, height } = box.getBoundingClientRect();
    const left = x + GAP + width > innerWidth ? x - GAP - width : x + GAP;
    const top = y + GAP + height > innerHeight ? y - GAP - height : y + GAP;
    box.style.left = `${Math.max(4, left)}px`;
    box.style.top = `${Math.max(4, top)}px`;
  };

  T.untip = () => {
    box.hidden = true;
  };

  let waiting;
  /** Says something once the keys have come to rest. */
  T.announce = (text) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => T.fill(voice, text), 120);
  };

  addEventListener("scroll", T.untip, { passive: true, capture: true });
})(window.Transduce);
