/* "Why not ..?": another output, token by token, where it loses log p, and which source words move it.

   As interpret/why_not.py, which answers where there is a server. */
"use strict";
(function (T) {
  const MOST_WORDS = 40;

  /** The answer of /v1/explore/why by a model that runs in the page; null for one that writes all tokens at once.
      tokens: of its own output. */
  T.whyIn = (live, text, tokens, other) => {
    if (live.model.atOnce) return null;
    const { tokenizer } = live.target;
    const ids = { own: tokenizer.ids(tokens), other: tokenizer.encode(other) };
    const explored = (name, changes) => live.explore(text, { target: ids[name], changes });
    const whole = { own: explored("own"), other: explored("other") };
    const names = whole.own.attention.filter(({ columns }) => columns === "source").map(({ name }) => name);
    const words = whole.own.source.words.filter(({ start, end }) => end > start);
    const change = (name, cut) => explored(name, { cut }).log_probability - whole[name].log_probability;
    return {
      own: told(whole.own),
      other: told(whole.other),
      words: words.map(({ text: word, start, end, tokens: keys }) => {
        const cut = names.flatMap((name) => keys.map((key) => ({ name, key })));
        return { word, start, end, own: change("own", cut), other: change("other", cut) };
      }),
    };
  };

  const told = ({ target, nbest: [listed], alternatives, log_probability }) => ({
    log_probability,
    tokens: listed.token_log_probabilities.map((value, i) => ({
      token: target.tokens[i].text,
      log_probability: value,
      likeliest: alternatives[i][0],
    })),
  });

  /** The question, and the answer where one was asked; null for models that do not weigh one token after the other. */
  T.whyNot = (area, scene) => {
    const { exploration, shows, state } = scene;
    if (!shows.beam || !exploration.source || exploration.recording || state.written || !T.answers(scene.model))
      return null;
    const box = T.html("input", {
      type: "text",
      id: "why",
      value: state.why,
      spellcheck: "false",
      dir: "auto",
      lang: scene.info.target || false,
      placeholder: exploration.target.text,
    });
    const ask = (event) => (event.preventDefault(), T.go({ why: box.value.trim() }));
    const answer = T.html("div", { class: "stack", id: "why-answer", "aria-live": "polite" });
    const form = T.html(
      "form",
      { class: "offer", on: { submit: ask } },
      T.html("h2", {}, T.say("why.title")),
      T.html("p", {}, T.say("why.offer")),
      T.html(
        "div",
        { class: "controls" },
        T.html("label", { class: "grow" }, T.say("why.label"), box),
        T.html("button", { type: "submit", id: "why-ask" }, T.say("why.ask")),
      ),
    );
    if (state.why) answered(answer, area, scene);
    return [form, state.why && answer];
  };

  async function answered(place, area, scene) {
    T.fill(place, T.html("p", { class: "hint" }, "…"));
    try {
      const found = await T.ask.why(scene.model, scene.text, scene.tokens, scene.state.why);
      if (scene.current()) T.fill(place, outputs(found), words(area, found));
    } catch (error) {
      if (scene.current()) T.fill(place, T.html("p", { class: "error", role: "alert" }, error.message));
    }
  }

  /** The place where an output's token lies furthest below the likeliest one. */
  function loss({ tokens }) {
    const lost = tokens.map((each) => each.likeliest.log_probability - each.log_probability);
    const at = lost.indexOf(Math.max(...lost));
    return { at, lost: lost[at], ...tokens[at] };
  }

  function outputs(found) {
    const { at, lost, token, log_probability, likeliest } = loss(found.other);
    const say = (value) => T.scientific(value);
    const sums = { own: say(found.own.log_probability), other: say(found.other.log_probability) };
    const sentence =
      lost > 0
        ? T.say("why.loses", {
            ...sums,
            ...{ token, p: say(log_probability), likeliest: likeliest.token, most: say(likeliest.log_probability) },
          })
        : T.say("why.loses.nowhere", sums);
    return T.html(
      "section",
      { class: "figure", "data-name": "why" },
      T.html("h2", { class: "figure-title" }, T.say("why.tokens")),
      T.html("p", { class: "caption", id: "why-told" }, sentence),
      T.html(
        "div",
        { class: "pair" },
        list(T.say("why.own"), found.own, -1),
        list(T.say("why.other"), found.other, lost > 0 ? at : -1),
      ),
      T.html("p", { class: "note" }, T.say("why.note")),
    );
  }

  function list(title, { tokens }, worst) {
    return T.html(
      "div",
      {},
      T.html("h3", {}, title),
      T.html(
        "ol",
        { class: "next why" },
        tokens.map(({ token, log_probability, likeliest }, i) =>
          T.html(
            "li",
            { class: i === worst ? "worst" : "" },
            T.html("span", { class: "piece" }, token),
            T.meter(Math.exp(log_probability)),
            T.html("span", { class: "number" }, T.scientific(log_probability)),
            T.html(
              "span",
              { class: "hint" },
              likeliest.token === token ? "" : T.say("why.rather", { token: likeliest.token }),
            ),
          ),
        ),
      ),
    );
  }

  /** What a cut of each source word changes in log p(other) - log p(own). */
  function words(area, found) {
    if (!found.words.length) return null;
    const rows = found.words.map((each) => ({ name: each.word, change: each.other - each.own }));
    const shown = rows.length <= MOST_WORDS ? rows : strongest(rows);
    const most = strongest(rows)[0];
    return T.figure({
      name: "why-words",
      title: T.say("why.words"),
      caption: T.say("why.words.caption"),
      picture: T.changeBars(area, shown, T.say("why.words.label", { word: most.name }), T.scientific),
      note: T.say("why.words.note"),
      table: () => ({
        head: [T.say("flow.word"), T.say("why.own"), T.say("why.other"), T.say("why.difference")],
        rows: found.words.map((each) => [
          each.word,
          ...[each.own, each.other, each.other - each.own].map(T.scientific),
        ]),
      }),
    });
  }

  const strongest = (rows) =>
    [...rows].sort((one, other) => Math.abs(other.change) - Math.abs(one.change)).slice(0, MOST_WORDS);
})(window.Transduce);
