// What an answer has to say beside itself: that the code was not looked at, what was learnt,
// what a plugin changed or failed at, what was pinned.

import { element, icon, plural, setHtml } from "./dom.js";

/** The lines below an answer; `search` asks again with the code, null where that is no use. */
export function hintsOf(outcome, asked, search) {
  const { suggest_codebase: suggest, profile, hook_problems: problems, revised_html: revised } = outcome;
  return [
    suggest && search ? suggestion(search) : null,
    Object.keys(profile ?? {}).length ? learnt(profile) : null,
    pinned(asked),
    ...(problems ?? []).map((text) => line("alert", text)),
    revised ? changed(revised) : null,
  ].filter(Boolean);
}

function suggestion(search) {
  return element("div", { class: "suggest" }, icon("search"),
    element("p", {}, "The code was not searched for this answer."),
    element("button", { type: "button", class: "button again", onclick: search }, "Search the code base"));
}

function learnt(profile) {
  const facts = Object.entries(profile).map(([name, value]) => `${name}: ${value}`).join("; ");
  return line("check", `Remembered: ${facts}`, "learnt");
}

function pinned({ pin = [], exclude = [] }) {
  const parts = [pin.length ? `${plural(pin.length, "piece")} of code put in` : "", exclude.length ? `${plural(exclude.length, "piece")} left out` : ""];
  const told = parts.filter(Boolean).join(", ");
  return told ? line("layers", `Asked with ${told}`) : null;
}

function changed(html) {
  const body = element("div", { class: "answer revised" });
  setHtml(body, html);
  return element("details", { class: "revision" }, element("summary", {}, "A plugin changed the answer; this is what is kept"), body);
}

function line(symbol, text, kind = "") {
  return element("p", { class: `turn-notice ${kind}`.trim() }, icon(symbol), element("span", {}, text));
}
