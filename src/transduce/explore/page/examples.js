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
    if (model.accepts_audio) return T.sounds();
    if (model.examples?.length) return model.examples;
    const language = String(model.source || model.target || "")
      .slice(0, 2)
      .toLowerCase();
    return SENTENCES[language] || [];
  };

  /** The sentence that the page opens on; none where nothing is known that the model was made for. */
  T.opening = (model) => (T.offline || model.examples?.length ? T.examples(model)[0] : "") || "";
})(window.Transduce);
