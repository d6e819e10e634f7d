// The tree of a sentence's hypotheses that is drawn: chains of tokens without an alternative become
// one box, and improbable branches are left out.
//
// A box is an object of
//
//   kind        "root", "box" (tokens of hypotheses), "end" (of a hypothesis), or "stub" (next tokens
//               that no hypothesis goes on with)
//   tokens      its tokens in the order of the text, or `text`, what stands in their place
//   p, prob     its probability after the boxes before it, and together with these
//   hypotheses  the numbers of the hypotheses that go through it
//   children    the boxes behind it

/** Builds the tree. Branches less probable than `minimum` are left out, except those of the
 *  hypothesis `selected`; a model that writes `backwards` has its tokens in the other order. */
class TreeBuilder {
  constructor(nodes, { minimum, selected, backwards }) {
    this.nodes = nodes;
    this.minimum = minimum;
    this.added = backwards ? "unshift" : "push"; // how a token joins those before it
    this.chosen = new Set(pathOf(nodes, selected).map(({ taken }) => taken));
    this.first = []; // the first hypothesis below each node
    for (let index = nodes.length - 1; index >= 0; index -= 1) { // children come after their parents
      const followed = nodes[index].branches.filter(isFollowed);
      this.first[index] = Math.min(...followed.map((branch) => this.firstOf(branch)));
    }
  }

  /** The root of the tree. */
  tree() {
    return { kind: "root", p: 1, prob: 1, children: this.children(0, 1), hypotheses: [] };
  }

  /** The first hypothesis that has a branch. */
  firstOf(branch) {
    return branch.hypothesis ?? this.first[branch.child];
  }

  /** The boxes behind a node, whose prefix has the probability `prob`. */
  children(index, prob) {
    const node = this.nodes[index];
    const boxes = this.kept(node, prob).map(({ token, p, child, hypothesis }) =>
      child === undefined
        ? { kind: "end", p, prob: p * prob, hypotheses: [hypothesis], children: [] }
        : this.chain({ kind: "box", tokens: [token], p, prob: p * prob }, child));
    // The best hypothesis is a straight line; branches not followed stand right below it.
    return [...boxes.slice(0, 1), ...this.stubs(node, prob), ...boxes.slice(1)];
  }

  /** The branches of a node that hypotheses follow and that are drawn, the best hypothesis first. */
  kept(node, prob) {
    return node.branches
      .filter((branch) =>
        isFollowed(branch) && (branch.p * prob >= this.minimum || this.chosen.has(branch)))
      .sort((a, b) => this.firstOf(a) - this.firstOf(b));
  }

  /** Boxes of the next tokens that no hypothesis goes on with: one for each token that is probable
   *  enough, and one for all others together if they are. */
  stubs(node, prob) {
    let { p: rest, count } = node.others;
    const boxes = [];
    for (const branch of node.branches) {
      if (isFollowed(branch)) continue;
      const { token, p } = branch;
      if (p * prob >= this.minimum) {
        boxes.push({ kind: "stub", tokens: [token], p, prob: p * prob, children: [] });
      } else {
        rest += p;
        count += 1;
      }
    }
    if (count && rest * prob >= this.minimum) {
      const text = `${count} other${count > 1 ? "s" : ""}`;
      boxes.push({ kind: "stub", text, p: rest, prob: rest * prob, children: [] });
    }
    return boxes;
  }

  /** A box with all tokens from the node `index` on that have no alternative, and its children. */
  chain(box, index) {
    for (;;) {
      const [next, ...alternatives] = this.kept(this.nodes[index], box.prob);
      if (next?.child === undefined || alternatives.length) break;
      if (this.stubs(this.nodes[index], box.prob).length) break;
      box.tokens[this.added](next.token);
      box.p *= next.p;
      box.prob *= next.p;
      index = next.child;
    }
    box.children = this.children(index, box.prob);
    box.hypotheses = box.children.flatMap((child) => child.hypotheses || []);
    if (!box.children.length) { // everything behind it is too improbable
      box.tokens[this.added]("…");
    }
    return box;
  }
}
