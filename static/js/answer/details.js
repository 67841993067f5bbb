// The details of an answer, folded away: how the question was understood, what the model looked up,
// what answered, and each step of the pipeline with its time.

import { element } from "../lib/dom.js";
import { count, duration, moment, plural, withoutProvider } from "../lib/format.js";

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

export class Details {
  #list = element("ol.details-steps");
  #about = element("dl.details-facts");
  #lookedUp = element("ol.looked-up", { "aria-label": "Looked up" });
  node = element("div.details-body", { hidden: true }, this.#lookedUp, this.#about, this.#list);
  #longest = 0;
  #times = new Map(); // milliseconds by name of the step
  #known = {}; // of how the question was understood, in parts

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
    if (told.searched_automatically) this.#fact("Code", "searched automatically");
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

  /** A tool that the model has called: a line, and behind it what it gave; or its reasoning. */
  lookUp({ tool, summary, said, text, failed }, thought = false) {
    if (!tool && thought) {
      this.#lookedUp.lastChild.querySelector("summary").textContent = summary;
      return;
    }
    this.#lookedUp.append(
      element(
        failed ? "li.failed" : "li",
        element(
          "details",
          element("summary", summary),
          said ? element("p", said) : null,
          element(tool ? "pre" : "pre.thought", { tabindex: 0 }, text),
        ),
      ),
    );
  }

  /** What the model says to itself, as it comes: folded, and as text. */
  think(text, begins) {
    if (begins) this.lookUp({ summary: "Reasoning…", text: "" });
    this.#lookedUp.lastChild.querySelector("pre").append(text);
  }

  /** Everything that is known at the end, or was kept. */
  complete(outcome) {
    this.understood(outcome);
    for (const { name, milliseconds } of outcome.steps ?? []) this.add(name, milliseconds);
    if (outcome.rewritten) this.rewritten({ question: outcome.rewritten });
    if (!this.#lookedUp.firstChild) for (const step of outcome.looked_up ?? []) this.lookUp(step);
    const { created, finished, model, host, mode, tokens, effort, reranker, coverage } = outcome;
    const facts = {
      [finished === false ? "Asked" : "Answered"]: created ? moment(created) : "",
      Model: model ? `${withoutProvider(model)}${host ? ` · ${host}` : ""}` : "",
      Mode: mode === "explain" ? "" : mode,
      // Of all requests: drafts and the order of the files as well.
      Tokens: model && tokens?.prompt ? tokensOf(tokens) : "",
      Effort: effort,
      HyDE: hydeSummary(outcome.stages ?? []),
      "Reranked by": reranker,
      Searched: coverage,
    };
    for (const [name, value] of Object.entries(facts)) if (value) this.#fact(name, value);
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
  }
}

function tokensOf({ prompt, completion, estimated, cost }) {
  const about = estimated ? "≈ " : "";
  const out = completion ? `, ${about}${count(completion)} out` : "";
  return `${about}${count(prompt)} in${out}${cost ? ` · $${Number(cost.toPrecision(2))}` : ""}`;
}

/** HyDE's texts in a few words: `2 drafts`, `1 draft, 1 timed out`; "" when none were wanted. */
function hydeSummary(stages) {
  const outcomes = stages
    .filter(({ name }) => name.startsWith("hyde-"))
    .map(({ outcome }) => outcome);
  if (!outcomes.length) return "";
  const late = outcomes.filter((outcome) => outcome === "timed out").length;
  const made = outcomes.filter((outcome) => outcome === "done").length;
  if (!made && !late) return "no draft";
  return [made ? plural(made, "draft") : "", late ? `${late} timed out` : ""]
    .filter(Boolean)
    .join(", ");
}
