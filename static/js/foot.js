// What stands below an answer: what it was made with, notices, failures and buttons.

import { count, duration, element, icon } from "./dom.js";
import { draftsIn } from "./hyde.js";

/** A line on model, tokens, time, drafts, reranker and coverage; null when there is nothing to tell. */
export function factsOf({ model, host, tokens, stages, steps, milliseconds, reranker, coverage, mode, failure, stopped }, text) {
  const facts = [];
  const answered = !failure && !(stopped && !text.trim());
  if (model) facts.push(fact(answered ? "Answered by" : "Asked", `${withoutProvider(model)}${host ? ` · ${host}` : ""}`));
  if (mode && mode !== "explain") facts.push(fact("Mode", mode));
  if (model && tokens?.prompt) facts.push(fact("Tokens", tokensOf(tokens)));
  const took = milliseconds ?? (steps ?? []).reduce((sum, step) => sum + step.milliseconds, 0);
  if (answered && took) facts.push(fact("Took", duration(took)));
  if (draftsIn(stages)) facts.push(fact("HyDE", draftsIn(stages)));
  if (reranker) facts.push(fact("Reranked by", reranker));
  if (coverage && !text.includes(coverage)) facts.push(fact("Searched", coverage));
  return facts.length ? element("dl", { class: "facts" }, ...facts) : null;
}

/** `openai/gpt-4o` → `gpt-4o`; the host beside it says where. */
export const withoutProvider = (model) => model.slice(model.indexOf("/") + 1);

export function noticeOf(text) {
  return element("p", { class: "turn-notice" }, icon("alert"), element("span", {}, text));
}

/** What failed and what to do next; `buttons` are pairs of label and function. */
export function failureCard({ message, hint }, ...buttons) {
  const text = element("div", {}, element("strong", {}, message));
  if (hint) text.append(element("p", {}, hint));
  if (buttons.length) {
    const made = buttons.map(([label, onclick], index) => element("button", { type: "button", class: "button", onclick }, index ? null : icon("retry"), label));
    text.append(element("div", { class: "failure-actions" }, ...made));
  }
  return element("div", { class: "failure", role: "alert" }, icon("alert"), text);
}

export function actionButton(symbol, label, onclick, title = "") {
  return element("button", { type: "button", class: "action", title: title || null, onclick }, icon(symbol), element("span", {}, label));
}

function fact(name, value) {
  return element("div", {}, element("dt", {}, name), " ", element("dd", {}, value));
}

function tokensOf({ prompt, completion, estimated }) {
  const about = estimated ? "≈ " : "";
  return `${about}${count(prompt)} in${completion ? `, ${about}${count(completion)} out` : ""}`;
}
