/* Which heads matter: what the output's log-probability loses when one head is switched off. */
"use strict";
(function (T) {
  const BAR = 15,
    LEFT = 118,
    RIGHT = 72,
    MOST = 14;

  /** (layer name, head) -> change, of the scene's sentence. */
  T.worthOf = async (scene) => {
    const answer = await T.ask.heads(scene.model, scene.text, scene.tokens);
    const changes = new Map(answer.heads.map((each) => [`${each.name}\n${each.head}`, each.change]));
    const find = (name, head) => changes.get(`${name}\n${head}`);
    find.all = answer.heads;
    return find;
  };

  /** The heads that matter most, as bars; before that, a button that has them measured. */
  T.worthFigure = (area, { scene, worth }) => {
    if (!scene.shows.importance || (!T.answers(scene.model) && !scene.exploration.heads)) return null;
    if (!worth) {
      return T.html(
        "section",
        { class: "offer" },
        T.html("h2", {}, T.say("worth.title")),
        T.html("p", {}, T.say("worth.offer")),
        T.html(
          "button",
          { type: "button", id: "measure", on: { click: () => T.go({ worth: "1" }) } },
          T.say("worth.measure"),
        ),
      );
    }
    const heads = [...worth.all].sort((one, other) => one.change - other.change);
    const shown = heads.length <= MOST ? heads : [...heads.slice(0, MOST - 2), ...heads.slice(-2)];
    return T.figure({
      name: "heads",
      title: T.say("worth.title"),
      caption: T.say("worth.caption"),
      picture: bars(area, shown, scene),
      table: () => ({
        head: [T.say("overview.head"), T.say("worth.change")],
        rows: heads.map((each) => [nameOf(each), T.scientific(each.change)]),
      }),
      note: [
        heads.length > shown.length ? T.say("worth.cut", { shown: MOST - 2, all: heads.length }) : T.say("worth.note"),
        " ",
        T.say("worth.redundant"),
      ],
    });
  };

  const nameOf = (each) =>
    T.say("name.head", { kind: T.kindName(each.kind), layer: each.layer + 1, head: each.head + 1 });
  const shortName = (each) =>
    T.say("name.short", { kind: T.sayOf(`short.${each.kind}`), layer: each.layer + 1, head: each.head + 1 });

  function bars(area, heads, scene) {
    const rows = heads.map((each) => {
      const layer = scene.exploration.attention.find((found) => found.name === each.name);
      const choice = layer && { kind: layer.kind, layer, head: each.head, over: "layer" };
      return { name: shortName(each), full: nameOf(each), change: each.change, goes: choice && T.choiceState(choice) };
    });
    return T.changeBars(area, rows, T.say("worth.label"), T.scientific);
  }

  /** Signed changes as bars, below 0 to the left. rows: [{name, full, change, goes: the state that a click leads to}]. */
  T.changeBars = (area, rows, label, print) => {
    const width = T.widthOf(area, 240, 760) - 38,
      room = width - LEFT - RIGHT;
    const changes = rows.map((each) => each.change);
    const x = d3.scaleLinear([Math.min(0, ...changes), Math.max(0, ...changes, 1e-9)], [0, room]);
    const height = rows.length * (BAR + 5) + 4;
    const most = Math.max(...changes.map(Math.abs), 1e-9);
    const picture = T.svg("svg", {
      class: "picture bars",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "group",
      "aria-label": label,
    });
    rows.forEach((each, i) => {
      const y = i * (BAR + 5) + 2;
      const from = LEFT + Math.min(x(0), x(each.change)),
        long = Math.abs(x(each.change) - x(0));
      picture.append(
        T.svg(
          "g",
          {},
          T.svg(
            "text",
            { x: LEFT - 8, y: y + 12, "text-anchor": "end", class: "bar-name" },
            T.fit(each.name, LEFT - 10, 12),
          ),
          T.svg("rect", {
            x: from,
            y,
            width: Math.max(long, 1),
            height: BAR,
            rx: 2,
            fill: T.signedColour(each.change / most),
            class: "bar",
          }),
          T.svg("text", { x: LEFT + room + 6, y: y + 12, class: "bar-number" }, print(each.change)),
          each.goes && link(each, { y, width }),
        ),
      );
    });
    return picture;
  };

  const link = (each, { y, width }) =>
    T.svg(
      "a",
      {
        href: T.linkTo(each.goes),
        "aria-label": each.full,
        on: { click: (event) => (event.preventDefault(), T.go(each.goes)) },
      },
      T.svg("rect", { x: 0, y: y - 2, width, height: BAR + 5, class: "catch" }),
    );
})(window.Transduce);
