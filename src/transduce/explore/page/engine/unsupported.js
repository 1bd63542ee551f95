/* What the engine refuses. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});

  /** What this page cannot compute as the model's own code does, with the reason; the page then works without it. */
  E.Unsupported = class Unsupported extends Error {};

  /** Throws Unsupported for a setting of a model that is none of those known here. known: the values of each key. */
  E.refuse = (settings, known) => {
    for (const [key, values] of Object.entries(known))
      if (!values.includes(settings[key])) throw new E.Unsupported(`model.${key} = ${JSON.stringify(settings[key])}`);
  };
})((window.Transduce ??= {}));
