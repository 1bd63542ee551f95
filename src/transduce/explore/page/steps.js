/* One query's computation, step by step, with the model's own numbers: from scores to W^O. */
"use strict";
(function (T) {
  T.views.steps = {
    needs: "exploration",
    async draw(area, scene) {
      const example = scene.state.example === "1";
      const at = example ? null : placeOf(scene);
      const controls = T.html("div", { class: "controls" }, whose(scene, example), at && choosers(scene, at));
      const stack = T.html("div", { class: "stack" });
      T.fill(area, controls, stack);
      if (!example && !at) return T.fill(stack, T.html("p", { class: "empty" }, T.noAttention()));
      const d = await numbers(scene, example, at, stack);
      if (d && scene.current()) show(stack, scene, d, at);
    },
  };

  /** The computation, or a sentence about why there is none. */
  async function numbers(scene, example, at, stack) {
    try {
      return example
        ? await T.ask.example()
        : await T.ask.steps(scene.model, scene.text, scene.tokens, at.layer.name, at.head, Number(at.query));
    } catch (error) {
      if (scene.current()) {
        T.fill(
          stack,
          T.html(
            "div",
            { class: "empty", role: "status" },
            error.message,
            " ",
            T.html(
              "button",
              { type: "button", class: "plain", id: "see-example", on: { click: () => T.go({ example: "1" }) } },
              T.say("steps.see"),
            ),
          ),
        );
      }
      return null;
    }
  }

  /** Layer, head and query in focus. */
  function placeOf({ exploration, state }) {
    const choice = T.chosen(exploration);
    if (!choice) return null;
    const layer = choice.layer || T.layersOf(exploration, choice.kind).at(-1);
    const rows = T.axis(exploration, layer.rows, layer.shape[1], "tokens");
    return { layer, head: choice.head ?? 0, rows, query: T.place(state.query, rows.length) };
  }

  function whose(scene, example) {
    return T.choice(
      T.say("steps.whose"),
      example ? "1" : "",
      [
        ["", T.say("steps.model")],
        ["1", T.say("steps.example")],
      ],
      (value) => T.go({ example: value, step: 1 }),
    );
  }

  function choosers(scene, at) {
    const { exploration } = scene;
    const layers = T.kinds(exploration).flatMap((kind) => T.layersOf(exploration, kind));
    return [
      T.select(
        "step-layer",
        T.say("steps.layer"),
        layers.map((layer) => [
          layer.name,
          T.say("name.layer", { kind: T.kindName(layer.kind), layer: layer.layer + 1 }),
        ]),
        at.layer.name,
        (name) => T.go({ layer: name, head: at.head, query: 0 }),
      ),
      T.select(
        "step-head",
        T.say("steps.head"),
        T.range(at.layer.shape[0]).map((head) => [head, head + 1]),
        at.head,
        (head) => T.go({ layer: at.layer.name, head }),
      ),
      T.select(
        "step-query",
        T.say("steps.query"),
        at.rows.map((row, i) => [i, `${i + 1} ${row.text}`]),
        at.query,
        (query) => T.go({ layer: at.layer.name, head: at.head, query }),
      ),
    ];
  }

  /** The steps that this computation has. */
  T.stepsOf = (d) =>
    [
      "score",
      d.divisor ? "scale" : "",
      d.bias ? "bias" : "",
      d.mask.every(Boolean) ? "" : "mask",
      "weigh",
      "sum",
      d.joined.length > d.head_output.length ? "join" : "",
      d.output ? "output" : "",
    ].filter(Boolean);

  const WITH_NUMBERS = ["score", "scale", "bias", "weigh"]; // steps whose formula shows those of one key

  function show(area, scene, d, at) {
    const names = T.stepsOf(d);
    const reached = Math.max(1, Math.min(names.length, Number(scene.state.step) || 1));
    const now = names[reached - 1];
    const key = d.weights.indexOf(Math.max(...d.weights));
    const words = {
      query: d.query_token,
      key: d.columns[key],
      formula: d.formula,
      width: d.width,
      divisor: T.short(d.divisor || 1),
      head: (at ? at.head : 0) + 1,
    };
    T.fill(
      area,
      T.html(
        "section",
        { class: "figure stepper", "aria-live": "polite" },
        stepper(names, reached),
        T.html("h2", { class: "figure-title" }, `${reached}. ${T.say(`step.${now}`)}`),
        T.html("p", {}, T.say(now === "score" && !T.isDot(d) ? "step.score.why.other" : `step.${now}.why`, words)),
        T.html(
          "div",
          { class: "formula-box", tabindex: "0", role: "group", "aria-label": T.say(`step.${now}`) },
          T.formula(now, d, key),
          WITH_NUMBERS.includes(now) && T.html("p", { class: "hint" }, T.say("steps.for", words)),
        ),
      ),
      T.figure({
        name: "steps",
        title: T.say(d.example ? "steps.title.example" : "steps.title", words),
        picture: T.stepsPicture(area, d, names.slice(0, reached), at ? at.head : 0),
        wide: true,
        table: () => table(d),
        caption: T.say("steps.caption"),
      }),
    );
    requestAnimationFrame(() => reveal(area));
  }

  /** Scrolls the picture's own box to the column of the step reached. */
  T.reveal = reveal;
  function reveal(area) {
    const box = area.querySelector(".scroll"),
      now = area.querySelector(".picture .now");
    if (!box || !now || box.scrollWidth <= box.clientWidth) return;
    box.scrollLeft =
      Number(now.getAttribute("x")) - Math.max(0, box.clientWidth - Number(now.getAttribute("width"))) / 2;
  }

  function stepper(names, reached) {
    const go = (step) => T.go({ step }, true);
    return T.html(
      "div",
      { class: "stepper-head" },
      T.html(
        "ol",
        { class: "stepper-steps" },
        names.map((name, i) =>
          T.html(
            "li",
            {},
            T.html(
              "button",
              {
                type: "button",
                id: `step-${i + 1}`,
                "aria-current": i + 1 === reached ? "step" : false,
                class: i < reached ? "done" : "",
                on: { click: () => go(i + 1) },
              },
              T.html("span", { class: "step-number" }, i + 1),
              T.say(`step.${name}`),
            ),
          ),
        ),
      ),
      T.html(
        "div",
        { class: "stepper-walk" },
        T.html(
          "button",
          {
            type: "button",
            class: "plain",
            id: "step-back",
            disabled: reached === 1,
            on: { click: () => go(reached - 1) },
          },
          T.say("steps.back"),
        ),
        T.html(
          "button",
          {
            type: "button",
            class: "primary",
            id: "step-next",
            disabled: reached === names.length,
            on: { click: () => go(reached + 1) },
          },
          T.say("steps.next"),
        ),
      ),
    );
  }

  const table = (d) => ({
    head: [
      T.say("steps.key"),
      T.isDot(d) ? "q · k" : T.say("step.score.short"),
      ...(d.divisor ? [`÷ ${T.short(d.divisor)}`] : []),
      ...(d.bias ? [T.say("step.bias")] : []),
      T.say("step.mask"),
      T.say("step.weigh"),
    ],
    rows: d.columns.map((name, j) => [
      name,
      T.short(d.scores[j]),
      ...(d.divisor ? [T.short(d.scaled[j])] : []),
      ...(d.bias ? [T.short(d.bias[j])] : []),
      T.say(d.mask[j] ? "steps.may" : "steps.may.not"),
      T.number(d.weights[j]),
    ]),
  });
})(window.Transduce);
