// The last answer, or the last code of the conversation in view, for the clipboard.

import { copyText } from "./dom.js";
import { tell } from "./toast.js";

/** Shortcuts' actions; `view()` gives the conversation. */
export const copiesOf = (thread, view) => ({
  copyAnswer: () => copy(view()?.turns.at(-1)?.text.trim(), "Answer"),
  copyCode: () => copy([...thread.querySelectorAll(".code-block pre")].at(-1)?.textContent.replace(/\n$/, ""), "Code"),
});

async function copy(text, name) {
  if (text) tell((await copyText(text)) ? `${name} copied` : "Not copied");
  else tell(`No ${name.toLowerCase()} to copy yet`);
}
