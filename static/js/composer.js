// The field in which questions are written, its two switches and its one button.

import { byId } from "./dom.js";

export class Composer {
  #form = byId("composer");
  #field = byId("question");
  #codebase = byId("codebase");
  #rerank = byId("rerank");
  #send = byId("send");
  #bar = byId("editing");
  #busy = false;
  #hooks;

  /** `hooks`: `ask({ text, codebase, rerank })`, `stop()`, `changed()` as text or switches do. */
  constructor(hooks) {
    this.#hooks = hooks;
    for (const chip of [this.#codebase, this.#rerank]) {
      chip.addEventListener("click", () => {
        press(chip, !pressed(chip));
        hooks.changed();
        this.focus();
      });
    }
    this.#field.addEventListener("input", () => this.#fit());
    this.#field.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !this.#bar.hidden) {
        event.preventDefault();
        this.clear();
      }
      // While an input method composes a character, Enter is its own.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.#busy) this.#form.requestSubmit();
    });
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#busy) hooks.stop();
      else if (this.text) hooks.ask({ text: this.text, codebase: this.codebase, rerank: pressed(this.#rerank) });
    });
    byId("leave-editing").addEventListener("click", () => {
      this.clear();
      this.focus();
    });
    this.#fit();
  }

  get text() {
    return this.#field.value.trim();
  }

  /** Whether the question in the field takes the place of the last one. */
  get replacing() {
    return !this.#bar.hidden;
  }

  get codebase() {
    return pressed(this.#codebase);
  }

  set busy(value) {
    this.#busy = value;
    this.#form.classList.toggle("busy", value);
    this.#send.setAttribute("aria-label", value ? "Stop" : "Send");
    this.#send.title = value ? "Stop (Esc)" : "Send (Enter)";
    this.#fit();
  }

  /** Puts a question there, to be changed and sent again; `replacing` says that it is replaced. */
  fill({ text, codebase, rerank }, replacing) {
    this.#bar.hidden = !replacing;
    press(this.#codebase, codebase);
    press(this.#rerank, rerank);
    this.#field.value = text;
    this.#fit();
    this.#field.focus();
    this.#field.setSelectionRange(text.length, text.length);
  }

  clear() {
    this.#bar.hidden = true;
    this.#field.value = "";
    this.#fit();
  }

  /** As at the beginning of a conversation. */
  reset() {
    press(this.#codebase, true);
    this.clear();
  }

  focus() {
    // On a phone the focus would bring up the keyboard over what was just asked for.
    if (matchMedia("(hover: hover)").matches) this.#field.focus();
  }

  #fit() {
    this.#field.style.height = "auto";
    this.#field.style.height = `${this.#field.scrollHeight}px`;
    this.#send.disabled = !this.#busy && !this.text;
    this.#hooks.changed();
  }
}

const pressed = (chip) => chip.getAttribute("aria-pressed") === "true";
const press = (chip, on) => chip.setAttribute("aria-pressed", String(on));
