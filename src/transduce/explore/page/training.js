/* How the model was trained, or is being trained: curves, and what it says of the same sentences as it learns. */
"use strict";
(function (T) {
  const PAUSE = 3000;
  const NOT_METRICS = ["event", "update", "loss", "perplexity", "epoch", "seconds", "tokens"];
  let known = { model: null, events: [], size: 0 };

  T.views.training = {
    needs: "training",
    async draw(area, scene) {
      if (known.model !== scene.model) known = { model: scene.model, events: [], size: 0, finished: false };
      await more(scene);
      if (scene.current()) show(area, scene);
      if (!known.finished && !T.offline) later(area, scene);
    },
  };

  /** Asks for what is new since the last time; whether anything was. */
  async function more(scene) {
    if (known.finished && known.events.length) return false;
    const answer = await T.ask.training(scene.model, known.size);
    if (known.model !== scene.model) return false;
    if (answer.size < known.size) known.events = [];
    known = { ...known, events: [...known.events, ...answer.events], size: answer.size };
    const changed = known.finished !== answer.finished || known.stopped !== answer.stopped;
    known = { ...known, finished: answer.finished, stopped: answer.stopped };
    return answer.events.length > 0 || changed;
  }

  function later(area, scene) {
    setTimeout(async () => {
      if (!scene.current()) return;
      const news = await more(scene).catch(() => false);
      if (!scene.current()) return;
      if (news) T.keepingFocus(() => show(area, scene));
      if (!known.finished) later(area, scene);
    }, PAUSE);
  }

  const stateOf = ({ finished, stopped }) =>
    finished ? "finished" : stopped ? "stopped" : T.offline ? "saved" : "live";

  function show(area, scene) {
    const train = known.events.filter((event) => event.event === "train"),
      validation = known.events.filter((event) => event.event === "validation");
    const last = known.events.at(-1);
    const status = T.html(
      "p",
      { class: "lead", id: "training-status" },
      last
        ? T.say(`training.${stateOf(known)}`, { update: T.whole(last.update) })
        : T.say("training.waiting"),
    );
    const grid = T.html("div", { class: "pair" });
    T.fill(area, status, grid, samples(scene));
    const charts = chartsOf(train, validation);
    const boxes = charts.map(() => T.html("div", {}));
    T.fill(grid, boxes);
    charts.forEach((chart, i) => T.fill(boxes[i], figure(boxes[i], chart)));
  }

  /** What there is to draw: the loss, each metric, the learning rate, the speed. */
  function chartsOf(train, validation) {
    const colours = [T.headColour(0), T.headColour(1)];
    const series = (name, events, key, colour, dots) => ({
      name,
      colour,
      dots,
      points: events.filter((event) => Number.isFinite(event[key])).map((event) => [event.update, event[key]]),
    });
    const metrics = [...new Set(validation.flatMap((event) => Object.keys(event)))].filter(
      (key) => !NOT_METRICS.includes(key) && validation.some((event) => Number.isFinite(event[key])),
    );
    const charts = [
      {
        key: "loss",
        title: T.say("training.loss"),
        series: [
          series(T.say("training.train"), train, "loss", colours[0]),
          series(T.say("training.validation"), validation, "loss", colours[1], true),
        ],
      },
      ...metrics.map((key) => ({
        key,
        title: metricName(key),
        series: [series(metricName(key), validation, key, colours[1], true)],
      })),
      {
        key: "learning-rate",
        title: T.say("training.rate"),
        series: [series(T.say("training.rate"), train, "learning_rate", colours[0])],
      },
      {
        key: "speed",
        title: T.say("training.speed"),
        series: [series(T.say("training.speed"), train, "tokens_per_second", colours[0])],
      },
    ];
    return charts
      .map((chart) => ({ ...chart, series: chart.series.filter((each) => each.points.length) }))
      .filter((chart) => chart.series.length);
  }

  const metricName = (key) => (T.says(`metric.${key}`) ? T.say(`metric.${key}`) : key.replace(/_/g, " "));

  function figure(area, { key, title, series }) {
    const newest = series.map((each) => `${each.name} ${T.short(each.points.at(-1)[1])}`).join(", ");
    const picture = T.chart(area, {
      series,
      label: T.say("training.label", { title, newest }),
      xTitle: T.say("training.updates"),
    });
    const note = series.map((each) =>
      T.html(
        "span",
        { class: "key" },
        T.html("span", { class: "swatch", style: { background: each.colour } }),
        each.name,
        " ",
        T.html("strong", {}, T.short(each.points.at(-1)[1])),
      ),
    );
    return T.figure({
      name: `training-${key}`,
      title,
      picture,
      note,
      table: () => ({
        head: [T.say("training.updates"), ...series.map((each) => each.name)],
        rows: [...new Set(series.flatMap((each) => each.points.map((point) => point[0])))]
          .sort((one, two) => one - two)
          .map((update) => [
            T.whole(update),
            ...series.map((each) => {
              const point = each.points.find((found) => found[0] === update);
              return point ? T.short(point[1]) : "";
            }),
          ]),
      }),
    });
  }

  /** What the model said of held-out sentences at one of the times it was looked at. */
  function samples({ state }) {
    const found = known.events.filter((event) => event.event === "samples" && event.samples?.length);
    if (!found.length) return T.html("p", { class: "hint" }, T.say("training.samples.none"));
    const at = T.place(state.position, found.length, found.length - 1);
    const slider = T.html("input", {
      type: "range",
      id: "sample-time",
      min: "0",
      max: String(found.length - 1),
      value: String(at),
      on: { input: (event) => T.go({ position: event.target.value }, true) },
    });
    return T.html(
      "section",
      { class: "figure" },
      T.html("h2", { class: "figure-title" }, T.say("training.samples")),
      T.html(
        "div",
        { class: "controls" },
        T.html("label", {}, T.say("training.samples.at", { update: T.whole(found[at].update) }), slider),
      ),
      found[at].samples.map((each) =>
        T.html(
          "dl",
          { class: "sample" },
          T.html("dt", {}, T.say("training.source")),
          T.html("dd", {}, each.source),
          T.html("dt", {}, T.say("training.output")),
          T.html("dd", { class: "sample-output" }, each.output),
          T.html("dt", {}, T.say("training.reference")),
          T.html("dd", {}, each.reference),
        ),
      ),
    );
  }
})(window.Transduce);
