// Pictures along one hypothesis: the possible next tokens of each step, and the attention.
// A step is an object of `pathOf`: a node, the branch that the hypothesis takes there, and its number.

const LISTED = 8; // next tokens that a step shows; the others are summed up

/** A column of next tokens for each step; steps without an alternative share a border. */
function drawSupports(path, dir) {
  const list = el("ol", { class: "supports", dir, "aria-label": "Possible next tokens, step by step" });
  let run = null;
  for (const { node, taken, step } of path) {
    const forced = node.branches.length === 1 && !node.others.count;
    if (!run || !forced) {
      run = el("li", { class: forced ? "run" : "", title: forced ? "no alternative here" : null });
      list.append(run);
    }
    run.append(supportOf(node, taken, step));
    if (!forced) run = null;
  }
  return list;
}

/** The next tokens at one step, with the one that the hypothesis takes. */
function supportOf(node, taken, step) {
  const shown = node.branches.filter((branch, i) => i < LISTED || branch === taken);
  const hidden = node.branches.length - shown.length + node.others.count;
  const rest = 1 - shown.reduce((sum, branch) => sum + branch.p, 0);
  const entries = shown.map((branch) => {
    const classes = (branch === taken ? "taken" : "") + (branch.token === null ? " stop" : "");
    const entry = el("li", { class: classes, "aria-current": branch === taken ? "step" : null },
      el("bdi", {}, nameOf(branch)), el("span", { class: "p" }, percent(branch.p)));
    entry.style.setProperty("--p", branch.p);
    return entry;
  });
  if (hidden) {
    entries.push(el("li", { class: "rest" }, el("span", {}, `+${hidden}`),
      el("span", { class: "p" }, percent(Math.max(rest, 0)))));
  }
  return el("div", { class: "step" }, el("span", { class: "number" }, String(step + 1)),
    el("ul", {}, ...entries));
}

/** The attention as a table of source tokens (rows) by target tokens; null without attention. */
function drawAttention(source, path, dir) {
  if (!path[0].node.attention) return null;
  const weights = path.map(({ node }) => {
    const column = new Map();
    for (let i = 0; i < node.attention.length; i += 2) {
      column.set(node.attention[i], node.attention[i + 1]);
    }
    return column;
  });
  const names = path.map(({ taken }) => nameOf(taken));
  const tall = names.some((name) => [...name].length > 3);
  const head = el("tr", {}, el("td", { class: "corner" }), ...names.map((name, i) =>
    el("th", { scope: "col", class: (tall ? "tall" : "") + (path[i].taken.token === null ? " stop" : "") },
      el("bdi", {}, name))));
  const body = source.map((token, row) => el("tr", {},
    el("th", { scope: "row" }, el("bdi", {}, visible(token))),
    ...weights.map((column, i) => cell(column.get(row), `${token} → ${names[i]}`))));
  return el("table", { class: "attention", dir }, el("thead", {}, head), el("tbody", {}, ...body));
}

/** The cell of an attention weight, in percent; empty without weight. */
function cell(weight, title) {
  if (!weight) return el("td", {});
  // On a dark background, a text needs another colour, which depends on the theme.
  const strength = weight >= 0.72 ? " high" : weight >= 0.55 ? " middle" : "";
  const shown = weight < 0.005 ? "·" : String(Math.round(100 * weight));
  const td = el("td", { class: "on" + strength, title: `${title}: ${percent(weight)}` }, shown);
  td.style.setProperty("--w", `${(100 * weight).toFixed(1)}%`);
  return td;
}
