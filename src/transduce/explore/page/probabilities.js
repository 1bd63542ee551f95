/* How sure the model was: for each token what else it could have said, and the other outputs it found. */
"use strict";
(function (T) {
  const ROW = 34,
    BAR = 26,
    LEAST_LABEL = 30;

  T.views.probabilities = {
    needs: "exploration",
    draw(area, scene) {
      const stack = T.html("div", { class: "stack" });
      T.fill(area, stack);
      const output = lookedAt(scene);
      T.fill(stack, shares(stack, scene, output), T.html("div", {}, list(scene)), T.fromMemory(scene), T.whyNot(stack, scene));
    },
  };

  /** The output of the n-best list that is looked at, with what is known of its tokens. */
  function lookedAt({ exploration, state }) {
    const place = T.place(state.best, exploration.nbest.length);
    const other = exploration.nbest[place];
    const alternatives = place <= 0 ? exploration.alternatives : null;
    const pieces = [
      ...other.tokens.map(T.piece),
      ...(other.token_log_probabilities.length > other.tokens.length ? ["</s>"] : []),
    ];
    const texts = place <= 0 ? exploration.target.tokens.map((token) => token.text) : pieces;
    return {
      place,
      text: other ? other.text : exploration.target.text,
      texts,
      logs: other.token_log_probabilities,
      alternatives,
    };
  }

  /** A model's own piece without its word mark. */
  T.piece = (text) => (text.length > 1 && text.startsWith("▁") ? text.slice(1) : text);

  /** The segments of one token's bar: {token, p, chosen}, the chosen one first, then the likeliest others. */
  function segments(output, i) {
    const chosen = { token: output.texts[i], p: Math.exp(output.logs[i]), chosen: true };
    const others = (output.alternatives?.[i] || []).map((each) => ({
      token: each.token,
      p: Math.exp(each.log_probability),
    }));
    let skipped = false;
    const rest = others.filter((each) => {
      const mine = !skipped && each.token === chosen.token && Math.abs(each.p - chosen.p) < 0.02;
      skipped ||= mine;
      return !mine;
    });
    return [chosen, ...rest];
  }

  function shares(area, scene, output) {
    const count = Math.min(output.texts.length, output.logs.length);
    const width = T.widthOf(area, 280, 1240) - 40;
    const left = Math.min(width / 3.4, Math.max(...output.texts.map((text) => T.textWidth(text, 14)), 30) + 14);
    const room = width - left - 58;
    const height = count * ROW + 6;
    const picture = T.svg("svg", {
      class: "picture shares",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      tabindex: "0",
      role: "application",
      "aria-roledescription": T.say("shares.role"),
      "aria-label": T.say("shares.label", { text: output.text }),
    });
    const cells = [];
    for (let i = 0; i < count; i++) cells.push(row(picture, output, i, { left, room }));
    walk(picture, cells, output);
    return T.figure({
      name: "probabilities",
      title: T.say("shares.title"),
      picture,
      table: () => table(output, count),
      caption: T.say(output.alternatives ? "shares.caption" : "shares.caption.other"),
      note: T.say("shares.note"),
    });
  }

  function row(picture, output, i, { left, room }) {
    const y = i * ROW + 3,
      middle = y + BAR / 2 + 5;
    const parts = segments(output, i);
    picture.append(
      T.svg(
        "text",
        { x: left - 10, y: middle, "text-anchor": "end", class: "share-token" },
        T.fit(parts[0].token, left - 12, 14),
      ),
      T.svg("rect", { x: left, y, width: room, height: BAR, rx: 4, class: "share-rest" }),
      T.svg("text", { x: left + room + 8, y: middle, class: "share-number" }, T.percent(parts[0].p)),
    );
    let x = left;
    return parts.map((part, place) => {
      const wide = Math.min(part.p * room, left + room - x);
      const strength = part.chosen ? 0.82 : Math.max(0.12, 0.5 - 0.09 * place);
      const rect = T.svg("rect", {
        x,
        y,
        width: Math.max(0, wide - 1),
        height: BAR,
        rx: 3,
        fill: T.weightColour(strength),
        class: "share",
      });
      picture.append(rect);
      if (wide > LEAST_LABEL && !part.chosen) {
        picture.append(
          T.svg(
            "text",
            { x: x + 7, y: middle, class: "share-label", style: { fill: T.weightText(strength) } },
            T.fit(part.token, wide - 12, 13),
          ),
        );
      }
      x += wide;
      return { rect, part, row: i };
    });
  }

  const tell = (output, i, parts) => [
    T.say("shares.at", { place: i + 1, token: output.texts[i] }),
    ...parts.slice(0, 10).map(({ part }) => `${part.chosen ? "● " : ""}${part.token}  ${T.percent(part.p)}`),
  ];

  function walk(picture, rows, output) {
    let at = 0;
    const light = (i) =>
      picture
        .querySelectorAll(".share")
        .forEach((rect) => rect.classList.toggle("dim", i >= 0 && !rows[i].some((each) => each.rect === rect)));
    const leave = () => (light(-1), T.untip());
    const height = () => picture.getBoundingClientRect().height / picture.viewBox.baseVal.height;
    T.pointed(picture, {
      show(event) {
        const i = Math.floor((event.clientY - picture.getBoundingClientRect().top) / (ROW * height()));
        if (!rows[i]) return leave();
        at = i;
        light(i);
        T.tip(event.clientX, event.clientY, tell(output, i, rows[i]));
      },
      hide: leave,
    });
    picture.addEventListener("blur", leave);
    const show = () => {
      const box = picture.getBoundingClientRect();
      light(at);
      T.tip(box.left + 80, box.top + (at + 1) * ROW * height(), tell(output, at, rows[at]));
      T.announce(tell(output, at, rows[at]).join(", "));
    };
    picture.addEventListener("focus", () => picture.matches(":focus-visible") && show());
    picture.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") return leave();
      if (!by) return;
      event.preventDefault();
      at = Math.max(0, Math.min(rows.length - 1, at + by));
      show();
    });
  }

  const table = (output, count) => ({
    head: [T.say("shares.token"), T.say("shares.p"), T.say("shares.others")],
    rows: T.range(count).map((i) => {
      const [chosen, ...others] = segments(output, i);
      return [chosen.token, T.percent(chosen.p), others.map((each) => `${each.token} ${T.percent(each.p)}`).join(", ")];
    }),
  });

  /** The outputs found, best first; words that the first has not are underlined. */
  function list({ exploration, state }) {
    const best = exploration.nbest[0];
    const chosen = T.place(state.best, exploration.nbest.length);
    return T.html(
      "section",
      { class: "figure" },
      T.html("h2", { class: "figure-title" }, T.say("nbest.title")),
      T.html("p", { class: "caption" }, T.say("nbest.caption")),
      T.html(
        "ol",
        { class: "nbest" },
        exploration.nbest.map((each, i) =>
          T.html(
            "li",
            {},
            T.html(
              "button",
              {
                type: "button",
                class: "nbest-item",
                id: `nbest-${i}`,
                "aria-pressed": String(i === chosen),
                on: { click: () => T.go({ best: i || "" }) },
              },
              T.html(
                "span",
                { class: "nbest-text" },
                each.text ? T.marked(each.text, best.text) : T.say("prediction.empty"),
              ),
              T.html(
                "span",
                { class: "nbest-facts" },
                T.say("nbest.facts", { score: T.short(each.score), p: T.percent(Math.exp(each.log_probability)) }),
              ),
            ),
          ),
        ),
      ),
    );
  }

  /** The words of a text, those that another text lacks in <mark>. */
  T.marked = (text, other) => {
    const pieces = T.pieces(text);
    const texts = (parts) => parts.map((each) => each.text);
    const known = T.common(texts(pieces), texts(T.pieces(other)));
    return pieces.map((each, i) => (known.has(i) || !each.word ? each.text : T.html("mark", {}, each.text)));
  };

  /** Places of `words` that a longest common subsequence with `others` holds: Map place -> place in the other. */
  T.common = (words, others) => {
    const n = words.length,
      m = others.length;
    const length = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
    for (let i = n - 1; i >= 0; i--) {
      for (let j = m - 1; j >= 0; j--) {
        length[i][j] = words[i] === others[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
      }
    }
    const found = new Map();
    for (let i = 0, j = 0; i < n && j < m;) {
      if (words[i] === others[j]) found.set(i++, j++);
      else if (length[i + 1][j] >= length[i][j + 1]) i++;
      else j++;
    }
    return found;
  };
})(window.Transduce);
