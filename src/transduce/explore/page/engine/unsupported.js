/* What the engine refuses. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  /** What this page cannot compute as the model's own code does, with the reason; the page then works without it. */
  E.Unsupported = class Unsupported extends Error {};
})((window.Transduce ??= {}));
