/* Which attention is looked at: the layers of a kind, a head, a mean, the roll-out; and what these are called. */
"use strict";
(function (T) {
  const ORDER = ["cross", "encoder", "decoder", "other"];

  /** The kinds of attention that there are, the most telling first. */
  T.kinds = (exploration) => ORDER.filter((kind) => exploration.attention.some((layer) => layer.kind === kind));
  T.layersOf = (exploration, kind) => exploration.attention.filter((layer) => layer.kind === kind);
  /** A text that a task may have of its own: pooling for a label is no attention between two texts. */
  T.sayOf = (key) => T.say(T.says(`${key}.${T.model?.task}`) ? `${key}.${T.model.task}` : key);
  T.kindName = (kind) => T.sayOf(`kind.${kind}`);

  /** Why there is no attention: the model has none, or labels a text that it reads in windows. */
  T.noAttention = () =>
    T.say(T.model.task === "tagging" && T.model.layers.length ? "marks.windows" : "attention.none");

  /** The choice that the link names, made good where this model has no such thing:
      {kind, layer: Layer | null, head: number | null, over: "layer" | "mean" | "rollout"}. */
  T.chosen = (exploration, state = T.state()) => {
    const kinds = T.kinds(exploration);
    if (!kinds.length) return null;
    const named = exploration.attention.find((layer) => layer.name === state.layer);
    const kind = named ? named.kind : kinds.includes(state.kind) ? state.kind : kinds[0];
    const layers = T.layersOf(exploration, kind);
    const alone = layers.length === 1 && state.layer === "mean";
    const layer = named || (alone || !sameShape(layers) ? layers.at(-1) : null);
    if (!layer) return { kind, layer: null, head: null, over: state.layer === "rollout" ? "rollout" : "mean" };
    const head = Number(state.head);
    const known = state.head !== "mean" && Number.isInteger(head) && head >= 0 && head < layer.shape[0];
    return { kind, layer, head: known ? head : layer.shape[0] === 1 ? 0 : null, over: "layer" };
  };

  const sameShape = (layers) =>
    layers.every((layer) => String(layer.shape.slice(1)) === String(layers[0].shape.slice(1)));
  /** Whether the mean of a kind's layers has a meaning. */
  T.canMean = (layers) => layers.length > 1 && sameShape(layers);

  /** The link's part for a choice. */
  T.choiceState = ({ kind, layer, head, over }) => ({
    kind,
    layer: layer ? layer.name : over,
    head: head === null ? "mean" : head,
    row: "",
  });

  /** What a choice is called. */
  T.choiceName = (choice) => {
    const kind = T.kindName(choice.kind);
    if (choice.over === "rollout") return T.say("name.rollout", { kind });
    if (!choice.layer) return T.say("name.layers", { kind });
    const layer = choice.layer.layer + 1;
    if (choice.head === null) return T.say("name.heads", { kind, layer });
    if (choice.layer.shape[0] === 1) return T.say("name.single", { kind, layer });
    return T.say("name.head", { kind, layer, head: choice.head + 1 });
  };

  /** The like choice in another exploration: same kind, layer and head, or the mean where there is no such head. */
  T.sameChoice = (exploration, choice) => {
    const layers = T.layersOf(exploration, choice.kind);
    if (!layers.length) return null;
    if (!choice.layer && T.canMean(layers)) return { ...choice, over: "mean" };
    const layer = layers.find((each) => choice.layer && each.layer === choice.layer.layer) || layers.at(-1);
    return {
      kind: choice.kind,
      layer,
      over: "layer",
      head: choice.head !== null && choice.head < layer.shape[0] ? choice.head : null,
    };
  };

  /** Two selects: a layer or the mean of all of a kind, and a head or the mean of all. */
  T.choiceSelects = (exploration, choice) => {
    const layers = T.kinds(exploration).flatMap((kind) => [
      ...(T.canMean(T.layersOf(exploration, kind))
        ? [[`mean ${kind}`, T.say("name.layers", { kind: T.kindName(kind) })]]
        : []),
      ...T.layersOf(exploration, kind).map((layer) => [
        layer.name,
        T.say("name.layer", { kind: T.kindName(kind), layer: layer.layer + 1 }),
      ]),
    ]);
    const heads = choice.layer
      ? [
          ["mean", T.say("choice.heads")],
          ...T.range(choice.layer.shape[0]).map((head) => [head, T.say("choice.head", { head: head + 1 })]),
        ]
      : [];
    return [
      T.select(
        "choose-layer",
        T.say("steps.layer"),
        layers,
        choice.layer ? choice.layer.name : `mean ${choice.kind}`,
        (name) =>
          T.go(name.startsWith("mean ") ? { kind: name.slice(5), layer: "mean", head: "mean" } : { layer: name }),
      ),
      heads.length > 2 &&
        T.select("choose-head", T.say("steps.head"), heads, choice.head ?? "mean", (head) =>
          T.go({ layer: choice.layer.name, head }),
        ),
    ];
  };

  /** The matrix of a choice. rollout: the server's answer, where that is chosen. */
  T.matrix = (exploration, choice, unit, rollout = null) => {
    const like = choice.layer || T.layersOf(exploration, choice.kind)[0];
    const [T_, S] = like.shape.slice(1);
    const rows = T.axis(exploration, like.rows, T_, unit),
      columns = T.axis(exploration, like.columns, S, unit);
    const values = T.joined(tokensOf(exploration, choice, rollout), T_, S, rows, columns);
    return { values, T: rows.length, S: columns.length, rows, columns, causal: like.causal, like };
  };

  function tokensOf(exploration, choice, rollout) {
    if (choice.over === "rollout") return T.unpacked(rollout[choice.kind]);
    if (!choice.layer) return T.meanOfLayers(T.layersOf(exploration, choice.kind));
    return choice.head === null ? T.meanOfHeads(choice.layer) : T.headOf(choice.layer, choice.head);
  }

  /** What rows or columns of a layer are: "Output, word by word", "Source" ... */
  T.axisName = (name) => T.sayOf(T.says(`axis.${name}`) ? `axis.${name}` : "axis.other");
})(window.Transduce);
