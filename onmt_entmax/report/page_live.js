// The page of `onmt-entmax serve`: it answers each query while the user types, below the form of
// page_form.js. The query also stands in the address, so that an answer has a link; after Enter, the
// browser's "back" returns to it.

const PAUSE = 250; // milliseconds without a key after which the model is asked
const OTHER_NAMES = { lemma: "source", sentence: "source" }; // of fields, in older links

// --- the query, in the form and in the address ---

/** The query that the form holds: the values of its fields by name. */
const typedQuery = () => Object.fromEntries(
  [...new FormData(at("question"))].filter(([name, value]) => value || name !== "pos"));

/** The address of the query that the form holds. */
const typedAddress = () => `${location.pathname}#${new URLSearchParams(typedQuery())}`;

/** The query in the page's address; without fields if there is none. */
const linkedQuery = () =>
  Object.fromEntries([...new URLSearchParams(location.hash.slice(1) || location.search)]
    .map(([name, value]) => [OTHER_NAMES[name] ?? name, value]));

/** Put the query of the address into the form, or the example, and ask it. */
function follow() {
  const linked = linkedQuery();
  const query = Object.keys(linked).length ? linked : model.example;
  // A language that the model lacks is sent, too: the server says which one is like it.
  if (model.languages && query.language && !model.languages.includes(query.language)) {
    at("language").append(el("option", { value: query.language }, query.language));
  }
  for (const input of at("question").elements) {
    if (input.name in query) input.value = query[input.name];
    else if (input.name === "pos") input.value = "";
    // The form reacts: another language has other paradigms, and a paradigm needs no tags.
    input.dispatchEvent(new Event("input"));
  }
  ask();
}

// --- the answer ---

// The model answers one query at a time, so at most one request is open.
let request = null; // an AbortController, which ends it
let requested = ""; // the address of its query

/** Show the answer to the query in the form, even if the query changes before the answer comes. */
async function ask() {
  if (request) {
    if (requested !== typedAddress()) request.abort(); // the loop below then asks anew
    return;
  }
  at("state").className = "state muted";
  at("state").textContent = "Searching …";
  let query, answer;
  do {
    request = new AbortController();
    requested = typedAddress();
    query = typedQuery();
    answer = at("question").checkValidity() ? await answerTo(query, request.signal) : null;
  } while (requested !== typedAddress());
  request = null;
  show(query, answer);
}

/** The server's answer to a query; an object with `error` if there is none. */
async function answerTo(query, signal) {
  try {
    const response = await fetch("answer", { method: "POST", body: JSON.stringify(query),
      headers: { "Content-Type": "application/json" }, signal });
    return await response.json();
  } catch {
    return { error: "There is no answer. Does onmt-entmax serve still run?" };
  }
}

/** Show an answer: an error, a paradigm, or outputs with what is proven; null for no query. */
function show(query, answer) {
  at("state").className = "state alarm";
  at("state").textContent = answer?.error ?? "";
  if (!answer || answer.error) at("answer").replaceChildren();
  else if (answer.sections) at("answer").replaceChildren(...drawParadigm(answer));
  else showOutputs(query, answer);
}

/** Show the outputs for a query. Screen readers read the first one from the line of the state. */
function showOutputs(query, { record, tags, drawing }) {
  const about = [query.language, tags.join(model.tag_separator)].filter(Boolean).join(" ");
  at("answer").replaceChildren(
    el("h2", { id: "title" }, written(record, query.source), about ? " " : null,
      about ? el("span", { class: "muted" }, about) : null),
    ...viewOf(record, drawing));
  const first = best(record);
  at("state").className = "state spoken";
  at("state").textContent = `${first ? `${first.text}, ${percent(first.prob)}. ` : ""}${proof(record)}`;
}

// --- the start of the page ---

drawForm();
offerThemes();
let pause = 0;
at("question").addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(() => {
    history.replaceState(null, "", typedAddress());
    ask();
  }, PAUSE);
});
at("question").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(pause);
  history.pushState(null, "", typedAddress());
  ask();
});
window.addEventListener("hashchange", follow);
follow();
at("question").querySelector("input, textarea").focus({ preventScroll: true });
document.documentElement.dataset.ready = "true";
