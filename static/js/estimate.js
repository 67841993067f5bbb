// What the next question would send to the model, in tokens, beside the field.

import { byId, count } from "./dom.js";

const CHARACTERS_PER_TOKEN = 4; // of plain English; only what is being typed is counted so

const node = byId("estimate");

/** `carries` is the server's estimate of history and cached context, `typed` the text so far. */
export function showEstimate({ carries, typed, codebase, model }) {
  const asked = Math.ceil(typed.length / CHARACTERS_PER_TOKEN);
  node.hidden = !model || !carries;
  byId("composer-hint").hidden = !node.hidden;
  if (node.hidden) return;
  const total = carries + (codebase ? 0 : asked);
  node.textContent = codebase ? `follow-up ≈ ${brief(total)} tokens` : `sends ≈ ${brief(total)} tokens`;
  node.title = codebase
    ? `Without @codebase a follow-up would send about ${count(total)} tokens to ${model}: the context found before and what was said. With it the code is searched anew.`
    : `About ${count(total)} tokens go to ${model}: the context found before, what was said, and this question. An estimate.`;
}

/** `912`, `3.1k`, `12k`. */
function brief(number) {
  if (number < 1000) return String(number);
  return `${(number / 1000).toFixed(number < 10_000 ? 1 : 0)}k`;
}
