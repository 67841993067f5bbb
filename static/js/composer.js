// The field in which questions are written, its two switches and its one button.

import { byId } from "./dom.js";

export class Composer {
  #form = byId("composer");
  #field = byId("question");
  #codebase = byId("codebase");
  #rerank = byId("rerank");
  #send = byId("send");
  #busy = false;

  /** `onAsk({ text, codebase, rerank })` on sending, `onStop()` on stopping. */
  constructor(onAsk, onStop) {
    for (const chip of [this.#codebase, this.#rerank]) {
      chip.addEventListener("click", () => {
        press(chip, !pressed(chip));
        this.focus();
      });
    }
    this.#field.addEventListener("input", () => this.#fit());
    this.#field.addEventListener("keydown", (event) => {
      // While an input method composes a character, Enter is its own.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.#busy) this.#form.requestSubmit();
    });
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#busy) onStop();
      else if (this.#field.value.trim()) {
        onAsk({ text: this.#field.value.trim(), codebase: pressed(this.#codebase), rerank: pressed(this.#rerank) });
      }
    });
    this.#fit();
  }

  set busy(value) {
    this.#busy = value;
    this.#form.classList.toggle("busy", value);
    this.#send.setAttribute("aria-label", value ? "Stop" : "Send");
    this.#send.title = value ? "Stop (Esc)" : "Send (Enter)";
    this.#fit();
  }

  clear() {
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
    this.#send.disabled = !this.#busy && !this.#field.value.trim();
  }
}

const pressed = (chip) => chip.getAttribute("aria-pressed") === "true";
const press = (chip, on) => chip.setAttribute("aria-pressed", String(on));
