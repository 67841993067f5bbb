// The details of an answer, folded away: how the question was understood, what the model looked up,
// what answered, and each step of the pipeline with its time, folded once more.

import { element } from "../lib/dom.js";
import { count, duration, moment, plural, withoutProvider } from "../lib/format.js";

const STEPS = {
  embed: "Computed the question’s meaning",
  load: "Read the conversation and your profile",
  classify: "Decided what kind of question it is",
  topic: "Checked whether the topic is new",
  features: "Looked for names and paths in the question",
  policy: "Decided which sources to use",
  prune: "Chose the part of the conversation to send",
  retrieve: "Searched",
  before_generation: "Ran plugins before writing",
  generate: "Wrote the answer",
  after_generation: "Checked the answer; ran plugins",
  persist: "Saved it",
};
const INTENTS = {
  general: "not about this code",
  knowledge_base: "a question about the code",
  continuation: "a follow-up",
  profile: "about you",
  privacy: "about what is stored",
};
const SOURCES = {
  tag: "because of @codebase",
  cache: "as decided a moment ago",
  heuristics: "by its words",
  model: "by the model",
};

export class Details {
  #about = element("dl.details-facts");
  #steps = element("dl.details-steps");
  #took = element("summary");
  #times = new Map(); // of the steps, in milliseconds
  #lookedUp = element("ol.looked-up", { "aria-label": "Looked up" });
  #timed = element("details.details-facts", this.#took, this.#steps);
  node = element("div.details-body", this.#lookedUp, this.#about, this.#timed);
  #known = {}; // of how the question was understood, in parts

  /** A step has ended after `milliseconds` of its own. */
  add(name, milliseconds) {
    this.#fact(STEPS[name] ?? name, duration(milliseconds), this.#steps);
    this.#times.set(STEPS[name] ?? name, milliseconds);
    const times = [...this.#times].sort(([, one], [, other]) => other - one);
    const all = duration(times.reduce((sum, [, time]) => sum + time, 0));
    const [longest, most] = times[0];
    this.#took.textContent = `${plural(times.length, "step")} in ${all}, the longest: ${longest}, ${duration(most)}`;
  }

  /** What is known of how the question was understood. */
  understood(told) {
    this.#known = { ...this.#known, ...told };
    const { intent, confidence, source, reason, rules, left_out } = this.#known;
    if (!intent) return;
    const sure = Number.isFinite(confidence) ? `, ${Math.round(100 * confidence)} % sure` : "";
    const how = [SOURCES[source] ?? source, source === "tag" ? "" : reason]
      .filter(Boolean)
      .join(": ");
    this.#fact("Understood as", `${INTENTS[intent] ?? intent}${sure}${how && ` (${how})`}`);
    this.#fact("Code", told.searched_automatically && "searched automatically");
    this.#fact("Earlier code", left_out && `left out, because this is a new topic: ${left_out}`);
    this.#fact("Rules", rules?.join(", "));
  }

  /** A follow-up was rewritten so that it can be searched for by itself. */
  rewritten({ question, by }) {
    this.#fact(
      "Searched for",
      `${question}${by === "model" ? " (rewritten by the model)" : by === "carried" ? " (with names from earlier questions)" : ""}`,
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
      // Of all requests: drafts and looks as well.
      Tokens: model && tokens?.prompt ? tokensOf(tokens) : "",
      Effort: effort,
      "Drafted code": hydeSummary(outcome.stages ?? []),
      "Sorted again by": reranker,
      Searched: coverage,
    };
    for (const [name, value] of Object.entries(facts)) this.#fact(name, value);
  }

  #fact(name, value, list = this.#about) {
    if (!value) return;
    const row = element("div", element("dt", name), " ", element("dd", value));
    const old = [...list.children].find((one) => one.firstChild.textContent === name);
    if (old) old.replaceWith(row);
    else list.append(row);
  }
}

function tokensOf({ prompt, completion, estimated, cost }) {
  const about = estimated ? "≈ " : "";
  const out = completion ? `, ${about}${count(completion)} out` : "";
  return `${about}${count(prompt)} in${out}${cost ? ` · $${Number(cost.toPrecision(2))}` : ""}`;
}

/** HyDE's texts in a few words: `2 drafts`, `1 draft, 1 timed out`; "" when none were wanted. */
function hydeSummary(stages) {
  const drafts = stages.filter(({ name }) => name.startsWith("hyde-"));
  const [made, late] = ["done", "timed out"].map(
    (how) => drafts.filter(({ outcome }) => outcome === how).length,
  );
  const told = [made ? plural(made, "draft") : "", late ? `${late} timed out` : ""];
  return told.filter(Boolean).join(", ") || (drafts.length ? "no draft" : "");
}
