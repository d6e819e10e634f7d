// The tables of a paradigm. A form in green is the only one that the model can produce.

/** The heading and the tables of an answer with `sections`, as paradigm/records.py writes them. */
function drawParadigm(answer) {
  const title = el("h2", { id: "title" }, el("bdi", {}, answer.lemma), " ",
    el("span", { class: "muted" }, answer.language));
  const tables = answer.sections.map((section) => sectionTable(answer, section));
  return [title, el("div", { class: "paradigms" }, ...tables)];
}

/** One table with its title. */
function sectionTable(answer, section) {
  const cells = new Map(section.cells.map((cell) => [`${cell.row}\t${cell.column}`, cell]));
  const head = el("tr", {}, el("td"),
    ...section.columns.map((name) => el("th", { scope: "col" }, name)));
  const rows = section.rows.map((name, i) => el("tr", {}, el("th", { scope: "row" }, name),
    ...section.columns.map((_, j) => paradigmCell(answer, cells.get(`${i}\t${j}`)))));
  return el("section", {}, el("h3", {}, section.title),
    el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": section.title },
      el("table", { class: "paradigm" }, head, ...rows)));
}

/** A cell with its forms; it leads to its answer, which says what is proven and what is doubtful. */
function paradigmCell(answer, cell) {
  if (!cell) return el("td");
  const only = cell.certificate === "only";
  const parts = cell.forms.flatMap(({ form, prob }, place) => [
    ...(place ? [el("br")] : []), el("bdi", {}, form),
    ...(only ? [] : [el("span", { class: "muted" }, ` ${shareOfForm(prob)}`)])]);
  if (!cell.forms.length) parts.push("(none)");
  if (!only && cell.certificate !== "exhaustive") parts.push(" …");
  if (cell.warnings.length) parts.push(el("b", { class: "alarm" }, " ?"));
  const link = new URLSearchParams(
    { language: answer.language, source: answer.lemma, tags: cell.tags });
  return el("td", { class: only ? "only" : "", title: [cell.tags, ...cell.warnings].join("; ") },
    el("a", { href: `#${link}` }, ...parts));
}

/** The probability of one form among several, never rounded to 0 or 100 %: as `percent` of
 *  paradigm/texts.py. */
function shareOfForm(prob) {
  if (prob <= 0.005) return "<1%";
  return prob >= 0.995 ? ">99%" : `${Math.round(100 * prob)}%`;
}
