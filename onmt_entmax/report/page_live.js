// The page of `onmt-entmax serve`: a form for a query, and the view of its answer, as one types.
// The query stands in the address too, so that an answer has a link; after Enter, "back" returns to
// it.

const model = JSON.parse(at("model").textContent);
const PAUSE = 250; // milliseconds without a key before what is typed is asked

/** A field of the form with its label. */
function field(label, input) {
  return el("label", { class: input.name }, el("span", {}, label), input);
}

/** A required field of one line. */
function textInput(name, attributes) {
  return el("input", { name, id: name, dir: "auto", autocomplete: "off", autocapitalize: "off",
    spellcheck: "false", required: true, maxlength: model.longest[name], ...attributes });
}

/** Add the fields that the model reads to the form. */
function drawForm() {
  const button = el("button", { id: "ask", class: "ask" }, "Show outputs");
  const languages = model.languages && languageInput();
  at("question").append(...(languages ? [field("Language", languages)] : []),
    field(model.source.label, sourceInput()), ...(model.tags ? tagInputs(languages) : []), button);
}

/** A menu of the model's languages. */
function languageInput() {
  return el("select", { name: "language", id: "language" },
    ...model.languages.map((name) => el("option", { value: name }, name)));
}

/** The field of the source: a line, or an area for a sentence, in which Enter asks too. */
function sourceInput() {
  const { kind, placeholder } = model.source;
  if (kind !== "text") return textInput("source", { placeholder, pattern: ".*\\S.*" });
  const sentence = el("textarea", { name: "source", id: "source", dir: "auto", rows: 2,
    required: true, maxlength: model.longest.source, placeholder });
  sentence.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    at("question").requestSubmit();
  });
  return sentence;
}

/** The fields of tags: which of them to offer, and, where cells are known, paradigms instead. */
function tagInputs(languages) {
  const between = model.tag_separator;
  const tags = textInput("tags", { list: "offered", required: model.needs_tags,
    placeholder: model.example.tags ?? model.tags.slice(0, 2).join(between) });
  const offered = el("datalist", { id: "offered" });
  // The browser completes the whole field: offer what is there with each next tag.
  const offer = () => {
    const end = tags.value.lastIndexOf(between);
    const begun = end < 0 ? "" : tags.value.slice(0, end + between.length);
    offered.replaceChildren(...model.tags.map((tag) => el("option", { value: begun + tag })));
  };
  tags.addEventListener("input", offer);
  offer();
  const pos = el("select", { name: "pos", id: "pos" });
  const fields = [field("Show", pos), field(`Tags, divided by ${between}`, tags)];
  // Languages have paradigms of their own; with one of them, no tags are asked for.
  const hideTags = () => {
    const language = languages?.value;
    tags.disabled = fields[1].hidden = Boolean(pos.value) || model.untagged.includes(language);
  };
  const offerParadigms = () => {
    const sizes = model.pos[languages?.value] ?? {};
    const chosen = pos.value in sizes ? pos.value : "";
    pos.replaceChildren(el("option", { value: "" }, "one form"),
      ...Object.entries(sizes).map(([name, size]) =>
        el("option", { value: name }, `paradigm of ${name} (${size} cells)`)));
    pos.value = chosen;
    pos.disabled = fields[0].hidden = !Object.keys(sizes).length;
    hideTags();
  };
  languages?.addEventListener("input", offerParadigms);
  pos.addEventListener("input", hideTags);
  offerParadigms();
  return [...fields, offered];
}

/** What the form holds, the address of that, and what the page's address asks for. */
const typed = () => Object.fromEntries(
  [...new FormData(at("question"))].filter(([name, value]) => value || name !== "pos"));
const address = () => `${location.pathname}#${new URLSearchParams(typed())}`;
const OTHER_NAMES = { lemma: "source", sentence: "source" }; // in older links
const linked = () =>
  Object.fromEntries([...new URLSearchParams(location.hash.slice(1) || location.search)]
    .map(([name, value]) => [OTHER_NAMES[name] ?? name, value]));

let asking = null; // what ends the request that is being answered
let asked = "";

/** Show the answer to what the form holds. The model answers one query at a time, so ask but one. */
async function ask() {
  if (asking) {
    if (asked !== address()) asking.abort(); // the loop below asks what the form holds by then
    return;
  }
  at("state").className = "state muted";
  at("state").textContent = "Searching …";
  let query, answer;
  do {
    asking = new AbortController();
    asked = address();
    query = typed();
    answer = at("question").checkValidity() ? await answerTo(query, asking.signal) : null;
  } while (asked !== address());
  asking = null;
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
  if (!answer || answer.error) {
    at("answer").replaceChildren();
    return;
  }
  if (answer.sections) {
    at("answer").replaceChildren(...drawParadigm(answer));
    return;
  }
  const { record } = answer;
  const about = [query.language, answer.tags.join(model.tag_separator)].filter(Boolean).join(" ");
  at("answer").replaceChildren(
    el("h2", { id: "title" }, written(record, query.source), about ? " " : null,
      about ? el("span", { class: "muted" }, about) : null),
    ...viewOf(record, answer.drawing));
  // For those who do not see the page.
  const first = best(record);
  at("state").className = "state unseen";
  at("state").textContent = `${first ? `${first.text}, ${percent(first.prob)}. ` : ""}${proof(record)}`;
}

/** Put what the address says into the form, or the example, and ask it. */
function follow() {
  const query = linked();
  const asked = Object.keys(query).length ? query : model.example;
  // The server says what is near to a language that it does not know.
  if (model.languages && asked.language && !model.languages.includes(asked.language)) {
    at("language").append(el("option", { value: asked.language }, asked.language));
  }
  for (const input of at("question").elements) {
    if (input.name in asked) input.value = asked[input.name];
    else if (input.name === "pos") input.value = "";
    // Another language has other paradigms; with a paradigm no tags are asked for.
    input.dispatchEvent(new Event("input"));
  }
  ask();
}

drawForm();
offerThemes();
let pause = 0;
at("question").addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(() => {
    history.replaceState(null, "", address());
    ask();
  }, PAUSE);
});
at("question").addEventListener("submit", (event) => {
  event.preventDefault();
  clearTimeout(pause);
  history.pushState(null, "", address());
  ask();
});
window.addEventListener("hashchange", follow);
follow();
at("question").querySelector("input, textarea").focus({ preventScroll: true });
document.documentElement.dataset.ready = "true";
