/* Change a word, or the model, and see what moves: two sentences or two models side by side. */
"use strict";
(function (T) {
  T.views.compare = {
    needs: "exploration",
    async draw(area, scene) {
      const { state, exploration } = scene;
      const other = { model: state.model2 || scene.model, text: state.text2 || scene.text };
      const stack = T.html("div", { class: "stack" });
      T.fill(area, T.html("p", { class: "lead" }, T.say("compare.lead")), form(scene, other), stack);
      const same = other.model === scene.model && other.text === scene.text;
      if (same) return T.fill(stack, T.html("p", { class: "empty" }, T.say("compare.empty")));
      const second = await T.ask.predict(other.model, other.text, state.beam);
      if (!scene.current()) return;
      const choice = T.chosen(exploration),
        like = choice && T.sameChoice(second, choice);
      T.fill(stack, outputs(exploration, second));
      if (!like) return stack.append(T.html("p", { class: "empty" }, T.say("compare.none")));
      stack.prepend(T.html("div", { class: "controls" }, T.choiceSelects(exploration, choice)));
      figures(stack, scene, [exploration, second], [choice, like]);
    },
  };

  function form(scene, other) {
    if (T.offline || scene.info.accepts_audio) return offlineForm(scene, other);
    const box = T.html("input", { type: "text", id: "sentence2", value: other.text, spellcheck: "false" });
    const model = modelSelect(scene, other);
    const send = (event) => (
      event.preventDefault(),
      T.go({
        text2: box.value.trim() === scene.text ? "" : box.value.trim(),
        model2: model && model.value !== scene.model ? model.value : "",
      })
    );
    return T.html(
      "form",
      { class: "controls compare-form", on: { submit: send } },
      T.html("label", { class: "grow" }, T.say("compare.sentence"), box),
      model && T.html("label", {}, T.say("composer.model"), model),
      T.html("button", { type: "submit", class: "primary", id: "compare" }, T.say("compare.go")),
      T.html("div", { class: "suggestions" }, suggestions(scene)),
    );
  }

  function modelSelect(scene, other) {
    if (scene.models.length < 2) return null;
    return T.html(
      "select",
      { id: "model2" },
      scene.models.map((each) =>
        T.html("option", { value: each.name, selected: each.name === other.model }, each.name),
      ),
    );
  }

  function offlineForm(scene, other) {
    const all = scene.models.flatMap((model) =>
      T.examples(model).map((text) => ({ model: model.name, text })),
    );
    const chosen = all.findIndex((each) => each.model === other.model && each.text === other.text);
    return T.html(
      "div",
      { class: "controls" },
      T.html(
        "label",
        { class: "grow" },
        T.say("compare.sentence"),
        T.html(
          "select",
          {
            id: "sentence2",
            on: {
              change: (event) => T.go({ text2: all[event.target.value].text, model2: all[event.target.value].model }),
            },
          },
          all.map((each, i) => T.html("option", { value: i, selected: i === chosen }, `${each.model}: ${each.text}`)),
        ),
      ),
    );
  }

  /** Pairs of words whose exchange moves what a pronoun stands for. */
  const SWAPS = [
    ["tired", "wide"],
    ["dogs", "cats"],
    ["man", "woman"],
    ["müde", "breit"],
    ["Hunde", "Katzen"],
    ["fatigué", "large"],
    ["累", "宽"],
  ];

  function suggestions(scene) {
    return SWAPS.flatMap(([one, other]) => [
      [one, other],
      [other, one],
    ])
      .filter(
        ([from]) =>
          new RegExp(`(^|[^\\p{L}])${from}([^\\p{L}]|$)|[一-鿿]`, "u").test(scene.text) && scene.text.includes(from),
      )
      .map(([from, to], i) =>
        T.html(
          "button",
          {
            type: "button",
            class: "example",
            id: `swap-${i}`,
            on: { click: () => T.go({ text2: scene.text.replace(from, to), model2: "" }) },
          },
          T.say("compare.swap", { from, to }),
        ),
      );
  }

  function outputs(one, other) {
    const side = (mine, theirs, letter) =>
      T.html(
        "section",
        { class: "figure" },
        T.html("h2", { class: "figure-title" }, letter, " ", T.html("span", { class: "language" }, mine.model)),
        T.html("p", { class: "source" }, T.marked(mine.text, theirs.text)),
        T.html(
          "p",
          { class: "output small" },
          mine.target.text ? T.marked(mine.target.text, theirs.target.text) : T.say("prediction.empty"),
        ),
        T.html(
          "p",
          { class: "hint" },
          T.say("prediction.probability", { p: T.percent(Math.exp(mine.log_probability)) }),
        ),
      );
    return T.html("div", { class: "pair" }, side(one, other, "A"), side(other, one, "B"));
  }

  function figures(stack, scene, explorations, choices) {
    const matrices = explorations.map((each, i) => T.matrix(each, plain(choices[i]), scene.state.unit));
    const most = T.darkest(...matrices.map((matrix) => matrix.values));
    const pair = T.html("div", { class: "pair" }, T.html("div", {}), T.html("div", {}));
    stack.append(pair);
    matrices.forEach((matrix, i) =>
      T.fill(pair.children[i], matrixFigure(pair.children[i], matrix, choices[i], most, "AB"[i])),
    );
    const difference = T.difference(...matrices);
    if (!difference.T || !difference.S) return stack.append(T.html("p", { class: "empty" }, T.say("compare.unlike")));
    const below = T.html("div", { class: "pair" }, T.html("div", {}), T.html("div", {}));
    stack.append(below);
    T.fill(below.children[0], differenceFigure(below.children[0], difference, choices[0]));
    T.fill(below.children[1], T.movesFigure(below.children[1], difference));
  }

  const plain = (choice) => (choice.over === "rollout" ? { ...choice, over: "mean" } : choice);

  function matrixFigure(area, matrix, choice, most, letter) {
    const title = `${letter}: ${T.choiceName(plain(choice))}`;
    const picture = T.weightsMap(area, matrix, most, {
      rowTitle: T.axisName(matrix.like.rows),
      columnTitle: T.axisName(matrix.like.columns),
      label: T.describe(matrix, title),
      cell: 40,
    });
    return T.figure({
      name: `compare-${letter}`,
      title,
      picture,
      table: () => T.matrixTable(matrix),
      note: T.weightLegend(most, `compare-${letter}`),
    });
  }

  function differenceFigure(area, difference, choice) {
    const most = T.darkest(difference.values.map(Math.abs));
    const picture = T.weightsMap(area, difference, most, {
      colour: (value) => T.signedBytes(value / most),
      cell: 40,
      label: T.say("compare.difference.label", { name: T.choiceName(plain(choice)) }),
      tell: (r, c) => {
        const i = r * difference.S + c;
        return [
          `${difference.rows[r].text} → ${difference.columns[c].text}`,
          `A ${T.number(difference.before[i])}`,
          `B ${T.number(difference.after[i])}`,
          `B − A ${T.number(difference.values[i])}`,
        ];
      },
    });
    return T.figure({
      name: "compare-difference",
      title: T.say("compare.difference"),
      caption: T.say("compare.difference.caption"),
      picture,
      table: () => T.matrixTable(difference),
      note: T.legend(most, { signed: true }),
    });
  }
})(window.Transduce);
