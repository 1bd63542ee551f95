/* What a model with an external memory reads, writes and says, step by step, and what the memory then holds.

   The picture of Graves et al. 2014, figure 6, which plays. */
"use strict";
(function (T) {
  const LEFT = 40,
    RIGHT = 12,
    TITLE = 20,
    GAP = 10,
    WIDEST = 16, // pixels of a step
    ROWS = [3, 11], // pixels of a row, and all of a panel in between
    PANEL = 84,
    SLOT = [4, 16],
    STRIP = 26,
    PACE = 140; // milliseconds a step

  T.drawings.memory_drawing = (area, scene, drawing) => {
    const panels = drawing.panels.map(panelOf);
    const steps = panels[0].steps;
    const stack = T.html("div", { class: "stack" });
    T.fill(area, stack);
    const over = overTime(area, panels, drawing.slots, (step) => player.show(step));
    const held = drawing.memory && contents(drawing, panels);
    const player = playerOf(steps, (step) => {
      over.at(step);
      held?.at(step);
    });
    const figure = T.figure({
      name: "over-time",
      title: T.say("memory.title"),
      caption: T.say(drawing.memory ? "memory.caption" : "memory.caption.none"),
      picture: over.picture,
      wide: true,
      tools: player.tools,
      table: () => tableOf(panels, drawing.slots),
      note: T.say("memory.note"),
    });
    stack.append(figure, held?.figure ?? "");
    player.show(steps - 1);
  };

  /** {name, values (rows x steps), rows, steps, slots, shade(value)}; the server's titles name what it is and the head. */
  function panelOf(panel) {
    const [, what, , head] = /^(.*?)( \(head (\d+)\))?$/.exec(panel.title);
    const values = T.unpacked(panel);
    const least = lowest(values),
      most = Math.max(T.largest(values), -least) || 1;
    const whole = panel.slots ? most : Math.max(most, 1);
    const name = T.say(`memory.${what.replace(" ", ".")}`) + (head ? T.say("memory.head", { head }) : "");
    const colour = least < 0 ? (value) => T.signedBytes(value / most) : (value) => T.weightBytes(value / whole);
    return { name, what, values, rows: panel.shape[0], steps: panel.shape[1], slots: panel.slots, colour };
  }

  /** The lowest value, 0 at most. */
  const lowest = (values) => values.reduce((least, value) => Math.min(least, value), 0);
  const column = ({ values, rows, steps }, step) => T.range(rows).map((row) => values[row * steps + step]);

  /** All panels one below the other, and a mark at the step that is shown. */
  function overTime(area, panels, slots, choose) {
    const { steps } = panels[0];
    const cell = Math.min(WIDEST, Math.max(4, (T.widthOf(area, 280, 1240) - LEFT - RIGHT - 40) / steps));
    let bottom = 0;
    const places = panels.map((panel) => {
      const row = Math.min(ROWS[1], Math.max(ROWS[0], PANEL / panel.rows));
      const top = bottom + TITLE;
      bottom = top + row * panel.rows + GAP;
      return { top, row, height: row * panel.rows };
    });
    const named = Math.max(...panels.map((panel) => T.textWidth(panel.name, 13, 600)));
    const size = { width: Math.ceil(LEFT + Math.max(cell * steps, named) + RIGHT), height: Math.ceil(bottom) };
    const picture = T.walkedPicture("memory", size, T.say("memory.role"), T.say("memory.label", { steps }));
    panels.forEach((panel, i) => picture.append(drawn(panel, places[i], cell, slots)));
    const mark = T.svg("rect", { class: "memory-step", y: TITLE - 3, width: cell, height: bottom - TITLE, rx: 2, "data-passing": true });
    picture.append(mark);
    T.walkBoxes(picture, {
      boxes: T.range(steps).map((step) => ({ x: LEFT + cell * step, y: 0, width: cell, height: size.height })),
      size,
      tell: (step) => [T.say("memory.step", { step: step + 1, steps }), ...told(panels, slots, step)],
      choose,
    });
    return { picture, at: (step) => mark.setAttribute("x", LEFT + cell * step) };
  }

  function drawn(panel, { top, row, height }, cell, slots) {
    const names = panel.slots ? slots : T.range(panel.rows);
    const every = Math.ceil(11 / row);
    return T.svg(
      "g",
      {},
      T.svg("text", { x: LEFT, y: top - 6, class: "memory-name" }, panel.name),
      T.svg("image", {
        x: LEFT,
        y: top,
        width: cell * panel.steps,
        height,
        preserveAspectRatio: "none",
        class: "pixels",
        href: T.paint(panel.values, panel.rows, panel.steps, panel.colour),
      }),
      T.svg("rect", { x: LEFT - 0.5, y: top - 0.5, width: cell * panel.steps + 1, height: height + 1, class: "memory-frame" }),
      names
        .filter((_, i) => panel.slots && i % every === 0)
        .map((name, i) =>
          T.svg("text", { x: LEFT - 6, y: top + (i * every + 0.5) * row + 4, "text-anchor": "end", class: "tick" }, name),
        ),
    );
  }

  /** What goes in and out at a step, and where the heads are. */
  const told = (panels, slots, step) =>
    panels
      .filter(({ what, slots: heads }) => heads || what === "inputs" || what === "outputs")
      .map((panel) => {
        const values = column(panel, step);
        if (!panel.slots) return `${panel.name}: ${values.map((value) => T.short(value)).join(" ")}`;
        const most = values.indexOf(Math.max(...values));
        return `${panel.name}: ${T.say("memory.at", { slot: slots[most], weight: T.number(values[most]) })}`;
      });

  /** What the slots hold after a step, and beside it which of them the heads look at: {figure, at(step)}. */
  function contents({ memory, slots }, panels) {
    const [steps, count, width] = memory.shape;
    const values = T.unpacked(memory);
    const heads = panels.filter((panel) => panel.slots);
    const high = Math.min(SLOT[1], Math.max(SLOT[0], 340 / count));
    const wide = Math.max(high, Math.min(18, 300 / width));
    const strips = LEFT + width * wide + 14;
    const size = { width: Math.ceil(strips + heads.length * (STRIP + 6) + 130), height: Math.ceil(TITLE + count * high + 6) };
    const picture = T.walkedPicture("memory", size, T.say("memory.contents.role"), T.say("memory.contents"));
    const box = (x, across) => ({ x, y: TITLE, width: across, height: count * high, preserveAspectRatio: "none", class: "pixels" });
    const image = T.svg("image", box(LEFT, width * wide));
    const shown = heads.map((_, i) => T.svg("image", box(strips + i * (STRIP + 6), STRIP)));
    const every = Math.ceil(11 / high);
    picture.append(
      image,
      ...shown,
      T.svg("rect", { ...box(LEFT, width * wide), class: "memory-frame" }),
      ...heads.map((_, i) => T.svg("rect", { ...box(strips + i * (STRIP + 6), STRIP), class: "memory-frame" })),
      ...heads.map((panel, i) =>
        T.svg("text", { x: strips + i * (STRIP + 6) + STRIP / 2, y: TITLE - 6, "text-anchor": "middle", class: "tick" }, T.say(`memory.short.${panel.what.split(" ")[0]}`)),
      ),
      ...slots
        .filter((_, i) => i % every === 0)
        .map((slot, i) => T.svg("text", { x: LEFT - 6, y: TITLE + (i * every + 0.5) * high + 4, "text-anchor": "end", class: "tick" }, slot)),
    );
    const most = Math.max(T.largest(values), -lowest(values)) || 1;
    let now = 0;
    T.walkBoxes(picture, {
      boxes: T.range(count).map((i) => ({ x: LEFT, y: TITLE + i * high, width: size.width - LEFT, height: high })),
      size,
      tell: (i) => [
        T.say("memory.slot", { slot: slots[i] }),
        ...heads.map((panel) => `${panel.name}: ${T.number(panel.values[i * steps + now])}`),
        T.range(width)
          .map((k) => T.short(values[(now * count + i) * width + k]))
          .join(" "),
      ],
    });
    const caption = T.html("p", { class: "note", id: "memory-now" });
    const figure = T.figure({
      name: "contents",
      title: T.say("memory.contents"),
      caption: T.say("memory.contents.caption"),
      picture,
      wide: true,
      table: () => ({
        head: [T.say("memory.slots"), ...heads.map((panel) => panel.name), ...T.range(width).map((k) => String(k + 1))],
        rows: slots.map((slot, i) => [
          String(slot),
          ...heads.map((panel) => T.number(panel.values[i * steps + now])),
          ...T.range(width).map((k) => T.number(values[(now * count + i) * width + k])),
        ]),
      }),
    });
    figure.append(caption);
    return {
      figure,
      at(step) {
        now = step;
        const part = values.subarray(step * count * width, (step + 1) * count * width);
        image.setAttribute("href", T.paint(part, count, width, (value) => T.signedBytes(value / most)));
        heads.forEach((panel, i) => shown[i].setAttribute("href", T.paint(column(panel, step), count, 1, panel.colour)));
        T.fill(caption, T.say("memory.step", { step: step + 1, steps }));
      },
    };
  }

  /** A button that lets the steps pass, and a slider: {tools, show(step)}. */
  function playerOf(steps, shown) {
    let at = steps - 1,
      timer = null;
    const slider = T.html("input", { type: "range", id: "memory-step", min: "0", max: String(steps - 1), "aria-label": T.say("memory.slider") });
    const button = T.html("button", { type: "button", class: "quiet", id: "memory-play", "aria-pressed": "false" });
    const rest = () => {
      clearInterval(timer);
      timer = null;
      button.setAttribute("aria-pressed", "false");
      T.fill(button, T.say(T.still() ? "memory.next" : "memory.play"));
    };
    const show = (step) => {
      at = step;
      slider.value = String(step);
      slider.setAttribute("aria-valuetext", T.say("memory.step", { step: step + 1, steps }));
      shown(step);
    };
    const next = () => {
      if (!button.isConnected) return rest();
      show(at + 1);
      if (at >= steps - 1) rest();
    };
    button.addEventListener("click", () => {
      if (T.still()) return show((at + 1) % steps); // nothing moves by itself
      if (timer !== null) return rest();
      if (at >= steps - 1) show(0);
      timer = setInterval(next, PACE);
      button.setAttribute("aria-pressed", "true");
      T.fill(button, T.say("memory.stop"));
    });
    slider.addEventListener("input", () => (rest(), show(Number(slider.value))));
    rest();
    return { tools: [button, slider], show: (step) => (rest(), show(step)) };
  }

  /** A row a step: all numbers of all panels. */
  function tableOf(panels, slots) {
    const names = (panel) => T.range(panel.rows).map((row) => `${panel.name} ${panel.slots ? slots[row] : row + 1}`);
    return {
      head: [T.say("memory.steps"), ...panels.flatMap(names)],
      rows: T.range(panels[0].steps).map((step) => [
        String(step + 1),
        ...panels.flatMap((panel) => column(panel, step).map((value) => T.number(value))),
      ]),
    };
  }
})(window.Transduce);
