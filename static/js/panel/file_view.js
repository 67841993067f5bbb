// The lines of a file, with the cited ones marked; and the list of files that are not indexed.

import { element, setHtml } from "../lib/dom.js";
import { plural } from "../lib/format.js";

const LINES_ABOVE = 4; // lines that stay visible above the marked ones

/** `lines` are pieces of safe HTML, one per line, as the server made them. */
export function sourceOf(lines) {
  const source = element("div.source");
  source.style.setProperty("--digits", String(lines.length).length);
  const rows = lines.map((html, index) => {
    const code = element("code");
    if (html) setHtml(code, html);
    else code.textContent = "\n"; // an empty line is copied as one
    const row = element("div.row", { "data-line": index + 1 });
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
  body.scrollTo({
    top: first && start > LINES_ABOVE ? first.offsetTop - first.parentElement.offsetTop : 0,
    left: 0,
  });
}

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
          more > 0 ? element("li.more", `and ${more} more`) : null,
        ),
      ),
    );
  }
  if (!groups.length) list.append(element("p.panel-message", "No file was skipped."));
  return list;
}
