// Below an answer: notices, and suggested next questions.

import { element, icon, setHtml } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { noticeLine, questionButton } from "../lib/widgets.js";

export function actionButton(symbol, label, onclick, title = "") {
  return element(
    "button.action",
    { title: title || null, onclick },
    icon(symbol),
    element("span", label),
  );
}

/** The lines below an answer; `search` asks again with the code, null where that is no use. */
export function noticesOf(outcome, asked, search) {
  const {
    suggest_codebase: suggest,
    coverage,
    notice,
    profile,
    hook_problems: problems,
    revised_html: revised,
  } = outcome;
  return [
    gapsOf(coverage, notice),
    suggest && search ? suggestion(search) : null,
    Object.keys(profile ?? {}).length ? learnt(profile) : null,
    pinned(asked),
    ...(problems ?? []).map((text) => noticeLine("alert", text)),
    revised ? changed(revised) : null,
  ].filter(Boolean);
}

/** What `12 of 40 files so far, text and symbols; no vectors` leaves out, null for nothing. */
function gapsOf(coverage = "", notice = "") {
  const gaps = coverage.split(/; |, (?=\D)/).filter((part) => {
    const [, some, all] = /([\d,]+) of ([\d,]+)/.exec(part) ?? [];
    return some !== all || /so far|left out/.test(part);
  });
  const told = notice.startsWith("Answered from"); // the same, of files
  return gaps.length && !told ? noticeLine("alert", `Searched only ${gaps.join("; ")}`) : null;
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
