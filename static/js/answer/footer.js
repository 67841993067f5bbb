// Below an answer: notices, and suggested next questions.

import { query } from "../lib/api.js";
import { element, icon, setHtml } from "../lib/dom.js";
import { chosenCode, plural } from "../lib/format.js";
import { page } from "../lib/page.js";
import { noticeLine, questionButton } from "../lib/widgets.js";

export const actionButton = (symbol, label, title, onclick) =>
  element("button.action", { title, onclick }, icon(symbol), element("span", label));

/** The lines below an answer, null for what there is nothing to say of; `search` asks again with
 * the code, null where that is no use. */
export function noticesOf(outcome, { pin = [], exclude = [] }, search) {
  const { suggest_codebase: suggest, coverage, notice, profile = {}, revised_html: html } = outcome;
  const learnt = Object.entries(profile ?? {}).map(([name, value]) => `${name}: ${value}`);
  const chosen = chosenCode(pin, exclude);
  return [
    gapsOf(coverage, notice),
    suggest && search ? suggestion(search) : null,
    learnt.length ? noticeLine("check", `Remembered: ${learnt.join("; ")}`, "learnt") : null,
    chosen ? noticeLine("layers", `Asked with ${chosen}`) : null,
    ...(outcome.hook_problems ?? []).map((text) => noticeLine("alert", text)),
    html ? changed(html) : null,
  ];
}

/** What `12 of 40 files so far, by words and names; not by meaning` leaves out, null for nothing. */
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

function changed(html) {
  const body = element("div.answer.revised");
  setHtml(body, html);
  const words = "A plugin changed the answer; this version is stored";
  return element("details.revision", element("summary", words), body);
}

/** The line on the answers of other conversations that the model was sent; null where none was. */
export function earlierOf(earlier) {
  if (!earlier?.length) return null;
  return element(
    "details.earlier",
    element("summary", `The model was also sent ${plural(earlier.length, "earlier answer")}`),
    element(
      "p",
      "They answer similar questions from your other conversations, and the model was told that they may be wrong:",
    ),
    element("ul", ...earlier.map(earlierAnswer)),
  );
}

function earlierAnswer({ question, answer, conversation }) {
  const { repo } = page;
  const asked = conversation
    ? element("a", { href: `/${query({ repo, c: conversation })}` }, question)
    : element("strong", question);
  return element("li", asked, element("div.earlier-text", { dir: "auto" }, answer.trim()));
}

/** Questions that may come next, as buttons; `ask(text)` asks one of them. Null where there are none. */
export function suggestionsOf(questions, ask) {
  if (!questions?.length) return null;
  const buttons = questions.map((one) => questionButton(one, () => ask(one)));
  const about = { "aria-label": "Questions that may come next" };
  return element("ul.suggestions", about, ...buttons.map((button) => element("li", button)));
}
