// From an answer to the code: citations, marked when the server could not verify them, and code
// blocks, which get a button to open the file when exactly this code is in it.

import { query, request } from "../lib/api.js";
import { element, icon } from "../lib/dom.js";
import { copyButton } from "../lib/widgets.js";
import { drawDiagram } from "./diagram.js";

const NUMBERS = /:\d+(?:-\d+)?$/;
const NOT_SENT = "Not in the context: these lines exist, but the answer was not made from them";
const CHANGED = "the file has changed since it was read";
const SINCE = "Source changed: these lines are not what the answer was made from any more";
const PLACES = 4; // cited places that a block of code is looked for at
const FEWEST = 20; // characters of code: less than that stands anywhere

const linesRead = new Map(); // lines that were asked for, by their address

/** The citations of one answer as the server has checked them, by the place that they name. */
export class Citations {
  #checked = new Map();

  /** Takes more of them, before their text comes; returns whether one was known otherwise. */
  take(citations) {
    const known = this.#checked.size;
    for (const citation of citations) this.#checked.set(placeOf(citation), citation);
    return this.#checked.size < known + citations.length;
  }

  /** How many of them are doubtful: there but not sent, or wrong. */
  get doubtful() {
    const failed = [...this.#checked.values()].filter(({ verified }) => verified === false);
    const outside = failed.filter(({ exists }) => exists).length;
    return { outside, unverified: failed.length - outside };
  }

  /** The citation `[place]` of a text that is not rendered yet; null while nothing is known of it. */
  written(place) {
    const citation = this.#checked.get(place);
    if (!citation) return null;
    const { path, start, end, verified, exists } = citation;
    const cut = path.lastIndexOf("/") + 1;
    const parts = [
      element("span.folder", path.slice(0, cut)),
      element("span.lines", place.slice(cut)),
    ];
    const address = `/${query({ repo: document.body.dataset.repo, file: path, lines: `${start}-${end}` })}`;
    const where = { href: address, "data-path": path, "data-start": start, "data-end": end };
    const node =
      verified || exists
        ? element("a.citation", where, ...parts)
        : element("span.citation", ...parts);
    mark(node, citation);
    return node;
  }

  /**
   * Marks those in `node` that were not found in what was sent: those that exist all the same stay
   * links, the others are struck. Both say why, as a tooltip and to a screen reader.
   */
  mark(node) {
    for (const link of node.querySelectorAll(".citation")) {
      link.dataset.place ??= link.textContent;
      const citation = this.#checked.get(link.dataset.place);
      if (citation) mark(link, citation);
    }
  }
}

const placeOf = ({ path, start, end }) => `${path}:${start}${end === start ? "" : `-${end}`}`;

function mark(link, { verified, exists, problem, changed }) {
  link.querySelector(".reason")?.remove();
  if (changed) {
    link.title = SINCE;
    link.append(element("span.reason.changed", " source changed"));
  }
  link.classList.toggle("outside", !verified && exists);
  link.classList.toggle("unverified", !verified && !exists);
  if (verified) return;
  const reason = !exists
    ? `Not verified: ${problem}`
    : problem === CHANGED
      ? `Doubtful: ${CHANGED}`
      : NOT_SENT;
  link.title = reason;
  link.append(element("span.reason.visually-hidden", ` (${reason})`));
}

/** No line break within the line numbers of a citation, nor of a place that is shown as code. */
export function keepNumbersTogether(block) {
  for (const node of block.querySelectorAll(".citation .lines, :not(pre) > code")) {
    const text = node.lastChild;
    const at = text?.nodeType === Node.TEXT_NODE ? text.data.search(NUMBERS) : -1;
    if (at < 0) continue;
    const numbers = document.createElement("span");
    numbers.className = "numbers";
    numbers.append(text.splitText(at));
    node.append(numbers);
  }
}

/** Gives a rendered block of code its head; one that holds a diagram is drawn. */
export function frameCode(block) {
  const pre = block.querySelector("pre");
  pre.tabIndex = 0; // so that long lines can be scrolled from the keyboard
  const language = block.dataset.language || "text";
  pre.setAttribute("aria-label", `Code, ${language}`);
  pre.setAttribute("role", "region");
  const diagram = language === "mermaid" ? drawDiagram(pre.textContent) : null;
  block.prepend(
    element(
      "div.code-head",
      element("span.language", diagram ? "diagram" : language),
      diagram ? switchOf(pre, diagram) : null,
      copyButton("copy", "Copy", () => pre.textContent.replace(/\n$/, "")),
    ),
  );
}

/** Shows `diagram` in the place of `pre`, its text; returns the button that changes between them. */
function switchOf(pre, diagram) {
  const about = { role: "region", "aria-label": "Diagram", tabindex: 0 };
  const drawing = element("div.diagram", about, diagram);
  const onclick = ({ currentTarget: button }) => {
    pre.hidden = !pre.hidden;
    drawing.hidden = !pre.hidden;
    button.setAttribute("aria-pressed", String(drawing.hidden));
  };
  pre.hidden = true;
  pre.before(drawing);
  return element("button.copy", { "aria-pressed": "false", onclick }, icon("file"), "Text");
}

/** Looks the code of `answer` up at the places that it cites, each block once it is near. */
export function lookUpCode(answer) {
  const blocks = answer.querySelectorAll(".code-block");
  if (!blocks.length || !answer.querySelector("a.citation")) return;
  const watch = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) {
        if (!isIntersecting) continue;
        watch.unobserve(target);
        lookUp(target, answer).catch(() => {}); // without it there is no button, no more
      }
    },
    { rootMargin: "400px" },
  );
  for (const block of blocks) watch.observe(block);
}

async function lookUp(block, answer) {
  const text = block.querySelector("pre").textContent.replace(/\n+$/, "");
  const length = text.split("\n").length;
  for (const { path, start, end } of placesFor(block, answer)) {
    const first = Math.max(1, start - length);
    const lines = await linesOf(path, first, end + length);
    const found = matchOf(text, lines);
    if (!found) continue;
    const [from, to] = [first + found.start, first + found.end];
    const label = `Open ${path}, lines ${from} to ${to}`;
    block.querySelector(".copy").before(
      element(
        "button.copy.open-file",
        {
          "data-path": path,
          "data-start": from,
          "data-end": to,
          title: label,
          "aria-label": label,
        },
        icon("file"),
        "Open in file",
      ),
    );
    return;
  }
}

/** The places cited nearest to `block`, those before it first. */
function placesFor(block, answer) {
  const links = [...answer.querySelectorAll("a.citation")];
  const after = links.findIndex(
    (link) => block.compareDocumentPosition(link) & Node.DOCUMENT_POSITION_FOLLOWING,
  );
  const cut = after < 0 ? links.length : after;
  const ordered = [...links.slice(0, cut).reverse(), ...links.slice(cut)];
  const places = ordered.map(({ dataset }) => ({
    path: dataset.path,
    start: Number(dataset.start),
    end: Number(dataset.end),
  }));
  return [...new Map(places.map((place) => [JSON.stringify(place), place])).values()].slice(
    0,
    PLACES,
  );
}

function linesOf(path, start, end) {
  const { repo } = document.body.dataset;
  const address = `/api/lines${query({ repo, path, start, end })}`;
  if (!linesRead.has(address))
    linesRead.set(
      address,
      request(address).then(({ text }) => text.split("\n")),
    );
  return linesRead.get(address);
}

/** `{ start, end }` of `text` in `lines`, counted from 0 and both included; null when it is not there. */
export function matchOf(text, lines) {
  const wanted = dedented(text.split("\n"));
  if (wanted.join("").replace(/\s/g, "").length < FEWEST) return null;
  const source = lines.map((line) => line.trimEnd());
  for (let at = 0; at + wanted.length <= source.length; at += 1) {
    const indent = source[at].slice(
      0,
      source[at].length - source[at].trimStart().length - leading(wanted[0]),
    );
    if (wanted.every((line, index) => source[at + index] === (line ? indent + line : ""))) {
      return { start: at, end: at + wanted.length - 1 };
    }
  }
  return null;
}

/** The lines without empty ones around them, trailing blanks and common indentation. */
function dedented(lines) {
  const trimmed = lines.map((line) => line.trimEnd());
  while (trimmed.length && !trimmed[0]) trimmed.shift();
  while (trimmed.length && !trimmed.at(-1)) trimmed.pop();
  const depths = trimmed.filter(Boolean).map(leading);
  const least = depths.length ? Math.min(...depths) : 0;
  return trimmed.map((line) => line.slice(least));
}

const leading = (line) => line.length - line.trimStart().length;
