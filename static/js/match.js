// Whether a piece of code stands in a source exactly so, wherever it is indented to.

const FEWEST = 20; // characters: less than that stands anywhere

/** `{ start, end }` of `text` in `lines`, counted from 0 and both included; null when it is not there. */
export function matchOf(text, lines) {
  const wanted = dedented(text.split("\n"));
  if (wanted.join("").replace(/\s/g, "").length < FEWEST) return null;
  const source = lines.map((line) => line.trimEnd());
  for (let at = 0; at + wanted.length <= source.length; at += 1) {
    const indent = source[at].slice(0, source[at].length - source[at].trimStart().length - leading(wanted[0]));
    if (wanted.every((line, index) => source[at + index] === (line ? indent + line : ""))) {
      return { start: at, end: at + wanted.length - 1 };
    }
  }
  return null;
}

/** Without empty lines around, ends trimmed, and without what all of them are indented by. */
function dedented(lines) {
  const trimmed = lines.map((line) => line.trimEnd());
  while (trimmed.length && !trimmed[0]) trimmed.shift();
  while (trimmed.length && !trimmed.at(-1)) trimmed.pop();
  const depths = trimmed.filter(Boolean).map(leading);
  const least = depths.length ? Math.min(...depths) : 0;
  return trimmed.map((line) => line.slice(least));
}

const leading = (line) => line.length - line.trimStart().length;
