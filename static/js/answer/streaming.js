// An answer while it is written: the block in progress, before the server renders it, what a screen
// reader hears, and room for the frames in between.

import { byId, element } from "../lib/dom.js";
import { plural } from "../lib/format.js";

const FENCE = /^\s*(`{3,}|~{3,})([^\n`]*)(?:\n([\s\S]*))?$/;
const SPANS = /(`[^`\n]+`|\*\*[^*\n]+\*\*|\[[^[\]\n]+:\d+(?:-\d+)?\])/;
const ITEM = /^\n* {0,3}(?:[-*+]|(\d{1,9})[.)])[ \t]+(\S[^]*)$/;
const NEXT = /\n+(?=(?:[-*+]|\d{1,9}[.)])[ \t]+\S)/;
const BELOW = /\n+[ \t]+(?:[-*+]|\d{1,9}[.)])[ \t]+/;
const SPOKEN_BLOCKS = 8; // blocks that stay in the region; what has been read may go
const SLICE = 20; // milliseconds of work after which a frame is due
const FRAME_LIMIT = 100; // milliseconds after which no frame is waited for: the page may be out of view

/**
 * Shows the block in progress in `node`: text, with just enough of its form that little moves when it
 * is complete. Everything enters the page as text. `citations` are those that are checked.
 */
export function showUnfinished(node, text, citations) {
  const fence = FENCE.exec(text);
  node.classList.toggle("code", Boolean(fence));
  if (fence) {
    const lines = (fence[3] ?? "").split("\n");
    if (lines.at(-1).trim().startsWith(fence[1].slice(0, 1))) lines.pop(); // the end of the fence
    node.textContent = lines.join("\n");
    return;
  }
  const spans = (words) => words.split(SPANS).map((part, index) => spanOf(part, index, citations));
  const items = text.split(NEXT).map((one) => ITEM.exec(one));
  if (text.startsWith("|")) node.replaceChildren(tableOf(text, spans));
  else if (items.every(Boolean)) node.replaceChildren(listOf(items, spans));
  else node.replaceChildren(...spans(text.trimEnd().replace(/^#{1,6} +/, "")));
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

function tableOf(text, spans) {
  const rows = text
    .trim()
    .split("\n")
    .filter((line) => !/^[|:\s-]+$/.test(line));
  const made = rows.map((row, at) =>
    element("tr", ...cells(row).map((words) => element(at ? "td" : "th", ...spans(words.trim())))),
  );
  return element("div.table-wrap", element("table", element("tbody", ...made)));
}

function spanOf(part, index, citations) {
  if (index % 2 === 0) return part;
  if (part[0] === "[") return citations.written(part.slice(1, -1)) ?? part;
  return part[0] === "`"
    ? element("code", part.slice(1, -1))
    : element("strong", part.slice(2, -2));
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
