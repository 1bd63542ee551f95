/* Other words in the place of one: a click on a word of the output lists them, and a choice is searched on from. */
"use strict";
(function (T) {
  const place = (id) => document.getElementById(id);
  const [text, output, from, to, box, list, told, close] = [
    "text", "output", "from", "to", "alternatives", "alternatives-list", "alternatives-status", "alternatives-close",
  ].map(place);
  const segmenters = new Map();
  let asking = new AbortController(),
    chosen = new Map(), // by the number of a line of the output: the outputs of its sentences
    looked = false, // whether an answer came before, so that what looks into the model is there
    opener = null,
    shown = ["", {}]; // the status: a key of the texts with its values

  function status(name = "", values = {}, wrong = false) {
    shown = [name, values];
    told.textContent = name && T.say(name, values);
    told.classList.toggle("wrong", wrong);
  }

  /** The words of a text: [{segment, isWordLike}], as the browser knows them in this language. */
  function words(line, language) {
    const code = language === "und" ? "" : language;
    if (!segmenters.has(code)) {
      let known = [];
      try {
        known = Intl.Segmenter.supportedLocalesOf([code.replaceAll("_", "-")]);
      } catch {
        // a code that is no language
      }
      segmenters.set(code, new Intl.Segmenter(known, { granularity: "word" }));
    }
    return [...segmenters.get(code).segment(line)];
  }

  /** The output with each word as a button. Only the first of them is reached by Tab; arrows lead to the others. */
  T.showWords = (content) => {
    const parts = [];
    if (content.split("\n").length !== text.value.split("\n").length) return void (output.textContent = content);
    for (const [number, line] of content.split("\n").entries()) {
      if (number) parts.push("\n");
      let at = 0; // in characters, as the server counts
      for (const { segment, isWordLike } of words(line, to.value)) {
        const size = T.characters(segment);
        parts.push(isWordLike ? wordOf(segment, number, at, at + size) : segment);
        at += size;
      }
    }
    output.replaceChildren(...parts);
    const first = output.querySelector(".word");
    if (first) first.tabIndex = 0;
  };

  function wordOf(segment, line, start, end) {
    const word = document.createElement("span");
    word.className = "word";
    word.textContent = segment;
    word.tabIndex = -1;
    word.setAttribute("role", "button");
    word.setAttribute("aria-controls", "alternatives");
    word.setAttribute("aria-expanded", "false");
    Object.assign(word.dataset, { line, start, end });
    return word;
  }

  /** Nothing of what was chosen holds for another text. */
  T.forgetChoices = () => {
    chosen = new Map();
    hide(false);
  };

  function hide(back = true) {
    asking.abort();
    box.hidden = true;
    place("source-words").hidden = true;
    output.querySelector('.word[aria-expanded="true"]')?.setAttribute("aria-expanded", "false");
    if (back) opener?.focus();
  }

  /** Asks for other words, and lists them below the texts. */
  async function open(word) {
    hide(false);
    opener = word;
    asking = new AbortController();
    const { signal } = asking;
    const { line, start, end } = Object.fromEntries(Object.entries(word.dataset).map(([k, v]) => [k, Number(v)]));
    word.setAttribute("aria-expanded", "true");
    list.replaceChildren();
    place("alternatives-title").textContent = T.say("alternatives", { word: word.textContent });
    status(looked ? "alternatives.working" : "alternatives.loading");
    box.hidden = false;
    close.focus();
    const q = text.value.split("\n")[line];
    const asked = { q, source: from.value, target: to.value, start, end, outputs: chosen.get(line) };
    try {
      const found = await T.alternatives(asked, place("key").value, signal);
      if (signal.aborted) return;
      looked = true;
      fill(found, line, word);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof T.Refused)) throw error;
      status(...error.told, true);
    }
  }

  function fill(found, line, word) {
    const offers = found.alternatives.map((each) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = each.word;
      button.lang = output.lang;
      button.dir = "auto";
      button.title = each.translatedText;
      button.addEventListener("click", () => choose(each, line, found.start));
      const item = document.createElement("li");
      item.append(button);
      return item;
    });
    list.replaceChildren(...offers);
    status(offers.length ? "alternatives.choose" : "alternatives.none");
    showLinks(found.links, line);
    if (document.activeElement === close) list.querySelector("button")?.focus();
  }

  /** The line of the source, with the words that the word came from marked. */
  function showLinks(links, line) {
    const characters = Array.from(text.value.split("\n")[line]),
      parts = [];
    let done = 0;
    for (const { start, end } of links) {
      const mark = document.createElement("mark");
      mark.textContent = characters.slice(start, end).join("");
      parts.push(characters.slice(done, start).join(""), mark);
      done = end;
    }
    parts.push(characters.slice(done).join(""));
    place("source-line").replaceChildren(...parts);
    place("source-line").lang = text.lang;
    place("source-words").hidden = !links.length;
  }

  function choose(alternative, line, start) {
    const lines = output.textContent.split("\n");
    lines[line] = alternative.translatedText;
    chosen.set(line, alternative.outputs);
    hide(false);
    T.showWords(lines.join("\n"));
    const of = [...output.querySelectorAll(`.word[data-line="${line}"]`)];
    (of.find((word) => Number(word.dataset.end) > start) ?? of.at(-1))?.focus();
  }

  const STEPS = {
    ArrowRight: (at) => at + 1,
    ArrowLeft: (at) => at - 1,
    Home: () => 0,
    End: (at, count) => count - 1,
  };
  output.addEventListener("click", (event) => {
    const word = event.target.closest(".word");
    if (word && getSelection().isCollapsed) open(word);
  });
  output.addEventListener("keydown", (event) => {
    if (!event.target.classList.contains("word")) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      open(event.target);
    } else if (Object.hasOwn(STEPS, event.key)) {
      event.preventDefault();
      const all = [...output.querySelectorAll(".word")];
      all[STEPS[event.key](all.indexOf(event.target), all.length)]?.focus();
    }
  });
  output.addEventListener("focusin", (event) => {
    for (const each of output.querySelectorAll('.word[tabindex="0"]')) each.tabIndex = -1;
    if (event.target.classList.contains("word")) event.target.tabIndex = 0;
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
  close.addEventListener("click", () => hide());
  T.onFrame(() => {
    told.textContent = shown[0] && T.say(...shown);
    if (opener) place("alternatives-title").textContent = T.say("alternatives", { word: opener.textContent });
  });
})(window.Transduce);
