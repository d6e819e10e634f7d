"use strict";
// Elements of a page, and texts for them. Text enters the document as text nodes, never as markup.

const at = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg";
const CERTAIN = 1 - 5e-7; // a probability from here on is shown as 100 %

/** An HTML element with attributes and children (nodes or text; null is left out). */
function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Set the attributes of an element, and append its children. */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** A probability as a short text: "0" only for zero, "100 %" only for certainty up to rounding. */
function percent(p) {
  if (p === null || p === undefined) return "–";
  if (p >= CERTAIN) return "100 %";
  if (p >= 0.9995) return ">99.9 %"; // one decimal would be 100.0
  if (p >= 0.001) return (100 * p).toFixed(1) + " %";
  if (p >= 1e-6) return (100 * p).toFixed(-Math.floor(Math.log10(100 * p))) + " %"; // one digit
  return p > 0 ? p.toExponential(0) : "0";
}

/** A visible token: a combining mark gets a base character, and the joiner of subwords, which few
 *  fonts have, becomes a square that most have. */
function visible(token) {
  return (/^\p{M}/u.test(token) ? "◌" + token : token).replaceAll("￭", "▪");
}

const isLetter = (token) => [...token].length === 1 || /^.\p{M}+$/u.test(token);

/** A line of tokens; runs of single letters are set close, to read as words. */
function line(text) {
  const runs = [];
  for (const token of text.split(/\s+/).filter(Boolean)) {
    const last = runs[runs.length - 1];
    if (last && last.letters && isLetter(token)) last.tokens.push(token);
    else runs.push({ letters: isLetter(token), tokens: [token] });
  }
  const parts = runs.flatMap((run, i) => [
    i ? " " : "",
    run.tokens.length > 1
      ? el("span", { class: "letters" }, run.tokens.join(" "))
      : run.tokens.join(" "),
  ]);
  return el("bdi", { dir: "auto" }, ...parts);
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
