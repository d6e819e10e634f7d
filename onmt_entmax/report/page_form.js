// The form of `onmt-entmax serve`, in which a query is typed. It has a field for each thing that the
// model reads: language, source and tags.

const model = JSON.parse(at("model").textContent); // live_page.py describes it

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

/** The field of the source: a line; for a sentence an area, in which Enter submits the form, too. */
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

/** The fields of tags; where cells are known, a menu before them offers paradigms instead. */
function tagInputs(languages) {
  const tags = textInput("tags", { list: "offered", required: model.needs_tags,
    placeholder: model.example.tags ?? model.tags.slice(0, 2).join(model.tag_separator) });
  const tagsField = field(`Tags, divided by ${model.tag_separator}`, tags);
  const paradigms = el("select", { name: "pos", id: "pos" });
  const paradigmsField = field("Show", paradigms);
  // A paradigm has all tags, and some languages have none.
  const hideTags = () => {
    tags.disabled = tagsField.hidden =
      Boolean(paradigms.value) || model.untagged.includes(languages?.value);
  };
  const follow = () => {
    const sizes = model.pos[languages?.value] ?? {}; // cells of each part of speech
    offerParadigms(paradigms, sizes);
    paradigms.disabled = paradigmsField.hidden = !Object.keys(sizes).length;
    hideTags();
  };
  languages?.addEventListener("input", follow);
  paradigms.addEventListener("input", hideTags);
  follow();
  return [paradigmsField, tagsField, tagOffers(tags)];
}

/** Fill the menu of paradigms. `sizes` has the number of cells of each part of speech. If the chosen
 *  one is among them, it stays chosen. */
function offerParadigms(menu, sizes) {
  const chosen = menu.value in sizes ? menu.value : "";
  menu.replaceChildren(el("option", { value: "" }, "one form"),
    ...Object.entries(sizes).map(([name, size]) =>
      el("option", { value: name }, `paradigm of ${name} (${size} cells)`)));
  menu.value = chosen;
}

/** The list from which the browser completes the field of tags. It completes the whole field, so
 *  each offer is what the field has, with another tag at the end. */
function tagOffers(tags) {
  const between = model.tag_separator;
  const offers = el("datalist", { id: "offered" });
  const offer = () => {
    const end = tags.value.lastIndexOf(between);
    const begun = end < 0 ? "" : tags.value.slice(0, end + between.length);
    offers.replaceChildren(...model.tags.map((tag) => el("option", { value: begun + tag })));
  };
  tags.addEventListener("input", offer);
  offer();
  return offers;
}
