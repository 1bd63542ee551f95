/* Sentences to begin with: held-out ones that the model file holds, or some in the language that the model reads. */
"use strict";
(function (T) {
  const SENTENCES = {
    en: [
      "Two dogs run through the snow.",
      "A man in a blue shirt is standing on a ladder cleaning a window.",
      "The animal didn't cross the street because it was too tired.",
      "The animal didn't cross the street because it was too wide.",
    ],
    de: [
      "Zwei Hunde rennen durch den Schnee.",
      "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
      "Das Tier ging nicht über die Straße, weil es zu müde war.",
    ],
    fr: ["Deux chiens courent dans la neige.", "L'animal n'a pas traversé la rue parce qu'il était trop fatigué."],
    zh: ["两只狗在雪地里奔跑。", "那只动物没有过马路，因为它太累了。"],
  };

  /** Sentences to choose from: those in the offline file, else the model's own, else some in its language. */
  T.examples = (model) => {
    if (T.offline) return T.ask.examples(model.name);
    if (model.accepts_audio) {
      for (const url of model.examples ?? []) T.keepSound(nameIn(url), url);
      return T.sounds();
    }
    if (model.examples?.length) return model.examples;
    const language = String(model.source || model.target || "")
      .slice(0, 2)
      .toLowerCase();
    return SENTENCES[language] || [];
  };

  /** The file's name in a data: URL. */
  const nameIn = (url) => decodeURIComponent(/^data:[^,;]*;name=([^,;]*)/.exec(url)?.[1] ?? "").slice(0, 80);

  /** What a link says of where to look; where it says nothing, the page opens where attention is best seen. */
  const CHOSEN = ["text", "written", "kind", "layer", "head", "row", "cut", "best"];

  /** The state with the head and the row that the model file names for its first example; null where it names none,
      or the link says something else. */
  T.openedAt = ({ state, info, exploration, text }) => {
    const { opening, examples } = info;
    if (!opening || text !== examples[0] || T.chosenIn(state, CHOSEN)) return null;
    const layer = exploration?.attention.find((each) => each.name === opening.layer);
    if (!layer) return null;
    const rows = T.axis(exploration, layer.rows, layer.shape[1], state.unit);
    const row = rows.findIndex((each) => each.tokens.includes(opening.row));
    return { kind: layer.kind, layer: opening.layer, head: opening.head, row: row < 0 ? "" : row };
  };

  /** The sentence that the page opens on; none where nothing is known that the model was made for. */
  T.opening = (model) => (T.offline || model.examples?.length ? T.examples(model)[0] : "") || "";
})(window.Transduce);
