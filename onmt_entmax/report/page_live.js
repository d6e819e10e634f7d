// The page of `onmt-entmax serve`: a form for a query, and the view of its answer.
// The query stands in the address too, so that "back" works and an answer has a link.

const model = JSON.parse(at("model").textContent);

/** A field of the form with its label. */
function field(label, input) {
  return el("label", { class: input.name }, el("span", {}, label), input);
}

function textInput(name, attributes) {
  return el("input", { name, id: name, dir: "auto", autocomplete: "off", autocapitalize: "off",
    spellcheck: "false", required: true, maxlength: model.longest[name], ...attributes });
}

function drawForm() {
  const button = el("button", { id: "ask", class: "ask" }, "Show outputs");
  if (!model.languages) {
    const sentence = el("textarea", { name: "sentence", id: "sentence", dir: "auto", rows: 2,
      required: true, maxlength: model.longest.sentence });
    sentence.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      at("question").requestSubmit();
    });
    at("question").append(field("Sentence", sentence), button);
    return;
  }
  const languages = el("select", { name: "language", id: "language" },
    ...model.languages.map((name) => el("option", { value: name }, name)));
  const tags = textInput("tags", { list: "offered", placeholder: "V;PST" });
  const offered = el("datalist", { id: "offered" });
  // The browser completes the whole field: offer what is there with each next tag.
  const offer = () => {
    const begun = tags.value.slice(0, tags.value.lastIndexOf(";") + 1);
    offered.replaceChildren(...model.tags.map((tag) => el("option", { value: begun + tag })));
  };
  tags.addEventListener("input", offer);
  at("question").append(field("Language", languages), field("Word", textInput("lemma")),
    field("Tags, divided by ;", tags), offered, button);
  offer();
}

/** What the form holds, or what the address asks for. */
const typed = () => Object.fromEntries(new FormData(at("question")));
const linked = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

function fillForm(query) {
  for (const [name, value] of Object.entries(query)) {
    if (at("question").elements[name]) at("question").elements[name].value = value;
  }
}

let number = 0; // of the latest query: answers to earlier ones are not shown

async function ask() {
  const query = typed();
  const own = number += 1;
  at("ask").disabled = true;
  at("state").className = "state muted";
  at("state").textContent = "Searching …";
  let answer;
  try {
    const response = await fetch("answer", { method: "POST", body: JSON.stringify(query),
      headers: { "Content-Type": "application/json" } });
    answer = await response.json();
  } catch {
    answer = { error: "There is no answer. Does onmt-entmax serve still run?" };
  }
  if (own === number) show(query, answer);
}

function show(query, answer) {
  at("ask").disabled = false;
  at("state").className = "state alarm";
  at("state").textContent = answer.error ?? "";
  if (answer.error) {
    at("answer").replaceChildren();
    return;
  }
  const about = model.languages ? `${query.language} ${answer.tags.join(";")}` : "";
  at("answer").replaceChildren(
    el("h2", { id: "title" }, line(query.lemma ?? query.sentence), " ",
      el("span", { class: "muted" }, about)),
    ...viewOf(answer.record, answer.drawing));
  for (const [name, cause] of Object.entries(answer.causes)) {
    if (cause) at("answer").querySelector(`.${name}`).append(` (${cause})`);
  }
  if (model.right_to_left && answer.drawing) {
    at("pictures").before(note("This model writes the last token first, and so do the pictures."));
  }
}

/** Ask what the address says, if it asks anything. */
function follow() {
  if (location.hash.length < 2) return;
  fillForm(linked());
  ask();
}

drawForm();
offerThemes();
fillForm(model.example);
at("question").addEventListener("submit", (event) => {
  event.preventDefault();
  const hash = `#${new URLSearchParams(typed())}`;
  if (hash === location.hash) ask();
  else location.hash = hash; // and so asks
});
window.addEventListener("hashchange", follow);
follow();
at("question").querySelector("input, textarea").focus({ preventScroll: true });
document.documentElement.dataset.ready = "true";
