// The pictures of one sentence: its lattice, and next tokens and attention along one hypothesis.

const MINIMA = [0, 1e-4, 1e-3, 1e-2, 0.1]; // least probabilities of branches to choose from
const DRAWN = 60; // leaves of the lattice that are drawn by default
const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/; // scripts that read from right to left

/** The pictures of a sentence, in one element. `drawing` has their data, see page_drawing.js;
 *  `select` is called with the number of the hypothesis whose end is clicked in the lattice. */
class Pictures {
  constructor(record, drawing, select) {
    this.record = record;
    this.drawing = drawing;
    this.select = select;
    this.nodes = nodesOf(drawing);
    this.minimum = fittingMinimum(this.nodes); // least probability of the branches that are drawn
    this.direction = record.hypotheses.some((each) => RTL.test(each.text)) ? "rtl" : "ltr";
    this.element = el("div", { id: "pictures" });
  }

  /** Draw the pictures; the hypothesis of this number is highlighted, or followed. */
  draw(hypothesis) {
    const { source, backwards } = this.drawing;
    const path = pathOf(this.nodes, hypothesis);
    if (backwards) path.reverse();
    this.element.replaceChildren(this.lattice(hypothesis),
      this.supports(hypothesis, path), this.attention(source, path));
    // A tree whose root is at the right is read from there, also if it is wider than the page.
    const tree = this.element.querySelector(".lattice-figure .scroll");
    if (this.isMirrored()) requestAnimationFrame(() => { tree.scrollLeft = tree.scrollWidth; });
  }

  /** Whether the root of the lattice is at the right: there, the model writes its first token. */
  isMirrored() {
    return this.drawing.backwards === (this.direction === "ltr");
  }

  lattice(hypothesis) {
    const tree = new TreeBuilder(this.nodes, { minimum: this.minimum, selected: hypothesis,
      backwards: this.drawing.backwards }).tree();
    const picture = new LatticePicture(tree, { selected: hypothesis, select: this.select,
      backwards: this.drawing.backwards, mirrored: this.isMirrored() }).draw();
    return figure("lattice-figure", "Lattice", note(this.latticeText()),
      this.minimumMenu(hypothesis), picture);
  }

  supports(hypothesis, path) {
    const text = note("Along ", written(this.record, this.record.hypotheses[hypothesis].text),
      " (bold): every token that the model allows, with its probability. "
      + "Steps without an alternative share a border.");
    return figure("supports-figure", "Possible next tokens", text, null,
      drawSupports(path, this.direction));
  }

  attention(source, path) {
    const table = drawAttention(source, path, this.direction);
    if (!table) return note("There are no attention weights.");
    const text = note("Source tokens (rows) by target tokens (columns), in percent. "
      + "Outlined: nonzero weights.");
    return figure("attention-figure", "Attention", text, null, table);
  }

  /** What the dashed and the missing branches of the lattice are. */
  latticeText() {
    const leaves = leavesOf(this.nodes);
    const hidden = leaves.filter((leaf) => leaf.prob < this.minimum);
    const sum = percent(hidden.reduce((total, leaf) => total + leaf.prob, 0));
    let dashed = "Dashed: pruned next tokens, which the model allows but the search did not follow "
      + "to the end.";
    if (leaves.every((leaf) => leaf.kept)) {
      dashed = "Every path is a hypothesis: this is the model's whole tree.";
    } else if (found(this.record) > this.record.hypotheses.length) {
      dashed = "Dashed: next tokens that the model allows and no listed hypothesis contains.";
    }
    const missing = hidden.length
      ? ` Faint branches (${hidden.length}, ${sum} in total) are not drawn.` : "";
    const order = this.drawing.backwards ? " The model writes the last token first." : "";
    return dashed + missing + order;
  }

  /** A menu of least probabilities of the branches that are drawn. */
  minimumMenu(hypothesis) {
    const options = MINIMA.map((minimum) => el("option", { value: minimum,
      selected: minimum === this.minimum }, minimum ? `from ${percent(minimum)}` : "all"));
    const select = el("select", {}, ...options);
    select.addEventListener("change", () => {
      this.minimum = Number(select.value);
      this.draw(hypothesis);
      this.element.querySelector("select").focus(); // the menu has been drawn anew
    });
    return el("label", { class: "minimum" }, "Branches ", select);
  }
}

/** The smallest minimum at which the lattice has few enough leaves. */
function fittingMinimum(nodes) {
  const leaves = leavesOf(nodes);
  return MINIMA.find((minimum) => leaves.filter((leaf) => leaf.prob >= minimum).length <= DRAWN)
    ?? MINIMA.at(-1);
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
