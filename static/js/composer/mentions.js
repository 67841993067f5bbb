// Finds the `@` mentions in a text, the same way as the server does, and shows places in a list.

import { element, icon } from "../lib/dom.js";
import { LONGEST } from "../lib/fields.js";

// Behind a letter of an address it mentions nothing.
const BEFORE = "(?<![A-Za-z0-9_.+%/\\\\=&@{-])@";
const WRITTEN = new RegExp(
  `${BEFORE}(?:"([^"\\n]{1,300})"|“([^”\\n]{1,300})”|([^\\s"“”\`<>@]{1,300}))|^(\`{3,9})[^]*?^\\4`,
  "gm", // in a block of code it mentions nothing
);
const TYPED = new RegExp(`${BEFORE}("[^"\\n]{0,300}|“[^”\\n]{0,300}|[^\\s"“”\`<>@]{0,300})$`);
const REST = /^[^\s"“”`<>@]*/;
const TAG = /^(codebase\b|repo:)/i; // which are no places in the index
const MOST = 10; // more the server does not look up
const LETTERS = {
  __proto__: null, // a constructor is a kind, too
  class: "C",
  struct: "S",
  enum: "E",
  trait: "T",
  interface: "I",
  type: "T",
  module: "M",
  constant: "=",
  section: "§",
  line: "·",
  tag: "@",
  mode: "/",
};

/** Every mention of `text`, once: `{ text, start, end }`, `@codebase` not among them. */
export function mentionsIn(text) {
  const found = new Map();
  for (const match of text.slice(0, LONGEST).matchAll(WRITTEN)) {
    const written = match[1] ?? match[2] ?? match[3];
    if (!written || TAG.test(match[3] ?? "") || found.has(written)) continue;
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
  return text
    .replace(WRITTEN, (all, straight, curly, plain) =>
      (straight ?? curly ?? plain) === written ? "\0" : all,
    )
    .replace(/\0 ?/g, "")
    .trimStart();
}

/** The sign in front of a place, or of a mode. */
export function signOf({ kind, what }) {
  if (kind === "file" || kind === "folder") return icon(kind);
  const sign = LETTERS[kind] ?? LETTERS[what] ?? "ƒ";
  return element("span.sign", { "aria-hidden": "true" }, sign);
}

/** The options of a list of places, the first of a `group` below its name; their ids begin with
 * `prefix`. */
export function optionsOf(places, prefix) {
  return places.flatMap((place, index) => [
    ...(place.group && place.group !== places[index - 1]?.group
      ? [element("li.help", { role: "presentation" }, place.group)]
      : []),
    element(
      "li",
      {
        role: "option",
        id: `${prefix}-${index}`,
        "data-kind": place.kind,
        "aria-selected": "false",
        title: place.path || null,
      },
      ...rowOf(place),
    ),
  ]);
}

/** Sign, name, where it is, and for screen readers what it is. */
function rowOf(place) {
  const what = { symbol: place.what, tag: "" }[place.kind] ?? place.kind;
  const kind = [what, place.group?.toLowerCase()].filter(Boolean).join(", ");
  return [
    signOf(place),
    element("span.place-name", element("bdi", place.label)),
    element("span.visually-hidden", kind ? `, ${kind}, ` : ", "),
    element("span.place-detail", element("bdi", place.detail)),
  ];
}
