// The block that is still being written, before the server renders it: text, with just enough
// of its form that little moves when it is complete. Everything enters the page as text.

import { element } from "./dom.js";

const FENCE = /^\s*(`{3,}|~{3,})([^\n`]*)(?:\n([\s\S]*))?$/;
const SPANS = /(`[^`\n]+`|\*\*[^*\n]+\*\*)/;

/** Shows `text` in `node`. */
export function showTail(node, text) {
  const fence = FENCE.exec(text);
  node.classList.toggle("code", Boolean(fence));
  if (fence) {
    const lines = (fence[3] ?? "").split("\n");
    if (lines.at(-1).trim().startsWith(fence[1].slice(0, 1))) lines.pop(); // the end of the fence
    node.textContent = lines.join("\n");
    return;
  }
  const parts = text.replace(/^#{1,6} +/, "").split(SPANS);
  if (parts.length === 1) node.textContent = parts[0];
  else node.replaceChildren(...parts.map(spanOf));
}

function spanOf(part, index) {
  if (index % 2 === 0) return part;
  return part[0] === "`" ? element("code", {}, part.slice(1, -1)) : element("strong", {}, part.slice(2, -2));
}
