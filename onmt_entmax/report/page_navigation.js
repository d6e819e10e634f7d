// Moves between the list and its sentences: the address names the sentence that is open, and keys lead
// to its neighbours. The end of this file starts the page of a report.

/** Show a sentence, with buttons that lead to its neighbours in the list. */
function showSentence(index) {
  const record = records[index];
  const data = at(`drawing-${index}`);
  const drawing = data ? JSON.parse(data.textContent) : null;
  const button = (label, key, action, off) => {
    const element = el("button", { type: "button", disabled: off }, label, " ", el("kbd", {}, key));
    element.addEventListener("click", action);
    return element;
  };
  at("sentence").replaceChildren(
    el("nav", { class: "turn", "aria-label": "Sentences" },
      button("← All sentences", "Esc", () => openSentence(undefined)),
      button("Previous", "P", () => turn(-1), state.active === 0),
      button("Next", "N", () => turn(1), state.active >= state.shown.length - 1),
      el("span", { class: "muted" }, `${state.active + 1} of ${state.shown.length}`)),
    el("h2", { id: "title", tabindex: "-1" },
      el("span", { class: "muted" }, `Line ${record.id + 1}`), " ", line(record.source)),
    ...viewOf(record, drawing));
}

/** Open a sentence, or the list; the address changes, so that the browser's "back" works. */
function openSentence(index) {
  location.hash = index === undefined ? "" : `#${index}`;
  route(); // at once: the browser's event may come after a quick second key
}

/** Show what the address names: a sentence, or the list. */
function route() {
  const index = Number.parseInt(location.hash.slice(1), 10);
  const opened = Boolean(records[index]);
  const before = state.opened;
  state.opened = opened ? index : undefined;
  if (state.opened === before) return;
  at("overview").hidden = opened;
  at("sentence").hidden = !opened;
  if (opened) {
    if (!state.shown.includes(index)) state.active = 0;
    else state.active = state.shown.indexOf(index);
    showSentence(index);
    scrollTo(0, 0);
    at("title").focus({ preventScroll: true });
  } else {
    at("sentence").replaceChildren();
    refresh(before);
    at("grid").focus({ preventScroll: true });
  }
}

/** Open the sentence `by` places further in the list. */
function turn(by) {
  const next = state.shown[state.active + by];
  if (next !== undefined) openSentence(next);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select")) return;
  if (state.opened === undefined) {
    if (event.key !== "/") return;
    at("query").focus();
    at("query").select();
  } else if (event.key === "Escape") openSentence(undefined);
  else if (event.key === "n" || event.key === "N") turn(1);
  else if (event.key === "p" || event.key === "P") turn(-1);
  else return;
  event.preventDefault();
});

window.addEventListener("hashchange", route);

measureRow();
listen();
drawSummary();
refresh();
if (location.hash.length > 1) route();
else at("grid").focus({ preventScroll: true });
document.documentElement.dataset.ready = "true";
