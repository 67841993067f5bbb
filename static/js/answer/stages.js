// The one line above an answer: what is being done, and once it is there what it was made from. It
// opens the details.

import { announce, element, icon } from "../lib/dom.js";
import { duration, plural, withoutProvider } from "../lib/format.js";
import { Details } from "./details.js";

// What the language model does for the search.
const MODEL_STAGES = {
  "hyde-1": "Drafting code to look for",
  "hyde-2": "Drafting again with the code found",
  order: "Sorting the files",
};
const COUNT_SHOWN_FROM = 3000; // milliseconds after which the seconds are counted in view

export class Stages {
  #symbol = element("span.dot");
  #words = element("span.doing");
  #time = element("span.time");
  #details = new Details();
  #line = element("summary.stages");
  node;
  #thought = false; // whether the model thinks, and has not said so at its end
  #pieces = 0;
  #clock = 0;
  #model;

  /** `model` is the name of the model that will write, "" for none. */
  constructor(model) {
    this.#model = withoutProvider(model ?? "");
    const title = "How this answer was made";
    this.#line.append(this.#symbol, this.#words, this.#time, icon("chevron"));
    this.node = element("details.stages-box", { title }, this.#line, this.#details.node);
    this.#does("Understanding the question");
    const began = performance.now();
    this.#clock = setInterval(() => {
      const passed = performance.now() - began;
      if (passed >= COUNT_SHOWN_FROM) this.#time.textContent = `${Math.floor(passed / 1000)} s`;
    }, 500);
  }

  /** Takes a stage as the server announces it. */
  take(event) {
    const { stage, name, rules = [] } = event;
    if (stage === "step") this.#details.add(name, event.took);
    else if (stage === "rewritten") this.#details.rewritten(event);
    else if (stage === "thought") this.#think(event.text);
    else if (stage === "waiting") this.#wait(event);
    else if (stage === "looked_up") this.#lookUp(event);
    else if (stage === "classified") {
      this.#details.understood(event);
      const searches = event.searches || rules.includes("issue");
      this.#does(searches ? "Searching the code" : "Reading the conversation");
    } else if (stage === "drafting") {
      this.#does(MODEL_STAGES[name] ?? "Drafting");
      announce(this.#words.textContent);
    } else if (stage === "drafted") this.#does("Searching the code");
    else if (stage === "retrieved") {
      this.#pieces = event.retrieval_info.num_docs;
      if (this.#pieces) announce(`Found ${plural(this.#pieces, "piece")} of code`);
      this.#does(this.#reading());
    } else if (stage === "generating") this.#does(this.#reading());
  }

  /** The first text has come. */
  write() {
    this.#does("Writing");
  }

  /** All is done, or was when the server kept it. */
  complete(outcome) {
    const { failure, stopped } = outcome;
    clearInterval(this.#clock);
    this.#details.complete(outcome);
    this.#line.classList.remove("waiting");
    this.#line.classList.toggle("failed", Boolean(failure));
    this.#symbol.replaceWith(failure ? icon("alert") : stopped ? icon("stop") : "");
    this.#words.textContent = failure ? "Failed" : stopped ? "Stopped" : summaryOf(outcome);
    this.#time.remove();
  }

  #reading() {
    if (!this.#pieces) return this.#model ? `Waiting for ${this.#model}` : "Writing";
    const who = this.#model ? `${this.#model} is reading` : "Reading";
    return `${who} ${plural(this.#pieces, "piece")} of code`;
  }

  /** A request has failed, and is made again in `seconds`. */
  #wait({ text, seconds, begins }) {
    if (begins) announce(text);
    this.#does(seconds ? text : `Waiting for ${this.#model}`);
    this.#line.classList.toggle("waiting", Boolean(seconds));
  }

  #lookUp(event) {
    this.#details.lookUp(event, this.#thought);
    this.#thought = false;
    if (event.tool) announce(event.summary);
    this.#does(event.tool ? event.summary : "Writing");
  }

  /** What the model says to itself, as it comes. */
  #think(text) {
    if (!this.#thought) this.#does("Thinking");
    this.#details.think(text, !this.#thought);
    this.#thought = true;
  }

  /** What is being done now, in words. */
  #does(words) {
    this.#words.textContent = `${words}…`;
  }
}

/** `9 pieces of code · 2 steps · gpt-4o · 3.9 s` */
function summaryOf(outcome) {
  const { retrieval_info: found, looked_up: steps, searches, goes_on, model, citations } = outcome;
  const looked = (steps ?? []).filter(({ tool }) => tool).length;
  const none = searches
    ? "Found no code"
    : goes_on
      ? "Used the code found before"
      : citations?.length
        ? ""
        : "No code was used";
  const took = timeOf(outcome);
  return [
    found?.num_docs ? `${plural(found.num_docs, "piece")} of code` : looked ? "" : none,
    looked ? plural(looked, "step") : "",
    model ? withoutProvider(model) : "",
    took ? duration(took) : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

const timeOf = ({ milliseconds, steps }) =>
  milliseconds ?? (steps ?? []).reduce((sum, step) => sum + step.milliseconds, 0);
