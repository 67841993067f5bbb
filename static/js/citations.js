// Citations in a rendered answer: what checking them gave, and numbers that stay in one piece.

const NUMBERS = /:\d+(?:-\d+)?$/;
const OUTSIDE = "Not in the context: these lines exist, but the answer was not made from them";
const UNVERIFIED = "Not verified: there are no such lines";

/**
 * Marks links in `answer` whose citation the server did not find in what was sent: those that
 * exist all the same stay links, the others are struck. Returns how many there are of each.
 */
export function markCitations(answer, citations) {
  const failed = citations.filter(({ verified }) => verified === false);
  for (const { path, start, end, exists } of failed) {
    for (const link of answer.querySelectorAll("a.citation")) {
      const { dataset } = link;
      if (dataset.path !== path || dataset.start !== String(start) || dataset.end !== String(end)) continue;
      link.classList.add(exists ? "outside" : "unverified");
      link.title = exists ? OUTSIDE : UNVERIFIED;
    }
  }
  const outside = failed.filter(({ exists }) => exists).length;
  return { outside, unverified: failed.length - outside };
}

/** No line break within the line numbers of a citation, nor of a place that is shown as code. */
export function keepNumbersTogether(block) {
  for (const node of block.querySelectorAll(".citation .lines, :not(pre) > code")) {
    const text = node.lastChild;
    const at = text?.nodeType === Node.TEXT_NODE ? text.data.search(NUMBERS) : -1;
    if (at < 0) continue;
    const numbers = document.createElement("span");
    numbers.className = "numbers";
    numbers.append(text.splitText(at));
    node.append(numbers);
  }
}
