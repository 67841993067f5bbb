// Where `@` mentions something in a question: as the server reads it, and while it is typed.

// Behind a letter of an address it mentions nothing.
const BEFORE = "(?<![A-Za-z0-9_.+%/\\\\=&@{-])@";
const WRITTEN = new RegExp(`${BEFORE}(?:"([^"\\n]{1,300})"|“([^”\\n]{1,300})”|([^\\s"“”\`<>@]{1,300}))`, "g");
const TYPED = new RegExp(`${BEFORE}("[^"\\n]{0,300}|“[^”\\n]{0,300}|[^\\s"“”\`<>@]{0,300})$`);
const REST = /^[^\s"“”`<>@]*/;
const TAG = /^codebase\b/i;
const MOST = 10; // more the server does not look up

/** Every mention of `text`, once: `{ text, start, end }`, `@codebase` not among them. */
export function mentionsIn(text) {
  const found = new Map();
  for (const match of text.matchAll(WRITTEN)) {
    const written = match[1] ?? match[2] ?? match[3];
    if (TAG.test(match[3] ?? "") || found.has(written)) continue;
    found.set(written, { text: written, start: match.index, end: match.index + match[0].length });
  }
  return [...found.values()].slice(0, MOST);
}

/** What is being typed behind `@` at `caret`: `{ start, end, typed }` around the `@`; or null. */
export function typedAt(text, caret) {
  const match = TYPED.exec(text.slice(0, caret));
  if (!match) return null;
  const quoted = /^["“]/.test(match[1]);
  const rest = quoted ? "" : REST.exec(text.slice(caret))[0];
  return { start: match.index, end: caret + rest.length, typed: match[1].replace(/^["“]/, "") };
}

/** `text` without every mention of `written`, nor the blank behind it. */
export function withoutMention(text, written) {
  return text.replace(WRITTEN, (all, straight, curly, plain) => ((straight ?? curly ?? plain) === written ? "\0" : all))
    .replace(/\0 ?/g, "").trimStart();
}
