// The dialog that goes to a file or symbol by its name.

import { PlaceOptions } from "../composer/place_options.js";
import { announce, byId } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { page } from "../lib/page.js";
import { closesByClick, failureText } from "../lib/widgets.js";
import { closeSidebar } from "../sidebar/sidebar.js";

export class GoToDialog {
  #dialog = byId("go-to-dialog");
  #field = byId("go-to-field");
  #options;

  constructor() {
    this.#options = new PlaceOptions(this.#field, byId("go-to-options"), {
      pause: 60,
      most: 50,
      take: (place) => this.#take(place),
      found: (places, typed) => {
        this.#options.show(places);
        const nothing = typed ? `Nothing has the name “${typed}”` : "Nothing is indexed yet";
        byId("go-to-note").textContent = places.length ? "" : nothing;
        if (places.length) announce(plural(places.length, "place"));
      },
      failed: (error) => {
        this.#options.show([]);
        byId("go-to-note").textContent = failureText(error);
      },
    });
    closesByClick(this.#dialog, byId("go-to-close"));
    this.#field.addEventListener("input", () => this.#follow());
    this.#dialog.addEventListener("close", () => this.#options.close());
    this.#dialog.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "p") this.#dialog.close();
      else if (event.isComposing || event.target !== this.#field || !this.#options.key(event))
        return;
      event.preventDefault(); // nor is anything printed
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
    this.#options.follow(this.#field.value.trim());
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
    closeSidebar();
    page.panel.openFile(path, line, end);
  }
}
