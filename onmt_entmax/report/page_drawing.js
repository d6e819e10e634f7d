// The data of a sentence's pictures: the lists of page_drawing.py become objects.

/** The nodes of a drawing. If a hypothesis goes on with the token of a branch, the branch leads to
 *  the node `child`. If the token is null, the end symbol, `hypothesis` ends there. `others` are the
 *  tokens that have no branch: their probability together, and their number. */
function nodesOf(drawing) {
  const branchOf = ([token, p, to]) => (token === null
    ? { token, p, child: undefined, hypothesis: to }
    : { token, p, child: to, hypothesis: undefined });
  return drawing.nodes.map(({ branches, others, attention }) => {
    const [p, count] = others ?? [0, 0];
    return { branches: branches.map(branchOf), others: { p, count }, attention };
  });
}

/** Whether a hypothesis goes on with a branch, or ends there. */
const isFollowed = (branch) => branch.child !== undefined || branch.hypothesis !== undefined;

/** The token of a branch, visible; `end` for the end symbol. */
const nameOf = (branch) => (branch.token === null ? "end" : visible(branch.token));

/** The steps along a hypothesis: each has a node, the branch that it takes there, and its number. */
function pathOf(nodes, hypothesis) {
  const parents = new Map();
  let end = 0;
  nodes.forEach((node, i) => {
    for (const branch of node.branches) {
      if (branch.child !== undefined) parents.set(branch.child, i);
      if (branch.hypothesis === hypothesis) end = i;
    }
  });
  const path = [end];
  while (path[0] !== 0) path.unshift(parents.get(path[0]));
  return path.map((index, step) => {
    const node = nodes[index];
    const next = path[step + 1];
    const taken = node.branches.find((branch) =>
      (next === undefined ? branch.hypothesis === hypothesis : branch.child === next));
    return { node, taken, step };
  });
}

/** The leaves of the tree, hypotheses (`kept`) or branches not followed, with their probability. */
function leavesOf(nodes) {
  const leaves = [];
  const walk = (index, prob) => {
    const node = nodes[index];
    for (const branch of node.branches) {
      if (branch.child !== undefined) walk(branch.child, branch.p * prob);
      else leaves.push({ prob: branch.p * prob, kept: isFollowed(branch) });
    }
    if (node.others.count) leaves.push({ prob: node.others.p * prob, kept: false });
  };
  walk(0, 1);
  return leaves;
}
