// Questions that may come next, below an answer.

import { element, icon } from "./dom.js";

/** A list of buttons; `ask(text)` asks one of them. Null where there are none. */
export function suggestionsOf(texts, ask) {
  if (!texts?.length) return null;
  return element("ul", { class: "suggestions", "aria-label": "Questions that may come next" },
    ...texts.map((text) => element("li", {}, element("button", { type: "button", onclick: () => ask(text) }, element("span", {}, ...shown(text)), icon("chevron")))));
}

/** `name` in backticks is shown as code; the text itself is never taken as markup. */
const shown = (text) => text.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));
