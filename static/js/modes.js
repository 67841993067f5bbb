// `/` at the beginning of a question: which kind of answer is wanted, from a list.

import { announce, element } from "./dom.js";

const MODES = [
  { name: "explain", does: "How it works, in words", asks: "What should be explained?" },
  { name: "locate", does: "Where it is, place by place", asks: "What should be located?" },
  { name: "review", does: "Bugs and weak spots", asks: "What should be reviewed?" },
  { name: "plan", does: "The steps, before any code", asks: "What should be planned?" },
  { name: "change", does: "A proposed change, as code", asks: "What should be changed?" },
];
const BEGUN = /^\/(\w*)$/;
const ALONE = /^(?:@codebase\s*)?\/(\w+)$/i;
const TAG_ALONE = /^@codebase$/i;

/** What a question that only names a mode, or only carries the tag, still lacks; "" when nothing. */
export function missingFrom(text) {
  if (TAG_ALONE.test(text)) return "What should be searched for? Write it after @codebase.";
  const word = ALONE.exec(text)?.[1].toLowerCase();
  const mode = MODES.find(({ name }) => name === word);
  return mode ? `${mode.asks} Write it after /${mode.name}.` : "";
}

export class ModeMenu {
  #field;
  #list;
  #active = -1;
  #dismissed = false; // by Escape, until something else is typed

  /** `list` is the listbox that `field`, where questions are written, controls. */
  constructor(field, list) {
    this.#field = field;
    this.#list = list;
    field.addEventListener("input", () => this.#narrow());
    field.addEventListener("keydown", (event) => this.#key(event));
    field.addEventListener("blur", () => this.close());
    // The field keeps the focus while an option is pressed.
    list.addEventListener("pointerdown", (event) => event.preventDefault());
    list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.#take(option);
    });
  }

  close() {
    this.#list.hidden = true;
    this.#active = -1;
    this.#field.removeAttribute("aria-activedescendant");
  }

  #narrow() {
    const begun = BEGUN.exec(this.#field.value);
    if (!begun) this.#dismissed = false;
    const found = begun && !this.#dismissed ? MODES.filter(({ name }) => name.startsWith(begun[1].toLowerCase())) : [];
    if (!found.length) {
      this.close();
      return;
    }
    if (this.#list.hidden) announce("Modes: arrow keys choose, Tab completes, Escape closes");
    this.#list.replaceChildren(...found.map(({ name, does }) => element("li", {
      role: "option", id: `mode-${name}`, "data-mode": name, "aria-selected": "false",
    }, element("span", { class: "mode-name" }, `/${name}`), " ", element("span", { class: "mode-does" }, does))));
    this.#list.hidden = false;
    this.#activate(0);
  }

  #key(event) {
    if (this.#list.hidden || event.isComposing || event.shiftKey) return;
    const options = this.#list.children;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.#activate((this.#active + step + options.length) % options.length);
    else if (event.key === "Enter" || event.key === "Tab") this.#take(options[this.#active]);
    else if (event.key === "Escape") {
      this.#dismissed = true;
      this.close();
    } else return;
    event.preventDefault(); // neither sends, nor leaves the field, nor stops an answer
  }

  #activate(index) {
    this.#active = index;
    [...this.#list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === index)));
    this.#field.setAttribute("aria-activedescendant", this.#list.children[index].id);
  }

  #take(option) {
    this.#field.value = `/${option.dataset.mode} `;
    this.#field.dispatchEvent(new Event("input")); // which closes the list, too
    this.#field.setSelectionRange(this.#field.value.length, this.#field.value.length);
  }
}
