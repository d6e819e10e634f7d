// The lattice of a sentence: the tree that page_tree.js builds, drawn as boxes and edges.

// Lengths in pixels.
const GAP = 74; // between a box and its children, with room for a probability
const SHORT_GAP = 26; // without one, where the model has no alternative
const LINE = 20; // of text
const BOX = 28; // height of a box of one line
const SPACE = 9; // between boxes above each other
const WIDEST = 300; // line of text

const measure = (() => {
  const context = document.createElement("canvas").getContext("2d");
  return (text, bold) => {
    context.font = `${bold ? "600 " : ""}14px ${getComputedStyle(document.body).fontFamily}`;
    return context.measureText(text).width;
  };
})();

/** Set the text, size and place of every box; return the size of the picture. The place of a box is
 *  its upper left corner (x, y). `out` is the x from which the edges to its children diverge. */
function place(tree) {
  const size = { width: 0, height: 0 };
  measureBox(tree);
  placeBox(tree, 4, 16, size); // below a margin for the probabilities on the uppermost edges
  return { width: Math.ceil(size.width + 4), height: Math.ceil(size.height + 6) };
}

/** Place a box at (x, y), and the boxes behind it; return the y below them all. `size` grows to the
 *  right and lower ends of all boxes so far. */
function placeBox(box, x, y, size) {
  Object.assign(box, { x, y, out: Math.max(box.out || 0, x + box.width) });
  for (const child of box.children) {
    child.parent = box;
    child.forced = child.p >= CERTAIN;
    measureBox(child);
  }
  const gap = (child) => (child.forced ? SHORT_GAP : GAP);
  // The first child stands beside its parent. Its own branches start to the right of the stubs, which
  // stand right below it; other children stand below everything before them.
  const [first, ...others] = box.children;
  const stubs = others.filter((child) => child.kind === "stub");
  if (first) first.out = box.out + gap(first) + Math.max(...[first, ...stubs].map((b) => b.width));
  let top = y; // of the next child
  let below = 0; // the y below all children so far
  for (const child of box.children) {
    if (child !== first && child.kind !== "stub") top = Math.max(top, below);
    const lowest = placeBox(child, box.out + gap(child), top, size) + SPACE;
    top = child === first ? y + child.height + SPACE : lowest;
    below = Math.max(below, lowest);
  }
  const bottom = Math.max(y + box.height, below - SPACE);
  size.width = Math.max(size.width, x + box.width);
  size.height = Math.max(size.height, bottom);
  return bottom;
}

/** Set the lines and the size of a box. */
function measureBox(box) {
  box.lines = linesOf(box);
  const widths = box.lines.map((text) => measure(text, box.kind === "end"));
  const extra = box.kind === "end" ? 14 : 0; // the mark of the end
  box.width = box.kind === "root" ? 10 : Math.max(12, ...widths) + 18 + extra;
  box.height = BOX + LINE * (box.lines.length - 1);
}

/** The text of a box, in lines of at most `WIDEST` pixels. */
function linesOf(box) {
  if (box.kind === "root") return [""];
  if (box.kind === "end") return [percent(box.prob)];
  if (box.text) return [box.text];
  const tokens = box.tokens.map((token) => (token === null ? "end" : visible(token)));
  const glue = tokens.every(isLetter) ? "\u2006" : " ";
  const lines = [tokens[0]];
  for (const token of tokens.slice(1)) {
    const longer = lines[lines.length - 1] + glue + token;
    if (measure(longer) > WIDEST) lines.push(token);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

/** The tree as an SVG element; `mirrored`, its root is at the right. `select` gets the hypothesis
 *  whose end is clicked. */
function drawLattice({ nodes, selected, minimum, select, drawing: { backwards } }, mirrored) {
  const tree = new TreeBuilder(nodes, { minimum, selected, backwards }).tree();
  const { width, height } = place(tree);
  const flip = (x) => (mirrored ? width - x : x);
  const edges = svg("g", { class: "edges" });
  const boxes = svg("g", {});
  const draw = (box) => {
    const on = box.kind === "root" || (box.hypotheses || []).includes(selected);
    const classes = `${box.kind}${on ? " on" : ""}`;
    if (box.parent) {
      const [x1, out, x2] = [box.parent.x + box.parent.width, box.parent.out, box.x];
      const [y1, y2] = [box.parent.y + BOX / 2, box.y + BOX / 2];
      const bend = Math.min(26, (x2 - out) / 2);
      const [bow, end] = [flip(out + bend), flip(x2)];
      const d = y1 === y2 ? `M${flip(x1)} ${y1}H${end}`
        : `M${flip(x1)} ${y1}H${flip(out)}C${bow} ${y1} ${flip(out)} ${y2} ${bow} ${y2}H${end}`;
      edges.append(svg("path", { d, class: classes, "stroke-width": 1.2 + 2 * box.prob }));
      if (!box.forced) {
        edges.append(svg("text", { x: flip(x2 - 5), y: y2 - 5, class: classes,
          "text-anchor": mirrored ? "start" : "end" }, percent(box.p)));
      }
    }
    const left = mirrored ? width - box.x - box.width : box.x;
    boxes.append(drawBox(box, left, classes, backwards, select));
    box.children.forEach(draw);
  };
  draw(tree);
  const ends = tree.children.flatMap((box) => box.hypotheses || []).length;
  const number = ends === 1 ? "one hypothesis" : `${ends} hypotheses`;
  return svg("svg", { class: "lattice", role: "img", width, height,
    viewBox: `0 0 ${width} ${height}`,
    "aria-label": `Tree of the prefixes of ${number}, with probabilities on its edges` },
    edges, boxes);
}

/** A box of the tree as an SVG element, with its left edge at `left`. */
function drawBox(box, left, classes, backwards, select) {
  const middle = box.y + BOX / 2;
  if (box.kind === "root") {
    return svg("circle", { cx: left + 5, cy: middle, r: 5, class: classes });
  }
  const end = box.kind === "end";
  const text = box.lines.map((content, i) =>
    svg("text", { x: left + 9 + (end ? 14 : 0), y: middle + 5 + LINE * i }, content));
  const group = svg("g", { class: classes },
    svg("title", {}, describe(box, backwards)),
    svg("rect", { x: left, y: box.y, width: box.width, height: box.height, rx: end ? 14 : 6 }),
    end ? svg("rect", { class: "stop", x: left + 9, y: middle - 4, width: 8, height: 8 }) : null,
    ...text);
  if (end) group.addEventListener("click", () => select(box.hypotheses[0]));
  return group;
}

/** The prefix of a box and its probability, as a tooltip. */
function describe(box, backwards) {
  const words = [];
  for (let each = box; each && each.kind !== "root"; each = each.parent) {
    const own = each.tokens?.map((token) => token ?? "(end)") ?? [each.text || "(end)"];
    words[backwards ? "push" : "unshift"](...own);
  }
  const number = (box.hypotheses || [0])[0] + 1;
  const kind = { stub: "not followed", end: `hypothesis ${number}` }[box.kind];
  return `${words.join(" ")}\n${percent(box.prob)} in total${kind ? ", " + kind : ""}`;
}
