// What users do with the list of page_list.js: sort it, move in it, search it, resize it, print it.

const PRINTED = 500; // most rows that are printed; a report may have many thousands

/** Follow all that users do with the list. */
function listen() {
  addHeadings();
  listenToKeys();
  listenToRows();
  listenToQuery();
  listenToPrinting();
  offerThemes();
}

/** Add the headings of the columns. A click sorts by the column; a second one turns the order. */
function addHeadings() {
  for (const column of COLUMNS) {
    const button = el("button",
      { type: "button", title: column.title || null, tabindex: "0" }, column.label);
    button.addEventListener("click", () => {
      // Of numbers, except those of lines, the largest are of interest: they come first.
      state.down = state.sort === column.name
        ? !state.down : Boolean(column.number && column.name !== "id");
      state.sort = column.name;
      refresh();
    });
    at("head").append(el("div", { role: "columnheader", class: column.name,
      "data-column": column.name }, button));
  }
}

/** Keys move the active row, and Enter opens its sentence. */
function listenToKeys() {
  const page = () => Math.max(1, Math.floor(at("body").clientHeight / rowHeight) - 1);
  const steps = { ArrowDown: () => 1, ArrowUp: () => -1, PageDown: page, PageUp: () => -page(),
    Home: () => -Infinity, End: () => Infinity };
  at("grid").addEventListener("keydown", (event) => {
    if (event.target !== at("grid") || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in steps) move(steps[event.key]());
    else if (event.key === "Enter" && state.shown.length) openSentence(state.shown[state.active]);
    else return;
    event.preventDefault();
  });
}

/** A click opens a sentence; other rows become visible when the list is scrolled or resized. */
function listenToRows() {
  at("rows").addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (row) openSentence(state.shown[Number(row.dataset.place)]);
  });
  at("body").addEventListener("scroll", () => requestAnimationFrame(render));
  window.addEventListener("resize", () => requestAnimationFrame(() => {
    measureRow();
    at("rows").style.height = `${state.shown.length * rowHeight}px`;
    render();
  }));
}

/** The query filters as one types; Enter leads to the list, and Escape clears the query. */
function listenToQuery() {
  at("query").addEventListener("input", () => {
    state.query = at("query").value;
    refresh();
  });
  at("query").addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === "ArrowDown") {
      at("grid").focus();
    } else if (event.key === "Escape") {
      at("query").value = "";
      state.query = "";
      refresh();
    } else {
      return;
    }
    event.preventDefault();
  });
  at("skip").addEventListener("click", (event) => {
    event.preventDefault();
    at("grid").focus();
  });
}

/** Only rows in the document are printed: put the matching ones there, up to a limit. */
function listenToPrinting() {
  window.addEventListener("beforeprint", () => {
    if (state.opened !== undefined) return;
    at("rows").replaceChildren(...state.shown.slice(0, PRINTED).map((_, place) => rowOf(place)));
  });
  window.addEventListener("afterprint", render);
}
