// From an answer to the code: citations, marked when the server could not verify them, and the
// heads of code blocks.

import { query, request } from "../lib/api.js";
import { element, setHtml } from "../lib/dom.js";
import { plural, splitPath } from "../lib/format.js";
import { page } from "../lib/page.js";
import { copyButton } from "../lib/widgets.js";
import { showDiagram } from "./diagram.js";

const NUMBERS = /:\d+(?:-\d+)?$/;
const PLACE = /^(.*):(\d+)(?:-(\d+))?$/;
const GAP = /^([ \t]*)… \d+ lines? \((\d+)(?:-(\d+))?\)$/; // how an excerpt says what it leaves out
const SEVERAL = page.repo.includes("~"); // repositories are asked together
const INDENT = /^(?:<[^>]*>)*([ \t]*)/; // of a line of HTML
const SOURCES_SHOWN = 8;
const FOLDED_FROM = 24; // lines of a block
const SINCE = "Source changed: these lines have changed since the answer was written";

/** The citations of one answer as the server has checked them, by the place that they name. */
export class Citations {
  #checked = new Map();
  #paths = new Map(); // of the files that are cited, by their names

  /** Takes more of them, before their text comes; returns whether one was known otherwise. */
  take(citations) {
    const known = this.#checked.size;
    for (const citation of citations) this.#checked.set(placeOf(citation), citation);
    return this.#checked.size < known + citations.length;
  }

  /** How many of them are struck. */
  get struck() {
    return [...this.#checked.values()].filter(({ verified }) => verified === false).length;
  }

  /** The citation `[place]` of a text that is not rendered yet: a link once it is known to be right. */
  written(place) {
    const { verified, exists } = this.#checked.get(place) ?? {};
    return citationOf(place, Boolean(verified || exists));
  }

  /**
   * Strikes those in `node` whose lines do not exist or were not shown; those that exist stay links.
   * It says why, as a tooltip and to a screen reader.
   */
  mark(node) {
    for (const link of node.querySelectorAll(".citation")) {
      link.dataset.place ??= link.textContent;
      const folder = SEVERAL ? link.querySelector(".folder:first-child") : null;
      folder?.replaceWith(...folderOf(folder.textContent));
      const citation = this.#checked.get(link.dataset.place);
      if (citation) mark(link, citation);
      // The folder is shown where files of one name are cited.
      const path = link.dataset.place.replace(NUMBERS, "");
      const [, name] = splitPath(path);
      const paths = this.#paths.get(name) ?? new Set();
      this.#paths.set(name, paths.add(path));
      link.classList.toggle("full", paths.size > 1);
    }
  }

  /** A row of the places in the code that the answer cites; null where one says it all. */
  get sources() {
    const found = [...this.#checked.values()].filter(({ verified }) => verified);
    return found.length > 1 ? sourcesOf(found, "Sources") : null;
  }
}

/** A row of `places`, each `{ path, start, end }` and a link to its lines. */
export function sourcesOf(places, label) {
  const names = new Map(places.map(({ path }) => [path, splitPath(path)[1]]));
  const alike = (path) => [...names.values()].filter((name) => name === names.get(path)).length > 1;
  const links = places.map((place) => {
    const link = linkTo(place, "place");
    link.classList.toggle("full", alike(place.path));
    return element("li", link);
  });
  const list = element("ul.sources", { "aria-label": label }, ...links.slice(0, SOURCES_SHOWN));
  const more = links.slice(SOURCES_SHOWN);
  const all = () => {
    list.lastChild.replaceWith(...more);
    more[0].firstChild.focus();
  };
  if (more.length) {
    const about = { onclick: all, "aria-label": `${more.length} more sources` };
    list.append(element("li", element("button.place", about, `+${more.length}`)));
  }
  return list;
}

function citationOf(place, exists) {
  const [, path, start, end = start] = PLACE.exec(place);
  return linkTo({ path, start, end }, "citation", exists);
}

function linkTo(citation, kind, exists = true) {
  const { path, start, end } = citation;
  const [folder, name] = splitPath(path);
  const numbers = placeOf(citation).slice(path.length);
  const parts = [...folderOf(folder), element("span.lines", name, numbers)];
  if (!exists) return element(`span.${kind}`, ...parts);
  const { repo } = page;
  const href = `/${query({ repo, file: path, lines: `${start}-${end}` })}`;
  const title = placeOf(citation);
  const where = { href, title, "data-path": path, "data-start": start, "data-end": end };
  return element(`a.${kind}`, where, ...parts);
}

/** Of several that are asked together the repository, with which a path begins, is always shown. */
function folderOf(folder) {
  const cut = SEVERAL ? folder.indexOf("/") + 1 : 0;
  const repository = cut ? [element("span", folder.slice(0, cut))] : [];
  return [...repository, element("span.folder", folder.slice(cut))];
}

const placeOf = ({ path, start, end }) => `${path}:${start}${end === start ? "" : `-${end}`}`;

function mark(link, { verified, problem, changed }) {
  const reason = verified ? "" : `Not verified: ${problem}`;
  link.classList.toggle("unverified", !verified);
  if (changed) link.title = SINCE;
  if (reason) link.title = reason;
  link.querySelector(".reason")?.remove();
  if (changed) link.append(element("span.reason.changed", " source changed"));
  if (reason) link.append(element("span.reason.visually-hidden", ` (${reason})`));
}

/** Gives a rendered block of code its head; one that holds a diagram is drawn. */
export function frameCode(block) {
  const pre = block.querySelector("pre");
  pre.tabIndex = 0; // so that long lines can be scrolled from the keyboard
  const language = block.dataset.language || "text";
  pre.setAttribute("aria-label", `Code, ${language}`);
  pre.setAttribute("role", "region");
  const { place } = block.dataset;
  const [, path, start, end = start] = PLACE.exec(place) ?? [];
  if (place) numberLines(pre.querySelector("code"), path, start);
  const code = () => pre.textContent.replace(/\n$/, "");
  const head = element(
    "div.code-head",
    place ? linkTo({ path, start, end }, "citation") : element("span.language", language),
    place ? copyButton("copy", "Copy with citation", () => `${code()}\n\n[${place}]`) : null,
    copyButton("copy", "Copy", code),
  );
  block.prepend(head);
  if (language === "mermaid") showDiagram(pre, head);
}

/** Numbers the lines of an excerpt in `code`, and has those that it leaves out open on a click. */
function numberLines(code, path, start) {
  let number = Number(start);
  // No colour goes on over the end of a line.
  const lines = code.getHTML().replace(/\n$/, "").split("\n");
  const rows = lines.map((html) => {
    const row = numberedLine(html, number);
    const [, margin, first, last = first] = GAP.exec(row.textContent.trimEnd()) ?? [];
    if (Number(first) !== number) {
      number += 1;
      return row;
    }
    number = Number(last) + 1;
    const button = gapButton(path, Number(first), Number(last), margin.length);
    return element("span.line", element("span.number"), margin, button, "\n");
  });
  code.replaceChildren(...rows);
  code.style.setProperty("--digits", String(number).length);
  if (rows.length > FOLDED_FROM) fold(code.closest(".code-block"), `Show all ${rows.length} lines`);
}

/** Shows the beginning of `block`, and all of it after a click on `words`. */
export function fold(block, words) {
  const unfold = () => {
    block.classList.remove("folded");
    button.remove();
    block.querySelector("pre")?.focus();
  };
  const button = element("button.unfold", { onclick: unfold }, words);
  block.classList.add("folded");
  block.append(button);
}

/** Puts the lines that are left out in its row's place; they begin `margin` blanks from the left. */
function gapButton(path, first, last, margin) {
  const onclick = async ({ currentTarget: button }) => {
    try {
      const { lines } = await excerptOf(path, first, last + 1);
      // An excerpt stands further left than its file, by what its next line does.
      const [, next] = INDENT.exec(lines[last - first + 1] ?? "");
      const moved = new RegExp(`^((?:<[^>]*>)*)[ \\t]{0,${Math.max(0, next.length - margin)}}`);
      const rows = lines
        .slice(0, last - first + 1)
        .map((html, at) => numberedLine(html.replace(moved, "$1"), first + at));
      const code = button.closest("pre");
      button.closest(".line").replaceWith(...rows);
      code.focus();
    } catch (error) {
      button.textContent = error.message;
    }
  };
  const title = "Show what is left out";
  return element("button.gap", { onclick, title }, `… ${plural(last - first + 1, "line")}`);
}

/** Lines of a file as safe HTML, with its address at the host: `{ lines, hosted }`. Throws what the server says. */
export const excerptOf = (path, start, end) =>
  request(`/api/file${query({ repo: page.repo, path, start, end })}`);

/** A numbered line of a file. */
export function numberedLine(html, number) {
  const line = element("span");
  setHtml(line, html);
  return element("span.line", element("span.number", { "data-line": number }), line, "\n");
}
