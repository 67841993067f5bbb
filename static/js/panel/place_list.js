// The list below a file: what it defines, what a name means and where it is used, or the lines that
// hold a text. It stays while one place after another is looked at.

import { optionsOf } from "../composer/mentions.js";
import { byId } from "../lib/dom.js";
import { Listbox } from "../lib/listbox.js";

const MOST = 1000; // rows that are listed

export class PlaceList {
  #section = byId("panel-places");
  #field = byId("panel-places-field");
  #listbox;
  #take;
  #places = [];
  #found = [];
  #first = 0; // of those that were found the first that is listed
  #finds = false; // lines that hold what is typed, of which each is shown
  #near;
  #name = ""; // that was typed by a click on it: found as a word alone

  /** `take(place, pattern)` shows one that was found by a pattern; none, when the list was closed. */
  constructor(take) {
    this.#take = take;
    this.#listbox = new Listbox(this.#field, byId("panel-places-list"), {
      take: (option) => {
        this.#listbox.activate(this.#listbox.options.indexOf(option));
        this.#show();
      },
    });
    this.#field.addEventListener("input", () => this.#filter());
    byId("panel-places-close").addEventListener("click", () => this.close());
    this.#section.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.close();
      else if (event.altKey || event.target !== this.#field) return;
      else if (event.key === "Enter" && this.#finds) this.#listbox.move(event.shiftKey ? -1 : 1);
      else if (!this.#listbox.key(event)) return;
      event.preventDefault();
      if (this.#finds && this.isOpen) this.#show();
    });
  }

  get isOpen() {
    return !this.#section.hidden;
  }

  /**
   * Lists `places`, each as `optionsOf` takes it, with `finds` those that hold what is typed, which
   * may be a `name` at first; `near(places)` is the index of the one to begin with.
   */
  show(title, places, { finds = false, name = "", near = () => 0 } = {}) {
    this.#places = places;
    this.#finds = finds;
    this.#near = near;
    this.#name = name;
    this.#section.classList.toggle("finds", finds);
    this.#section.hidden = false;
    this.#field.placeholder = this.#field.ariaLabel = finds ? "Find in this file" : "Filter";
    if (name || !finds) this.#field.value = name;
    byId("panel-places-title").textContent = title;
    // On a phone the focus would bring up the keyboard over the list.
    if ((finds && !name) || matchMedia("(hover: hover)").matches) {
      this.#field.focus({ preventScroll: true });
      this.#field.select();
    }
    this.#filter();
  }

  close() {
    if (!this.isOpen) return;
    this.#section.hidden = true;
    this.#take(null);
  }

  #filter() {
    const typed = this.#field.value;
    const pattern = this.#pattern();
    this.#found = this.#places.filter(({ label, detail }) =>
      this.#finds ? typed && label.search(pattern) >= 0 : `${label} ${detail}`.search(pattern) >= 0,
    );
    const active = typed && !this.#finds ? 0 : Math.max(0, this.#near(this.#found));
    this.#first = Math.min(Math.max(0, active - MOST / 2), Math.max(0, this.#found.length - MOST));
    const listed = this.#found.slice(this.#first, this.#first + MOST);
    this.#listbox.show(optionsOf(listed, "panel-place"), active - this.#first);
    if (this.#finds) this.#show();
  }

  #show() {
    const { options, active } = this.#listbox;
    const at = active ? this.#first + options.indexOf(active) : -1;
    if (this.#finds) byId("panel-places-title").textContent = `${at + 1} of ${this.#found.length}`;
    this.#take(this.#found[at], this.#finds && this.#field.value ? this.#pattern() : null);
  }

  /** What is typed; a name that was pressed is a word of its own, written so. */
  #pattern() {
    const typed = this.#field.value;
    if (!this.#name || typed !== this.#name)
      return new RegExp(typed.replace(/[^\w\s]/g, "\\$&"), "gi");
    const name = typed.replaceAll("$", "\\$&");
    return new RegExp(`(?<![\\p{L}\\p{N}_$])${name}(?![\\p{L}\\p{N}_$])`, "gu");
  }
}
