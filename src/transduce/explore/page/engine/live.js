/* Models in the file itself, which run in the page: a saved page then answers new texts, too. */
"use strict";
(function (T) {
  const E = (T.engine ??= {});
  const opened = new Map();

  /** The model of this name that runs in the page; null where the file holds none, or one that cannot run here. */
  T.live = (name) => {
    if (!opened.has(name)) opened.set(name, open(name));
    return opened.get(name);
  };

  /** Whether a model answers new texts: by a server, or in the page. */
  T.answers = (name) => !T.offline || T.live(name) !== null;

  function open(name) {
    const stored = T.stored?.live?.[name];
    if (!stored || !E.Explorer) return null;
    try {
      return new E.Explorer(Uint8Array.from(atob(stored), (letter) => letter.charCodeAt(0)).buffer, name);
    } catch (error) {
      console.debug(`${name} does not run in the page: ${error.message}`);
      return null;
    }
  }
})(window.Transduce);
