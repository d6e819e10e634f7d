// The summary of a report: totals of its sentences, charts (see page_charts.js), and the buttons that
// show or hide kinds of sentences in the list.

const notes = at("notes") ? JSON.parse(at("notes").textContent) : [];

/** A number in percent of a total. */
function share(number, total) {
  return total ? (100 * number / total).toFixed(1) + " %" : "–";
}

/** How many sentences pass a test. */
const count = (test) => sentences.filter(test).length;
/** A number with commas between thousands, such as 1,234. */
const grouped = (number) => number.toLocaleString("en");

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

/** How many sentences there are, and which share of them is proven, right, and so on. `counts` has
 *  the number of sentences with each certificate, and `blank` is the number of blank lines. */
function drawTotals(counts, blank) {
  const all = sentences.length;
  const proven = counts.exhaustive + counts.optimal;
  const abstained = count((r) => r.abstained);
  const wrong = count((r) => r.verified === false);
  const right = count((r) => verdictOf(r) === "right");
  const shareOf = (number, text) => el("p", {}, el("b", {}, share(number, all)), text);
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
      wrong === 1 ? "1 verification disagrees" : `${wrong} verifications disagree`) : null,
    barOf(counts));
}

/** A bar whose parts are as long as the numbers of sentences with each certificate. */
function barOf(counts) {
  const texts = Object.entries(counts).map(([level, n]) => `${level} ${n}`);
  const bar = el("div", { class: "stack", role: "img", "aria-label": texts.join(", ") });
  for (const [level, n] of Object.entries(counts)) {
    if (n) {
      bar.append(el("span", { class: level, style: `flex-grow:${n}`, title: `${level}: ${n}` }));
    }
  }
  return bar;
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
