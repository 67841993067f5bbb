// The lines of a file, with the cited ones marked and others chosen; and the list of files that are
// not indexed.

import { announce, element, setHtml } from "../lib/dom.js";
import { plural } from "../lib/format.js";

const LINES_ABOVE = 4; // lines that stay visible above the marked ones
const AT_ONCE = 100; // lines of a block: those out of view are not laid out
const NEAR = 500; // lines before and behind the one that was found, in which a text is marked
const NAME = /[\p{L}_$][\p{L}\p{N}_$]*/gu;
const NO_NAME = /^(bp|c[1hms]?|k[a-z]?|[lm][a-z]?|ow|s[a-z12]?|g[a-z])$/; // comments, keywords, literals, `self`

export class FileView {
  #body;
  #hooks;
  #rows = [];
  #marked = []; // the rows that are marked, from first to last
  #anchor = 0; // the line at which choosing them began

  /**
   * `hooks`: `chosen(start, end)` tells of lines that were chosen, `names(line, names, direct)` asks
   * what names in it are, `direct` to go there.
   */
  constructor(body, hooks) {
    this.#body = body;
    this.#hooks = hooks;
    body.addEventListener("click", (event) => this.#click(event));
    body.addEventListener("pointermove", (event) => highlight("name", [nameAt(event)]));
    body.addEventListener("pointerup", () => setTimeout(() => this.#takeSelection()));
    body.addEventListener("keydown", (event) => this.#key(event));
  }

  get rows() {
    return this.#rows;
  }

  /** `lines` are pieces of safe HTML, one per line, as the server made them. */
  show(lines) {
    const source = element("div.source");
    source.style.setProperty("--digits", String(lines.length).length);
    for (let first = 0; first < lines.length; first += AT_ONCE) {
      const block = element("div.block");
      // An empty line is copied as one.
      const rows = lines
        .slice(first, first + AT_ONCE)
        .map((html, at) => `<div class="row" data-line="${first + at + 1}"><code>${html || "\n"}`);
      block.style.setProperty("--rows", rows.length);
      setHtml(block, rows.join("</code></div>"));
      source.append(block);
    }
    this.#body.replaceChildren(source);
    this.#rows = [...source.querySelectorAll(".row")];
    for (const row of this.#rows) {
      const [space] = /^[ \t]*/.exec(row.textContent);
      if (space) row.style.setProperty("--indent", space.replaceAll("\t", "    ").length);
    }
  }

  /** Marks lines `start` to `end`, none for 0, and scrolls there. */
  cite(start, end) {
    this.#mark(start, end);
    this.#anchor = start;
    const first = this.#rows[Math.max(0, start - 1 - LINES_ABOVE)];
    // The blocks above have their true height once they were laid out.
    first?.scrollIntoView();
    first?.scrollIntoView();
  }

  /** Shows a line, if one is given, and marks what matches `pattern` around it. */
  find(line, pattern) {
    const rows = line ? this.#rows.slice(Math.max(0, line - NEAR), line + NEAR) : [];
    highlight(
      "found",
      rows.flatMap((row) => matchesIn(row, pattern)),
    );
    if (line) this.#choose(line, line).scrollIntoView({ block: "center", inline: "nearest" });
  }

  #mark(start, end) {
    for (const row of this.#marked) row.classList.remove("cited");
    this.#marked = start ? this.#rows.slice(start - 1, end) : [];
    for (const row of this.#marked) row.classList.add("cited");
  }

  /** Chooses the lines from `anchor` to `to`, and tells of them; returns the row of the latter. */
  #choose(anchor, to) {
    const lines = [Math.min(anchor, to), Math.max(anchor, to)];
    this.#anchor = anchor;
    this.#mark(...lines);
    this.#hooks.chosen(...lines);
    return this.#rows[to - 1];
  }

  #click(event) {
    const line = lineOf(event.target);
    if (!line || !getSelection().isCollapsed) return;
    const name = nameAt(event);
    if (event.target.matches(".row")) this.#choose((event.shiftKey && this.#anchor) || line, line);
    else if (name) this.#hooks.names(line, [`${name}`], event.ctrlKey || event.metaKey);
  }

  #takeSelection() {
    const { isCollapsed, anchorNode, focusNode } = getSelection();
    if (isCollapsed || !this.#body.contains(anchorNode)) return;
    if (lineOf(anchorNode) && lineOf(focusNode))
      this.#choose(lineOf(anchorNode), lineOf(focusNode));
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.altKey || event.ctrlKey || event.metaKey || !this.#body.querySelector(".source"))
      return;
    const [first, last] = [this.#marked[0], this.#marked.at(-1)].map((row) => row && lineOf(row));
    if (step) {
      const from = (this.#anchor === last ? first : last) ?? 0;
      const to = Math.min(Math.max(from + step, 1), this.#rows.length);
      const row = this.#choose((event.shiftKey && this.#anchor) || to, to);
      row.scrollIntoView({ block: "nearest" });
      announce(`Line ${to}: ${row.textContent.trim()}`);
    } else if (event.key === "Enter" && first) {
      const names = this.#marked.flatMap((row) => namesIn(row).map(String));
      this.#hooks.names(first, [...new Set(names)], false);
    } else return;
    event.preventDefault();
  }
}

const lineOf = (node) =>
  Number((node.closest ? node : node.parentElement).closest(".row")?.dataset.line);

function highlight(name, ranges) {
  globalThis.CSS?.highlights?.set(name, new Highlight(...ranges.filter(Boolean)));
}

/** The name at the pointer, as a range; undefined for none. */
function nameAt({ target, clientX: x, clientY: y }) {
  const code = target.closest?.(".row code");
  return (code ? namesIn(code) : []).find((range) =>
    [...range.getClientRects()].some(
      ({ left, right, top, bottom }) => left <= x && x <= right && top <= y && y <= bottom,
    ),
  );
}

/** The ranges in `node` that match a pattern. */
function matchesIn(node, pattern) {
  const texts = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const parts = [];
  for (let from = 0; texts.nextNode(); from += texts.currentNode.length)
    parts.push({ from, text: texts.currentNode });
  return [...node.textContent.matchAll(pattern)].map(({ 0: found, index }) => {
    const range = new Range();
    const first = parts.findLast(({ from }) => from <= index);
    const last = parts.findLast(({ from }) => from < index + found.length);
    range.setStart(first.text, index - first.from);
    range.setEnd(last.text, index + found.length - last.from);
    return range;
  });
}

const namesIn = (node) =>
  matchesIn(node, NAME).filter(
    ({ startContainer }) => !NO_NAME.test(startContainer.parentElement.className),
  );

/** The files that are not indexed, by reason. */
export function skippedFiles(groups) {
  const list = element("div.groups");
  for (const { reason, count, paths } of groups) {
    const more = count - paths.length;
    list.append(
      element(
        "details",
        { open: groups.length === 1 || count <= 20 },
        element("summary", reason, element("span", plural(count, "file"))),
        element(
          "ul",
          ...paths.map((path) => element("li", path)),
          more > 0 ? element("li", `and ${more} more`) : null,
        ),
      ),
    );
  }
  if (!groups.length) list.append(element("p.panel-message", "No file was skipped."));
  return list;
}
