// Charts of the summary of a report: histograms, and the quality of the outputs that are kept.

const curve = at("coverage") ? JSON.parse(at("coverage").textContent) : null; // with references

/** The quality of the outputs that are kept, by probability (a line) and by certificate (marks). */
function drawCoverage() {
  const marks = { "optimal or more": "optimal", exhaustive: "exhaustive", "only one possible": "only" };
  const points = curve.points.filter((point) => point.quality !== null);
  const described = (p) => {
    const kept = (100 * p.share).toFixed(1);
    return `${p.rule}: ${kept} % kept, ${curve.measure} ${p.quality.toFixed(1)}`;
  };
  const limits = (values) => [Math.floor(Math.min(...values)), Math.ceil(Math.max(...values) - 1e-9)];
  const [left, right] = limits(points.map((p) => 100 * p.share));
  const [bottom, top] = limits(points.map((p) => p.quality));
  // In a picture of 240 by 94, points are from 30 to 230 and from 76 up to 10.
  const x = (p) => 30 + 200 * (100 * p.share - left) / (right - left || 1);
  const y = (p) => 76 - 66 * (p.quality - bottom) / (top - bottom || 1);
  const text = (x, y, content, anchor = "end") =>
    svg("text", { x, y, "text-anchor": anchor }, content);
  const byProbability = points.filter((p) => !marks[p.rule]);
  const picture = svg("svg", { class: "coverage", role: "img", viewBox: "0 0 240 94",
    "aria-label": points.map(described).join("; ") },
  svg("path", { class: "axes", d: "M30 6V80H234" }),
  text(26, 14, String(top)), text(26, 80, String(bottom)),
  text(30, 92, `${left} %`, "start"), text(234, 92, `${right} % kept`),
  svg("polyline", { points: byProbability.map((p) => `${x(p)},${y(p)}`).join(" ") }),
  ...points.map((p) => svg("circle",
    { class: marks[p.rule], cx: x(p), cy: y(p), r: marks[p.rule] ? 4.5 : 2.5 },
    svg("title", {}, described(p)))));
  const legend = points.filter((p) => marks[p.rule]).map((p) => {
    const level = marks[p.rule];
    return el("span", { class: `badge ${level}`, title: described(p) },
      `${LEVELS[level]?.mark ?? "●"} ${level} ${p.quality.toFixed(1)}`);
  });
  return el("figure", { class: "card" }, el("figcaption", {}, `${curve.measure} of the outputs kept`),
    picture, el("p", { class: "legend" }, ...legend));
}

/** Histogram of a value over sentences; `half` excludes the upper end of each range. */
function histogram(title, ranges, value, half) {
  const values = sentences.map(value);
  const counts = ranges.map(([, low, high]) =>
    values.filter((v) => v >= low && (half ? v < high : v <= high)).length);
  const most = Math.max(1, ...counts);
  const bars = ranges.map(([label], i) => {
    const bar = el("span", { class: "bar" });
    bar.style.height = `${(100 * counts[i] / most).toFixed(1)}%`;
    return el("li", { title: `${label}: ${counts[i]}` }, el("span", { class: "n" }, String(counts[i])),
      el("span", { class: "room" }, bar), el("span", { class: "label" }, label));
  });
  return el("figure", { class: "card" }, el("figcaption", {}, title),
    el("ol", { class: "histogram" }, ...bars));
}
