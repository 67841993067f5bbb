// Below an answer: model, tokens and time, notices, and suggested next questions.

import { element, icon, setHtml } from "../lib/dom.js";
import { count, duration, plural, withoutProvider } from "../lib/format.js";
import { noticeLine, questionButton } from "../lib/widgets.js";

/** A line on model, tokens, time, drafts, reranker and coverage; null when there is nothing to tell. */
export function factsOf(
  {
    model,
    host,
    tokens,
    stages,
    steps,
    milliseconds,
    effort,
    reranker,
    coverage,
    mode,
    failure,
    stopped,
  },
  text,
) {
  const facts = [];
  const answered = !failure && !(stopped && !text.trim());
  if (model)
    facts.push(
      fact(
        answered ? "Answered by" : "Asked",
        `${withoutProvider(model)}${host ? ` · ${host}` : ""}`,
      ),
    );
  if (mode && mode !== "explain") facts.push(fact("Mode", mode));
  // Of all requests: drafts and the order of the files as well.
  if (model && tokens?.prompt) facts.push(fact("Tokens", tokensOf(tokens)));
  const took = milliseconds ?? (steps ?? []).reduce((sum, step) => sum + step.milliseconds, 0);
  if (answered && took) facts.push(fact("Took", duration(took)));
  if (effort) facts.push(fact("Effort", effort));
  if (hydeSummary(stages)) facts.push(fact("HyDE", hydeSummary(stages)));
  if (reranker) facts.push(fact("Reranked by", reranker));
  if (coverage && !text.includes(coverage)) facts.push(fact("Searched", coverage));
  return facts.length ? element("dl.facts", ...facts) : null;
}

export function actionButton(symbol, label, onclick, title = "") {
  return element(
    "button.action",
    { title: title || null, onclick },
    icon(symbol),
    element("span", label),
  );
}

function fact(name, value) {
  return element("div", element("dt", name), " ", element("dd", value));
}

function tokensOf({ prompt, completion, estimated, cost }) {
  const about = estimated ? "≈ " : "";
  const out = completion ? `, ${about}${count(completion)} out` : "";
  return `${about}${count(prompt)} in${out}${cost ? ` · $${Number(cost.toPrecision(2))}` : ""}`;
}

/** The lines below an answer; `search` asks again with the code, null where that is no use. */
export function noticesOf(outcome, asked, search) {
  const {
    suggest_codebase: suggest,
    profile,
    hook_problems: problems,
    revised_html: revised,
  } = outcome;
  return [
    suggest && search ? suggestion(search) : null,
    Object.keys(profile ?? {}).length ? learnt(profile) : null,
    pinned(asked),
    ...(problems ?? []).map((text) => noticeLine("alert", text)),
    revised ? changed(revised) : null,
  ].filter(Boolean);
}

function suggestion(search) {
  return element(
    "div.suggest",
    icon("search"),
    element("p", "The code was not searched for this answer."),
    element("button.button.again", { onclick: search }, "Search the code base"),
  );
}

function learnt(profile) {
  const facts = Object.entries(profile)
    .map(([name, value]) => `${name}: ${value}`)
    .join("; ");
  return noticeLine("check", `Remembered: ${facts}`, "learnt");
}

function pinned({ pin = [], exclude = [] }) {
  const parts = [
    pin.length ? `${plural(pin.length, "piece")} of code put in` : "",
    exclude.length ? `${plural(exclude.length, "piece")} left out` : "",
  ];
  const told = parts.filter(Boolean).join(", ");
  return told ? noticeLine("layers", `Asked with ${told}`) : null;
}

function changed(html) {
  const body = element("div.answer.revised");
  setHtml(body, html);
  return element(
    "details.revision",
    element("summary", "A plugin changed the answer; this is what is kept"),
    body,
  );
}

/** HyDE's texts in a few words: `2 drafts`, `1 draft, 1 timed out`; "" when none were wanted. */
function hydeSummary(stages = []) {
  const outcomes = (stages ?? [])
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

/** Questions that may come next, as buttons; `ask(text)` asks one of them. Null where there are none. */
export function suggestionsOf(questions, ask) {
  if (!questions?.length) return null;
  return element(
    "ul.suggestions",
    { "aria-label": "Questions that may come next" },
    ...questions.map((question) =>
      element(
        "li",
        questionButton(question, () => ask(question)),
      ),
    ),
  );
}
