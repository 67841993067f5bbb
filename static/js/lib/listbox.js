// The options of a text field: arrow keys choose one while the field keeps the focus.

const PAGE = 8; // options that Page Up and Page Down go over

export class Listbox {
  #field;
  #list;
  #active = -1;

  /** `list` is the listbox that `field` controls, `take(option)` is called when an option is pressed. */
  constructor(field, list, { take }) {
    this.#field = field;
    this.#list = list;
    // The field keeps the focus while an option is pressed.
    list.addEventListener("pointerdown", (event) => event.preventDefault());
    list.addEventListener("click", ({ target }) => {
      const option = target.closest("[role=option]");
      if (option) take(option);
    });
  }

  get isOpen() {
    return !this.#list.hidden;
  }

  get options() {
    return [...this.#list.querySelectorAll("[role=option]")];
  }

  /** The option that Enter takes; null for none. */
  get active() {
    return this.options[this.#active] ?? null;
  }

  /** Lists `options`, each `<li role=option>` with an id; the one at `active` is chosen, -1 is none. */
  show(options, active = 0) {
    this.#list.replaceChildren(...options);
    this.#list.hidden = options.length === 0;
    if (this.#field.hasAttribute("aria-expanded"))
      this.#field.setAttribute("aria-expanded", String(this.isOpen));
    this.#active = -1;
    this.activate(options.length ? active : -1);
  }

  close() {
    this.#list.hidden = true;
    if (this.#field.hasAttribute("aria-expanded"))
      this.#field.setAttribute("aria-expanded", "false");
    this.activate(-1);
  }

  /** Chooses the option that many steps on, past the end from the beginning. */
  move(step) {
    const { length } = this.options;
    const from = this.#active < 0 && step < 0 ? 0 : this.#active;
    if (length) this.activate((from + step + length) % length);
  }

  activate(index) {
    this.active?.setAttribute("aria-selected", "false");
    this.#active = index;
    const option = this.active;
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) this.#field.setAttribute("aria-activedescendant", option.id);
    else this.#field.removeAttribute("aria-activedescendant");
  }

  /** Chooses the option `step` further, but not past an end. */
  page(step) {
    const last = this.options.length - 1;
    if (last >= 0) this.activate(Math.min(last, Math.max(0, this.#active + step)));
  }

  /** Arrow keys and those of pages choose another option, Enter takes it; returns whether one did. */
  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const pages = { PageDown: PAGE, PageUp: -PAGE }[event.key];
    if (!this.isOpen) return false;
    if (step) this.move(step);
    else if (pages) this.page(pages);
    else if (event.key === "Enter" && this.active) this.active.click();
    else return false;
    return true;
  }
}
