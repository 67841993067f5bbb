// The field in which questions are written, its switches and its one button.

import { byId } from "./dom.js";
import { keepDraft, readDraft } from "./draft.js";
import { HydeChoice } from "./hyde.js";
import { ModeMenu, missingFrom } from "./modes.js";
import { recall, remember } from "./switches.js";

export class Composer {
  #form = byId("composer");
  #field = byId("question");
  #codebase = byId("codebase");
  #rerank = byId("rerank");
  #hyde;
  #send = byId("send");
  #bar = byId("editing");
  #problem = byId("composer-problem");
  #modes = new ModeMenu(this.#field, byId("modes"));
  #placeholder = this.#field.placeholder;
  #before = null; // the switches, while an earlier question is in the field
  #busy = false;
  #hooks;

  /**
   * `hooks`: `ask({ text, codebase, rerank, hyde })`, `stop()`, `switched()`, `changed()` text or
   * switch, `chooseModel()`.
   */
  constructor(hooks) {
    this.#hooks = hooks;
    this.#hyde = new HydeChoice(byId("hyde"), {
      changed: () => this.#remember(),
      chooseModel: hooks.chooseModel,
    });
    this.#hyde.value = recall("hyde");
    press(this.#rerank, Boolean(recall("rerank")));
    for (const chip of [this.#codebase, this.#rerank]) {
      chip.addEventListener("click", () => {
        press(chip, !pressed(chip));
        this.#remember();
        this.#describe();
        hooks.switched();
        hooks.changed();
        this.focus();
      });
    }
    this.#field.addEventListener("input", () => this.#fit());
    this.#field.addEventListener("keydown", (event) => {
      if (event.defaultPrevented) return; // the list of modes took it
      if (event.key === "Escape" && this.editing) {
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
      else if (this.text) this.#ask();
    });
    byId("leave-editing").addEventListener("click", () => {
      this.clear();
      this.focus();
    });
    this.#field.value = readDraft();
    this.#fit();
  }

  get text() {
    return this.#field.value.trim();
  }

  /** Whether an earlier question was put into the field. */
  get editing() {
    return this.#before !== null;
  }

  /** Whether the question in the field takes the place of the last one. */
  get replacing() {
    return !this.#bar.hidden;
  }

  get codebase() {
    return pressed(this.#codebase);
  }

  get rerank() {
    return pressed(this.#rerank);
  }

  /** Whether and how often drafts are searched for; "" leaves it to the server's setting. */
  get hyde() {
    return this.#hyde.value;
  }

  /** Name of the model in use, "" for none. */
  set model(name) {
    this.#hyde.model = name;
  }

  /** What the server does where nothing was chosen here. */
  set hydeSetting(value) {
    this.#hyde.setting = value;
  }

  set busy(value) {
    this.#busy = value;
    this.#form.classList.toggle("busy", value);
    this.#send.setAttribute("aria-label", value ? "Stop" : "Send");
    this.#send.title = value ? "Stop (Esc)" : "Send (Enter)";
    this.#fit();
  }

  /** Goes on in a conversation; `grounded` says that code was found in it before. */
  follow({ codebase, grounded }) {
    this.#form.classList.toggle("grounded", grounded);
    if (this.#before) this.#before.codebase = codebase;
    else press(this.#codebase, codebase);
    this.#describe();
    this.#hooks.changed();
  }

  /** Puts a question there, to be changed and sent again; `replacing` says that it is replaced. */
  fill({ text, codebase, rerank, hyde }, replacing) {
    this.#before ??= { codebase: this.codebase, rerank: this.rerank, hyde: this.hyde };
    this.#bar.hidden = !replacing;
    this.#switch({ codebase, rerank, hyde: hyde || this.#before.hyde });
    this.#field.value = text;
    this.#fit();
    this.#field.focus();
    this.#field.setSelectionRange(text.length, text.length);
  }

  clear() {
    if (this.#before) this.#switch(this.#before);
    this.#before = null;
    this.#bar.hidden = true;
    this.#field.value = "";
    this.#modes.close();
    this.#fit();
  }

  focus() {
    // On a phone the focus would bring up the keyboard over what was just asked for.
    if (matchMedia("(hover: hover)").matches) this.#field.focus();
  }

  #ask() {
    const { text, codebase, rerank, hyde } = this;
    const missing = missingFrom(text);
    if (missing) this.#complain(missing);
    else this.#hooks.ask({ text, codebase, rerank, hyde });
  }

  #complain(words) {
    this.#problem.textContent = words;
    this.#problem.hidden = !words;
    if (words) this.#field.focus();
  }

  #switch({ codebase, rerank, hyde }) {
    press(this.#codebase, codebase);
    press(this.#rerank, rerank);
    this.#hyde.value = hyde;
    this.#describe();
  }

  /** Keeps the switches for another day, unless they belong to the question that is edited. */
  #remember() {
    if (this.editing) return;
    remember("rerank", this.rerank ? "on" : "");
    remember("hyde", this.hyde);
  }

  /** Says what happens to the next question. */
  #describe() {
    const follows = !this.codebase && this.#form.classList.contains("grounded");
    this.#field.placeholder = follows ? "Follow up on what was found" : this.#placeholder;
    if (this.codebase) this.#codebase.title = "On: the code is searched for this question";
    else if (follows) this.#codebase.title = "Off: follow-ups go on from what was found; switch it on to search the code again";
    else this.#codebase.title = "Off: the code is not searched for this question";
  }

  #fit() {
    this.#field.style.height = "auto";
    this.#field.style.height = `${this.#field.scrollHeight}px`;
    this.#send.disabled = !this.#busy && !this.text;
    if (this.#problem.textContent) this.#complain("");
    keepDraft(this.#field.value);
    this.#hooks.changed();
  }
}

const pressed = (chip) => chip.getAttribute("aria-pressed") === "true";
const press = (chip, on) => chip.setAttribute("aria-pressed", String(on));
