// From an answer to the code: citations, marked when the server could not verify them, and the
// heads of code blocks.

import { query } from "../lib/api.js";
import { element, icon } from "../lib/dom.js";
import { copyButton } from "../lib/widgets.js";
import { drawDiagram } from "./diagram.js";

const NUMBERS = /:\d+(?:-\d+)?$/;
const NOT_SENT = "Not in the context: these lines exist, but the answer was not made from them";
const CHANGED = "the file has changed since it was read";
const SINCE = "Source changed: these lines are not what the answer was made from any more";

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
