// The form of `onmt-entmax serve`, in which a query is typed: its fields are those that the model reads.

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
