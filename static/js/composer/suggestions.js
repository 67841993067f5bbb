// The list at the field for questions: files, folders and symbols after an `@`, modes after a `/`
// at the beginning.

import { announce } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { mentionsIn, typedAt } from "./mentions.js";
import { modesFor } from "./modes.js";
import { PlaceOptions } from "./place_options.js";

const MODE = /^\/(\w*)$/;
const TAG = {
  kind: "tag",
  text: "codebase",
  label: "@codebase",
  detail: "search the whole code",
};

export class Suggestions {
  #field;
  #list;
  #options;
  #hooks;
  #typed = null; // where the sign stands, and what follows it
  #dismissed = -1; // the place of a sign whose list was closed by Escape
  model = ""; // name of the one in use, "" for none

  /**
   * `list` is the listbox of `field`, where questions are written. `hooks`: `tag()` switches
   * @codebase on, `taken(place, written)` says what was mentioned.
   */
  constructor(field, list, hooks) {
    this.#field = field;
    this.#list = list;
    this.#hooks = hooks;
    this.#options = new PlaceOptions(field, list, {
      pause: 70,
      most: 12,
      take: (place, key) => this.#take(place, key),
      found: (places, typed) => {
        const tag = "codebase".startsWith(typed.toLowerCase()) ? [TAG] : [];
        this.#show([...tag, ...places], "Files, folders and symbols");
      },
      failed: () => this.close(), // nothing is indexed yet
    });
    field.addEventListener("input", (event) => {
      if (!event.isComposing) this.#follow();
    });
    field.addEventListener("compositionend", () => this.#follow());
    field.addEventListener("click", () => {
      if (this.#options.isOpen) this.#follow();
    });
    field.addEventListener("keydown", (event) => this.#key(event));
    field.addEventListener("keyup", ({ key }) => {
      if (this.#options.isOpen && /^(Arrow(Left|Right)|Home|End)$/.test(key)) this.#follow();
    });
    field.addEventListener("blur", () => this.close());
  }

  /** What is being typed, which no chip shows yet; "" for nothing. */
  get typing() {
    return this.#options.isOpen && this.#typed ? this.#typed.typed : "";
  }

  close() {
    this.#options.close();
  }

  /** Looks at what stands before the caret, and asks for what it may become. */
  #follow() {
    const { value, selectionStart: caret, selectionEnd: end } = this.#field;
    const mode = MODE.exec(value);
    const typed = mode ? { start: 0, end, typed: mode[1] } : typedAt(value, caret);
    this.#typed = caret === end ? typed : null;
    if (this.#typed?.start !== this.#dismissed) this.#dismissed = -1;
    if (!this.#typed || this.#dismissed >= 0) this.close();
    else if (mode) this.#show(modesFor(mode[1], this.model), "Modes");
    else this.#options.follow(typed.typed);
  }

  /** Lists `places`, but what stands there already. */
  #show(places, label) {
    if (!places.length || (places.length === 1 && places[0].text === this.#typed.typed)) {
      this.close();
      return;
    }
    this.#list.ariaLabel = label;
    this.#options.show(places);
    announce(
      `${plural(places.length, "suggestion")}: arrow keys choose, Tab completes, Escape closes`,
    );
  }

  #key(event) {
    if (!this.#options.isOpen || event.shiftKey) return;
    if (event.key === "Escape") {
      this.#dismissed = this.#typed.start;
      this.close();
    } else if (!this.#options.key(event, "Tab")) return;
    event.preventDefault(); // neither sends, nor leaves the field, nor stops an answer
  }

  /** Writes a place or a mode into the question; Tab leaves a folder open, to go on inside it. */
  #take(place, key) {
    const { kind, text } = place;
    const { start, end } = this.#typed;
    const blank = /^\s/.test(this.#field.value.slice(end));
    this.close();
    if (kind === "tag") {
      this.#write("", start, blank ? end + 1 : end);
      this.#hooks.tag();
      announce("@codebase is on");
      return;
    }
    const deeper = kind === "folder" && key === "Tab" && !/["“]/.test(text);
    const written = `${kind === "mode" ? "/" : "@"}${text}`;
    for (const one of mentionsIn(written)) this.#hooks.taken(place, one.text);
    this.#write(deeper || blank ? written : `${written} `, start, end);
    if (deeper) return;
    const behind = start + written.length + 1;
    this.#field.setSelectionRange(behind, behind);
    this.close();
    announce(`Taken: ${written}`);
  }

  /** Replaces a part of the question, so that it can be undone as what was typed. */
  #write(text, start, end) {
    const field = this.#field;
    field.focus();
    field.setSelectionRange(start, end);
    if (document.execCommand(text ? "insertText" : "delete", false, text)) return;
    field.setRangeText(text, start, end, "end");
    field.dispatchEvent(new Event("input"));
  }
}
