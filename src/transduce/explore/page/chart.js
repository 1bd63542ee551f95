/* Curves over updates. */
"use strict";
(function (T) {
  const LEFT = 58,
    RIGHT = 20,
    TOP = 12,
    BOTTOM = 30;

  /** series: [{name, colour, points: [[x, y]], dots}]; label: for those who listen; xTitle: of the axis. */
  T.chart = (area, { series, label, xTitle, height = 220, format = T.short }) => {
    const width = T.widthOf(area, 280, 640) - 38;
    const points = series.flatMap((each) => each.points);
    const x = d3.scaleLinear(
      d3.extent(points, (point) => point[0]),
      [LEFT, width - RIGHT],
    );
    const y = d3
      .scaleLinear(
        d3.extent(points, (point) => point[1]),
        [height - BOTTOM, TOP],
      )
      .nice(5);
    const picture = T.svg("svg", {
      class: "picture chart",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      tabindex: "0",
      role: "application",
      "aria-roledescription": T.say("chart.role"),
      "aria-label": label,
    });
    picture.append(axes({ x, y, width, height, xTitle, format }));
    const line = d3.line(
      (point) => x(point[0]),
      (point) => y(point[1]),
    );
    for (const each of series) {
      picture.append(T.svg("path", { d: line(each.points), class: "curve", style: { stroke: each.colour } }));
      const alone = each.points.length === 1;
      if (each.dots || alone)
        for (const [a, b] of each.points)
          picture.append(
            T.svg("circle", {
              cx: x(a),
              cy: y(b),
              r: alone ? 4 : 2.6,
              class: "curve-dot",
              style: { fill: each.colour },
            }),
          );
    }
    follow(picture, { series, x, y, width, height, format, xTitle });
    return picture;
  };

  function axes({ x, y, width, height, xTitle, format }) {
    const group = T.svg("g", {});
    for (const tick of y.ticks(5)) {
      group.append(
        T.svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick), class: "grid" }),
        T.svg("text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end", class: "tick" }, format(tick)),
      );
    }
    const places = x
      .ticks(Math.max(2, Math.floor(width / 110)))
      .filter((tick) => x(tick) > LEFT + 24 && x(tick) < width - RIGHT + 1);
    places.forEach((tick) =>
      group.append(
        T.svg("text", { x: x(tick), y: height - 10, "text-anchor": "middle", class: "tick" }, T.whole(tick)),
      ),
    );
    group.append(T.svg("text", { x: LEFT - 8, y: height - 10, "text-anchor": "end", class: "tick" }, xTitle));
    return group;
  }

  /** The point of a series that is nearest in x. */
  const nearest = (points, at) =>
    points[Math.min(points.length - 1, Math.max(0, d3.bisector((point) => point[0]).center(points, at)))];

  /** The numbers at the update under the pointer, or where the arrow keys have gone. */
  function follow(picture, chart) {
    const { series, x, width } = chart;
    const all = [...new Set(series.flatMap((each) => each.points.map((point) => point[0])))].sort(d3.ascending);
    const marks = crossHair(picture, chart);
    let at = all.length - 1;
    const show = (clientX, clientY) => {
      const lines = marks.show(all[at]);
      T.tip(clientX, clientY, lines);
      return lines;
    };
    const hide = () => (marks.hide(), T.untip());
    const byKey = () => {
      const box = picture.getBoundingClientRect();
      T.announce(show(box.left + (x(all[at]) * box.width) / width, box.top + box.height / 3).join(", "));
    };
    T.pointed(picture, {
      show(event) {
        const box = picture.getBoundingClientRect();
        at = d3.bisectCenter(all, x.invert(((event.clientX - box.left) * width) / box.width));
        show(event.clientX, event.clientY);
      },
      hide,
    });
    picture.addEventListener("blur", hide);
    picture.addEventListener("focus", () => picture.matches(":focus-visible") && byKey());
    picture.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: all.length - 1 }[event.key];
      if (event.key === "Escape") return hide();
      if (to === undefined) return;
      event.preventDefault();
      at = Math.max(0, Math.min(all.length - 1, to));
      byKey();
    });
  }

  /** A rule and a dot on each curve; `show(update)` places them and gives the numbers there. */
  function crossHair(picture, { series, x, y, height, format, xTitle }) {
    const passing = { visibility: "hidden", "data-passing": true };
    const rule = T.svg("line", { y1: TOP, y2: height - BOTTOM, class: "cross-hair", ...passing });
    const dots = series.map((each) =>
      T.svg("circle", { r: 4.5, class: "curve-dot", style: { fill: each.colour }, ...passing }),
    );
    picture.append(rule, ...dots);
    const place = (node, numbers) =>
      Object.entries({ ...numbers, visibility: "visible" }).forEach((each) => node.setAttribute(...each));
    return {
      show(update) {
        const found = series.map((each) => nearest(each.points, update));
        place(rule, { x1: x(update), x2: x(update) });
        found.forEach(([a, b], i) => place(dots[i], { cx: x(a), cy: y(b) }));
        return [`${T.whole(update)} ${xTitle}`, ...series.map((each, i) => `${each.name} ${format(found[i][1])}`)];
      },
      hide: () => [rule, ...dots].forEach((node) => node.setAttribute("visibility", "hidden")),
    };
  }
})(window.Transduce);
