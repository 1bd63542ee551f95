/* A text of several sentences: the output of all of them, each leading to what the model did with it. */
"use strict";
(function (T) {
  /** All outputs with the white space between them; the one that is looked at is marked. Null for one sentence. */
  T.wholeText = (scene) => {
    const { whole } = scene.exploration;
    if (!whole) return null;
    const parts = [];
    let done = 0;
    whole.sentences.forEach(({ text, output }, i) => {
      const at = whole.output.indexOf(output, done);
      parts.push(whole.output.slice(done, at), sentence(scene, text, output, i));
      done = at + output.length;
    });
    return T.html(
      "p",
      {
        class: "whole",
        id: "whole",
        role: "group",
        "aria-label": T.say("prediction.whole"),
        lang: scene.info.target || false,
        dir: "auto",
      },
      parts,
      whole.output.slice(done),
    );
  };

  function sentence(scene, text, output, i) {
    const { whole } = scene.exploration;
    const there = { sentence: i ? String(i) : "", row: "", node: "", best: "" };
    return T.html(
      "a",
      {
        href: T.linkTo(there),
        id: `sentence-${i}`,
        title: T.say("prediction.sentence", { n: i + 1, count: whole.sentences.length, text }),
        "aria-current": String(i === whole.sentence),
        on: { click: (event) => (event.preventDefault(), T.go(there)) },
      },
      output || T.say("prediction.empty"),
    );
  }
})(window.Transduce);
