// The panel beside the conversation: a file at its cited lines, an answer's context, or the
// skipped files.

import { notePanelClosed, notePanelOpen, panelIsSheet, stepBackTaken } from "../lib/address.js";
import { query, request } from "../lib/api.js";
import { announce, byId, copyText, element } from "../lib/dom.js";
import { splitPath } from "../lib/format.js";
import { ChunkChoice } from "./chunk_choice.js";
import { contextOf, summaryOf } from "./context.js";
import { markLines, skippedFiles, sourceOf } from "./file_view.js";

export class Panel {
  #repo;
  #panel = byId("panel");
  #body = byId("panel-body");
  #opener = null;
  #path = "";
  #fileShown = ""; // the file whose lines are in the body
  #turn = ""; // the answer whose context is in view, or one step back
  #asked = 0;

  #askWith;

  /** `askWith(turn, { pin, exclude })` asks the question of `turn` again with other code. */
  constructor(repo, askWith) {
    this.#repo = repo;
    this.#askWith = askWith;
    byId("panel-close").addEventListener("click", () => this.close());
    byId("panel-back").addEventListener("click", () =>
      this.openContext(this.#turn, { opener: this.#opener }),
    );
    byId("panel-copy").addEventListener("click", async () => {
      announce((await copyText(this.#path)) ? "Path copied" : "Not copied");
    });
    byId("backdrop").addEventListener("click", () => this.close());
    this.#body.addEventListener("click", (event) => {
      const chunk = event.target.closest("button[data-path]");
      if (!chunk) return;
      const { path, start, end } = chunk.dataset;
      this.openFile(path, Number(start), Number(end), { opener: this.#opener, turn: this.#turn });
    });
  }

  get isOpen() {
    return !this.#panel.hidden;
  }

  /**
   * Shows `path` with lines `start` to `end` marked. `opener` gets the focus back later, `turn`
   * is the answer whose context led here, `step` is false for what the address says already.
   */
  async openFile(path, start, end, { opener = null, turn = "", step = true } = {}) {
    await stepBackTaken();
    const opening = step && !this.isOpen;
    const [folder, name] = splitPath(path);
    const where = start === end ? `line ${start}` : `lines ${start}–${end}`;
    const asked = this.#open(
      opener,
      name,
      [folder, start ? where : ""].filter(Boolean).join(" · ") || "top level",
    );
    this.#turn = turn;
    this.#path = path;
    byId("panel-back").hidden = !turn;
    byId("panel-copy").hidden = false;
    notePanelOpen({ file: path, lines: start ? `${start}-${end}` : "" }, { opening });
    if (this.#fileShown !== path) {
      this.#message("Opening…");
      const file = await this.#read(asked, `/api/file${query({ repo: this.#repo, path })}`);
      if (!file) return;
      this.#note(
        file.changed ? "This file has changed since it was indexed: lines may have moved." : "",
      );
      this.#body.replaceChildren(sourceOf(file.lines));
      this.#fileShown = path;
    }
    markLines(this.#body, start, end);
    announce(start ? `${path}, ${where}` : path);
  }

  /** Shows what the answer `turn` was made from and what was sent for it. */
  async openContext(turn, { opener = null, step = true } = {}) {
    await stepBackTaken();
    const opening = step && !this.isOpen;
    const asked = this.#open(opener, "Context", "Looking…");
    this.#turn = turn;
    notePanelOpen({ file: "", lines: "" }, { opening, context: turn });
    this.#message(turn ? "Looking…" : "Nothing was kept of this answer.");
    if (!turn) return;
    const sent = await this.#read(
      asked,
      `/api/context/${encodeURIComponent(turn)}${query({ repo: this.#repo })}`,
    );
    if (!sent) return;
    this.#title("Context", summaryOf(sent));
    const choice = new ChunkChoice((places) => {
      this.close();
      this.#askWith(turn, places);
    });
    this.#body.replaceChildren(contextOf(sent, choice));
    this.#body.scrollTo(0, 0);
    announce(`Context. ${summaryOf(sent)}`);
  }

  /** Lists the files that are not indexed, by reason. */
  async openSkipped(opener) {
    await stepBackTaken();
    const opening = !this.isOpen;
    const asked = this.#open(opener, "Skipped files", "Not indexed, by reason");
    notePanelOpen({ file: "", lines: "" }, { opening });
    this.#message("Looking…");
    const skipped = await this.#read(asked, `/api/skipped${query({ repo: this.#repo })}`);
    if (skipped) this.#body.replaceChildren(skippedFiles(skipped.groups));
  }

  close() {
    if (!this.isOpen) return;
    this.#asked += 1;
    this.#panel.hidden = true;
    document.body.classList.remove("with-panel");
    if (!document.body.classList.contains("sidebar-open")) byId("backdrop").hidden = true;
    notePanelClosed({ file: "", lines: "" });
    this.#leaveOpener()?.focus({ preventScroll: true });
  }

  /** Returns the number of this opening, so that a slow reply does not overwrite a later one. */
  #open(opener, title, detail) {
    this.#leaveOpener();
    this.#opener = opener;
    opener?.classList.add("shown");
    this.#title(title, detail);
    byId("panel-copy").hidden = true;
    byId("panel-back").hidden = true;
    this.#panel.hidden = false;
    document.body.classList.add("with-panel");
    byId("backdrop").hidden = !panelIsSheet();
    this.#body.focus({ preventScroll: true }); // arrow keys then scroll the lines
    return ++this.#asked;
  }

  /** The server's reply; null when that failed or something else was opened meanwhile. */
  async #read(asked, address) {
    try {
      const values = await request(address);
      return asked === this.#asked ? values : null;
    } catch (error) {
      if (asked === this.#asked)
        this.#message(element("p", error.message), element("p", error.hint ?? ""));
      return null;
    }
  }

  #leaveOpener() {
    const opener = this.#opener;
    opener?.classList.remove("shown");
    this.#opener = null;
    return opener?.isConnected ? opener : null;
  }

  #title(title, detail) {
    byId("panel-title").replaceChildren(
      element("strong", { title }, title),
      element("span", { title: detail }, detail),
    );
  }

  #note(text) {
    byId("panel-note").textContent = text;
    byId("panel-note").hidden = !text;
  }

  #message(...content) {
    this.#fileShown = "";
    this.#note("");
    this.#body.replaceChildren(element("div.panel-message", ...content));
  }
}
