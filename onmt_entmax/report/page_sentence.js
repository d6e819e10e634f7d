// The view of one sentence: its certificate, its hypotheses and its numbers, above its pictures.

const LISTED_HYPOTHESES = 200; // more would make the page slow

/** The elements that show a sentence. `drawing` has the data of its pictures; null: it has none. */
function viewOf(record, drawing) {
  const list = new HypothesisList(record, (number) => pictures?.draw(number));
  const pictures = drawing && new Pictures(record, drawing, (number) => list.select(number));
  pictures?.draw(0);
  const proven = el("p", { class: "proof" }, badge(levelOf(record)), " ", proof(record));
  const columns = el("div", { class: "columns" }, hypothesesOf(record, list), facts(record));
  return [proven, ...judgement(record), ...warnings(record), columns,
    pictures ? pictures.element : withoutPictures(record)];
}

/** The place of the pictures of a sentence that has none. */
function withoutPictures(record) {
  const reason = record.no_pictures ?? "No pictures were computed for this sentence.";
  return el("div", { id: "pictures" }, record.hypotheses.length ? note(reason) : null);
}

/** Whether the model abstained, and what the reference is. */
function judgement(record) {
  const abstained = record.abstained
    ? [el("p", { class: "alarm" }, "Abstained: the output file has an empty line.")] : [];
  const name = verdictOf(record);
  if (name === null) return abstained;
  const text = name === "right" ? ["."]
    : [". Reference: ", line(record.reference), ` (${placeOfReference(record)})`];
  return [...abstained, el("p", { id: "reference" }, verdict(name), ...text)];
}

/** Which hypothesis is the reference, or why none is. */
function placeOfReference(record) {
  const words = (text) => text.split(/\s+/).filter(Boolean).join(" ");
  const position = record.hypotheses.findIndex(
    (each) => words(each.text) === words(record.reference));
  if (position >= 0) return `hypothesis ${position + 1}`;
  const hasAllOutputs = record.certificate === "exhaustive" && !record.excluded
    && found(record) === record.hypotheses.length;
  return hasAllOutputs ? "the model excludes it" : "no hypothesis here";
}

/** The section of the hypotheses: their list, and how many more there are. */
function hypothesesOf(record, list) {
  const unlisted = record.hypotheses.length - list.length;
  const unreported = found(record) - record.hypotheses.length;
  return el("section", { class: "hypotheses" }, el("h3", {}, "Hypotheses"),
    list.length ? list.element
      : el("p", {}, record.unfinished ? "None finished within the length limit." : "None."),
    unlisted > 0 ? note(`${unlisted} more are in the report, too many to show here.`) : null,
    unreported > 0
      ? note(`${unreported} more ${unreported === 1 ? "was" : "were"} found.`) : null);
}

/** A list of hypotheses, of which one is selected: at first the best one, then the one that the user
 *  clicks, or goes to by the arrow keys. `follow` is called with the number of the selected one. */
class HypothesisList {
  constructor(record, follow) {
    const options = record.hypotheses.slice(0, LISTED_HYPOTHESES)
      .map((hypothesis, number) => optionOf(record, hypothesis, number));
    this.follow = follow;
    this.length = options.length;
    this.element = el("ol", { role: "listbox", tabindex: "0", id: "hypotheses",
      "aria-label": "Hypotheses" }, ...options);
    this.element.addEventListener("click", (event) => {
      const option = event.target.closest("li");
      if (option) this.select(Number(option.dataset.i));
    });
    this.element.addEventListener("keydown", (event) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!by) return;
      this.select(Math.min(Math.max(this.selected + by, 0), this.length - 1));
      event.preventDefault();
    });
    if (this.length) this.mark(0);
  }

  /** Select a hypothesis, which need not be listed: a picture may have more of them. */
  select(number) {
    this.mark(number);
    this.element.children[number]?.scrollIntoView({ block: "nearest" });
    this.follow(number);
  }

  /** Show which hypothesis is the selected one. */
  mark(number) {
    this.selected = number;
    for (const option of this.element.children) {
      option.setAttribute("aria-selected", String(Number(option.dataset.i) === number));
    }
    this.element.setAttribute("aria-activedescendant", `hypothesis-${number}`);
  }
}

/** A hypothesis in the list. */
function optionOf(record, hypothesis, number) {
  return el("li", { role: "option", id: `hypothesis-${number}`, "data-i": number },
    el("span", { class: "rank" }, String(number + 1)), written(record, hypothesis.text),
    el("span", { class: "prob" }, percent(hypothesis.prob)));
}
