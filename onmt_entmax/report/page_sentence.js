// The view of one sentence: its certificate, hypotheses and pictures.

const MINIMA = [0, 1e-4, 1e-3, 1e-2, 0.1]; // least probabilities of branches to choose from
const DRAWN = 60; // leaves of the lattice that are drawn by default
const LISTED_HYPOTHESES = 200; // more would make the page slow
const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/; // scripts that read from right to left

/** What there is to see of a sentence: certificate, hypotheses, numbers and pictures. */
function viewOf(record, drawing) {
  const pictures = el("div", { id: "pictures" });
  const nodes = drawing ? nodesOf(drawing) : [];
  const view = { drawing, nodes, selected: 0, minimum: drawing ? fitting(nodes) : 0 };
  const columns = el("div", { class: "columns" }, hypothesesOf(record, view, pictures), facts(record));
  drawPictures(view, pictures, record);
  const proven = el("p", { class: "proof" }, badge(levelOf(record)), " ", proof(record));
  return [proven, ...judgement(record), ...warnings(record), columns, pictures];
}

/** Whether the model abstained, and what the reference is. */
function judgement(record) {
  const said = record.abstained
    ? [el("p", { class: "alarm" }, "Abstained: the output file has an empty line.")] : [];
  const name = verdictOf(record);
  if (name === null) return said;
  const words = (text) => text.split(/\s+/).filter(Boolean).join(" ");
  const rank = record.hypotheses.findIndex((each) => words(each.text) === words(record.reference));
  const all = record.certificate === "exhaustive" && !record.excluded
    && found(record) === record.hypotheses.length;
  const absent = all ? "the model excludes it" : "no hypothesis here";
  const where = rank < 0 ? absent : `hypothesis ${rank + 1}`;
  return [...said, el("p", { id: "reference" }, verdict(name), name === "right" ? "." : ". Reference: ",
    ...(name === "right" ? [] : [line(record.reference), ` (${where})`]))];
}

/** The list of hypotheses; the selected one is followed in the pictures. */
function hypothesesOf(record, view, pictures) {
  const shown = record.hypotheses.slice(0, LISTED_HYPOTHESES);
  const list = el("ol", { role: "listbox", tabindex: "0", id: "hypotheses", "aria-label": "Hypotheses" },
    ...shown.map((hypothesis, i) => {
      const option = el("li", { role: "option", id: `hypothesis-${i}`, "data-i": i },
        el("span", { class: "rank" }, String(i + 1)), written(record, hypothesis.text),
        el("span", { class: "prob" }, percent(hypothesis.prob)));
      return option;
    }));
  view.select = (i) => {
    view.selected = i;
    for (const option of list.children) {
      option.setAttribute("aria-selected", String(Number(option.dataset.i) === i));
    }
    list.setAttribute("aria-activedescendant", `hypothesis-${i}`);
    const option = list.children[i];
    if (option) option.scrollIntoView({ block: "nearest" });
    drawPictures(view, pictures, record);
  };
  list.addEventListener("click", (event) => {
    const option = event.target.closest("li");
    if (option) view.select(Number(option.dataset.i));
  });
  list.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!by) return;
    view.select(Math.min(Math.max(view.selected + by, 0), shown.length - 1));
    event.preventDefault();
  });
  if (shown.length) {
    list.firstChild.setAttribute("aria-selected", "true");
    list.setAttribute("aria-activedescendant", "hypothesis-0");
  }
  const more = record.hypotheses.length - shown.length;
  const unlisted = found(record) - record.hypotheses.length;
  return el("section", { class: "hypotheses" }, el("h3", {}, "Hypotheses"),
    shown.length ? list
      : el("p", {}, record.unfinished ? "None finished within the length limit." : "None."),
    more > 0 ? note(`${more} more are in the report, too many to show here.`) : null,
    unlisted > 0
      ? note(`${unlisted} more ${unlisted === 1 ? "was" : "were"} found.`) : null);
}

/** The smallest minimum at which the lattice has few enough leaves. */
function fitting(nodes) {
  const leaves = leavesOf(nodes);
  return MINIMA.find((minimum) => leaves.filter((leaf) => leaf.prob >= minimum).length <= DRAWN) ?? 0.1;
}

/** A picture below its title, a text about it (an element), and tools that change it. */
function figure(name, title, text, tools, picture) {
  return el("figure", { class: name }, el("figcaption", {}, el("h3", {}, title), text, tools),
    el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": title }, picture));
}

/** A paragraph of lesser importance. */
function note(...content) {
  return el("p", { class: "muted" }, ...content);
}

/** Draw the pictures of the selected hypothesis, or say why there are none. */
function drawPictures(view, pictures, record) {
  if (!view.drawing) {
    if (record.hypotheses.length) {
      pictures.replaceChildren(
        note(record.no_pictures ?? "No pictures were computed for this sentence."));
    }
    return;
  }
  const { source, backwards } = view.drawing;
  const path = pathOf(view.nodes, view.selected);
  if (backwards) path.reverse();
  const name = record.hypotheses[view.selected];
  const dir = record.hypotheses.some((each) => RTL.test(each.text)) ? "rtl" : "ltr";
  const attention = drawAttention(source, path, dir);
  const mirrored = backwards === (dir === "ltr");
  pictures.replaceChildren(
    figure("lattice-figure", "Lattice", latticeNote(record, view), minimumOf(view, pictures, record),
      drawLattice(view, mirrored)),
    figure("supports-figure", "Possible next tokens", note("Along ", written(record, name.text),
      " (bold): every token that the model allows, with its probability. "
      + "Steps without an alternative share a border."),
    null, drawSupports(path, dir)),
    attention
      ? figure("attention-figure", "Attention", note("Source tokens (rows) by target tokens "
        + "(columns), in percent. Outlined: nonzero weights."), null, attention)
      : note("There are no attention weights."));
  // A wide tree is read from its root.
  const tree = pictures.querySelector(".lattice-figure .scroll");
  if (mirrored) requestAnimationFrame(() => { tree.scrollLeft = tree.scrollWidth; });
}

/** What the dashed and the missing branches of a lattice are. */
function latticeNote(record, view) {
  const leaves = leavesOf(view.nodes);
  const hidden = leaves.filter((leaf) => leaf.prob < view.minimum);
  const sum = percent(hidden.reduce((total, leaf) => total + leaf.prob, 0));
  let text = "Dashed: pruned next tokens, which the model allows but the search did not follow to "
    + "the end.";
  if (leaves.every((leaf) => leaf.kept)) {
    text = "Every path is a hypothesis: this is the model's whole tree.";
  } else if (found(record) > record.hypotheses.length) {
    text = "Dashed: next tokens that the model allows and no listed hypothesis contains.";
  }
  const rest = hidden.length ? ` Faint branches (${hidden.length}, ${sum} in total) are not drawn.` : "";
  const order = view.drawing.backwards ? " The model writes the last token first." : "";
  return note(text + rest + order);
}

/** A menu of least probabilities of the branches that are drawn. */
function minimumOf(view, pictures, record) {
  const options = MINIMA.map((minimum) => el("option", { value: minimum,
    selected: minimum === view.minimum }, minimum ? `from ${percent(minimum)}` : "all"));
  const select = el("select", {}, ...options);
  select.addEventListener("change", () => {
    view.minimum = Number(select.value);
    drawPictures(view, pictures, record);
    pictures.querySelector("select").focus();
  });
  return el("label", { class: "minimum" }, "Branches ", select);
}
