/* The sentence and what the model makes of it: side by side, each word showing what it looks at. */
"use strict";
(function (T) {
  const LONGEST_EXAMPLE = 38,
    LONGEST_OUTPUT = 300, // of what is no text
    MOST_LINES = 8;
  const SENT = {
    translation: "composer.translate",
    classification: "composer.classify",
    extractive_qa: "composer.answer",
    parsing: "composer.parse",
    tagging: "composer.tag",
    algorithmic: "composer.compute",
    tree_classification: "composer.label",
    node_classification: "composer.classify",
    graph_classification: "composer.classify",
    question_answering: "composer.answer",
  };
  const ASKED = {
    language_modelling: "composer.prompt",
    extractive_qa: "composer.question",
    algorithmic: "composer.vectors",
    node_classification: "composer.node",
    graph_classification: "composer.graph",
    question_answering: "composer.story",
  };

  /** The sentence box. known: {model, examples}. */
  T.composer = (known) => (known.model.accepts_audio ? T.recorder(known) : sentenceBox(known));

  function sentenceBox({ models, model, text }) {
    const box = T.html("textarea", {
      id: "sentence",
      rows: String(Math.max(2, Math.min(MOST_LINES, text.split("\n").length))),
      spellcheck: "false",
      dir: "auto",
      lang: model.source || false,
      placeholder: T.say("composer.placeholder"),
      readonly: !T.answers(model.name),
      "aria-describedby": "composer-hint",
    });
    box.value = model.task === "extractive_qa" ? text.replace("\t", "\n") : text;
    const send = () =>
      T.writes(model, box.value) || T.go({ text: box.value.trim(), how: "", sentence: "", row: "", node: "", best: "" });
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (T.answers(model.name)) send();
    });
    return T.html(
      "form",
      { class: "composer", on: { submit: (event) => (event.preventDefault(), send()) } },
      T.html(
        "div",
        { class: "composer-head" },
        T.html(
          "label",
          { for: "sentence" },
          T.say(ASKED[model.task] ?? "composer.sentence"),
          model.source ? T.html("span", { class: "language" }, T.languageName(model.source)) : null,
        ),
        models.length > 1 ? T.modelChoice(models, model) : T.html("span", { class: "model-name" }, model.name),
      ),
      box,
      T.writingSettings(model),
      T.html(
        "div",
        { class: "composer-foot" },
        T.html(
          "button",
          { type: "submit", class: "primary", id: "send", disabled: !T.answers(model.name) },
          T.say(SENT[model.task] ?? "composer.go"),
        ),
        T.html("span", { id: "composer-hint", class: "hint" }, T.say(hint(model))),
      ),
      T.writingPlace(model),
      exampleList(model),
    );
  }

  const hint = ({ name }) => (T.answers(name) ? (T.offline ? "offline.live" : "composer.hint") : "offline.sentence");

  T.modelChoice = (models, model) =>
    T.html(
      "label",
      { class: "model-choice" },
      T.html("span", {}, T.say("composer.model")),
      T.html(
        "select",
        {
          id: "model",
          on: {
            change: (event) =>
              T.go({
                model: event.target.value,
                text: "",
                sentence: "",
                layer: "mean",
                kind: "",
                head: "mean",
                row: "",
                node: "",
                best: "",
              }),
          },
        },
        models.map((each) => T.html("option", { value: each.name, selected: each.name === model.name }, each.name)),
      ),
    );

  function exampleList(model) {
    const examples = T.examples(model);
    if (!examples.length) return null;
    return T.html(
      "div",
      { class: "examples", role: "group", "aria-label": T.say("composer.examples") },
      examples.map((text, i) =>
        T.html(
          "button",
          {
            type: "button",
            class: "example",
            id: `example-${i}`,
            title: text,
            lang: model.source || false,
            on: { click: () => T.go({ text, sentence: "", node: "", best: "" }) }, // the row stays in focus
          },
          shortened(text),
        ),
      ),
    );
  }

  /** A long sentence without its middle, cut between words: what differs often stands at the end. */
  const shortened = (text) => {
    const words = text.split(" ");
    const begin = [words[0]],
      end = [words.at(-1)];
    const room = (word) => [...begin, ...end, word, "…"].join(" ").length <= LONGEST_EXAMPLE;
    if (text.length <= LONGEST_EXAMPLE || words.length < 4) return text;
    for (let i = 1, j = words.length - 2; i < j;) {
      if (end.length <= begin.length + 1 && room(words[j])) end.unshift(words[j--]);
      else if (room(words[i])) begin.push(words[i++]);
      else break;
    }
    return [...begin, "…", ...end].join(" ");
  };

  T.languageName = (code) => {
    try {
      return new Intl.DisplayNames([T.languageTag()], { type: "language" }).of(code);
    } catch {
      return code;
    }
  };

  /** What the model made of the sentence. */
  T.prediction = (scene) => {
    const { exploration } = scene;
    if (scene.info.shows.alone) return pictured(scene);
    const { source, target } = exploration;
    const inputs = source && !exploration.recording && wordRow(source, "source", scene.info.source);
    const outputs = wordRow(target, "target", scene.info.target);
    const linked = inputs && link(exploration, inputs, outputs);
    return [
      T.html(
        "div",
        { class: "prediction-head" },
        T.html(
          "h2",
          {},
          T.say(
            !source
              ? "prediction.continued"
              : scene.info.task === "translation"
                ? "prediction.title"
                : "prediction.output",
          ),
          scene.info.target ? T.html("span", { class: "language" }, T.languageName(scene.info.target)) : null,
        ),
        facts(exploration),
      ),
      T.wholeText(scene),
      T.html(
        "p",
        { class: scene.info.task === "parsing" ? "output small" : "output", id: "output" },
        T.verses(scene) || outputs.node,
      ),
      T.unknownOutput(exploration),
      runnersUp(exploration),
      inputs
        ? T.html(
            "div",
            { class: "echo" },
            T.html("p", { class: "source" }, inputs.node),
            T.unknownWords(exploration),
            linked && T.html("p", { class: "hint" }, T.sayOf("prediction.hint")),
          )
        : null,
      T.html(
        "p",
        { class: "unseen", role: "status", id: "said" },
        T.say("prediction.said", { text: exploration.whole?.output || target.text || T.say("prediction.empty") }),
      ),
    ];
  };

  /** How sure the model is of what its picture shows. */
  const pictured = ({ exploration }) => [
    T.html("div", { class: "prediction-head" }, T.html("h2", {}, T.say("prediction.output")), facts(exploration)),
    exploration.drawing?.probabilities
      ? T.html("p", { class: "output", id: "output" }, exploration.target.text)
      : T.html("p", { class: "output small", id: "output" }, T.cutShort(exploration.target.text, LONGEST_OUTPUT)),
  ];

  const MOST_OTHERS = 2;

  /** The next best outputs, in small, each leading to its probabilities. */
  function runnersUp({ nbest }) {
    const others = nbest.slice(1, 1 + MOST_OTHERS).filter((each) => each.text);
    if (!others.length) return null;
    return T.html(
      "ul",
      { class: "others", "aria-label": T.say("prediction.others") },
      others.map((each) =>
        T.html(
          "li",
          {},
          T.html(
            "a",
            {
              href: T.linkTo({ view: "probabilities", best: nbest.indexOf(each) }),
              on: {
                click: (event) => (event.preventDefault(), T.go({ view: "probabilities", best: nbest.indexOf(each) })),
              },
            },
            T.marked(each.text, nbest[0].text),
          ),
          T.html("span", { class: "facts" }, T.percent(Math.exp(each.log_probability))),
        ),
      ),
    );
  }

  function facts(exploration) {
    const p = Math.exp(exploration.log_probability);
    return T.html(
      "span",
      { class: "facts" },
      T.say("prediction.probability", { p: T.percent(p) }),
      " · ",
      T.say("prediction.log", { log: T.short(exploration.log_probability) }),
      exploration.ended ? null : T.html("strong", {}, ` · ${T.say("prediction.cut")}`),
    );
  }

  /**
   * A text as words one can point at; everything between them stays as it was. Offsets count code points. Phrases of a
   * tree, which begin before the last word ends, are left out.
   */
  function wordRow(side, which, language) {
    const letters = Array.from(side.text);
    const parts = [],
      buttons = [];
    let at = 0;
    const words = [];
    for (const word of side.words)
      if (word.end > word.start && word.start >= (words.at(-1)?.end ?? 0)) words.push(word);
    words.forEach((word, i) => {
      if (word.start > at) parts.push(letters.slice(at, word.start).join(""));
      const button = T.html(
        "span",
        { class: T.isUnknown(side, word) ? "w unknown" : "w", "data-i": i, role: "button", tabindex: i ? "-1" : "0", "aria-pressed": "false" },
        letters.slice(word.start, word.end).join(""),
      );
      parts.push(button);
      buttons.push(button);
      at = word.end;
    });
    parts.push(letters.slice(at).join(""));
    const node = T.html(
      "span",
      { role: "group", "aria-label": T.say(`prediction.${which}`), lang: language || false, dir: "auto" },
      parts.length > 1 || parts[0] ? parts : T.say("prediction.empty"),
    );
    return { node, buttons, words };
  }

  /** Pointing at a word shades the words of the other side by the mean of all cross-attention; whether there is any. */
  function link(exploration, inputs, outputs) {
    const layers = exploration.attention.filter(
      (layer) => layer.kind === "cross" && layer.columns === "source" && layer.rows === "target",
    );
    if (!layers.length || !(T.canMean(layers) || layers.length === 1)) return false;
    const [rows, columns] = layers[0].shape.slice(1);
    const weights = T.joined(T.meanOfLayers(layers), rows, columns, outputs.words, inputs.words);
    const width = inputs.buttons.length,
      most = T.darkest(weights);
    const weight = (output, input) => weights[output * width + input] / most;
    const names = (found) => found.map(([text, share]) => `${text} ${T.percent(share * most)}`).join(", ");
    point(outputs.buttons, inputs.buttons, (here, there) => weight(here, there), names);
    point(inputs.buttons, outputs.buttons, (here, there) => weight(there, here), names);
    return true;
  }

  function point(words, others, weight, names) {
    const shade = (i) => {
      others.forEach((other, j) => colour(other, i < 0 ? 0 : weight(i, j)));
      words.forEach((word, j) => word.classList.toggle("pointed", i === j));
    };
    const most = (i) =>
      names(
        others
          .map((other, j) => [other.textContent, weight(i, j)])
          .sort((one, two) => two[1] - one[1])
          .slice(0, 3),
      );
    const tell = (i) => T.announce(`${words[i].textContent}: ${most(i)}`);
    words.forEach((word, i) => {
      T.pointed(word, {
        show(event) {
          shade(i);
          if (event.type === "click") T.tip(event.clientX, event.clientY, [word.textContent, most(i)]);
        },
        hide: () => (shade(-1), T.untip()),
      });
      word.addEventListener("focus", () => word.matches(":focus-visible") && (shade(i), tell(i)));
      word.addEventListener("blur", () => shade(-1));
      word.addEventListener("keydown", (event) => walk(event, words, i));
    });
  }

  function walk(event, words, i) {
    const to = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: words.length - 1 }[event.key];
    if (to === undefined || !words[to]) return;
    event.preventDefault();
    words[i].tabIndex = -1;
    words[to].tabIndex = 0;
    words[to].focus();
  }

  function colour(word, weight) {
    const shown = weight > 0.04;
    word.style.backgroundColor = shown ? T.weightColour(weight) : "";
    word.style.color = shown ? T.weightText(weight) : "";
  }
})(window.Transduce);
