// The summary of a report: counts of its certificates, histograms, the quality of what is kept, and
// the buttons that show or hide kinds of sentences in the list.

const notes = at("notes") ? JSON.parse(at("notes").textContent) : [];
const curve = at("coverage") ? JSON.parse(at("coverage").textContent) : null; // with references

function share(count, total) {
  return total ? (100 * count / total).toFixed(1) + " %" : "–";
}

const count = (test) => sentences.filter(test).length;
const grouped = (number) => number.toLocaleString("en"); // 1,234

/** Fill the summary, and add the buttons of the kinds of sentences. */
function drawSummary() {
  const levels = Object.keys(LEVELS).filter((level) => level !== "blank");
  const counts = Object.fromEntries(
    levels.map((level) => [level, count((r) => r.certificate === level)]));
  const blank = records.length - sentences.length;
  if (notes.length) at("notice").append(...notes.map((text) => el("p", { class: "alarm" }, text)));
  at("notice").hidden = !notes.length;
  at("summary").append(
    drawTotals(counts, blank),
    histogram("Outputs found", [["0", 0, 0], ["1", 1, 1], ["2", 2, 2], ["3–5", 3, 5],
      ["6–10", 6, 10], [">10", 11, Infinity]], found),
    histogram("Probability of the best (%)", [["0–20", 0, 0.2], ["20–40", 0.2, 0.4],
      ["40–60", 0.4, 0.6], ["60–80", 0.6, 0.8], ["80–95", 0.8, 0.95], ["95–100", 0.95, Infinity]],
    (r) => (best(r) ? best(r).prob : -1), true));
  for (const level of levels) offer(state.levels, level, badge(level), counts[level]);
  if (blank) offer(state.levels, "blank", badge("blank"), blank);
  if (!curve) return;
  at("summary").append(drawCoverage());
  const right = count((r) => verdictOf(r) === "right");
  offer(state.verdicts, "right", verdict("right"), right);
  offer(state.verdicts, "wrong", verdict("wrong"), sentences.length - right);
}

/** How many sentences there are, and which share of them is proven, right, and so on.
 *  `counts` are those of each certificate, `blank` that of the blank lines. */
function drawTotals(counts, blank) {
  const all = sentences.length;
  const proven = counts.exhaustive + counts.optimal;
  const abstained = count((r) => r.abstained);
  const wrong = count((r) => r.verified === false);
  const right = count((r) => verdictOf(r) === "right");
  const shareOf = (number, text) => el("p", {}, el("b", {}, share(number, all)), text);
  const bar = el("div", { class: "stack", role: "img",
    "aria-label": Object.entries(counts).map(([level, n]) => `${level} ${n}`).join(", ") });
  for (const [level, n] of Object.entries(counts)) {
    if (n) bar.append(el("span", { class: level, style: `flex-grow:${n}`, title: `${level}: ${n}` }));
  }
  return el("div", { class: "card" },
    el("p", { class: "big" }, el("b", {}, grouped(all)), all === 1 ? " sentence" : " sentences"),
    blank ? el("p", { class: "muted" },
      `and ${grouped(blank)} blank line${blank === 1 ? "" : "s"}, not counted`) : null,
    shareOf(counts.exhaustive, " all possible outputs found"),
    shareOf(proven, records.some(isScored)
      ? " highest scored output proven" : " most probable output proven"),
    curve ? shareOf(right, " right") : null,
    abstained ? shareOf(abstained, " abstained") : null,
    wrong ? el("p", { class: "alarm" },
      wrong === 1 ? "1 verification disagrees" : `${wrong} verifications disagree`) : null, bar);
}

/** A button that shows or hides the sentences of a kind. */
function offer(kinds, kind, label, n) {
  const button = el("button", { type: "button", "aria-pressed": "true", "data-kind": kind },
    label, el("span", { class: "n" }, grouped(n)));
  button.addEventListener("click", () => {
    if (!kinds.delete(kind)) kinds.add(kind);
    button.setAttribute("aria-pressed", String(kinds.has(kind)));
    refresh();
  });
  at("levels").append(button);
}

/** The quality of the outputs that are kept, by probability (a line) and by certificate (marks). */
function drawCoverage() {
  const marks = { "optimal or more": "optimal", exhaustive: "exhaustive", "only one possible": "only" };
  const points = curve.points.filter((point) => point.quality !== null);
  const described = (p) => {
    const share = (100 * p.share).toFixed(1);
    return `${p.rule}: ${share} % kept, ${curve.measure} ${p.quality.toFixed(1)}`;
  };
  const limits = (values) => [Math.floor(Math.min(...values)), Math.ceil(Math.max(...values) - 1e-9)];
  const [left, right] = limits(points.map((p) => 100 * p.share));
  const [bottom, top] = limits(points.map((p) => p.quality));
  // In a picture of 240 by 94, points are from 30 to 230 and from 76 up to 10.
  const x = (p) => 30 + 200 * (100 * p.share - left) / (right - left || 1);
  const y = (p) => 76 - 66 * (p.quality - bottom) / (top - bottom || 1);
  const text = (x, y, content, anchor = "end") =>
    svg("text", { x, y, "text-anchor": anchor }, content);
  const line = points.filter((p) => !marks[p.rule]);
  const picture = svg("svg", { class: "coverage", role: "img", viewBox: "0 0 240 94",
    "aria-label": points.map(described).join("; ") },
  svg("path", { class: "axes", d: "M30 6V80H234" }),
  text(26, 14, String(top)), text(26, 80, String(bottom)),
  text(30, 92, `${left} %`, "start"), text(234, 92, `${right} % kept`),
  svg("polyline", { points: line.map((p) => `${x(p)},${y(p)}`).join(" ") }),
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
