/* Curves over updates. */
"use strict";
(function (T) {
  const LEFT = 58, RIGHT = 20, TOP = 12, BOTTOM = 30;

  /** series: [{name, colour, points: [[x, y]], dots}]; label: for those who listen; xTitle: of the axis. */
  T.chart = (area, { series, label, xTitle, height = 220, format = T.short }) => {
    const width = T.widthOf(area, 280, 640) - 38;
    const points = series.flatMap((each) => each.points);
    const x = d3.scaleLinear(d3.extent(points, (point) => point[0]), [LEFT, width - RIGHT]);
    const y = d3.scaleLinear(d3.extent(points, (point) => point[1]), [height - BOTTOM, TOP]).nice(5);
    const picture = T.svg("svg", { class: "picture chart", viewBox: `0 0 ${width} ${height}`, width, height, tabindex: "0", role: "application", "aria-roledescription": T.say("chart.role"), "aria-label": label });
    picture.append(axes({ x, y, width, height, xTitle, format }));
    const line = d3.line((point) => x(point[0]), (point) => y(point[1]));
    for (const each of series) {
      picture.append(T.svg("path", { d: line(each.points), class: "curve", style: { stroke: each.colour } }));
      if (each.dots) for (const [a, b] of each.points) picture.append(T.svg("circle", { cx: x(a), cy: y(b), r: 2.6, class: "curve-dot", style: { fill: each.colour } }));
    }
    follow(picture, { series, x, y, width, height, format, xTitle });
    return picture;
  };

  function axes({ x, y, width, height, xTitle, format }) {
    const group = T.svg("g", {});
    for (const tick of y.ticks(5)) {
      group.append(T.svg("line", { x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick), class: "grid" }), T.svg("text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end", class: "tick" }, format(tick)));
    }
    const places = x.ticks(Math.max(2, Math.floor(width / 110))).filter((tick) => x(tick) > LEFT + 24 && x(tick) < width - RIGHT + 1);
    places.forEach((tick) => group.append(T.svg("text", { x: x(tick), y: height - 10, "text-anchor": "middle", class: "tick" }, T.whole(tick))));
    group.append(T.svg("text", { x: LEFT - 8, y: height - 10, "text-anchor": "end", class: "tick" }, xTitle));
    return group;
  }

  /** The point of a series that is nearest in x. */
  const nearest = (points, at) => points[Math.min(points.length - 1, Math.max(0, d3.bisector((point) => point[0]).center(points, at)))];

  function follow(picture, { series, x, y, width, height, format, xTitle }) {
    const rule = T.svg("line", { y1: TOP, y2: height - BOTTOM, class: "cross-hair", visibility: "hidden", "data-passing": true });
    const marks = series.map((each) => T.svg("circle", { r: 4.5, class: "curve-dot", visibility: "hidden", "data-passing": true, style: { fill: each.colour } }));
    picture.append(rule, ...marks);
    const all = [...new Set(series.flatMap((each) => each.points.map((point) => point[0])))].sort((one, other) => one - other);
    let at = all.length - 1;
    const show = (clientX, clientY) => {
      rule.setAttribute("visibility", "visible");
      for (const name of ["x1", "x2"]) rule.setAttribute(name, x(all[at]));
      const found = series.map((each) => nearest(each.points, all[at]));
      found.forEach(([a, b], i) => Object.entries({ cx: x(a), cy: y(b), visibility: "visible" }).forEach(([name, value]) => marks[i].setAttribute(name, value)));
      const lines = [`${T.whole(all[at])} ${xTitle}`, ...series.map((each, i) => `${each.name} ${format(found[i][1])}`)];
      T.tip(clientX, clientY, lines);
      return lines;
    };
    const hide = () => {
      for (const mark of [rule, ...marks]) mark.setAttribute("visibility", "hidden");
      T.untip();
    };
    const byKey = () => {
      const box = picture.getBoundingClientRect();
      T.announce(show(box.left + (x(all[at]) * box.width) / width, box.top + box.height / 3).join(", "));
    };
    picture.addEventListener("pointermove", (event) => {
      const box = picture.getBoundingClientRect();
      at = d3.bisectCenter(all, x.invert(((event.clientX - box.left) * width) / box.width));
      show(event.clientX, event.clientY);
    });
    picture.addEventListener("pointerleave", hide);
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
})(window.Transduce);
