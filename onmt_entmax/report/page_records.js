// Texts about the sentence of a report's record: its certificate, doubts about it, and its numbers.

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

/** The mark of a verdict, with its name unless `short`. */
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

/** The mark and the name of a certificate's level. */
function badge(level) {
  return el("span", { class: `badge ${level}`, title: LEVELS[level].meaning },
    el("span", { "aria-hidden": "true" }, LEVELS[level].mark), " ", level);
}

/** A text of a record: as people write it, or as a line of tokens. */
const written = (record, text) =>
  (record.written ? el("bdi", { dir: "auto" }, text) : line(text));

/** A sentence on what is proven about the outputs of a record. */
function proof(record) {
  if (isBlank(record)) return "A blank line.";
  const bound = percent(record.bound);
  const rest = record.excluded > 0 ? " that is allowed" : "";
  if (record.certificate === "exhaustive") {
    if (!found(record)) return "Proven: the model can produce no output that is allowed.";
    const outputs = found(record) === 1 ? "this output" : `these ${found(record)} outputs`;
    return `Proven: the model can produce ${outputs} and no other${rest}.`;
  }
  if (record.certificate === "optimal") {
    const more = isScored(record) ? "scores more" : "is more probable";
    return `Proven: no output${rest} ${more} than the first. `
      + `Each output that was not found has at most ${bound}.`;
  }
  return best(record) ? `Not proven: an output that was not found may have up to ${bound}.`
    : "Nothing was found.";
}

/** The warnings of a record: of unusual source tokens, and others. */
function warnings(record) {
  const language = record.source.split(" ")[0].replace(/^lang=/, "");
  return [
    tokenWarning(record, "unknown", "not in the vocabulary. The model read <unk> instead, and the "
      + "certificate holds for that input"),
    tokenWarning(record, "unseen", `not seen in training for ${language}`),
    tokenWarning(record, "copied",
      "rare or new in training. A placeholder stands for each, and is copied"),
    ...(record.warnings || []).map((text) => el("p", { class: "alarm" }, text)),
  ].filter(Boolean);
}

/** A warning of the source tokens that a record counts under `kind`; null if there are none. */
function tokenWarning(record, kind, problem) {
  const counts = Object.entries(record[kind] || {});
  if (!counts.length) return null;
  const number = counts.reduce((sum, [, count]) => sum + count, 0);
  const all = record.source_tokens ? ` of ${record.source_tokens}` : "";
  const noun = (record.source_tokens || number) === 1 ? "token" : "tokens";
  const tokens = counts.map(([token, count]) => (count > 1 ? `${token} (${count})` : token))
    .join(record.written ? ", " : " ");
  return el("p", { class: `alarm ${kind}` }, `${number}${all} source ${noun} ${problem}: ${tokens}`);
}

/** A table of the numbers of a record. */
function facts(record) {
  const rows = [
    ["Outputs found", found(record)],
    ["Their total probability", percent(record.mass)],
    ["Bound on any other", percent(record.bound)],
    ["Prefixes dropped", record.dropped],
    ["Prefixes cut by length", record.truncated],
    ["Not allowed (constraints, padding)", percent(record.excluded)],
  ];
  if (record.verified === null) rows.push(["Verified", "undecided: the budget ended"]);
  if (record.verified === true) rows.push(["Verified", "agrees"]);
  if (record.verified === false) rows.push(["Verified", "disagrees"]);
  return el("dl", { class: "facts" }, ...rows.flatMap(([name, value]) =>
    [el("dt", {}, name), el("dd", {}, String(value ?? "–"))]));
}
