// Below an answer: how many of its sentences are backed by the code that was sent. Opened, it
// lists those that have none and marks them in the answer. And the earlier answers that the model was sent.

import { query } from "../lib/api.js";
import { element } from "../lib/dom.js";
import { plural } from "../lib/format.js";

const marks = globalThis.Highlight ? new Highlight() : null; // older browsers only list them
if (marks) CSS.highlights.set("no-evidence", marks);

/** The line for `grounding` of the answer that `node` shows; null where nothing was claimed. */
export function evidenceOf(grounding, node) {
  const { supported, claims, sentences, about } = grounding ?? {};
  if (!claims) return null;
  const verb = supported === 1 ? "is" : "are";
  const line =
    about === false
      ? "This does not answer the question"
      : `${supported} of ${plural(claims, "sentence")} ${verb} backed by the code that was sent`;
  const without = sentences.filter(({ verdict }) => verdict === "unsupported");
  if (!without.length) return element("p.evidence", line);
  const details = element(
    "details.evidence",
    element("summary", line),
    element("p", "The code that was sent does not show:"),
    element("ul", ...without.map(({ text }) => element("li", plain(text)))),
  );
  let ranges = [];
  details.addEventListener("toggle", () => {
    for (const range of ranges) marks?.delete(range);
    ranges = details.open && marks ? rangesOf(without, node) : [];
    for (const range of ranges) marks.add(range);
  });
  return details;
}

/** The line on the answers of other conversations that the model was sent; null where none was. */
export function earlierOf(earlier) {
  if (!earlier?.length) return null;
  return element(
    "details.evidence.earlier",
    element("summary", `The model was also sent ${plural(earlier.length, "earlier answer")}`),
    element("p", "To similar questions of other conversations, as data that may be wrong:"),
    element("ul", ...earlier.map(earlierAnswer)),
  );
}

function earlierAnswer({ question, answer, conversation }) {
  const { repo } = document.body.dataset;
  const asked = conversation
    ? element("a", { href: `/${query({ repo, c: conversation })}` }, question)
    : element("strong", question);
  return element("li", asked, element("div.earlier-text", answer.trim()));
}

const plain = (text) => text.replace(/^(?:`{3,}|~{3,}).*\n|`+|\*\*/g, "").trim();

/** Where the sentences stand in `node`: compared are letters and digits, which no markup changes. */
function rangesOf(sentences, node) {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const places = [];
  let shown = "";
  while (walker.nextNode()) {
    for (const { 0: letters, index } of walker.currentNode.data.matchAll(/[\p{L}\p{N}]+/gu)) {
      shown += letters;
      for (let at = 0; at < letters.length; at += 1) places.push([walker.currentNode, index + at]);
    }
  }
  const ranges = [];
  let from = 0;
  for (const { text } of sentences) {
    const wanted = plain(text).replace(/[^\p{L}\p{N}]/gu, "");
    const at = shown.indexOf(wanted, from);
    if (!wanted || at < 0) continue;
    from = at + wanted.length;
    const range = new Range();
    range.setStart(...places[at]);
    const [last, offset] = places[from - 1];
    range.setEnd(last, offset + 1);
    ranges.push(range);
  }
  return ranges;
}
