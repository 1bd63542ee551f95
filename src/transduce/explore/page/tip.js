/* Numbers beside the pointer or the focus, and the same in words for those who listen. */
"use strict";
(function (T) {
  const box = T.html("div", { class: "tip", "aria-hidden": "true", hidden: true });
  const voice = T.html("div", { class: "unseen", "aria-live": "polite", role: "status" });
  const GAP = 14,
    FINGER = 26;

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
    const above = y - (touching ? FINGER : GAP) - height;
    const top = (touching && above > 4) || y + GAP + height > innerHeight ? above : y + GAP;
    box.style.left = `${Math.max(4, left)}px`;
    box.style.top = `${Math.max(4, top)}px`;
  };

  T.untip = () => {
    box.hidden = true;
  };

  let touching = false, // whether the last pointer was a finger
    tapped = null; // what a finger has tapped, and what hides its numbers
  addEventListener(
    "pointerdown",
    (event) => {
      touching = event.pointerType === "touch";
      if (tapped && !tapped.node.contains(event.target)) release();
    },
    { capture: true },
  );
  addEventListener("keydown", () => (touching = false), { capture: true });

  function release() {
    const before = tapped;
    tapped = null;
    before?.hide();
  }

  /** What the pointer shows over `node`: show(event), hide(). A finger, which cannot hover, taps: what it shows stays
      until it taps elsewhere. show may give the part that was tapped; tapping that again, or where there is nothing to
      show, is a click: click(event). `atOnce`: every tap is a click. */
  T.pointed = (node, { show, hide, click, atOnce = false }) => {
    const hovering = (event) => event.pointerType !== "touch";
    node.addEventListener("pointermove", (event) => hovering(event) && show(event));
    node.addEventListener("pointerleave", (event) => hovering(event) && hide());
    node.addEventListener("click", (event) => {
      if (!touching || atOnce) return click?.(event);
      const part = String(show(event));
      const again = tapped?.node === node && tapped.part === part;
      tapped = { node, part, hide };
      if (again) click?.(event);
    });
  };

  let waiting;
  /** Says something once the keys have come to rest. */
  T.announce = (text) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => T.fill(voice, text), 120);
  };

  // A part of a picture with a <title>, which browsers show to a mouse alone.
  addEventListener("click", (event) => {
    const title = touching && event.target.closest?.(".picture g:not([role])")?.querySelector(":scope > title");
    if (!title) return;
    T.tip(event.clientX, event.clientY, [title.textContent]);
    tapped = { node: title.parentNode, part: "", hide: T.untip };
  });

  addEventListener("scroll", T.untip, { passive: true, capture: true });
})(window.Transduce);
