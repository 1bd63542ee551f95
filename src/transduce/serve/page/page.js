/* What the page does: it translates as one types; the newest text wins. */
"use strict";
(function (T) {
  const PAUSE = 300; // milliseconds after the last key
  const place = (id) => document.getElementById(id);
  const [text, output, from, to, key] = ["text", "output", "from", "to", "key"].map(place);
  /** pairs: [source, [target, ..]]; characters: the most at once; bytes: of a file; key: whether the server wants one;
      explore: whether the explorer is at /explore; files: endings of names; attends: whether other words can be looked
      for; memory: whether a translation memory is consulted. */
  T.data = JSON.parse(place("data").textContent);
  const targets = new Map(T.data.pairs);
  let timer = 0,
    asking = new AbortController(),
    answered = false, // whether an answer came before, so that the model is there
    shown = ["", {}]; // the status: a key of the texts with its values

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (T.state().theme ? T.state().theme === "dark" : dark.matches);

  function status(name = "", values = {}, wrong = false, again = false) {
    shown = [name, values];
    place("status").textContent = name && T.say(name, values);
    place("status").classList.toggle("wrong", wrong);
    place("again").hidden = !again;
  }

  /** complete: whether nothing more comes, so that other words can be looked for. */
  function show(words, complete = false) {
    if (!words) T.showMatches([]);
    if (!words) T.showChecks({ warnings: [], confidence: null });
    output.lang = to.value === "und" ? "" : to.value;
    T.forgetChoices();
    if (complete && T.data.attends) T.showWords(words);
    else output.textContent = words;
    place("copy").disabled = !words;
  }

  const framed = []; // what else is written in the page's language
  T.onFrame = (write) => (framed.push(write), write());

  /** Everything in the page's language. */
  function frame() {
    document.documentElement.lang = T.say("tag");
    document.documentElement.dataset.theme = isDark() ? "dark" : "light";
    document.title = `${T.say("title")} · Transduce`;
    for (const each of document.querySelectorAll("[data-say]")) each.textContent = T.say(each.dataset.say);
    for (const each of document.querySelectorAll("[data-name]"))
      each.setAttribute("aria-label", T.say(each.dataset.name));
    place("theme").textContent = T.say(isDark() ? "theme.light" : "theme.dark");
    const other = T.language() === "en" ? "zh" : "en";
    place("language").textContent = other === "zh" ? "中文" : "English";
    place("language").lang = T.texts[other].tag;
    place("status").textContent = shown[0] && T.say(...shown);
    offer(from, [...targets.keys()], from.value || T.state().from);
    languages(to.value || T.state().to);
    T.writeChecks();
    for (const write of framed) write();
  }

  function offer(select, codes, chosen) {
    select.replaceChildren(...codes.map((code) => new Option(T.nameOf(code), code)));
    select.value = codes.includes(chosen) ? chosen : codes[0];
  }

  /** Which languages can be written, and whether the pair can be turned around. */
  function languages(wanted) {
    offer(to, targets.get(from.value), wanted);
    place("swap").disabled = from.value === to.value || !targets.get(to.value)?.includes(from.value);
    text.lang = from.value === "und" ? "" : from.value;
    describe();
  }

  /** The counter and the command. */
  function describe() {
    const count = T.characters(text.value);
    place("counter").textContent = T.say("counter", { count, most: T.data.characters });
    place("counter").classList.toggle("wrong", count > T.data.characters);
    text.setAttribute("aria-invalid", String(count > T.data.characters));
    place("clear").disabled = !text.value;
    place("curl").textContent = T.curl(text.value, from.value, to.value);
  }

  /** The text, the languages or the key changed: what was asked before is given up. */
  function changed(pause = PAUSE) {
    clearTimeout(timer);
    asking.abort();
    output.setAttribute("aria-busy", "false");
    describe();
    if (!text.value.trim()) {
      show("");
      status();
    } else if (T.characters(text.value) > T.data.characters) {
      status("error.long", { most: T.data.characters }, true);
    } else if (T.data.key && !key.value) {
      status("error.key", {}, true);
    } else {
      timer = setTimeout(translate, pause);
    }
  }

  async function translate() {
    asking = new AbortController();
    const { signal } = asking;
    status(answered ? "working" : "loading");
    output.setAttribute("aria-busy", "true");
    try {
      const grown = (words, told) => {
        if (signal.aborted) return;
        show(words);
        T.showMatches(told.matches);
        T.showChecks(told);
      };
      const whole = await T.translate(text.value, from.value, to.value, key.value, signal, grown);
      if (signal.aborted) return;
      answered = true;
      show(whole, true);
      status();
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof T.Refused)) throw error;
      show("");
      status(...error.told, true, true);
    }
    output.setAttribute("aria-busy", "false");
  }

  function swap() {
    const [source, target, words] = [to.value, from.value, output.textContent];
    if (words && output.getAttribute("aria-busy") === "false") text.value = words;
    from.value = source;
    languages(target);
    T.go({ from: from.value, to: to.value });
    show("");
    changed(0);
  }

  function copy(words) {
    const done = () => status("copied"),
      failed = () => status("copy.failed", {}, true);
    if (navigator.clipboard) navigator.clipboard.writeText(words).then(done, failed);
    else (copiedTheOldWay(words) ? done : failed)();
  }

  /** Browsers have no clipboard for pages that come by http from another machine. */
  function copiedTheOldWay(words) {
    const before = document.activeElement;
    const box = document.createElement("textarea");
    box.value = words;
    document.body.append(box);
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    before.focus();
    return done;
  }

  /** Links of the explorer from when it was at this address lead to where it is now. */
  function forward() {
    if (!T.ofExplorer(location.hash)) return;
    if (T.data.explore) location.replace(`explore${location.hash}`);
    else status("explore.hidden", {}, true);
  }

  const listen = (id, event, act) => place(id).addEventListener(event, act);
  listen("text", "input", (event) => event.isComposing || changed());
  listen("text", "compositionend", () => changed());
  listen("key", "input", () => changed());
  listen("terms", "input", () => changed());
  listen("from", "change", () => {
    languages(to.value);
    T.go({ from: from.value, to: to.value });
    changed(0);
  });
  listen("to", "change", () => {
    languages(to.value);
    T.go({ from: from.value, to: to.value });
    changed(0);
  });
  listen("swap", "click", swap);
  listen("clear", "click", () => {
    text.value = "";
    changed();
    text.focus();
  });
  listen("again", "click", () => changed(0));
  listen("copy", "click", () => copy(output.textContent));
  listen("copy-curl", "click", () => copy(place("curl").textContent));
  listen("theme", "click", () => (T.go({ theme: isDark() ? "light" : "dark" }), frame()));
  listen("language", "click", () => (T.go({ lang: T.language() === "en" ? "zh" : "en" }), frame()));
  dark.addEventListener("change", frame);
  addEventListener("hashchange", () => (frame(), forward()));

  place("key-row").hidden = !T.data.key;
  frame();
  T.start = () => {
    show("");
    changed(0); // a browser may have kept the text
    forward();
  };
})(window.Transduce);
