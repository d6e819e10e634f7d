// The list of sentences: its columns, its filters and its rows. Only visible rows are in the document,
// so that thousands scroll as smoothly as ten. page_list_events.js reacts to what users do with the
// list, and page_navigation.js opens the sentences.

const records = JSON.parse(at("records").textContent);
let rowHeight = 34; // pixels, as in the style sheet, which has taller rows on phones
const measureRow = () => {
  rowHeight = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row"));
};

const sentences = records.filter((record) => !isBlank(record));
const bestText = (record) => (best(record) ? best(record).text : record.unfinished || "");

// `value` is what a column is sorted by, and `cell` what it shows, if that is another thing.
const COLUMNS = [
  { name: "id", label: "Line", value: (r) => r.id, number: true,
    cell: (r) => String(r.id + 1) }, // people count lines from 1, programs from 0
  { name: "source", label: "Source", value: (r) => r.source,
    cell: (r) => el("span", { class: r.source.startsWith("lang=") ? "word" : null }, line(r.source)) },
  { name: "best", label: "Best hypothesis", value: bestText, cell: bestCell },
  { name: "prob", label: "Probability", value: (r) => (best(r) ? best(r).prob : -1), number: true,
    cell: probabilityCell },
  { name: "level", label: "Certificate", value: (r) => Object.keys(LEVELS).indexOf(levelOf(r)),
    cell: badges },
  { name: "found", label: "Found", value: found, number: true, title: "number of outputs found" },
  { name: "mass", label: "Mass", value: (r) => r.mass, number: true, cell: (r) => percent(r.mass),
    title: "total probability of the outputs found" },
  { name: "bound", label: "Bound", value: (r) => r.bound, number: true,
    cell: (r) => percent(r.bound), title: "no other output has a higher probability" },
];

/** The best hypothesis of a sentence, or what there is in its place; first its verdict, if any. */
function bestCell(record) {
  const name = verdictOf(record);
  const hypothesis = best(record);
  const text = hypothesis ? [line(hypothesis.text)]
    : record.unfinished ? [el("i", {}, "unfinished: ", line(record.unfinished))]
      : [el("i", {}, "none")];
  return el("span", {}, name ? verdict(name, true) : null,
    record.abstained ? el("i", {}, "abstained: ") : null, ...text);
}

/** The probability of the best hypothesis, as a number and as a bar. */
function probabilityCell(record) {
  const hypothesis = best(record);
  if (!hypothesis) return "–";
  const meter = el("span", { class: "meter" });
  meter.style.setProperty("--p", hypothesis.prob);
  return el("span", { class: "prob" }, percent(hypothesis.prob), meter);
}

// What the page shows.
const state = {
  levels: new Set(Object.keys(LEVELS)), // certificates of the sentences in the list
  verdicts: new Set(Object.keys(VERDICTS)), // verdicts of these, if there are references
  query: "", // what they contain
  sort: "id", // the column by which they are sorted
  down: false, // whether the largest values come first
  shown: [], // positions in `records` of the sentences in the list, in its order
  active: 0, // position in `shown` of the row that keys act on
  opened: undefined, // position in `records` of the sentence that is open; none: the list is
};

/** The certificate of a sentence, and how many tokens of it training never saw. */
function badges(record) {
  const odd = Object.entries({ ...record.unseen, ...record.unknown });
  const number = odd.reduce((sum, [, count]) => sum + count, 0);
  return el("span", {}, badge(levelOf(record)), number
    ? el("span", {
      class: "alarm",
      title: `training never saw: ${odd.map(([token]) => token).join(" ")}`,
    }, ` \u26a0\ufe0e ${number}`) : null);
}

const haystacks = [];

/** The texts of a sentence in which a query is looked for, made once. */
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

/** Filter and sort the sentences anew. The sentence `keep` stays active; without it, the first is. */
function refresh(keep) {
  const matches = matcherOf(state.query);
  state.shown = records.map((_, i) => i).filter((i) => {
    const judged = verdictOf(records[i]);
    return state.levels.has(levelOf(records[i])) && (!judged || state.verdicts.has(judged))
      && matches(i);
  });
  sortShown();
  state.active = Math.max(0, keep === undefined ? 0 : state.shown.indexOf(keep));
  at("grid").setAttribute("aria-rowcount", state.shown.length + 1);
  at("count").textContent = state.shown.length === records.length ? ""
    : `${grouped(state.shown.length)} of ${grouped(records.length)}`;
  at("empty").hidden = state.shown.length > 0;
  at("rows").style.height = `${state.shown.length * rowHeight}px`;
  reveal();
  render();
}

/** A function from the position of a record to whether its texts match a query. */
function matcherOf(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const phrase = words.join(" ");
  if (!phrase) return () => true;
  // Words match in any order, tokens of one letter only in theirs.
  const anyOrder = words.some((word) => word.length > 1);
  return (index) => {
    const text = haystack(index);
    return text.includes(phrase) || (anyOrder && words.every((word) => text.includes(word)));
  };
}

/** Sort the sentences that are shown by the chosen column, and mark its heading. */
function sortShown() {
  const column = COLUMNS.find((each) => each.name === state.sort);
  const keys = records.map(column.value);
  const order = (a, b) => (keys[a] < keys[b] ? -1 : keys[a] > keys[b] ? 1 : 0);
  state.shown.sort((a, b) => (state.down ? order(b, a) : order(a, b)) || a - b);
  for (const header of at("head").children) {
    header.setAttribute("aria-sort", header.dataset.column !== state.sort ? "none"
      : state.down ? "descending" : "ascending");
  }
}

/** Put the rows that are visible into the document, and a few above and below them. */
function render() {
  const body = at("body");
  const first = Math.max(0, Math.floor(body.scrollTop / rowHeight) - 5);
  const last = Math.min(
    state.shown.length, Math.ceil((body.scrollTop + body.clientHeight) / rowHeight) + 5);
  const rows = [];
  for (let place = first; place < last; place += 1) rows.push(rowOf(place));
  at("rows").replaceChildren(...rows);
  const active = state.shown.length ? `row-${state.shown[state.active]}` : null;
  if (active && at(active)) at("grid").setAttribute("aria-activedescendant", active);
  else at("grid").removeAttribute("aria-activedescendant");
}

/** The row at a place of the list. */
function rowOf(place) {
  const index = state.shown[place];
  const row = el("div", { class: "row", role: "row", id: `row-${index}`, "aria-rowindex": place + 2,
    "aria-selected": place === state.active ? "true" : "false", "data-place": place },
  ...COLUMNS.map((column) => cellOf(column, index)));
  row.style.top = `${place * rowHeight}px`;
  return row;
}

/** The cell of a column for the record at a position. */
function cellOf({ name, value, cell }, index) {
  const record = records[index];
  const hasPictures = name === "id" && at(`drawing-${index}`);
  return el("div", { role: "gridcell", class: name }, cell ? cell(record) : String(value(record)),
    hasPictures ? el("span", { class: "pictures", title: "has pictures" }, " ◆") : null);
}

/** Scroll to the active row. */
function reveal() {
  const body = at("body");
  const top = state.active * rowHeight;
  if (top < body.scrollTop) body.scrollTop = top;
  if (top + rowHeight > body.scrollTop + body.clientHeight) {
    body.scrollTop = top + rowHeight - body.clientHeight;
  }
}

/** Make the row `by` places further the active one. */
function move(by) {
  state.active = Math.min(Math.max(state.active + by, 0), Math.max(state.shown.length - 1, 0));
  reveal();
  render();
}
