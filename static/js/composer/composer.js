// The field in which questions are written, its switches and its one button.

import { inAddress } from "../lib/address.js";
import { byId } from "../lib/dom.js";
import { page } from "../lib/page.js";
import { recallQuestion, rememberQuestion } from "../lib/preferences.js";
import { AnswerOptions } from "./answer_options.js";
import { MentionChips } from "./mention_chips.js";
import { missingFrom } from "./modes.js";
import { Suggestions } from "./suggestions.js";
import { Together } from "./together.js";

export class Composer {
  #form = byId("composer");
  #field = byId("question");
  #codebase = byId("codebase");
  #chosen = false; // the user worked that chip: what it says is meant
  #answerOptions;
  #send = byId("send");
  #bar = byId("editing");
  #problem = byId("composer-problem");
  #suggestions;
  #chips;
  #placeholder = this.#field.placeholder;
  #before = null; // the switches, while an earlier question is in the field
  #busy = false;
  #conversation = inAddress("c"); // whose question is in the field, "" for a new one

  constructor() {
    new Together(this.#field);
    this.#chips = new MentionChips(this.#field, byId("mention-chips"), {
      typing: () => this.#suggestions.typing,
      searched: () => this.codebase,
    });
    this.#suggestions = new Suggestions(this.#field, byId("suggestions"), {
      tag: () => {
        if (!this.codebase) this.#codebase.click();
      },
      taken: (place, written) => this.#chips.learn(written, place),
    });
    this.#answerOptions = new AnswerOptions({
      // What belongs to the question that is edited is not kept for another day.
      keeps: () => !this.editing,
      changed: () => this.#describe(),
    });
    this.#codebase.addEventListener("click", () => {
      this.#chosen = true;
      press(this.#codebase, !pressed(this.#codebase));
      this.#describe();
      // While a question is edited that holds for this question alone.
      if (page.view && !this.editing) page.view.codebase = this.codebase;
      this.focus();
    });
    this.#field.addEventListener("input", () => this.#fit());
    this.#field.addEventListener("keydown", (event) => {
      if (event.defaultPrevented) return; // the list of suggestions took it
      if (event.key === "Escape" && this.editing) {
        event.preventDefault();
        this.clear();
      }
      // While an input method composes a character, Enter is its own.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      if (!this.#busy) this.#form.requestSubmit();
    });
    // The second click of a double one meets the button as Stop.
    this.#send.addEventListener("click", (event) => {
      if (event.detail > 1) event.preventDefault();
    });
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#busy) page.view?.stop();
      else if (this.text && page.reading) {
        page.reading.asks = true;
        this.#complain(`This is asked as soon as the files of ${page.reading.revision} are read.`);
      } else if (this.text) this.#ask();
    });
    // On a phone the switches give the room to the question until they are wanted.
    const more = byId("composer-more");
    more.addEventListener("click", () => {
      more.setAttribute("aria-expanded", String(this.#form.classList.toggle("opened")));
    });
    byId("leave-editing").addEventListener("click", () => {
      this.clear();
      this.focus();
    });
    this.#field.value = recallQuestion(page.repo, this.#conversation);
    this.#fit();
  }

  get text() {
    return this.#field.value.trim();
  }

  /** Whether an earlier question was put into the field. */
  get editing() {
    return this.#before !== null;
  }

  get codebase() {
    return pressed(this.#codebase);
  }

  /** How to answer: `{ effort, rerank, hyde, retrieval, strict }`. */
  get answerOptions() {
    return this.#answerOptions.value;
  }

  /** Whether the server itself decides which questions are searched for. */
  get automatic() {
    return this.#answerOptions.automatic;
  }

  /** Name of the model in use, "" for none. */
  set model(name) {
    this.#answerOptions.model = this.#suggestions.model = name;
  }

  /** What the server does where nothing was chosen here: `{ hyde, reranker, … }`. */
  set settings(values) {
    this.#answerOptions.settings = values;
    this.#describe();
  }

  set busy(value) {
    this.#busy = value;
    this.#form.classList.toggle("busy", value);
    this.#send.setAttribute("aria-label", value ? "Stop" : "Send");
    this.#send.title = value ? "Stop (Esc)" : "Send (Enter)";
    this.#fit();
  }

  /** Goes on in a conversation, with what was typed there before; `grounded` says that code was found
   * in it. */
  follow({ id, turns, codebase, grounded }) {
    const conversation = turns.length ? id : "";
    if (conversation !== this.#conversation) {
      this.#conversation = conversation;
      this.#field.value = recallQuestion(page.repo, conversation);
      this.#fit();
    }
    this.#chosen = false;
    this.#form.classList.toggle("grounded", grounded);
    if (this.#before) this.#before.codebase = codebase;
    else press(this.#codebase, codebase);
    this.#describe();
  }

  /** Puts an earlier question there, to be changed and asked again beside the old one. */
  fill({ text, codebase, ...options }) {
    this.#before ??= { codebase: this.codebase, ...this.answerOptions };
    this.#bar.hidden = false;
    this.#switch({
      ...this.#before,
      ...options,
      codebase,
      hyde: options.hyde || this.#before.hyde,
    });
    this.#field.value = text;
    this.#fit();
    this.#field.focus();
    this.#field.setSelectionRange(text.length, text.length);
  }

  /** Puts back what could not be asked, unless something else was typed meanwhile. */
  putBack(text) {
    this.#field.value ||= text;
    this.#fit();
  }

  /** Has the question that is being written be about a place too. */
  mention(place) {
    const written = /[\s"“”`<>@,;()[\]{}]/.test(place) ? `@"${place}"` : `@${place}`;
    this.#field.value = `${[this.#field.value.trimEnd(), written].filter(Boolean).join(" ")} `;
    this.#fit();
    this.#field.focus();
  }

  clear() {
    if (this.#before) this.#switch(this.#before);
    this.#before = null;
    this.#bar.hidden = true;
    this.#field.value = "";
    this.#suggestions.close();
    this.#fit();
  }

  focus() {
    // On a phone the focus would bring up the keyboard over what was just asked for.
    if (matchMedia("(hover: hover)").matches) this.#field.focus();
  }

  submit() {
    this.#form.requestSubmit();
  }

  #ask() {
    const { text, codebase } = this;
    const missing = missingFrom(text);
    if (missing) this.#complain(missing);
    else page.send({ text, codebase, untouched: !this.#chosen, ...this.answerOptions });
  }

  #complain(words) {
    this.#problem.textContent = words;
    this.#problem.hidden = !words;
    if (words) this.#field.focus();
  }

  #switch({ codebase, ...options }) {
    press(this.#codebase, codebase);
    this.#answerOptions.value = options;
    this.#describe();
  }

  /** Says what happens to the next question. */
  #describe() {
    const follows = !this.codebase && this.#form.classList.contains("grounded");
    this.#field.placeholder = this.#conversation ? "Ask a follow-up" : this.#placeholder;
    const uses = "The next questions use the code found before";
    let next = follows ? uses : "The next questions do not search the code";
    if (this.codebase) next = "The next question searches the code";
    else if (this.automatic)
      next = follows ? `${uses}, and search for more if needed` : "The code is searched if needed";
    const again = follows ? "search again" : "always search";
    this.#codebase.title = this.codebase ? next : `${next}. Press to ${again}`;
    const off = this.automatic ? " searched if needed" : " off";
    byId("codebase-more").textContent = this.codebase ? "" : off;
    this.#chips.refresh();
  }

  #fit() {
    this.#field.style.height = "auto";
    this.#field.style.height = `${this.#field.scrollHeight}px`;
    this.#send.disabled = !this.#busy && !this.text;
    if (this.#problem.textContent) this.#complain("");
    this.#chips.refresh();
    rememberQuestion(page.repo, this.#field.value, this.#conversation);
  }
}

const pressed = (chip) => chip.getAttribute("aria-pressed") === "true";
const press = (chip, on) => chip.setAttribute("aria-pressed", String(on));
