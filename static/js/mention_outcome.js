// What an answer really had of what its question mentions: all of it, a part, or nothing.

import { query, request } from "./api.js";
import { element, plural } from "./dom.js";
import { nameOf } from "./mention_chips.js";
import { mentionsIn } from "./mention_text.js";
import { signOf } from "./places.js";

/**
 * Adds a line below the question of the turn at `node`, whose answer the server keeps as `id`;
 * nothing when it mentions nothing. What it shows opens as citations do.
 */
export async function showIncluded(node, { id, text }) {
  const question = node.querySelector(".question");
  if (!id || !question || !mentionsIn(text).length) return;
  let mentions = [];
  try {
    const { repo } = document.body.dataset;
    ({ mentions } = await request(`/api/mentions${query({ repo })}`, { body: { text, turn: id } }));
  } catch {
    return; // the answer stands without it
  }
  node.querySelector(".included")?.remove();
  if (mentions.length) question.after(element("ul", { class: "included", "aria-label": "Mentioned in the question" }, ...mentions.map(itemOf)));
}

function itemOf(mention) {
  const { kind, path, line, end_line: end, included } = mention;
  const state = stateOf(mention);
  const words = [kind ? signOf(mention) : null, element("bdi", {}, kind ? nameOf(mention) : `@${mention.text}`), element("span", { class: "included-state" }, state)];
  const title = `${path || mention.text}: ${state}`;
  if (!kind || kind === "folder") return element("li", { "data-included": included || "none", title }, element("span", {}, ...words));
  return element("li", { "data-included": included }, element("button", {
    type: "button", title, "data-path": path, "data-start": line, "data-end": end,
  }, ...words));
}

function stateOf({ kind, included, held, lines }) {
  if (!kind) return "not in the index";
  if (kind === "folder") return included === "none" ? "nothing found there" : `${plural(held, "line")} from there`;
  if (included === "whole") return "read whole";
  return included === "part" ? `${plural(held, "line")} of ${lines} read` : "left out";
}
