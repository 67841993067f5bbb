// HyDE: whether the model drafts code that may answer the question, which is then searched
// for as well. Without a model there is nothing to choose, and the menu says so.

import { announce, element, plural } from "./dom.js";
import { openMenu } from "./menu.js";

const CHOICES = [
  { value: "off", label: "Off", short: "", does: "The search has the question alone." },
  { value: "one", label: "One draft", short: "one", does: "The model first drafts code that may answer; the search looks for its like, too." },
  { value: "two", label: "Two drafts", short: "two", does: "Then a second draft, written with the code that was found. Slower." },
];
const ABOUT = "HyDE: drafts by the model help to find code that uses other words than the question.";
const NO_MODEL = "Drafts need a language model, and none is in use: the search has the question alone.";

/** What became of the drafts in a few words: `2 drafts`, `1 draft, 1 timed out`; "" for none wanted. */
export function draftsIn(stages = []) {
  const outcomes = stages.filter(({ name }) => name.startsWith("hyde-")).map(({ outcome }) => outcome);
  if (!outcomes.length) return "";
  const late = outcomes.filter((outcome) => outcome === "timed out").length;
  const made = outcomes.filter((outcome) => outcome === "done").length;
  if (!made && !late) return "no draft";
  return [made ? plural(made, "draft") : "", late ? `${late} timed out` : ""].filter(Boolean).join(", ");
}

export class HydeChoice {
  #chip;
  #changed;
  #chooseModel;
  #value = ""; // what was chosen here; "" leaves it to the server's setting
  #setting = "";
  #model = "";

  /** `changed()` is called when something was chosen, `chooseModel()` when a model is wanted. */
  constructor(chip, { changed, chooseModel }) {
    this.#chip = chip;
    this.#changed = changed;
    this.#chooseModel = chooseModel;
    chip.addEventListener("click", () => this.#open());
    this.#show();
  }

  get value() {
    return this.#value;
  }

  set value(value) {
    this.#value = CHOICES.some((choice) => choice.value === value) ? value : "";
    this.#show();
  }

  /** What the server does with questions for which nothing was chosen. */
  set setting(value) {
    this.#setting = value ?? "";
    this.#show();
  }

  /** Name of the model in use, "" for none. */
  set model(name) {
    this.#model = name;
    this.#show();
  }

  #show() {
    const choice = this.#inForce();
    const on = Boolean(this.#model && choice?.short);
    this.#chip.classList.toggle("on", on);
    this.#chip.classList.toggle("unavailable", !this.#model);
    this.#chip.replaceChildren("HyDE", ...(on ? [element("span", { class: "chip-value" }, ` · ${choice.short}`)] : []));
    const state = this.#model ? choice?.label.toLowerCase() ?? "as set" : "needs a language model, none is in use";
    this.#chip.setAttribute("aria-label", `HyDE: ${state}`);
    this.#chip.title = this.#model ? choice?.does ?? "" : NO_MODEL;
  }

  #inForce() {
    return CHOICES.find(({ value }) => value === (this.#value || this.#setting));
  }

  #open() {
    const inForce = this.#model ? this.#inForce()?.value : null;
    const choices = CHOICES.map(({ value, label, does }) => ({
      label,
      detail: value === this.#setting ? `${does} (default)` : does,
      checked: value === inForce,
      disabled: !this.#model,
      action: () => this.#take(value, label),
    }));
    if (!this.#model) choices.push({ symbol: "model", label: "Choose a model", action: this.#chooseModel });
    openMenu(this.#chip, choices, { about: this.#model ? ABOUT : NO_MODEL, label: "HyDE", className: "choices" });
  }

  #take(value, label) {
    this.value = value;
    announce(`HyDE: ${label}`);
    this.#changed();
  }
}
