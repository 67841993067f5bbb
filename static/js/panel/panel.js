// The panel beside the conversation: a file at its lines, an answer's context, or the skipped
// files; back and forward among what it has shown since it was opened.

import {
  addressWith,
  notePanelClosed,
  notePanelOpen,
  panelIsSheet,
  stepBackTaken,
} from "../lib/address.js";
import { latestOnly, query, request } from "../lib/api.js";
import { announce, byId, copyText, element } from "../lib/dom.js";
import { plural, splitPath } from "../lib/format.js";
import { page } from "../lib/page.js";
import { recall, remember } from "../lib/preferences.js";
import { failureText, showMessage } from "../lib/widgets.js";
import { closeSidebar } from "../sidebar/sidebar.js";
import { ChunkChoice } from "./chunk_choice.js";
import { contextOf, summaryOf } from "./context.js";
import { linkTo } from "./elsewhere.js";
import { FileView, skippedFiles } from "./file_view.js";
import { PlaceList } from "./place_list.js";
import { setUpWidth } from "./width.js";

const PAUSE = 150; // milliseconds after which it is asked who changed the lines that are chosen

export class Panel {
  #panel = byId("panel");
  #body = byId("panel-body");
  #opener = null;
  #now = null; // what is shown: `{ path, start, end }`, `{ turn }` or `{ skipped }`
  #past = []; // each with how far down it was scrolled
  #future = [];
  #contexts = new Map(); // by turn, `{ summary, node, choice }`: the last, and those with a pending choice
  #file = null; // the file whose lines are in the body
  #listed = ""; // the file whose lines or definitions are listed below it, and only there
  #asked = 0;
  #view;
  #places;
  #blame = latestOnly((signal, path, lines) => this.#tellChange(signal, path, lines));

  constructor() {
    this.#view = new FileView(this.#body, {
      chosen: (start, end) => this.#chosen(start, end),
      names: (line, names, direct) => this.#names(line, names, direct),
    });
    this.#places = new PlaceList((place, found) => this.#follow(place, found));
    setUpWidth();
    this.#wrap(recall("wrap"));
    const onClick = {
      "panel-close": () => this.close(),
      "panel-back": () => this.#travel(this.#past, this.#future),
      "panel-forward": () => this.#travel(this.#future, this.#past),
      "panel-copy": async () =>
        showMessage((await copyText(this.#now.path)) ? "Path copied" : "Not copied"),
      "panel-wrap": () => this.#wrap(recall("wrap") ? "" : "on"),
      "panel-outline": () => this.#outline(),
      "panel-find": () => this.#find(),
      "panel-ask": () => this.#ask(),
      "panel-link": () => this.#copyLink(),
      "show-skipped": () => {
        closeSidebar();
        byId("index").hidePopover();
        this.openSkipped(byId("index-state"));
      },
      backdrop: () => this.close(),
    };
    for (const [id, does] of Object.entries(onClick)) byId(id).addEventListener("click", does);
    this.#panel.addEventListener("keydown", (event) => this.#key(event));
    this.#body.addEventListener("click", (event) => {
      const chunk = event.target.closest("button[data-path]");
      if (!chunk) return;
      const { path, start, end } = chunk.dataset;
      this.openFile(path, Number(start), Number(end), { opener: this.#opener });
    });
  }

  get isOpen() {
    return !this.#panel.hidden;
  }

  /**
   * Shows `path` with lines `start` to `end` marked. `opener` gets the focus back later, `step` is
   * false for what the address says already.
   */
  openFile(path, start, end, options) {
    return this.#visit({ path, start, end }, options);
  }

  /** Shows what the answer `turn` was made from and what was sent for it. */
  openContext(turn, options) {
    return this.#visit({ turn }, options);
  }

  /** Lists the files that are not indexed, by reason. */
  openSkipped(opener) {
    return this.#visit({ skipped: true }, { opener });
  }

  /** Whether something is chosen to ask the question of `turn` again with. */
  choiceWaits(turn) {
    return Boolean(this.#contexts.get(turn)?.choice.pending);
  }

  /** What is chosen to ask the question of `turn` again with, which is done now; `{}` for nothing. */
  takeChoice(turn) {
    const pending = this.#contexts.get(turn)?.choice.pending;
    if (pending) this.#contexts.delete(turn);
    return pending ?? {};
  }

  close() {
    if (!this.isOpen) return;
    if (this.choiceWaits(this.#now.turn))
      showMessage("Your choice is used when you regenerate this answer");
    this.#asked += 1;
    this.#blame.cancel();
    this.#panel.hidden = true;
    this.#now = null;
    this.#past = [];
    this.#future = [];
    this.#places.close();
    document.body.classList.remove("with-panel");
    if (!document.body.classList.contains("sidebar-open")) byId("backdrop").hidden = true;
    notePanelClosed({ file: "", lines: "" });
    this.#leaveOpener()?.focus({ preventScroll: true });
  }

  #visit(entry, options) {
    if (this.#now && JSON.stringify(this.#now) !== JSON.stringify(entry)) {
      this.#past.push([this.#now, this.#body.scrollTop]);
      this.#future = [];
    }
    return this.#show(entry, options);
  }

  #travel(from, to) {
    if (!from.length) return;
    to.push([this.#now, this.#body.scrollTop]);
    const [entry, top] = from.pop();
    this.#show(entry, { opener: this.#opener, top });
  }

  async #show(entry, { opener = null, step = true, top } = {}) {
    this.#now = entry;
    await stepBackTaken();
    if (this.#now !== entry) return;
    const opening = step && !this.isOpen;
    if (entry.path) await this.#showFile(entry, opener, opening);
    else if (entry.skipped) await this.#showSkipped(opener, opening);
    else await this.#showContext(entry.turn, opener, opening);
    if (top !== undefined && this.#now === entry) this.#body.scrollTo(0, top);
  }

  async #showFile({ path, start, end }, opener, opening) {
    const [folder, name] = splitPath(path);
    this.#open(opener, name, folder || "top level");
    notePanelOpen({ file: path, lines: start ? `${start}-${end}` : "" }, { opening });
    if (this.#file?.path !== path) {
      this.#message("Opening…");
      const file = await this.#look("file", { path });
      if (!file) return;
      this.#note(
        file.changed ? "This file has changed since it was indexed: lines may have moved." : "",
      );
      this.#view.show(file.lines);
      this.#file = file;
    }
    byId("panel-tools").hidden = byId("panel-foot").hidden = false;
    this.#describe(start, end);
    this.#view.cite(start, end);
    announce([path, byId("panel-lines").textContent].join(", "));
  }

  async #showContext(turn, opener, opening) {
    this.#open(opener, "Context", "Looking…");
    notePanelOpen({ file: "", lines: "" }, { opening, context: turn });
    this.#message(turn ? "Looking…" : "Nothing is stored of this answer.");
    if (!turn) return;
    if (!this.#contexts.has(turn)) {
      const sent = await this.#look(`context/${encodeURIComponent(turn)}`);
      if (!sent) return;
      for (const [one, { choice }] of this.#contexts)
        if (!choice.pending) this.#contexts.delete(one);
      const choice = new ChunkChoice(turn);
      this.#contexts.set(turn, { summary: summaryOf(sent), node: contextOf(sent, choice), choice });
    }
    const { summary, node } = this.#contexts.get(turn);
    this.#title("Context", summary);
    this.#body.replaceChildren(node);
    this.#body.scrollTo(0, 0);
    announce(`Context. ${summary}`);
  }

  async #showSkipped(opener, opening) {
    this.#open(opener, "Skipped files", "Not indexed, by reason");
    notePanelOpen({ file: "", lines: "" }, { opening });
    this.#message("Looking…");
    const skipped = await this.#look("skipped");
    if (skipped) this.#body.replaceChildren(skippedFiles(skipped.groups));
  }

  // Reading a file

  /** Lines were chosen in the file: they are what the address and the foot say now. */
  #chosen(start, end) {
    Object.assign(this.#now, { start, end });
    notePanelOpen({ file: this.#now.path, lines: `${start}-${end}` }, { opening: false });
    this.#describe(start, end);
  }

  /** Says which lines are meant, who changed them last, and where else they are. */
  #describe(start, end) {
    byId("panel-lines").textContent = start
      ? start < end
        ? `Lines ${start}–${end}`
        : `Line ${start}`
      : plural(this.#file.lines.length, "line");
    byId("panel-ask").textContent =
      `Ask about ${!start ? "this file" : start < end ? "these lines" : "this line"}`;
    byId("panel-blame").textContent = "";
    byId("panel-blame").hidden = !start;
    linkTo(this.#file, start, end);
    if (start) this.#blame.run(PAUSE, this.#file.path, `${start}-${end}`);
    else this.#blame.cancel();
  }

  async #tellChange(signal, path, lines) {
    const address = this.#address("blame", { path, lines });
    const { commits } = await request(address, { signal }).catch(() => ({ commits: [] }));
    const [last] = commits.sort((one, other) => (one.date < other.date ? 1 : -1));
    if (last && !signal.aborted)
      byId("panel-blame").textContent =
        `Last change: ${last.subject} · ${last.author}, ${last.date}`;
  }

  #ask() {
    const { path, start, end } = this.#now;
    const lines = start < end ? `${start}-${end}` : start;
    if (panelIsSheet()) this.close();
    page.composer.mention(start ? `${path}:${lines}` : path);
  }

  /** Copies the address of the chosen lines: it opens them alone, without this conversation. */
  async #copyLink() {
    const { path: file, start, end } = this.#now;
    const lines = start ? `${start}-${end}` : "";
    const address = addressWith({ repo: page.repo, c: "", file, lines });
    const copied = await copyText(location.origin + address);
    showMessage(copied ? "Link copied" : "Not copied");
  }

  async #outline() {
    const { path } = this.#file;
    const found = await this.#look("outline", { path });
    if (!found) return;
    const places = found.definitions.map((one) => {
      const name = one.name.split(/[.:#]/).at(-1) || one.kind;
      return placeOf(one, `${"\u2003".repeat(one.depth)}${name}`, path);
    });
    this.#listed = path;
    this.#places.show(places.length ? "" : "This file has no definitions", places, {
      near: (listed) => listed.findLastIndex(({ line }) => line <= this.#now.start),
    });
  }

  /** Lists the lines with what is typed, from the chosen ones on; `name` is typed as a word. */
  #find(name) {
    const lines = this.#view.rows.map(({ textContent }, at) => lineOf(textContent.trim(), at + 1));
    this.#listed = this.#file.path;
    this.#places.show("", lines, {
      finds: true,
      name,
      near: (found) => found.findIndex(({ line }) => line >= this.#now.start),
    });
  }

  /** Lists what a name in a line means and where it is used; of several, the names. */
  async #names(line, names, direct) {
    const { path } = this.#file;
    if (names.length !== 1) {
      this.#listed = path;
      const places = names.map((name) => ({ ...lineOf(name, line), name }));
      this.#places.show(`Names in line ${line}`, places);
      return;
    }
    const [name] = names;
    const found = await this.#look("name", { path, line, name });
    if (!found) return;
    const { definitions, uses, total } = found;
    const places = [
      ...definitions.map((one) => placeOf(one, one.text || one.name, path)),
      ...uses.map((one) => placeOf({ ...one, kind: "line" }, one.text || one.name, path)),
    ];
    if (!places.length) {
      Object.assign(this.#now, { start: line });
      this.#find(name); // a local one, or a library's
      return;
    }
    this.#listed = "";
    const where = definitions.length ? "" : "not defined here, ";
    this.#places.show(`${name}: ${where}used in ${plural(total, "line")}`, places);
    if (direct && definitions.length === 1) this.#follow(places[0]);
  }

  /** Shows a place that was listed; with `found` it is a line that holds that; none, the file. */
  #follow(place, found = null) {
    if (found || !place) this.#view.find(place?.line, found);
    else if (place.name) this.#names(place.line, [place.name], false);
    else this.openFile(place.path, place.line, place.end, { opener: this.#opener });
    if (place === null) this.#body.focus({ preventScroll: true });
  }

  /** What the server says; null when that failed or something else was opened meanwhile. */
  async #look(what, values) {
    const asked = this.#asked;
    const found = await request(this.#address(what, values)).catch((error) => {
      if (asked !== this.#asked) return;
      if (this.#file) this.#note(failureText(error));
      else this.#message(element("p", error.message), element("p", error.hint ?? ""));
    });
    return asked === this.#asked ? found : null;
  }

  #address(what, values) {
    return `/api/${what}${query({ repo: page.repo, ...values })}`;
  }

  #wrap(on) {
    remember("wrap", on);
    this.#panel.classList.toggle("wrapping", Boolean(on));
    byId("panel-wrap").setAttribute("aria-pressed", String(Boolean(on)));
    if (this.#file) this.#view.cite(this.#now.start, this.#now.end);
  }

  #key(event) {
    const { key, altKey, ctrlKey, metaKey } = event;
    if (altKey && key === "ArrowLeft") this.#travel(this.#past, this.#future);
    else if (altKey && key === "ArrowRight") this.#travel(this.#future, this.#past);
    else if ((ctrlKey || metaKey) && key === "f" && this.#file) this.#find();
    else return;
    event.preventDefault();
  }

  // The frame

  #open(opener, title, detail) {
    this.#leaveOpener();
    this.#opener = opener;
    opener?.classList.add("shown");
    this.#title(title, detail);
    byId("panel-tools").hidden = byId("panel-foot").hidden = true;
    if (this.#listed ? this.#listed !== this.#now.path : !this.#now.path) this.#places.close();
    byId("panel-back").hidden = !this.#past.length;
    byId("panel-forward").hidden = !this.#future.length;
    this.#panel.hidden = false;
    document.body.classList.add("with-panel");
    byId("backdrop").hidden = !panelIsSheet();
    if (!this.#places.isOpen) this.#body.focus({ preventScroll: true });
    this.#asked += 1;
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
    this.#file = null;
    this.#note("");
    this.#body.replaceChildren(element("div.panel-message", ...content));
  }
}

/** A place of the server's as a row of the list of a file, `here`. */
function placeOf({ path, start_line: line, end_line: end, kind: what, note }, label, here) {
  const detail = [note, path === here ? line : `${path}:${line}`].filter(Boolean).join(" · ");
  return { kind: "symbol", what, label, path, line, end, detail };
}

const lineOf = (label, line) => ({ kind: "symbol", what: "line", label, line, detail: `${line}` });
