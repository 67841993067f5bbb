// What a screen reader hears of an answer while it is written: each block once it is complete,
// politely, so that whole sentences are read and nothing is read twice.

import { byId, element, plural } from "./dom.js";

const KEPT = 8; // blocks that stay in the region; what has been read may go

/** Says a finished block of the answer in view. */
export function speak(block) {
  const words = wordsOf(block);
  if (!words) return;
  const region = byId("spoken");
  region.append(element("p", {}, words));
  while (region.children.length > KEPT) region.firstChild.remove();
}

/** Another answer begins. */
export function hush() {
  byId("spoken").replaceChildren();
}

function wordsOf(block) {
  const code = block.querySelector(".code-block");
  if (code) {
    const lines = code.querySelector("pre").textContent.replace(/\n$/, "").split("\n").length;
    return `Code${code.dataset.language ? ` in ${code.dataset.language}` : ""}, ${plural(lines, "line")}.`;
  }
  const table = block.querySelector("table");
  if (table) return `A table of ${plural(table.querySelectorAll("tbody tr").length, "row")}.`;
  return block.textContent.replace(/\s+/g, " ").trim();
}
