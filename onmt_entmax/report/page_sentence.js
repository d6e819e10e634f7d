// The view of one sentence: its certificate, hypotheses and pictures.

const at = (id) => document.getElementById(id);

const MINIMA = [0, 1e-4, 1e-3, 1e-2, 0.1];
const LISTED_HYPOTHESES = 200;
const RTL = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]/; // scripts that read from right to left

const LEVELS = {
  exhaustive: { mark: "●", meaning: "every output of positive probability was found" },
  optimal: { mark: "◐", meaning: "no output is better than the first hypothesis" },
  none: { mark: "○", meaning: "not proven; an output that was not found may have up to the bound" },
  blank: { mark: "–", meaning: "a blank line" },
};

// Given references, an output is right if it is the reference.
const VERDICTS = { right: "✓", wrong: "✗" };
const verdictOf = (record) =>
  (isBlank(record) || record.right === undefined ? null : record.right ? "right" : "wrong");

function verdict(name, short) {
  const mark = el("span", { "aria-hidden": short ? null : "true" }, VERDICTS[name]);
  return el("span", { class: `verdict ${name}`, title: name }, mark, short ? " " : ` ${name}`);
}

// A blank line is not counted as a sentence: nothing was searched.
const isBlank = (record) => !record.source.trim();
const levelOf = (record) => (isBlank(record) ? "blank" : record.certificate);

/** The hypothesis that the output file has: the first one, or that of minimum Bayes risk. */
const best = (record) => record.hypotheses.find(
  (each) => !record.mbr || each.text === record.mbr.ranking[0].text) || null;
/** Whether penalties or rewards give the hypotheses scores of their own. */
const isScored = (record) => record.hypotheses.some((each) => each.score !== undefined);
const found = (record) => record.finished ?? record.hypotheses.length;

function badge(level) {
  return el("span", { class: `badge ${level}`, title: LEVELS[level].meaning },
    el("span", { "aria-hidden": "true" }, LEVELS[level].mark), " ", level);
}

/** Let the page's button change between light and dark. */
function offerThemes() {
  at("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.style.colorScheme ? root.style.colorScheme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.style.colorScheme = dark ? "light" : "dark";
  });
}

/** A text of a record: as people write it, or as a line of tokens. */
const written = (record, text) =>
  (record.written ? el("bdi", { dir: "auto" }, text) : line(text));

function proof(record) {
  if (isBlank(record)) return "A blank line.";
  const bound = percent(record.bound);
  const rest = record.excluded > 0 ? " that is allowed" : "";
  if (record.certificate === "exhaustive") {
    if (!found(record)) return "Proven: the model can produce no output that is allowed.";
    return `Proven: the model can produce ${found(record) === 1 ? "this output" : `these ${found(record)} outputs`} and no other${rest}.`;
  }
  if (record.certificate === "optimal") {
    const more = isScored(record) ? "scores more" : "is more probable";
    return `Proven: no output${rest} ${more} than the first. Each output that was not found has at most ${bound}.`;
  }
  return best(record) ? `Not proven: an output that was not found may have up to ${bound}.`
    : "Nothing was found.";
}

/** Tokens that training never saw, at all or in the language of the source, and other doubts. */
function warnings(record) {
  const language = record.source.split(" ")[0].replace(/^lang=/, "");
  const said = {
    unknown: "not in the vocabulary. The model read <unk> instead, and the certificate holds for that input",
    unseen: `not seen in training for ${language}`,
    copied: "rare or new in training. A placeholder stands for each, and is copied",
  };
  const of = record.source_tokens ? ` of ${record.source_tokens}` : "";
  const others = (record.warnings || []).map((text) => el("p", { class: "alarm" }, text));
  return Object.keys(said).flatMap((kind) => {
    const tokens = Object.entries(record[kind] || {});
    if (!tokens.length) return [];
    const number = tokens.reduce((sum, [, count]) => sum + count, 0);
    const names = tokens.map(([token, count]) => (count > 1 ? `${token} (${count})` : token)).join(record.written ? ", " : " ");
    const noun = (record.source_tokens || number) === 1 ? "token" : "tokens";
    return el("p", { class: `alarm ${kind}` }, `${number}${of} source ${noun} ${said[kind]}: ${names}`);
  }).concat(others);
}

function facts(record) {
  const rows = [
    ["Outputs found", found(record)], ["Their total probability", percent(record.mass)],
    ["Bound on any other", percent(record.bound)], ["Prefixes dropped", record.dropped],
    ["Prefixes cut by length", record.truncated], ["Not allowed (constraints, padding)", percent(record.excluded)],
  ];
  if (record.verified === null) rows.push(["Verified", "undecided: the budget ended"]);
  else if (record.verified !== undefined) rows.push(["Verified", record.verified ? "agrees" : "disagrees"]);
  return el("dl", { class: "facts" }, ...rows.flatMap(([name, value]) =>
    [el("dt", {}, name), el("dd", {}, String(value ?? "–"))]));
}

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
  const said = record.abstained ? [el("p", { class: "alarm" }, "Abstained: the output file has an empty line.")] : [];
  const name = verdictOf(record);
  if (name === null) return said;
  const words = (text) => text.split(/\s+/).filter(Boolean).join(" ");
  const rank = record.hypotheses.findIndex((each) => words(each.text) === words(record.reference));
  const all = record.certificate === "exhaustive" && !record.excluded && found(record) === record.hypotheses.length;
  const where = rank < 0 ? (all ? "the model excludes it" : "no hypothesis here") : `hypothesis ${rank + 1}`;
  return [...said, el("p", { id: "reference" }, verdict(name), name === "right" ? "." : ". Reference: ",
    ...(name === "right" ? [] : [line(record.reference), ` (${where})`]))];
}

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
    shown.length ? list : el("p", {}, record.unfinished ? "None finished within the length limit." : "None."),
    more > 0 ? note(`${more} more are in the report, too many to show here.`) : null,
    unlisted > 0
      ? note(`${unlisted} more ${unlisted === 1 ? "was" : "were"} found.`) : null);
}

/** The smallest minimum at which the lattice has few enough leaves. */
function fitting(nodes) {
  const leaves = leavesOf(nodes);
  return MINIMA.find((minimum) => leaves.filter((leaf) => leaf.prob >= minimum).length <= DRAWN) ?? 0.1;
}

function figure(name, title, note, tools, picture) {
  return el("figure", { class: name }, el("figcaption", {}, el("h3", {}, title), note, tools),
    el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": title }, picture));
}

function note(...content) {
  return el("p", { class: "muted" }, ...content);
}

function drawPictures(view, pictures, record) {
  if (!view.drawing) {
    if (record.hypotheses.length) {
      pictures.replaceChildren(note(record.no_pictures ?? "No pictures were computed for this sentence."));
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
      " (bold): every token that the model allows, with its probability. Steps without an alternative share a border."),
    null, drawSupports(path, dir)),
    attention
      ? figure("attention-figure", "Attention", note("Source tokens (rows) by target tokens (columns), in percent. Outlined: nonzero weights."), null, attention)
      : note("There are no attention weights."));
  // A wide tree is read from its root.
  const tree = pictures.querySelector(".lattice-figure .scroll");
  if (mirrored) requestAnimationFrame(() => { tree.scrollLeft = tree.scrollWidth; });
}

function latticeNote(record, view) {
  const leaves = leavesOf(view.nodes);
  const hidden = leaves.filter((leaf) => leaf.prob < view.minimum);
  const sum = percent(hidden.reduce((total, leaf) => total + leaf.prob, 0));
  let text = "Dashed: pruned next tokens, which the model allows but the search did not follow to the end.";
  if (leaves.every((leaf) => leaf.kept)) {
    text = "Every path is a hypothesis: this is the model's whole tree.";
  } else if (found(record) > record.hypotheses.length) {
    text = "Dashed: next tokens that the model allows and no listed hypothesis contains.";
  }
  const rest = hidden.length ? ` Faint branches (${hidden.length}, ${sum} in total) are not drawn.` : "";
  const order = view.drawing.backwards ? " The model writes the last token first." : "";
  return note(text + rest + order);
}

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
