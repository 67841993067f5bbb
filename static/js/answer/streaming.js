// An answer while it is written: the block in progress, before the server renders it, what a screen
// reader hears, and room for the frames in between.

import { byId, element } from "../lib/dom.js";
import { plural } from "../lib/format.js";

const FENCE = /^\s*(`{3,}|~{3,})([^\n`]*)(?:\n([\s\S]*))?$/;
// Code, formulas, strong words and citations, and what begins one at the end of what has come.
const FORMULAS = [
  /\$\$[^$]+(?:\$\$?|$)/,
  /\\[([][^\\](?:[^\\]|\\[^)\]])*(?:\\[)\]]?|$)/,
  /(?<![\w$\\])\$(?![\s$\d])[^$\n`]*[^$\s\\`]\$(?![\w$({@])/,
];
const OTHER_SPANS = [
  /`[^`\n]+(?:`|$)/,
  /\*\*[^\s*][^*\n]*(?:\*\*|\*?$)/,
  /\[[^[\]\n]+:\d+(?:-\d+)?\]|\[[^\s[\]]*$/,
  /[*`\\]+$/,
];
const SPANS = new RegExp(
  `(${[...FORMULAS, ...OTHER_SPANS].map(({ source }) => source).join("|")})`,
);
const MARKER = /(?:^|\n)[ \t]*(?:[-*+]|\d{1,3}[.)]?)[ \t]*$/; // of an item without words yet
const ITEM = /^\n* {0,3}(?:[-*+]|(\d{1,9})[.)])[ \t]+(\S[^]*)$/;
const NEXT = /\n+(?=(?:[-*+]|\d{1,9}[.)])[ \t]+\S)/;
const BELOW = /\n+[ \t]+(?:[-*+]|\d{1,9}[.)])[ \t]+/;
const AT_ONCE = 50; // lines or items that are drawn anew while the last of them grows
const SPOKEN_BLOCKS = 8; // blocks that stay in the region; what has been read may go
const SLICE = 20; // milliseconds of work after which a frame is due
const FRAME_LIMIT = 100; // milliseconds after which no frame is waited for: the page may be out of view

/**
 * Shows the block in progress in `node`: text, with just enough of its form that little moves when it
 * is complete. Everything enters the page as text. `citations` are those that are checked.
 */
export function showUnfinished(node, text, citations) {
  const spans = (words) =>
    words.split(SPANS).map((part, at) => (at % 2 ? spanOf(part, spans, citations) : part));
  const [form, pieces, draw] = formOf(text, spans);
  if (node.dataset.form !== form) node.replaceChildren();
  node.dataset.form = form;
  // What was drawn before its last part is as it will be: text only grows.
  node.lastChild?.remove();
  for (let at = AT_ONCE * node.childNodes.length; at < pieces.length; at += AT_ONCE)
    node.append(element("div.drawn", ...draw(pieces.slice(at, at + AT_ONCE), at)));
}

/** What `text` looks like, its lines or items, and what draws some of them. */
function formOf(text, spans) {
  const fence = FENCE.exec(text);
  if (fence) {
    const lines = (fence[3] ?? "").split("\n");
    const end = lines.findIndex((line) => line.trim().startsWith(fence[1]));
    if (end >= 0) lines.length = end;
    else if (lines.at(-1).trim().startsWith(fence[1][0])) lines.pop(); // its end has begun
    return ["code", lines, (some) => [some.join("\n")]];
  }
  if (text.startsWith("|"))
    return ["table", text.trim().split("\n"), (rows, at) => [tableOf(rows, at, spans)]];
  const begun = text.replace(MARKER, "");
  const items = begun.split(NEXT).map((one) => ITEM.exec(one));
  if (items.every(Boolean)) return ["list", items, (some) => [listOf(some, spans)]];
  const lines = begun
    .trimEnd()
    .replace(/^#{1,6}(?: +|$)/, "")
    .split("\n");
  return ["text", lines, (some) => spans(some.join("\n"))];
}

/** The items of a list that are being written, with those below them. */
function listOf(items, spans) {
  const made = items.map(([, , text]) => {
    const [words, ...below] = text.split(BELOW);
    const inner = below.map((one) => element("li", ...spans(one)));
    return element("li", ...spans(words.trimEnd()), inner[0] ? element("ul", ...inner) : null);
  });
  const [[, number]] = items;
  return element(number ? "ol" : "ul", { start: number }, ...made);
}

const cells = (row) => row.replace(/^\||\|\s*$/g, "").split("|");

function tableOf(lines, from, spans) {
  const rows = lines.filter((line) => !/^[|:\s-]+$/.test(line));
  const made = rows.map((row, at) => {
    const kind = from + at ? "td" : "th";
    return element("tr", ...cells(row).map((words) => element(kind, ...spans(words.trim()))));
  });
  return element("div.table-wrap", element("table", element("tbody", ...made)));
}

function spanOf(part, spans, citations) {
  const [mark] = part;
  if (mark === "[" && part.endsWith("]")) return citations.written(part.slice(1, -1));
  if ((mark === "$" || mark === "\\") && part.length > 2)
    return element("span.maths", { dir: "ltr" }, part);
  const words = mark === "[" ? "" : part.replaceAll(mark, "");
  if (!words) return element("span", { hidden: true }, part); // nothing to be read yet
  return mark === "`" ? element("code", { dir: "ltr" }, words) : element("strong", ...spans(words));
}

/**
 * Has a screen reader say `words`, a finished block of the answer in view: politely, so that whole sentences are
 * read and nothing is read twice.
 */
export function readAloud(words) {
  if (!words) return;
  const region = byId("spoken-answer");
  region.append(element("p", words));
  while (region.children.length > SPOKEN_BLOCKS) region.firstChild.remove();
}

/** Begins another answer: what was read is cleared. */
export function beginReading() {
  byId("spoken-answer").replaceChildren();
}

/** What of a finished block is read aloud. */
export function wordsOf(block) {
  const code = block.querySelector(".code-block");
  if (code) {
    const lines = code.querySelector("pre").textContent.replace(/\n$/, "").split("\n").length;
    return `Code${code.dataset.language ? ` in ${code.dataset.language}` : ""}, ${plural(lines, "line")}.`;
  }
  const table = block.querySelector("table");
  if (table) return `A table of ${plural(table.querySelectorAll("tbody tr").length, "row")}.`;
  return block.textContent.replace(/\s+/g, " ").trim();
}

/**
 * Work that comes faster than it can be shown must leave room for frames. Gives a function to be awaited between pieces of work; most calls come back
 * at once.
 */
export function breather() {
  let since = performance.now();
  return async () => {
    if (document.hidden || performance.now() - since < SLICE) return;
    await new Promise((resolve) => {
      const late = setTimeout(resolve, FRAME_LIMIT);
      requestAnimationFrame(() => {
        clearTimeout(late);
        // Behind the frame's own work, so that it is painted before more is done.
        setTimeout(resolve);
      });
    });
    since = performance.now();
  };
}
