// What the next question would send to the model, in tokens, beside the field.

import { byId, count, element } from "./dom.js";

const CHARACTERS_PER_TOKEN = 4; // of plain English; only what is being typed is counted so

const node = byId("estimate");

/**
 * `carries` is the server's estimate of history and cached context, `typed` the text so far. What
 * a search would find is not known before, so nothing is said while `codebase` is on.
 */
export function showEstimate({ carries, typed, codebase, model }) {
  node.hidden = !model || !carries || codebase;
  byId("composer-hint").hidden = !node.hidden;
  if (node.hidden) return;
  const total = carries + Math.ceil(typed.length / CHARACTERS_PER_TOKEN);
  node.replaceChildren(words("sends "), `≈ ${brief(total)}`, words(" tokens"));
  node.title = `About ${count(total)} tokens go to ${model}: the context found before, what was said, and this question. An estimate.`;
}

/** Left out where there is little room. */
const words = (text) => element("span", { class: "words" }, text);

/** `912`, `3.1k`, `12k`. */
function brief(number) {
  if (number < 1000) return String(number);
  return `${(number / 1000).toFixed(number < 10_000 ? 1 : 0)}k`;
}
