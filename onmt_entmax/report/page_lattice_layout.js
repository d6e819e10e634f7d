// The layout of a lattice: the size and the place of each box of the tree that page_tree.js builds.
// `place` adds to each box
//
//   lines          its text
//   x, y           its upper left corner
//   width, height  its size
//   out            the x from which the edges to its children diverge
//   parent         the box before it; the root has none
//   forced         whether it is certain after its parent; the root has none

// Lengths in pixels.
const GAP = 74; // between a box and its children, with room for a probability
const SHORT_GAP = 26; // without one, where the model has no alternative
const LINE = 20; // of text
const BOX = 28; // height of a box of one line
const SPACE = 9; // between boxes above each other
const WIDEST = 300; // line of text
const MARGIN = 9; // between the left or right edge of a box and its text
const MARK_ROOM = 14; // for the mark of a hypothesis' end, before the text
const ROOT = 5; // radius of the root

/** The width of a text in pixels, as the style sheet draws it. */
const measure = (() => {
  const context = document.createElement("canvas").getContext("2d");
  return (text, bold) => {
    context.font = `${bold ? "600 " : ""}14px ${getComputedStyle(document.body).fontFamily}`;
    return context.measureText(text).width;
  };
})();

/** Set the text, size and place of every box; return the size of the picture. */
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
  const room = 2 * MARGIN + (box.kind === "end" ? MARK_ROOM : 0);
  box.width = box.kind === "root" ? 2 * ROOT : Math.max(12, ...widths) + room;
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
