// `@` in a question: files, folders and symbols to choose from while a name is typed.

import { announce, element, plural } from "./dom.js";
import { mentionsIn, typedAt } from "./mention_text.js";
import { complete, rowOf, stillFits } from "./places.js";

const PAUSE = 70; // milliseconds without a key before the server is asked
const MOST = 12;
const TAG = { kind: "tag", text: "codebase", label: "@codebase", detail: "search the whole code", path: "", what: "" };

export class MentionMenu {
  #repo;
  #field;
  #list;
  #hooks;
  #places = [];
  #active = -1;
  #typed = null; // where the `@` stands, and what follows it
  #dismissed = -1; // the place of an `@` whose list was closed by Escape
  #timer = 0;
  #asking = null;
  #told = false; // what is listed is what fits what is typed
  #impatient = ""; // the key that was pressed before that, to take the first of it

  /**
   * `list` is the listbox of `field`, where questions are written. `hooks`: `tag()` switches
   * @codebase on, `taken(place)` says what was mentioned.
   */
  constructor(repo, field, list, hooks) {
    this.#repo = repo;
    this.#field = field;
    this.#list = list;
    this.#hooks = hooks;
    field.addEventListener("input", (event) => { if (!event.isComposing) this.#follow(); });
    field.addEventListener("compositionend", () => this.#follow());
    field.addEventListener("click", () => { if (this.isOpen) this.#follow(); });
    field.addEventListener("keydown", (event) => this.#key(event));
    field.addEventListener("keyup", ({ key }) => { if (this.isOpen && /^(Arrow(Left|Right)|Home|End)$/.test(key)) this.#follow(); });
    field.addEventListener("blur", () => this.close());
    // The field keeps the focus while an option is pressed.
    list.addEventListener("pointerdown", (event) => event.preventDefault());
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.#take(this.#places[[...list.children].indexOf(option)]);
    });
  }

  get isOpen() {
    return !this.#list.hidden;
  }

  /** What is being typed, which no chip shows yet; "" for nothing. */
  get typing() {
    return this.isOpen && this.#typed ? this.#typed.typed : "";
  }

  close() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    this.#asking = null;
    if (!this.isOpen) return;
    this.#list.hidden = true;
    this.#active = -1;
    this.#field.removeAttribute("aria-activedescendant");
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
    this.#told = false;
    this.#impatient = "";
    // Until the server answers, what is there already is narrowed.
    if (this.isOpen) this.#show(this.#places.filter((place) => stillFits(place, typed.typed)), typed);
    clearTimeout(this.#timer);
    this.#asking?.abort();
    const asking = this.#asking = new AbortController();
    this.#timer = setTimeout(() => this.#ask(typed, asking), PAUSE);
  }

  async #ask(typed, asking) {
    try {
      const found = await complete(this.#repo, typed.typed, { limit: MOST, signal: asking.signal });
      if (asking.signal.aborted) return;
      const tag = "codebase".startsWith(typed.typed.toLowerCase()) ? [TAG] : [];
      this.#show([...tag, ...found], typed, { told: true });
    } catch {
      if (this.#asking === asking) this.close(); // stopped, or nothing is indexed yet
    }
  }

  #show(places, typed, { told = false } = {}) {
    const only = places.length === 1 && places[0].text === typed.typed;
    if (!places.length || only) { // nothing is called so, or it stands there already
      this.close();
      return;
    }
    const before = this.#places[this.#active];
    this.#places = places;
    this.#list.replaceChildren(...places.map((place, index) => element("li", {
      role: "option", id: `mention-${index}`, "data-kind": place.kind, "aria-selected": "false", title: place.path || null,
    }, ...rowOf(place))));
    this.#field.setAttribute("aria-controls", this.#list.id);
    this.#list.hidden = false;
    const same = places.findIndex((place) => place.text === before?.text && place.kind === before?.kind);
    this.#activate(told ? 0 : Math.max(0, same));
    this.#told = told;
    if (told && this.#impatient) this.#take(places[0], this.#impatient);
    else if (told) announce(`${plural(places.length, "suggestion")}: arrow keys choose, Tab completes, Escape closes`);
  }

  #key(event) {
    if (!this.isOpen || event.isComposing || event.defaultPrevented) return;
    const { length } = this.#places;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.shiftKey && event.key !== "Tab") return;
    if (step) this.#activate((this.#active + step + length) % length);
    else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey) {
      if (this.#told) this.#take(this.#places[this.#active], event.key);
      else this.#impatient = event.key; // the answer is on its way
    } else if (event.key === "Escape") {
      this.#dismissed = this.#typed.start;
      this.close();
    } else return;
    event.preventDefault(); // neither sends, nor leaves the field, nor stops an answer
  }

  #activate(index) {
    this.#active = index;
    [...this.#list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === index)));
    const option = this.#list.children[index];
    option.scrollIntoView({ block: "nearest" });
    this.#field.setAttribute("aria-activedescendant", option.id);
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
