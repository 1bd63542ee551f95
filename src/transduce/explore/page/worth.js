/* Which heads matter: what the output's log-probability loses when one head is switched off. */
"use strict";
(function (T) {
  const BAR = 15,
    LEFT = 118,
    RIGHT = 56,
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
        rows: heads.map((each) => [nameOf(each), T.number(each.change)]),
      }),
      note:
        heads.length > shown.length ? T.say("worth.cut", { shown: MOST - 2, all: heads.length }) : T.say("worth.note"),
    });
  };

  const nameOf = (each) =>
    T.say("name.head", { kind: T.kindName(each.kind), layer: each.layer + 1, head: each.head + 1 });
  const shortName = (each) =>
    T.say("name.short", { kind: T.sayOf(`short.${each.kind}`), layer: each.layer + 1, head: each.head + 1 });

  function bars(area, heads, scene) {
    const width = T.widthOf(area, 240, 760) - 38,
      room = width - LEFT - RIGHT;
    const changes = heads.map((each) => each.change);
    const x = d3.scaleLinear([Math.min(0, ...changes), Math.max(0, ...changes, 1e-9)], [0, room]);
    const height = heads.length * (BAR + 5) + 4;
    const most = Math.max(...changes.map(Math.abs), 1e-9);
    const picture = T.svg("svg", {
      class: "picture bars",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "group",
      "aria-label": T.say("worth.label"),
    });
    heads.forEach((each, i) => {
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
            T.fit(shortName(each), LEFT - 10, 12),
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
          T.svg("text", { x: LEFT + room + 6, y: y + 12, class: "bar-number" }, T.number(each.change)),
          link(each, { y, width, scene }),
        ),
      );
    });
    return picture;
  }

  function link(each, { y, width, scene }) {
    const layer = scene.exploration.attention.find((found) => found.name === each.name);
    if (!layer) return null;
    const open = () => T.go(T.choiceState({ kind: layer.kind, layer, head: each.head, over: "layer" }));
    return T.svg(
      "a",
      {
        href: T.linkTo(T.choiceState({ kind: layer.kind, layer, head: each.head, over: "layer" })),
        "aria-label": nameOf(each),
        on: { click: (event) => (event.preventDefault(), open()) },
      },
      T.svg("rect", { x: 0, y: y - 2, width, height: BAR + 5, class: "catch" }),
    );
  }
})(window.Transduce);
