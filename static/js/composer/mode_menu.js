// The list of modes that opens after a `/` at the beginning of a question.

import { announce, element } from "../lib/dom.js";
import { arrowStep, Listbox } from "../lib/listbox.js";

const MODES = [
  { name: "explain", does: "How it works, in words", asks: "What should be explained?" },
  { name: "locate", does: "Where it is, place by place", asks: "What should be located?" },
  { name: "review", does: "Bugs and weak spots", asks: "What should be reviewed?" },
  { name: "plan", does: "The steps, before any code", asks: "What should be planned?" },
  { name: "change", does: "A proposed change, as code", asks: "What should be changed?" },
  { name: "issue", does: "What an issue takes: paste it", asks: "Which issue is to be reviewed?" },
  { name: "files", does: "From the best files, whole", asks: "What should be searched for?" },
  { name: "all", does: "From every file: /all src/*.py …", asks: "What should be answered?" },
];
const NEED_MODEL = ["review", "plan", "change", "files", "all"];
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
  #listbox;
  #dismissed = false; // by Escape, until something else is typed
  model = ""; // name of the one in use, "" for none

  /** `list` is the listbox that `field`, where questions are written, controls. */
  constructor(field, list) {
    this.#field = field;
    this.#listbox = new Listbox(field, list, { take: (option) => this.#take(option) });
    field.addEventListener("input", () => this.#narrow());
    field.addEventListener("keydown", (event) => this.#key(event));
    field.addEventListener("blur", () => this.close());
  }

  close() {
    this.#listbox.close();
  }

  #narrow() {
    const begun = BEGUN.exec(this.#field.value);
    if (!begun) this.#dismissed = false;
    const found =
      begun && !this.#dismissed
        ? MODES.filter(({ name }) => name.startsWith(begun[1].toLowerCase()))
        : [];
    if (!found.length) {
      this.close();
      return;
    }
    if (!this.#listbox.isOpen) announce("Modes: arrow keys choose, Tab completes, Escape closes");
    this.#listbox.show(
      found.map(({ name, does }) =>
        element(
          "li",
          {
            role: "option",
            id: `mode-${name}`,
            "data-mode": name,
            "aria-selected": "false",
          },
          element("span.mode-name", `/${name}`),
          " ",
          element("span.mode-explanation", does, this.#lacks(name)),
        ),
      ),
    );
  }

  #lacks(name) {
    return this.model || !NEED_MODEL.includes(name) ? null : " · needs a language model";
  }

  #key(event) {
    if (!this.#listbox.isOpen || event.isComposing || event.shiftKey) return;
    const step = arrowStep(event);
    if (step) this.#listbox.move(step);
    else if (event.key === "Enter" || event.key === "Tab") this.#take(this.#listbox.active);
    else if (event.key === "Escape") {
      this.#dismissed = true;
      this.close();
    } else return;
    event.preventDefault(); // neither sends, nor leaves the field, nor stops an answer
  }

  #take(option) {
    this.#field.value = `/${option.dataset.mode} `;
    this.#field.dispatchEvent(new Event("input")); // which closes the list, too
    this.#field.setSelectionRange(this.#field.value.length, this.#field.value.length);
  }
}
