// Going to a file or symbol by its name: a dialog with one field, and the places that fit.

import { announce, byId, element, icon, plural } from "./dom.js";
import { complete, rowOf, stillFits } from "./places.js";

const PAUSE = 60; // milliseconds without a key before the server is asked
const MOST = 50;

export class Symbols {
  #repo;
  #open;
  #dialog;
  #field;
  #list;
  #note;
  #places = [];
  #active = -1;
  #timer = 0;
  #asking = null;
  #told = false; // what is listed is what fits what is typed
  #impatient = false; // Enter was pressed before that

  /** `open(path, line, end)` shows a place; no line is given of a whole file. */
  constructor(repo, open) {
    this.#repo = repo;
    this.#open = open;
    this.#list = element("ul", { id: "places", role: "listbox", "aria-label": "Files and symbols" });
    this.#note = element("p", { class: "places-note", role: "status" });
    this.#field = element("input", {
      id: "place", type: "text", role: "combobox", "aria-label": "File or symbol", "aria-autocomplete": "list", "aria-controls": "places", "aria-expanded": "false",
      placeholder: "File, folder or symbol", autocomplete: "off", autocapitalize: "off", spellcheck: "false", enterkeyhint: "go", maxlength: "300",
    });
    const close = element("button", { type: "button", class: "icon-button", "aria-label": "Close", onclick: () => this.#dialog.close() }, icon("close"));
    this.#dialog = element("dialog", { class: "places-dialog", id: "go", "aria-label": "Go to a file or symbol" },
      element("div", { class: "places-head" }, icon("search"), this.#field, close), this.#list, this.#note);
    document.body.append(this.#dialog);
    this.#field.addEventListener("input", () => this.#follow());
    this.#field.addEventListener("keydown", (event) => this.#key(event));
    this.#list.addEventListener("pointerdown", (event) => event.preventDefault());
    this.#list.addEventListener("click", ({ target }) => {
      const option = target.closest("[role=option]");
      if (option) this.#take(this.#places[[...this.#list.children].indexOf(option)]);
    });
    this.#dialog.addEventListener("click", ({ target }) => { if (target === this.#dialog) this.#dialog.close(); });
    this.#dialog.addEventListener("close", () => this.#asking?.abort());
    this.#dialog.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "p") {
        event.preventDefault(); // nobody wants to print this
        this.#dialog.close();
      }
    });
  }

  /** Opens the dialog; what was typed last is there, selected. */
  show() {
    if (this.#dialog.open) return;
    this.#dialog.showModal();
    this.#field.select();
    this.#follow();
  }

  #follow() {
    this.#told = this.#impatient = false;
    const typed = this.#field.value.trim();
    if (this.#places.length) this.#fill(this.#places.filter((place) => stillFits(place, typed)));
    clearTimeout(this.#timer);
    this.#asking?.abort();
    const asking = this.#asking = new AbortController();
    this.#timer = setTimeout(() => this.#ask(typed, asking), typed ? PAUSE : 0);
  }

  async #ask(typed, asking) {
    try {
      const found = await complete(this.#repo, typed, { limit: MOST, signal: asking.signal });
      if (asking.signal.aborted) return;
      this.#told = true;
      this.#fill(found);
      if (this.#impatient && found.length) {
        this.#take(found[0]);
        return;
      }
      this.#say(found.length ? "" : typed ? `Nothing is called “${typed}”` : "Nothing is indexed yet");
      if (found.length) announce(plural(found.length, "place"));
    } catch (error) {
      if (error.name === "AbortError") return;
      this.#fill([]);
      this.#say([error.message, error.hint].filter(Boolean).join(" "));
    }
  }

  #say(text) {
    this.#note.textContent = text;
    this.#note.hidden = !text;
  }

  #fill(places) {
    this.#places = places;
    this.#list.replaceChildren(...places.map((place, index) => element("li", {
      role: "option", id: `place-${index}`, "data-kind": place.kind, "aria-selected": "false", title: place.path,
    }, ...rowOf(place))));
    this.#list.scrollTop = 0;
    this.#list.hidden = !places.length;
    this.#field.setAttribute("aria-expanded", String(places.length > 0));
    this.#activate(places.length ? 0 : -1);
  }

  #key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !this.#told) {
      event.preventDefault();
      this.#impatient = true; // the answer is on its way
    }
    if (!this.#places.length || event.defaultPrevented) return;
    const { length } = this.#places;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[event.key];
    if (step) this.#activate(Math.abs(step) > 1 ? Math.min(length - 1, Math.max(0, this.#active + step)) : (this.#active + step + length) % length);
    else if (event.key === "Enter") this.#take(this.#places[this.#active]);
    else return;
    event.preventDefault();
  }

  #activate(index) {
    this.#list.children[this.#active]?.setAttribute("aria-selected", "false");
    this.#active = index;
    const option = this.#list.children[index];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.#field.setAttribute("aria-activedescendant", option.id);
    else this.#field.removeAttribute("aria-activedescendant");
  }

  /** Opens a place; of a folder it shows what lies there. */
  #take({ kind, path, line, end_line: end }) {
    if (kind === "folder") {
      this.#field.value = path;
      this.#field.focus();
      this.#follow();
      return;
    }
    this.#dialog.close();
    this.#open(path, line, end);
  }
}

/** Puts the button that opens the dialog to work. */
export function setUpSymbols(repo, open) {
  const symbols = new Symbols(repo, open);
  byId("go-to").addEventListener("click", () => symbols.show());
  return symbols;
}
