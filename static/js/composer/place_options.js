// The files, folders and symbols that fit what is typed in a field, as the list of that field.

import { latestOnly, query, request } from "../lib/api.js";
import { Listbox } from "../lib/listbox.js";
import { page } from "../lib/page.js";
import { optionsOf } from "./mentions.js";

export class PlaceOptions {
  #list;
  #listbox;
  #hooks;
  #places = [];
  #upToDate = false; // what is listed is what the server has for what is typed
  #early = ""; // the key that was pressed before that, to take the first of it
  #lookUp = latestOnly((signal, typed) => this.#ask(signal, typed));

  /**
   * `hooks`: `pause` milliseconds without a key before the server is asked, for `most` places;
   * `take(place, key)`; `found(places, typed)` and `failed(error)` tell of its reply.
   */
  constructor(field, list, hooks) {
    this.#list = list;
    this.#hooks = hooks;
    this.#listbox = new Listbox(field, list, { take: (option) => this.#take(option, "Enter") });
  }

  get isOpen() {
    return this.#listbox.isOpen;
  }

  close() {
    this.#lookUp.cancel();
    this.#listbox.close();
  }

  /** Looks for what fits `typed`; until the server answers, what is there already is narrowed. */
  follow(typed) {
    const words = typed.toLowerCase();
    const fits = ({ label, text }) =>
      [label, text].some((name) => name.toLowerCase().includes(words));
    if (this.isOpen) this.show(this.#places.filter(fits));
    this.#upToDate = false;
    this.#early = "";
    this.#lookUp.run(this.#hooks.pause, typed);
  }

  /** Lists `places`, which are all that there are. */
  show(places) {
    this.#places = places;
    this.#upToDate = true;
    this.#listbox.show(optionsOf(places, this.#list.id));
    this.#list.scrollTop = 0;
  }

  /** Arrow keys choose, Enter and `also` take; returns whether the key did something. */
  key(event, also = "") {
    if (event.key !== "Enter" && event.key !== also) return this.#listbox.key(event);
    if (!this.#upToDate) this.#early = event.key; // the answer is on its way
    else if (this.#listbox.active) this.#take(this.#listbox.active, event.key);
    return true;
  }

  #take(option, key) {
    this.#hooks.take(this.#places[this.#listbox.options.indexOf(option)], key);
  }

  async #ask(signal, typed) {
    try {
      const address = `/api/complete${query({ repo: page.repo, q: typed, limit: this.#hooks.most })}`;
      const { items } = await request(address, { signal });
      if (signal.aborted) return;
      const early = this.#early;
      this.#hooks.found(items, typed);
      if (early && this.#listbox.active) this.#take(this.#listbox.active, early);
    } catch (error) {
      if (!signal.aborted) this.#hooks.failed(error);
    }
  }
}
