// The details of an answer, folded away: how the question was understood, and each step of the
// pipeline with its time.

import { element, icon } from "../lib/dom.js";
import { duration } from "../lib/format.js";

const STEPS = {
  embed: "Took in the question’s meaning",
  load: "Read conversation and profile",
  classify: "Found out what is wanted",
  topic: "Looked whether it leaves the topic",
  features: "Gathered what matters here",
  policy: "Decided what to use",
  prune: "Chose what was said before to go along",
  retrieve: "Searched",
  before_generation: "Ran what comes before writing",
  generate: "Wrote the answer",
  after_generation: "Ran what comes after writing",
  persist: "Kept it",
};
const INTENTS = {
  general: "no question about this code",
  knowledge_base: "a question about the code",
  continuation: "a follow-up",
  profile: "about you",
  privacy: "about what is stored",
};
const SOURCES = {
  tag: "@codebase says so",
  cache: "as decided shortly before",
  heuristics: "by its words",
  model: "by the model",
};

let numbered = 0;

export class Details {
  #list = element("ol.details-steps");
  #about = element("dl.details-facts");
  #body;
  #button;
  #longest = 0;
  #times = new Map(); // milliseconds by name of the step
  #known = {}; // of how the question was understood, in parts

  constructor() {
    numbered += 1;
    const id = `details-${numbered}`;
    this.#body = element("div.details-body", { id, hidden: true }, this.#about, this.#list);
    this.#button = element(
      "button.details-toggle",
      { "aria-expanded": "false", "aria-controls": id, onclick: () => this.#fold() },
      "Details",
      icon("chevron"),
    );
    this.#button.hidden = true;
  }

  /** The button that unfolds them; it stands in the line above the answer. */
  get button() {
    return this.#button;
  }

  /** The folded part itself. */
  get body() {
    return this.#body;
  }

  /** A step has ended after `milliseconds` of its own. */
  add(name, milliseconds) {
    const known = this.#times.has(name);
    this.#times.set(name, milliseconds);
    this.#longest = Math.max(this.#longest, milliseconds);
    if (!known) {
      this.#list.append(
        element(
          "li",
          { "data-step": name },
          element("span.step-name", STEPS[name] ?? name, " ", element("code", name)),
          element("span.step-bar", { "aria-hidden": "true" }, element("span")),
          element("span.size"),
        ),
      );
    }
    for (const row of this.#list.children) {
      const time = this.#times.get(row.dataset.step);
      row.querySelector(".size").textContent = duration(time);
      row
        .querySelector(".step-bar span")
        .style.setProperty("--part", this.#longest ? time / this.#longest : 0);
    }
    this.#button.hidden = false;
  }

  /** What is known of how the question was understood. */
  understood(told) {
    for (const name of ["intent", "confidence", "source", "reason", "rules", "left_out"])
      this.#known[name] = told[name] ?? this.#known[name];
    const { intent, confidence, source, reason, rules, left_out } = this.#known;
    if (!intent) return;
    const sure = Number.isFinite(confidence) ? `, ${Math.round(100 * confidence)} % sure` : "";
    const how = [SOURCES[source] ?? source, source === "tag" ? "" : reason]
      .filter(Boolean)
      .join(": ");
    this.#fact("Taken as", `${INTENTS[intent] ?? intent}${sure}${how ? ` (${how})` : ""}`);
    if (left_out) this.#fact("Earlier code", `left out, for this is a new topic: ${left_out}`);
    if (rules?.length) this.#fact("Rules", rules.join(", "));
  }

  /** A follow-up was rewritten so that it can be searched for by itself. */
  rewritten({ question, by }) {
    this.#fact(
      "Searched for",
      `${question}${by === "model" ? " (put so by the model)" : by === "carried" ? " (with names from before)" : ""}`,
    );
  }

  /** All steps at once, as they are kept. */
  complete(steps) {
    for (const { name, milliseconds } of steps ?? []) this.add(name, milliseconds);
  }

  #fact(name, value) {
    const row = element(
      "div",
      { "data-fact": name },
      element("dt", name),
      " ",
      element("dd", value),
    );
    const old = [...this.#about.children].find((one) => one.dataset.fact === name);
    if (old) old.replaceWith(row);
    else this.#about.append(row);
    this.#button.hidden = false;
  }

  #fold() {
    const open = this.#body.hidden;
    this.#body.hidden = !open;
    this.#button.setAttribute("aria-expanded", String(open));
  }
}
