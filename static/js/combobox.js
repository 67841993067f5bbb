// A text field with suggestions: typing narrows them, arrow keys choose, anything may be typed.

import { element } from "./dom.js";

const MOST = 200; // suggestions shown at once; some providers list many hundreds

export class Combobox {
  #field;
  #list;
  #options = [];
  #active = -1;
  #typed = false; // what stands there before anything is typed narrows nothing

  /** `list` is the listbox that `field` controls. */
  constructor(field, list) {
    this.#field = field;
    this.#list = list;
    field.addEventListener("click", () => this.open());
    field.addEventListener("input", () => { this.#typed = true; this.open(); });
    field.addEventListener("keydown", (event) => this.#key(event));
    field.addEventListener("blur", () => this.close());
    // The field keeps the focus while an option is pressed.
    list.addEventListener("pointerdown", (event) => event.preventDefault());
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.#pick(option.textContent);
    });
  }

  set options(values) {
    this.#options = values;
    this.#typed = false;
    this.close();
  }

  open() {
    const words = this.#typed ? this.#field.value.trim().toLowerCase() : "";
    const found = this.#options.filter((value) => value.toLowerCase().includes(words)).slice(0, MOST);
    this.#list.replaceChildren(...found.map((value, index) => element("li", {
      role: "option", id: `${this.#list.id}-${index}`, "aria-selected": String(value === this.#field.value),
    }, value)));
    this.#activate(-1);
    this.#list.hidden = found.length === 0;
    this.#field.setAttribute("aria-expanded", String(found.length > 0));
    this.#list.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
    this.#list.scrollIntoView({ block: "nearest" });
  }

  close() {
    this.#list.hidden = true;
    this.#field.setAttribute("aria-expanded", "false");
    this.#activate(-1);
  }

  #key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (this.#list.hidden) this.open();
      const { length } = this.#list.children;
      if (length) this.#activate((this.#active + step + length + (this.#active < 0 && step < 0 ? 1 : 0)) % length);
    } else if (event.key === "Enter" && this.#active >= 0) {
      event.preventDefault();
      this.#pick(this.#list.children[this.#active].textContent);
    } else if (event.key === "Escape" && !this.#list.hidden) {
      event.preventDefault(); // closes the suggestions, not the dialog around them
      event.stopPropagation();
      this.close();
    }
  }

  #activate(index) {
    this.#list.children[this.#active]?.classList.remove("active");
    this.#active = index;
    const option = this.#list.children[index];
    option?.classList.add("active");
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.#field.setAttribute("aria-activedescendant", option.id);
    else this.#field.removeAttribute("aria-activedescendant");
  }

  #pick(value) {
    this.#field.value = value;
    this.#typed = false;
    this.close();
    this.#field.dispatchEvent(new Event("change"));
  }
}
