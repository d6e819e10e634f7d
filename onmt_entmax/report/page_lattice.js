// The lattice of a sentence: the boxes that page_lattice_layout.js has placed, and edges between them.

const MARK = 8; // side of the square that marks the end of a hypothesis, in pixels

/** Draws a tree of boxes. With `mirrored`, its root is at the right. The boxes on the path of the
 *  hypothesis `selected` are highlighted. `select` is called with the hypothesis whose end is
 *  clicked. A model that writes `backwards` has the end of the text in its first box. */
class LatticePicture {
  constructor(tree, { selected, select, backwards, mirrored }) {
    this.tree = tree;
    this.selected = selected;
    this.select = select;
    this.backwards = backwards;
    this.mirrored = mirrored;
    this.edges = svg("g", { class: "edges" });
    this.boxes = svg("g", {});
  }

  /** The picture as an SVG element. */
  draw() {
    const { width, height } = place(this.tree);
    this.width = width;
    this.add(this.tree);
    const ends = this.tree.children.flatMap((box) => box.hypotheses || []).length;
    const number = ends === 1 ? "one hypothesis" : `${ends} hypotheses`;
    return svg("svg", { class: "lattice", role: "img", width, height,
      viewBox: `0 0 ${width} ${height}`,
      "aria-label": `Tree of the prefixes of ${number}, with probabilities on its edges` },
      this.edges, this.boxes);
  }

  /** Add a box, the edge that leads to it, and the boxes behind it. */
  add(box) {
    const isOnPath = box.kind === "root" || (box.hypotheses || []).includes(this.selected);
    const classes = `${box.kind}${isOnPath ? " on" : ""}`;
    if (box.parent) this.addEdge(box, classes);
    this.boxes.append(box.kind === "root" ? this.root(box, classes) : this.box(box, classes));
    box.children.forEach((child) => this.add(child));
  }

  /** The place of an x of the layout, whose root is at the left. */
  flip(x) {
    return this.mirrored ? this.width - x : x;
  }

  /** Add the edge from the parent of a box, with the probability of the box unless it is certain. */
  addEdge(box, classes) {
    const y = box.y + BOX / 2;
    this.edges.append(
      svg("path", { d: this.edgePath(box), class: classes, "stroke-width": 1.2 + 2 * box.prob }));
    if (box.forced) return;
    this.edges.append(svg("text", { x: this.flip(box.x - 5), y: y - 5, class: classes,
      "text-anchor": this.mirrored ? "start" : "end" }, percent(box.p)));
  }

  /** The path of an edge: straight to a box beside its parent, else a curve that begins at `out`. */
  edgePath(box) {
    const { parent } = box;
    const [start, out, end] = [parent.x + parent.width, parent.out, box.x].map((x) => this.flip(x));
    const [y1, y2] = [parent.y + BOX / 2, box.y + BOX / 2];
    if (y1 === y2) return `M${start} ${y1}H${end}`;
    const bend = this.flip(parent.out + Math.min(26, (box.x - parent.out) / 2));
    return `M${start} ${y1}H${out}C${bend} ${y1} ${out} ${y2} ${bend} ${y2}H${end}`;
  }

  root(box, classes) {
    const left = this.leftOf(box);
    return svg("circle", { cx: left + ROOT, cy: box.y + BOX / 2, r: ROOT, class: classes });
  }

  box(box, classes) {
    const left = this.leftOf(box);
    const middle = box.y + BOX / 2; // of the first line
    const isEnd = box.kind === "end";
    const textLeft = left + MARGIN + (isEnd ? MARK_ROOM : 0);
    const group = svg("g", { class: classes },
      svg("title", {}, titleOf(box, this.backwards)),
      svg("rect", { x: left, y: box.y, width: box.width, height: box.height, rx: isEnd ? 14 : 6 }),
      isEnd ? svg("rect", { class: "stop", x: left + MARGIN, y: middle - MARK / 2,
        width: MARK, height: MARK }) : null,
      ...box.lines.map((text, i) => svg("text", { x: textLeft, y: middle + 5 + LINE * i }, text)));
    if (isEnd) group.addEventListener("click", () => this.select(box.hypotheses[0]));
    return group;
  }

  /** The left edge of a box in the picture. */
  leftOf(box) {
    return this.mirrored ? this.width - box.x - box.width : box.x;
  }
}

/** The tooltip of a box: its prefix, and the probability of this prefix. */
function titleOf(box, backwards) {
  const words = [];
  for (let each = box; each && each.kind !== "root"; each = each.parent) {
    const own = each.tokens?.map((token) => token ?? "(end)") ?? [each.text || "(end)"];
    words[backwards ? "push" : "unshift"](...own);
  }
  const number = (box.hypotheses || [0])[0] + 1;
  const kind = { stub: "not followed", end: `hypothesis ${number}` }[box.kind];
  return `${words.join(" ")}\n${percent(box.prob)} in total${kind ? ", " + kind : ""}`;
}
