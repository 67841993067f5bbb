// The dialog that goes to a file or symbol by its name.

import { completePlaces, optionsOf, stillFits } from "../composer/mentions.js";
import { latestOnly } from "../lib/api.js";
import { announce, byId } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { Listbox } from "../lib/listbox.js";
import { closesByClick, failureText } from "../lib/widgets.js";

const PAUSE = 60; // milliseconds without a key before the server is asked
const MOST = 50;

export class GoToDialog {
  #repo;
  #open;
  #dialog = byId("go-to-dialog");
  #field = byId("go-to-field");
  #list = byId("go-to-options");
  #listbox;
  #note = byId("go-to-note");
  #places = [];
  #upToDate = false; // what is listed is what the server has for what is typed
  #early = false; // Enter was pressed before that
  #lookUp = latestOnly((signal, typed) => this.#ask(signal, typed));

  /** `open(path, line, end)` shows a place; no line is given of a whole file. */
  constructor(repo, open) {
    this.#repo = repo;
    this.#open = open;
    closesByClick(this.#dialog, byId("go-to-close"));
    this.#listbox = new Listbox(this.#field, this.#list, {
      take: (option) => this.#take(this.#places[this.#listbox.options.indexOf(option)]),
    });
    this.#field.addEventListener("input", () => this.#follow());
    this.#field.addEventListener("keydown", (event) => this.#key(event));
    this.#dialog.addEventListener("close", () => this.#lookUp.cancel());
    this.#dialog.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "p") {
        event.preventDefault(); // nobody wants to print this
        this.#dialog.close();
      }
    });
    byId("go-to").addEventListener("click", () => this.show());
  }

  /** Opens the dialog; what was typed last is there, selected. */
  show() {
    if (this.#dialog.open) return;
    this.#dialog.showModal();
    this.#field.select();
    this.#follow();
  }

  #follow() {
    this.#upToDate = this.#early = false;
    const typed = this.#field.value.trim();
    if (this.#places.length) this.#fill(this.#places.filter((place) => stillFits(place, typed)));
    this.#lookUp.run(typed ? PAUSE : 0, typed);
  }

  async #ask(signal, typed) {
    try {
      const found = await completePlaces(this.#repo, typed, { limit: MOST, signal });
      if (signal.aborted) return;
      this.#upToDate = true;
      this.#fill(found);
      if (this.#early && found.length) {
        this.#take(found[0]);
        return;
      }
      this.#say(
        found.length ? "" : typed ? `Nothing is called “${typed}”` : "Nothing is indexed yet",
      );
      if (found.length) announce(plural(found.length, "place"));
    } catch (error) {
      if (error.name === "AbortError") return;
      this.#fill([]);
      this.#say(failureText(error));
    }
  }

  #say(text) {
    this.#note.textContent = text;
    this.#note.hidden = !text;
  }

  #fill(places) {
    this.#places = places;
    this.#listbox.show(optionsOf(places, "go-to"));
    this.#list.scrollTop = 0;
  }

  #key(event) {
    if (event.isComposing) return;
    if (event.key === "Enter" && !this.#upToDate) {
      event.preventDefault();
      this.#early = true; // the answer is on its way
    }
    if (!event.defaultPrevented && this.#listbox.key(event)) event.preventDefault();
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
