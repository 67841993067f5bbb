// What text fields share: the keys of input methods, what does not fit, and files.

import { byteSize, count } from "./format.js";

export const LONGEST = 20_000; // characters of a question, as the server takes

/** How many characters `text` is over that, as the server counts them. */
export const excess = (text) => [...text].length - LONGEST;

/** Keeps a key by which an input method composes characters from all other listeners. */
export function leaveToInputMethod(event) {
  // In Safari the composition has ended before the Enter that ends it: 229 tells it from others.
  if (event.isComposing || event.keyCode === 229) event.stopImmediatePropagation();
}

/** Has `take` take what files are pasted or dropped, which the browser would open in place of the page. */
export function takeFiles(take) {
  for (const kind of ["dragover", "drop", "paste"])
    addEventListener(kind, (event) => {
      const { types, files } = event.dataTransfer ?? event.clipboardData;
      const holds = (type) => types.includes(type);
      const inField = event.target.closest?.("input, textarea");
      const leave =
        kind === "paste" ? holds("text/plain") || !holds("Files") : inField && !holds("Files");
      if (event.defaultPrevented || leave) return;
      event.preventDefault();
      if (kind !== "dragover" && files.length) take([...files]);
    });
}

/** The text of a file. Throws an error whose message says why it has none. */
export async function textOf(file) {
  const refusal = (why) => new Error(`${file.name} ${why}`);
  if (file.size > 4 * LONGEST)
    throw refusal(`has ${byteSize(file.size)}; a question takes ${count(LONGEST)} characters.`);
  const bytes = await file.arrayBuffer().catch(() => null);
  if (!bytes) throw refusal("is a folder, or cannot be read.");
  const mark = new Uint8Array(bytes.slice(0, 2)).join();
  const encoding = { "255,254": "utf-16le", "254,255": "utf-16be" }[mark] ?? "utf-8";
  const text = new TextDecoder(encoding).decode(bytes);
  if (/[\0\ufffd]/.test(text)) throw refusal("is no text in UTF-8 or UTF-16.");
  if (!text.trim()) throw refusal("is empty.");
  return text.trimEnd();
}
