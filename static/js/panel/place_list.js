// The list below a file: what it defines, what a name means and where it is used, or the lines that
// hold a text. It stays while one place after another is looked at.

import { optionsOf } from "../composer/mentions.js";
import { byId } from "../lib/dom.js";
import { Listbox } from "../lib/listbox.js";

const MOST = 300; // rows that are listed

export class PlaceList {
  #section = byId("panel-places");
  #field = byId("panel-places-field");
  #listbox;
  #take;
  #places = [];
  #found = [];
  #finds = false; // lines that hold what is typed, of which each is shown

  /** `take(place, typed)` shows one; none, when the list was closed. */
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

  /** Lists `places`, each as `optionsOf` takes it; with `finds` those that hold what is typed. */
  show(title, places, finds = false) {
    this.#places = places;
    this.#finds = finds;
    this.#section.hidden = false;
    this.#field.placeholder = this.#field.ariaLabel = finds ? "Find in this file" : "Filter";
    if (!finds) this.#field.value = "";
    byId("panel-places-title").textContent = title;
    this.#field.focus({ preventScroll: true });
    this.#field.select();
    this.#filter();
  }

  close() {
    if (!this.isOpen) return;
    this.#section.hidden = true;
    this.#take(null, "");
  }

  #filter() {
    const typed = this.#field.value.toLowerCase();
    this.#found = this.#places.filter(
      ({ label, detail }) =>
        (typed || !this.#finds) &&
        `${label} ${this.#finds ? "" : detail}`.toLowerCase().includes(typed),
    );
    this.#listbox.show(optionsOf(this.#found.slice(0, MOST), "panel-place"));
    if (this.#finds) this.#show();
  }

  #show() {
    const at = this.#listbox.options.indexOf(this.#listbox.active);
    const typed = this.#finds ? this.#field.value : "";
    if (this.#finds) byId("panel-places-title").textContent = `${at + 1} of ${this.#found.length}`;
    this.#take(this.#found[at], typed);
  }
}
