// The panel beside the conversation: a file at its cited lines, or the skipped files.

import { request } from "./api.js";
import { byId, copyText, element, plural, setHtml, splitPath, announce } from "./dom.js";

const LINES_ABOVE = 4; // lines that stay visible above the cited ones

export class Panel {
  #repo;
  #panel = byId("panel");
  #body = byId("panel-body");
  #opener = null;
  #path = "";
  #shown = ""; // the file whose lines are in the body
  #asked = 0;

  constructor(repo) {
    this.#repo = repo;
    byId("panel-close").addEventListener("click", () => this.close());
    byId("panel-copy").addEventListener("click", async () => {
      announce((await copyText(this.#path)) ? "Path copied" : "Not copied");
    });
    byId("backdrop").addEventListener("click", () => this.close());
  }

  get isOpen() {
    return !this.#panel.hidden;
  }

  /** Shows `path` with lines `start` to `end` marked; `opener` gets the focus back later. */
  async openFile(path, start, end, opener) {
    const asked = ++this.#asked;
    const [folder, name] = splitPath(path);
    const where = start === end ? `line ${start}` : `lines ${start}–${end}`;
    this.#open(opener, name, [folder, start ? where : ""].filter(Boolean).join(" · ") || "top level");
    this.#path = path;
    byId("panel-copy").hidden = false;
    opener?.classList.add("shown");
    this.#remember({ file: path, lines: start ? `${start}-${end}` : null });
    if (this.#shown !== path) {
      this.#message("Opening…");
      try {
        const file = await request(`/api/file?${new URLSearchParams({ repo: this.#repo, path })}`);
        if (asked !== this.#asked) return;
        this.#note(file.changed ? "This file has changed since it was indexed: lines may have moved." : "");
        this.#body.replaceChildren(sourceOf(file.lines));
        this.#shown = path;
      } catch (error) {
        if (asked === this.#asked) this.#failed(error);
        return;
      }
    }
    this.#mark(start, end);
    announce(start ? `${path}, ${where}` : path);
  }

  /** Lists the files that are not indexed, by reason. */
  async openSkipped(opener) {
    const asked = ++this.#asked;
    this.#open(opener, "Skipped files", "Not indexed, by reason");
    byId("panel-copy").hidden = true;
    this.#note("");
    this.#message("Looking…");
    try {
      const { groups } = await request(`/api/skipped?${new URLSearchParams({ repo: this.#repo })}`);
      if (asked !== this.#asked) return;
      this.#body.replaceChildren(groupsOf(groups));
    } catch (error) {
      if (asked === this.#asked) this.#failed(error);
    }
  }

  close() {
    if (!this.isOpen) return;
    this.#asked += 1;
    this.#panel.hidden = true;
    document.body.classList.remove("with-panel");
    if (!document.body.classList.contains("sidebar-open")) byId("backdrop").hidden = true;
    this.#remember({ file: null, lines: null });
    this.#leaveOpener()?.focus({ preventScroll: true });
  }

  #open(opener, title, detail) {
    this.#leaveOpener();
    this.#opener = opener ?? null;
    byId("panel-title").replaceChildren(
      element("strong", { title }, title),
      element("span", { title: detail }, detail),
    );
    this.#panel.hidden = false;
    document.body.classList.add("with-panel");
    byId("backdrop").hidden = !matchMedia("(max-width: 760px)").matches;
    this.#body.focus({ preventScroll: true }); // arrow keys then scroll the lines
  }

  #leaveOpener() {
    const opener = this.#opener;
    opener?.classList.remove("shown");
    this.#opener = null;
    return opener?.isConnected ? opener : null;
  }

  #mark(start, end) {
    for (const row of this.#body.querySelectorAll(".cited")) row.classList.remove("cited");
    const rows = this.#body.querySelector(".source")?.children ?? [];
    for (let line = start; line >= 1 && line <= end && line <= rows.length; line += 1) {
      rows[line - 1].classList.add("cited");
    }
    const first = rows[Math.max(0, start - 1 - LINES_ABOVE)];
    this.#body.scrollTo({ top: first && start > LINES_ABOVE ? first.offsetTop - first.parentElement.offsetTop : 0, left: 0 });
  }

  #note(text) {
    byId("panel-note").textContent = text;
    byId("panel-note").hidden = !text;
  }

  #message(...content) {
    this.#shown = "";
    this.#body.replaceChildren(element("div", { class: "panel-message" }, ...content));
  }

  #failed(error) {
    this.#note("");
    this.#message(element("p", {}, error.message), element("p", {}, error.hint ?? ""));
  }

  /** Keeps the address such that a reload, or another tab, shows the same file. */
  #remember(values) {
    const address = new URL(location.href);
    for (const [name, value] of Object.entries(values)) {
      if (value) address.searchParams.set(name, value);
      else address.searchParams.delete(name);
    }
    history.replaceState(null, "", address);
  }
}

function sourceOf(lines) {
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

function groupsOf(groups) {
  const list = element("div", { class: "groups" });
  for (const { reason, count, paths } of groups) {
    const more = count - paths.length;
    list.append(
      element("details", { open: groups.length === 1 || count <= 20 },
        element("summary", {}, reason, element("span", {}, plural(count, "file"))),
        element("ul", {},
          ...paths.map((path) => element("li", {}, path)),
          more > 0 ? element("li", { class: "more" }, `and ${more} more`) : null)),
    );
  }
  if (!groups.length) list.append(element("p", { class: "panel-message" }, "No file was skipped."));
  return list;
}
