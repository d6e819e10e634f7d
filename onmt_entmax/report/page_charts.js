// Charts of the summary of a report: histograms, and the quality of the outputs that are kept.

const curve = at("coverage") ? JSON.parse(at("coverage").textContent) : null; // with references

// Rules that keep outputs by their certificate, and the certificate: a mark stands for each.
const CERTIFICATE_OF = {
  "optimal or more": "optimal", exhaustive: "exhaustive", "only one possible": "only" };
// The picture is 240 wide and 94 high. Its points stand between these ends.
const POINTS = { left: 30, right: 230, top: 10, bottom: 76 };

/** The quality of the outputs that are kept, by probability (a line) and by certificate (marks). */
function drawCoverage() {
  const points = curve.points.filter((point) => point.quality !== null);
  const x = scaleOf(points.map((point) => 100 * point.share), POINTS.left, POINTS.right);
  const y = scaleOf(points.map((point) => point.quality), POINTS.bottom, POINTS.top);
  const placed = points.map((point, i) => (
    { point, x: x.places[i], y: y.places[i], level: CERTIFICATE_OF[point.rule] }));
  const label = (x, y, text, anchor) => svg("text", { x, y, "text-anchor": anchor }, text);
  const picture = svg("svg", { class: "coverage", role: "img", viewBox: "0 0 240 94",
    "aria-label": points.map(textOfPoint).join("; ") },
  svg("path", { class: "axes", d: "M30 6V80H234" }),
  label(26, 14, String(y.most), "end"), label(26, 80, String(y.least), "end"),
  label(30, 92, `${x.least} %`, "start"), label(234, 92, `${x.most} % kept`, "end"),
  svg("polyline", { points: placed.filter(({ level }) => !level)
    .map((p) => `${p.x},${p.y}`).join(" ") }),
  ...placed.map((p) => svg("circle", { class: p.level, cx: p.x, cy: p.y, r: p.level ? 4.5 : 2.5 },
    svg("title", {}, textOfPoint(p.point)))));
  const legend = placed.filter(({ level }) => level).map(({ point, level }) =>
    el("span", { class: `badge ${level}`, title: textOfPoint(point) },
      `${LEVELS[level]?.mark ?? "●"} ${level} ${point.quality.toFixed(1)}`));
  return el("figure", { class: "card" },
    el("figcaption", {}, `${curve.measure} of the outputs kept`),
    picture, el("p", { class: "legend" }, ...legend));
}

/** What a point of the curve says, such as `p >= 0.9: 40.0 % kept, Accuracy (%) 98.5`. */
function textOfPoint({ rule, share, quality }) {
  return `${rule}: ${(100 * share).toFixed(1)} % kept, ${curve.measure} ${quality.toFixed(1)}`;
}

/** The whole numbers around some values, and the places of the values, if `begin` is the place of
 *  the smaller number and `end` that of the larger one. */
function scaleOf(values, begin, end) {
  const least = Math.floor(Math.min(...values));
  const most = Math.ceil(Math.max(...values) - 1e-9); // rounding may lift it just above one
  const length = most - least || 1; // all values may be one number
  return { least, most,
    places: values.map((value) => begin + (end - begin) * (value - least) / length) };
}

/** A histogram of a value of the sentences. Ranges have a label, and a lower and an upper end;
 *  `half`: the upper end belongs to the next range. */
function histogram(title, ranges, value, half) {
  const values = sentences.map(value);
  const counts = ranges.map(([, low, high]) =>
    values.filter((v) => v >= low && (half ? v < high : v <= high)).length);
  const most = Math.max(1, ...counts);
  const bars = ranges.map(([label], i) => {
    const bar = el("span", { class: "bar" });
    bar.style.height = `${(100 * counts[i] / most).toFixed(1)}%`;
    return el("li", { title: `${label}: ${counts[i]}` },
      el("span", { class: "n" }, String(counts[i])),
      el("span", { class: "room" }, bar), el("span", { class: "label" }, label));
  });
  return el("figure", { class: "card" }, el("figcaption", {}, title),
    el("ol", { class: "histogram" }, ...bars));
}
