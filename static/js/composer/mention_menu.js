// The list of files, folders and symbols that opens after an `@` in a question.

import { latestOnly } from "../lib/api.js";
import { announce } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { arrowStep, Listbox } from "../lib/listbox.js";
import { completePlaces, mentionsIn, optionsOf, stillFits, typedAt } from "./mentions.js";

const PAUSE = 70; // milliseconds without a key before the server is asked
const MOST = 12;
const TAG = {
  kind: "tag",
  text: "codebase",
  label: "@codebase",
  detail: "search the whole code",
  path: "",
  what: "",
};

export class MentionMenu {
  #repo;
  #field;
  #list;
  #listbox;
  #hooks;
  #places = [];
  #typed = null; // where the `@` stands, and what follows it
  #dismissed = -1; // the place of an `@` whose list was closed by Escape
  #upToDate = false; // what is listed is what the server has for what is typed
  #early = ""; // the key that was pressed before that, to take the first of it
  #lookUp = latestOnly((signal, typed) => this.#ask(signal, typed));

  /**
   * `list` is the listbox of `field`, where questions are written. `hooks`: `tag()` switches
   * @codebase on, `taken(place)` says what was mentioned.
   */
  constructor(repo, field, list, hooks) {
    this.#repo = repo;
    this.#field = field;
    this.#list = list;
    this.#hooks = hooks;
    this.#listbox = new Listbox(field, list, {
      take: (option) => this.#take(this.#placeOf(option)),
    });
    field.addEventListener("input", (event) => {
      if (!event.isComposing) this.#follow();
    });
    field.addEventListener("compositionend", () => this.#follow());
    field.addEventListener("click", () => {
      if (this.isOpen) this.#follow();
    });
    field.addEventListener("keydown", (event) => this.#key(event));
    field.addEventListener("keyup", ({ key }) => {
      if (this.isOpen && /^(Arrow(Left|Right)|Home|End)$/.test(key)) this.#follow();
    });
    field.addEventListener("blur", () => this.close());
  }

  get isOpen() {
    return this.#listbox.isOpen;
  }

  /** What is being typed, which no chip shows yet; "" for nothing. */
  get typing() {
    return this.isOpen && this.#typed ? this.#typed.typed : "";
  }

  close() {
    this.#lookUp.cancel();
    if (!this.isOpen) return;
    this.#listbox.close();
    this.#field.setAttribute("aria-controls", "modes");
  }

  /** Looks at what stands before the caret, and asks for what it may become. */
  #follow() {
    const { value, selectionStart: caret, selectionEnd: end } = this.#field;
    const typed = caret === end ? typedAt(value, caret) : null;
    this.#typed = typed;
    if (!typed || typed.start !== this.#dismissed) this.#dismissed = -1;
    if (!typed || this.#dismissed >= 0) {
      this.close();
      return;
    }
    this.#upToDate = false;
    this.#early = "";
    // Until the server answers, what is there already is narrowed.
    if (this.isOpen)
      this.#show(
        this.#places.filter((place) => stillFits(place, typed.typed)),
        typed,
      );
    this.#lookUp.run(PAUSE, typed);
  }

  async #ask(signal, typed) {
    try {
      const found = await completePlaces(this.#repo, typed.typed, { limit: MOST, signal });
      if (signal.aborted) return;
      const tag = "codebase".startsWith(typed.typed.toLowerCase()) ? [TAG] : [];
      this.#show([...tag, ...found], typed, { upToDate: true });
    } catch {
      if (!signal.aborted) this.close(); // nothing is indexed yet
    }
  }

  #show(places, typed, { upToDate = false } = {}) {
    const only = places.length === 1 && places[0].text === typed.typed;
    if (!places.length || only) {
      // nothing is called so, or it stands there already
      this.close();
      return;
    }
    const before = this.#placeOf(this.#listbox.active);
    const same = places.findIndex(
      (place) => place.text === before?.text && place.kind === before?.kind,
    );
    this.#places = places;
    this.#field.setAttribute("aria-controls", this.#list.id);
    this.#listbox.show(optionsOf(places, "mention"), upToDate ? 0 : Math.max(0, same));
    this.#upToDate = upToDate;
    if (upToDate && this.#early) this.#take(places[0], this.#early);
    else if (upToDate)
      announce(
        `${plural(places.length, "suggestion")}: arrow keys choose, Tab completes, Escape closes`,
      );
  }

  #placeOf(option) {
    return this.#places[this.#listbox.options.indexOf(option)];
  }

  #key(event) {
    if (!this.isOpen || event.isComposing || event.defaultPrevented) return;
    if (event.shiftKey && event.key !== "Tab") return;
    const step = arrowStep(event);
    if (step) this.#listbox.move(step);
    else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) {
      if (this.#upToDate) this.#take(this.#placeOf(this.#listbox.active), event.key);
      else this.#early = event.key; // the answer is on its way
    } else if (event.key === "Escape") {
      this.#dismissed = this.#typed.start;
      this.close();
    } else return;
    event.preventDefault(); // neither sends, nor leaves the field, nor stops an answer
  }

  /** Writes a place into the question; Tab leaves a folder open, to go on inside it. */
  #take(place, key = "Enter") {
    const { start, end } = this.#typed;
    const blank = /^\s/.test(this.#field.value.slice(end));
    this.close();
    if (place.kind === "tag") {
      this.#write("", start, blank ? end + 1 : end);
      this.#hooks.tag();
      announce("@codebase is on");
      return;
    }
    const deeper = place.kind === "folder" && key === "Tab" && !/["“]/.test(place.text);
    const mention = `@${place.text}`;
    this.#hooks.taken(place, mentionsIn(mention)[0]?.text ?? "");
    this.#write(deeper || blank ? mention : `${mention} `, start, end);
    if (deeper) return;
    const behind = start + mention.length + 1;
    this.#field.setSelectionRange(behind, behind);
    this.close();
    announce(`Mentioned: ${place.label}`);
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
