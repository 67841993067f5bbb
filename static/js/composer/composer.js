// The field in which questions are written, its switches and its one button.

import { inAddress } from "../lib/address.js";
import { byId } from "../lib/dom.js";
import { excess, LONGEST, textOf } from "../lib/fields.js";
import { count } from "../lib/format.js";
import { page } from "../lib/page.js";
import { recallQuestion, rememberQuestion } from "../lib/preferences.js";
import { AnswerOptions } from "./answer_options.js";
import { MentionChips } from "./mention_chips.js";
import { missingFrom } from "./modes.js";
import { Suggestions } from "./suggestions.js";
import { Together } from "./together.js";

const SEARCHES = {
  always: "The next question searches the code, as with @codebase before it",
  "when needed":
    "Questions use the code found before, and search when they need more. Press to search always",
  never: "Questions use only the code found before. Press to search",
};

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
      if (event.key !== "Enter" || event.shiftKey) return;
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
        const { revision, problem } = page.reading;
        page.reading.asks = true;
        this.#complain(
          problem
            ? `${problem} Empty “At commit” to ask about the files as they are.`
            : `This is asked as soon as the files of ${revision} are read.`,
        );
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

  /** Goes on in a conversation, with what was typed there before. */
  follow({ id, turns, codebase }) {
    const conversation = turns.length ? id : "";
    if (conversation !== this.#conversation) {
      this.#conversation = conversation;
      this.#field.value = recallQuestion(page.repo, conversation);
      this.#fit();
    }
    this.#chosen = false;
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

  /** Writes the text of files below the question, and says of each that does not fit why. */
  async attach(files) {
    const problems = [];
    for (const file of files) {
      try {
        const text = await textOf(file);
        const fence = "`".repeat(
          Math.max(3, ...(text.match(/`+/g) ?? []).map((one) => one.length + 1)),
        );
        const block = `${file.name}:\n${fence}\n${text}\n${fence}\n`;
        const all = [this.#field.value.trimEnd(), block].filter(Boolean).join("\n\n");
        if (excess(all) > 0)
          throw new Error(`${file.name} does not fit. ${lengthOf(all)} with it.`);
        this.#field.value = all;
      } catch ({ message }) {
        problems.push(message);
      }
    }
    this.#fit();
    if (problems.length) this.#complain(problems.join(" "));
    this.#field.focus();
    this.#field.scrollTop = this.#field.scrollHeight;
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
    const problem = missingFrom(text) || this.#tooLong();
    this.#complain(problem);
    if (problem) this.#field.focus();
    else page.send({ text, codebase, untouched: !this.#chosen, ...this.answerOptions });
  }

  #complain(words) {
    this.#problem.textContent = words;
    this.#problem.hidden = !words;
  }

  /** Says that the question is longer than the server takes, "" when it is not. */
  #tooLong() {
    const text = this.text.replace(/^@codebase\s+/i, "");
    return excess(text) > 0
      ? `${lengthOf(text)}. Nothing is cut: shorten it, or ask in parts.`
      : "";
  }

  #switch({ codebase, ...options }) {
    press(this.#codebase, codebase);
    this.#answerOptions.value = options;
    this.#describe();
  }

  /** Says what happens to the next question. */
  #describe() {
    this.#field.placeholder = this.#conversation ? "Ask a follow-up" : this.#placeholder;
    const when = this.codebase ? "always" : this.automatic ? "when needed" : "never";
    byId("codebase-more").textContent = when;
    this.#codebase.title = SEARCHES[when];
    this.#chips.refresh();
  }

  #fit() {
    this.#field.style.height = "auto";
    this.#field.style.height = `${this.#field.scrollHeight}px`;
    this.#send.disabled = !this.#busy && !this.text;
    this.#complain(this.#tooLong());
    this.#chips.refresh();
    rememberQuestion(page.repo, this.#field.value, this.#conversation);
  }
}

const lengthOf = (text) =>
  `A question takes ${count(LONGEST)} characters, and this one has ${count(LONGEST + excess(text))}`;
const pressed = (chip) => chip.getAttribute("aria-pressed") === "true";
const press = (chip, on) => chip.setAttribute("aria-pressed", String(on));
