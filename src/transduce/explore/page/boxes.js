/* Parts of a picture that one can point at and walk between with the arrow keys: words, cells, phrases. */
"use strict";
(function (T) {
  const AHEAD = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  /** boxes: [{x, y, width, height}] in a picture of `size`. tell(i) -> lines of the tip, of which the first is its head.
      choose(i): a click or Enter. next(i, key) -> where a key leads, null: nowhere; by default to the nearest box.
      shown(i): told which box is in focus, -1 for none. */
  T.walkBoxes = (picture, { boxes, size, tell, choose, next, shown = () => {}, start = 0 }) => {
    const spot = T.svg("rect", { class: "spot", visibility: "hidden", rx: 4, "data-passing": true });
    picture.append(spot);
    let at = Math.min(start, boxes.length - 1);
    const mark = () => {
      const { x, y, width, height } = boxes[at];
      for (const [name, value] of Object.entries({ x: x - 1, y: y - 1, width: width + 2, height: height + 2 }))
        spot.setAttribute(name, value);
      spot.setAttribute("visibility", "visible");
      shown(at);
      return tell(at);
    };
    const hide = () => {
      spot.setAttribute("visibility", "hidden");
      shown(-1);
      T.untip();
    };
    const atFocus = () => {
      if (at < 0) return;
      const lines = mark();
      const box = picture.getBoundingClientRect();
      const scale = box.width / size.width;
      const { x, y, width, height } = boxes[at];
      T.tip(box.left + (x + width / 2) * scale, box.top + (y + height) * scale, lines);
      T.announce(lines.filter(Boolean).join(", "));
    };
    const under = (event) => {
      const box = picture.getBoundingClientRect();
      const scale = size.width / box.width;
      const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
      return boxes.findIndex((each) => x >= each.x && x < each.x + each.width && y >= each.y && y < each.y + each.height);
    };
    T.pointed(picture, {
      show(event) {
        const found = under(event);
        if (found < 0) return hide();
        at = found;
        T.tip(event.clientX, event.clientY, mark());
        return found;
      },
      hide,
      click(event) {
        const found = under(event);
        if (found >= 0) choose?.(found);
      },
    });
    picture.addEventListener("blur", hide);
    picture.addEventListener("focus", () => picture.matches(":focus-visible") && atFocus());
    picture.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || at < 0) return;
      if (event.key === "Escape") return hide();
      if (event.key === "Enter" || event.key === " ") choose?.(at);
      else if (event.key === "Home") at = 0;
      else if (event.key === "End") at = boxes.length - 1;
      else if (AHEAD[event.key]) at = (next ? next(at, event.key) : nearest(boxes, at, event.key)) ?? at;
      else return;
      event.preventDefault();
      atFocus();
    });
  };

  /** The nearest box in the direction of a key. */
  function nearest(boxes, from, key) {
    const [dx, dy] = AHEAD[key];
    const middle = ({ x, y, width, height }) => [x + width / 2, y + height / 2];
    const [x, y] = middle(boxes[from]);
    let best = null,
      least = Infinity;
    boxes.forEach((box, i) => {
      const [left, top] = middle(box);
      const ahead = (left - x) * dx + (top - y) * dy,
        aside = Math.abs((left - x) * dy) + Math.abs((top - y) * dx);
      const far = dx ? ahead + 8 * aside : 8 * ahead + aside;
      if (ahead > 1 && far < least) [best, least] = [i, far];
    });
    return best;
  }

  /** A picture of that size that takes the focus. */
  T.walkedPicture = (name, size, role, label) =>
    T.svg("svg", {
      class: `picture ${name}`,
      viewBox: `0 0 ${size.width} ${size.height}`,
      width: size.width,
      height: size.height,
      tabindex: "0",
      role: "application",
      "aria-roledescription": role,
      "aria-label": label,
    });
})(window.Transduce);
