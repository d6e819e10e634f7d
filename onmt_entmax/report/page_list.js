// The list of sentences, its summary and filters, and the way to each sentence.
// Only visible rows are in the document, so that thousands scroll as smoothly as ten.

const records = JSON.parse(at("records").textContent);
let rowHeight = 34; // as the style sheet has it, which has taller rows on phones
const measureRow = () => {
  rowHeight = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
};

const sentences = records.filter((record) => !isBlank(record));
const bestText = (record) => (best(record) ? best(record).text : record.unfinished || "");
const notes = at("notes") ? JSON.parse(at("notes").textContent) : [];
const curve = at("coverage") ? JSON.parse(at("coverage").textContent) : null; // with references

const COLUMNS = [
  { name: "id", label: "Line", value: (r) => r.id, number: true },
  { name: "source", label: "Source", value: (r) => r.source },
  { name: "best", label: "Best hypothesis", value: bestText },
  { name: "prob", label: "Probability", value: (r) => (best(r) ? best(r).prob : -1), number: true },
  { name: "level", label: "Certificate", value: (r) => Object.keys(LEVELS).indexOf(levelOf(r)) },
  { name: "found", label: "Found", value: found, number: true, title: "number of outputs found" },
  { name: "mass", label: "Mass", value: (r) => r.mass, number: true,
    title: "total probability of the outputs found" },
  { name: "bound", label: "Bound", value: (r) => r.bound, number: true,
    title: "no other output has a higher probability" },
];

const state = { levels: new Set(Object.keys(LEVELS)), verdicts: new Set(Object.keys(VERDICTS)),
  query: "", sort: "id", down: false, shown: [], active: 0 };

/** The certificate of a sentence, and how many tokens of it training never saw. */
function badges(record) {
  const odd = Object.entries({ ...record.unseen, ...record.unknown });
  const number = odd.reduce((sum, [, count]) => sum + count, 0);
  return el("span", {}, badge(levelOf(record)), number
    ? el("span", { class: "alarm", title: `training never saw: ${odd.map(([token]) => token).join(" ")}` },
      ` \u26a0\ufe0e ${number}`) : null);
}

// --- summary -----------------------------------------------------------------------------------

function share(count, total) {
  return total ? (100 * count / total).toFixed(1) + " %" : "–";
}

const count = (test) => sentences.filter(test).length;
const grouped = (number) => number.toLocaleString("en"); // 1,234

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
    histogram("Probability of the best (%)", [["0–20", 0, 0.2], ["20–40", 0.2, 0.4], ["40–60", 0.4, 0.6],
      ["60–80", 0.6, 0.8], ["80–95", 0.8, 0.95], ["95–100", 0.95, Infinity]],
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
  const described = (p) => `${p.rule}: ${(100 * p.share).toFixed(1)} % kept, ${curve.measure} ${p.quality.toFixed(1)}`;
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
  ...points.map((p) => svg("circle", { class: marks[p.rule], cx: x(p), cy: y(p), r: marks[p.rule] ? 4.5 : 2.5 },
    svg("title", {}, described(p)))));
  const legend = points.filter((p) => marks[p.rule]).map((p) =>
    el("span", { class: `badge ${marks[p.rule]}`, title: described(p) }, `${LEVELS[marks[p.rule]]?.mark ?? "●"} ${marks[p.rule]} ${p.quality.toFixed(1)}`));
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

// --- list ---------------------------------------------------------------------------------------

const haystacks = [];

function haystack(index) {
  if (haystacks[index] === undefined) {
    const record = records[index];
    const texts = [record.source, bestText(record), ...record.hypotheses.map((h) => h.text)];
    // "drawn" also finds "d r a w n".
    const tight = texts.map((text) => text.replace(/(?<=(^| ).) (?=.( |$))/gu, ""));
    haystacks[index] = [...texts, ...tight].join("\n").toLowerCase();
  }
  return haystacks[index];
}

function refresh(keep) {
  const column = COLUMNS.find((c) => c.name === state.sort);
  const words = state.query.toLowerCase().split(/\s+/).filter(Boolean);
  const phrase = words.join(" ");
  // Words match in any order, tokens of one letter only in theirs.
  const anyOrder = words.some((word) => word.length > 1);
  const matches = (text) => text.includes(phrase)
    || (anyOrder && words.every((word) => text.includes(word)));
  const keys = records.map(column.value);
  const order = (a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0);
  state.shown = records.map((_, i) => i).filter((i) =>
    state.levels.has(levelOf(records[i])) && (!phrase || matches(haystack(i)))
    && (!verdictOf(records[i]) || state.verdicts.has(verdictOf(records[i]))));
  state.shown.sort((a, b) => (state.down ? order(b, a) : order(a, b)) || a - b);
  state.active = Math.max(0, keep === undefined ? 0 : state.shown.indexOf(keep));
  at("grid").setAttribute("aria-rowcount", state.shown.length + 1);
  at("count").textContent = state.shown.length === records.length ? ""
    : `${grouped(state.shown.length)} of ${grouped(records.length)}`;
  at("empty").hidden = state.shown.length > 0;
  at("rows").style.height = `${state.shown.length * rowHeight}px`;
  for (const header of at("head").children) {
    header.setAttribute("aria-sort", header.dataset.column !== state.sort ? "none"
      : state.down ? "descending" : "ascending");
  }
  reveal();
  render();
}

function render() {
  const body = at("body");
  const first = Math.max(0, Math.floor(body.scrollTop / rowHeight) - 5);
  const last = Math.min(state.shown.length, Math.ceil((body.scrollTop + body.clientHeight) / rowHeight) + 5);
  const rows = [];
  for (let place = first; place < last; place += 1) rows.push(rowOf(place));
  at("rows").replaceChildren(...rows);
  const active = state.shown.length ? `row-${state.shown[state.active]}` : null;
  if (active && at(active)) at("grid").setAttribute("aria-activedescendant", active);
  else at("grid").removeAttribute("aria-activedescendant");
}

function rowOf(place) {
  const index = state.shown[place];
  const record = records[index];
  const hypothesis = best(record);
  const meter = el("span", { class: "meter" });
  meter.style.setProperty("--p", hypothesis ? hypothesis.prob : 0);
  const cells = [
    String(record.id + 1), // people count lines from 1, programs from 0
    el("span", { class: record.source.startsWith("lang=") ? "word" : null }, line(record.source)),
    el("span", {}, verdictOf(record) ? verdict(verdictOf(record), true) : null,
      record.abstained ? el("i", {}, "abstained: ") : null,
      hypothesis ? line(hypothesis.text) : el("i", {}, record.unfinished ? "unfinished: " : "none",
      record.unfinished ? line(record.unfinished) : "")),
    hypothesis ? el("span", { class: "prob" }, percent(hypothesis.prob), meter) : "–",
    badges(record), String(found(record)), percent(record.mass), percent(record.bound),
  ];
  const pictures = at(`drawing-${index}`) ? el("span", { class: "pictures", title: "has pictures" }, " ◆") : null;
  const row = el("div", { class: "row", role: "row", id: `row-${index}`, "aria-rowindex": place + 2,
    "aria-selected": place === state.active ? "true" : "false", "data-place": place },
  ...cells.map((content, i) => el("div", { role: "gridcell", class: COLUMNS[i].name },
    content, i === 0 ? pictures : null)));
  row.style.top = `${place * rowHeight}px`;
  return row;
}

/** Scroll to the active row. */
function reveal() {
  const body = at("body");
  const top = state.active * rowHeight;
  if (top < body.scrollTop) body.scrollTop = top;
  if (top + rowHeight > body.scrollTop + body.clientHeight) body.scrollTop = top + rowHeight - body.clientHeight;
}

function move(by) {
  state.active = Math.min(Math.max(state.active + by, 0), Math.max(state.shown.length - 1, 0));
  reveal();
  render();
}

function listen() {
  for (const column of COLUMNS) {
    const button = el("button", { type: "button", title: column.title || null, tabindex: "0" }, column.label);
    button.addEventListener("click", () => {
      state.down = state.sort === column.name ? !state.down : Boolean(column.number && column.name !== "id");
      state.sort = column.name;
      refresh();
    });
    at("head").append(el("div", { role: "columnheader", class: column.name,
      "data-column": column.name }, button));
  }
  const page = () => Math.max(1, Math.floor(at("body").clientHeight / rowHeight) - 1);
  const steps = { ArrowDown: () => 1, ArrowUp: () => -1, PageDown: page, PageUp: () => -page(),
    Home: () => -Infinity, End: () => Infinity };
  at("grid").addEventListener("keydown", (event) => {
    if (event.target !== at("grid") || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in steps) move(steps[event.key]());
    else if (event.key === "Enter" && state.shown.length) openSentence(state.shown[state.active]);
    else return;
    event.preventDefault();
  });
  at("rows").addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row) openSentence(state.shown[Number(row.dataset.place)]);
  });
  at("body").addEventListener("scroll", () => requestAnimationFrame(render));
  window.addEventListener("resize", () => requestAnimationFrame(() => {
    measureRow();
    at("rows").style.height = `${state.shown.length * rowHeight}px`;
    render();
  }));
  at("query").addEventListener("input", () => {
    state.query = at("query").value;
    refresh();
  });
  at("query").addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === "ArrowDown") at("grid").focus();
    else if (event.key === "Escape") at("query").value = state.query = "", refresh();
    else return;
    event.preventDefault();
  });
  at("skip").addEventListener("click", (event) => {
    event.preventDefault();
    at("grid").focus();
  });
  offerThemes();
}

// --- navigation -----------------------------------------------------------------------------------

function showSentence(index) {
  const record = records[index];
  const data = at(`drawing-${index}`);
  const drawing = data ? JSON.parse(data.textContent) : null;
  const button = (label, key, action, off) => {
    const element = el("button", { type: "button", disabled: off }, label, " ", el("kbd", {}, key));
    element.addEventListener("click", action);
    return element;
  };
  at("sentence").replaceChildren(
    el("nav", { class: "turn", "aria-label": "Sentences" },
      button("← All sentences", "Esc", () => openSentence(undefined)),
      button("Previous", "P", () => turn(-1), state.active === 0),
      button("Next", "N", () => turn(1), state.active >= state.shown.length - 1),
      el("span", { class: "muted" }, `${state.active + 1} of ${state.shown.length}`)),
    el("h2", { id: "title", tabindex: "-1" },
      el("span", { class: "muted" }, `Line ${record.id + 1}`), " ", line(record.source)),
    ...viewOf(record, drawing));
}

/** Open a sentence, or the list; the address changes, so that the browser's "back" works. */
function openSentence(index) {
  location.hash = index === undefined ? "" : `#${index}`;
  route(); // at once: the browser's event may come after a quick second key
}

function route() {
  const index = Number.parseInt(location.hash.slice(1), 10);
  const opened = Boolean(records[index]);
  const before = state.opened;
  state.opened = opened ? index : undefined;
  if (state.opened === before) return;
  at("overview").hidden = opened;
  at("sentence").hidden = !opened;
  if (opened) {
    if (!state.shown.includes(index)) state.active = 0;
    else state.active = state.shown.indexOf(index);
    showSentence(index);
    scrollTo(0, 0);
    at("title").focus({ preventScroll: true });
  } else {
    at("sentence").replaceChildren();
    refresh(before);
    at("grid").focus({ preventScroll: true });
  }
}

function turn(by) {
  const next = state.shown[state.active + by];
  if (next !== undefined) openSentence(next);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select")) return;
  if (state.opened === undefined) {
    if (event.key !== "/") return;
    at("query").focus();
    at("query").select();
  } else if (event.key === "Escape") openSentence(undefined);
  else if (event.key === "n" || event.key === "N") turn(1);
  else if (event.key === "p" || event.key === "P") turn(-1);
  else return;
  event.preventDefault();
});

// Only rows in the document are printed: put the matching ones there, up to a limit.
const PRINTED = 500;
window.addEventListener("beforeprint", () => {
  if (state.opened !== undefined) return;
  at("rows").replaceChildren(...state.shown.slice(0, PRINTED).map((_, place) => rowOf(place)));
});
window.addEventListener("afterprint", render);
window.addEventListener("hashchange", route);

measureRow();
listen();
drawSummary();
refresh();
if (location.hash.length > 1) route();
else at("grid").focus({ preventScroll: true });
document.documentElement.dataset.ready = "true";
