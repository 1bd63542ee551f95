/* What is shown, kept in the link: everything that is not the default stands behind the # and comes back from there. */
"use strict";
(function (T) {
  const DEFAULTS = {
    view: "", // which view; empty: the model's first
    model: "", // model's name; empty: the first
    text: "", // sentence; empty: the first that the model file holds
    sentence: "", // which of its sentences is looked at, from 0; empty: the first
    lang: "", // en or zh; empty: the browser's
    theme: "", // light or dark; empty: the system's
    beam: "", // width of the beam; empty: the recipe's
    kind: "", // encoder, decoder, cross; empty: the most telling one there is
    layer: "mean", // a layer's module name, "mean" of all layers, or "rollout"
    head: "mean", // a head's number from 0, or "mean"
    unit: "words", // words or tokens
    show: "matrix", // matrix or lines
    stretch: "", // 1: the darkest colour is the largest weight that is shown, not 1
    row: "", // the query in focus
    cut: "", // connections that are cut, as kind.query.key, places of tokens, with _ between
    worth: "", // 1: show what each head is worth
    node: "", // the beam's node in focus, as step.place
    dropped: "", // 1: the beam's dropped candidates too
    upto: "", // all: what a language model went on with too, not only what was typed
    why: "", // another output, which is weighed against the model's
    best: "", // the output of the n-best list that is looked at; empty: the first
    step: "1", // the step of the computation reached
    mask: "", // the kind of attention whose mask is shown; empty: the decoder's
    query: "", // the query whose computation is shown, by its token's place
    example: "", // 1: the notes' example instead of the model's numbers
    length: "", // how many positions
    position: "", // the position in focus
    how: "", // how a language model writes: sample, acrostic; empty: as its recipe searches
    temperature: "",
    top_k: "",
    top_p: "",
    max_new: "",
    seed: "",
    acrostic: "", // the first characters of the lines
    written: "", // what it wrote, which is then what is looked at
    model2: "", // the other model
    text2: "", // the other sentence
  };
  let current = read();
  const listeners = [];

  function read() {
    const told = new URLSearchParams(location.hash.slice(1));
    const state = { ...DEFAULTS };
    for (const name of Object.keys(DEFAULTS)) if (told.has(name)) state[name] = told.get(name);
    return state;
  }

  /** The link's part behind the # for a state. */
  T.linkTo = (patch) => {
    const state = { ...current, ...patch };
    const told = Object.entries(state).filter(([name, value]) => String(value) !== DEFAULTS[name]);
    return `#${new URLSearchParams(told.map(([name, value]) => [name, String(value)]))}`;
  };

  T.state = () => current;

  /** More that a link keeps: names and what they are where it says nothing. */
  T.remember = (defaults) => {
    Object.assign(DEFAULTS, defaults);
    current = read();
  };

  /** Whether a state has another value than the default under any of these names. */
  T.chosenIn = (state, names) => names.some((name) => state[name] !== DEFAULTS[name]);

  /** Another link in the place of this one. In a notebook's frame "#" alone would be the notebook's address. */
  const replace = (link) => location.replace(location.href.split("#")[0] + link);

  /** Changes the state and the link without telling anybody: what is being drawn is so already. */
  T.settle = (patch) => {
    const link = T.linkTo(patch);
    current = { ...current, ...Object.fromEntries(Object.entries(patch).map(([k, v]) => [k, String(v)])) };
    replace(link);
    return current;
  };

  /** A place of the state among so many, whatever the link said; `otherwise` where it said nothing. */
  T.place = (text, count, otherwise = 0) => {
    const place = text === "" ? otherwise : Math.floor(Number(text)) || 0;
    return Math.max(0, Math.min(count - 1, place));
  };

  /** Changes the state and the link. `quiet` changes leave no step behind for the browser's back button. */
  T.go = (patch, quiet = false) => {
    if ("text" in patch) patch = { written: "", acrostic: "", cut: "", why: "", ...patch }; // another text, nothing written yet
    const link = T.linkTo(patch);
    const before = current;
    current = { ...current, ...Object.fromEntries(Object.entries(patch).map(([k, v]) => [k, String(v)])) };
    if (link !== (location.hash || "#")) {
      if (quiet) replace(link);
      else location.hash = link;
    }
    for (const tell of listeners) tell(current, before);
  };

  /** `tell(state, before)` is called after every change. */
  T.onChange = (tell) => listeners.push(tell);

  window.addEventListener("hashchange", () => {
    const told = read();
    if (Object.keys(DEFAULTS).every((name) => told[name] === current[name])) return;
    const before = current;
    current = told;
    for (const tell of listeners) tell(current, before);
  });
})(window.Transduce);
