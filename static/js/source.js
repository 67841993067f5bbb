// A file's lines, with some of them marked.

import { element, setHtml } from "./dom.js";

const LINES_ABOVE = 4; // lines that stay visible above the marked ones

/** `lines` are pieces of safe HTML, one per line, as the server made them. */
export function sourceOf(lines) {
  const source = element("div", { class: "source" });
  source.style.setProperty("--digits", String(lines.length).length);
  const rows = lines.map((html, index) => {
    const code = element("code");
    if (html) setHtml(code, html);
    else code.textContent = "\n"; // an empty line is copied as one
    const row = element("div", { class: "row", "data-line": index + 1 });
    row.append(code);
    return row;
  });
  source.append(...rows);
  return source;
}

/** Marks lines `start` to `end` of the source in `body`, and scrolls there. */
export function markLines(body, start, end) {
  for (const row of body.querySelectorAll(".cited")) row.classList.remove("cited");
  const rows = body.querySelector(".source")?.children ?? [];
  for (let line = start; line >= 1 && line <= end && line <= rows.length; line += 1) {
    rows[line - 1].classList.add("cited");
  }
  const first = rows[Math.max(0, start - 1 - LINES_ABOVE)];
  body.scrollTo({ top: first && start > LINES_ABOVE ? first.offsetTop - first.parentElement.offsetTop : 0, left: 0 });
}
