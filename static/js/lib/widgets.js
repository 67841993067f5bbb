// Small parts that several places of the page use: copy buttons, failures, notices, and the
// message at the lower edge that goes away by itself.

import { announce, byId, copyText, element, icon } from "./dom.js";

const UNDO_SECONDS = 8;
const MESSAGE_SECONDS = 3; // seconds for what needs no answer

let ending = null; // ends the message in view that can be taken back
let hiding = 0;

/** A button that copies what `text()` gives and says so for a moment. */
export function copyButton(className, label, text) {
  const words = element("span", label);
  const button = element("button", { class: className }, icon("copy"), words);
  button.addEventListener("click", async () => {
    const copied = await copyText(await text());
    words.textContent = copied ? "Copied" : "Not copied";
    button.classList.toggle("done", copied);
    button.firstChild.replaceWith(icon(copied ? "check" : "alert"));
    announce(words.textContent);
    setTimeout(() => {
      words.textContent = label;
      button.classList.remove("done");
      button.firstChild.replaceWith(icon("copy"));
    }, 1600);
  });
  return button;
}

/** What failed and what to do next; `buttons` are pairs of label and function. */
export function failureCard({ message, hint }, ...buttons) {
  const text = element("div", element("strong", message));
  if (hint) text.append(element("p", hint));
  if (buttons.length) {
    const made = buttons.map(([label, onclick], index) =>
      element("button.button", { onclick }, index ? null : icon("retry"), label),
    );
    text.append(element("div.failure-actions", ...made));
  }
  return element("div.failure", { role: "alert" }, icon("alert"), text);
}

/** What failed and what to do next, in one line. */
export const failureText = ({ message, hint }) => [message, hint].filter(Boolean).join(" ");

/** A line with a symbol, `text` or several parts of it; `kind` is one more class. */
export function noticeLine(symbol, text, kind = "") {
  const words = element("span", ...[text].flat());
  return element("p", { class: `turn-notice ${kind}`.trim() }, icon(symbol), words);
}

/** A button with a question; `name` in backticks is shown as code, and never taken as markup. */
export function questionButton(question, onclick) {
  const words = question
    .split("`")
    .map((part, index) => (index % 2 ? element("code", part) : part));
  return element("button", { onclick }, element("span", ...words), icon("chevron"));
}

/** Closes a dialog by the button `close` and by a click beside it. */
export function closesByClick(dialog, close) {
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", ({ target }) => {
    if (target === dialog) dialog.close();
  });
}

/**
 * Says `text` with a button for `undo`; else `settle` runs once the time is over, another such message
 * comes or the page is left. While it is pointed at or focused it stays. Returns the button.
 */
export function offerUndo(text, undo, settle) {
  ending?.();
  const controller = new AbortController();
  const end = (how) => {
    controller.abort();
    say("");
    ending = null;
    how();
  };
  const button = element("button.link", { onclick: () => end(undo) }, "Undo");
  ending = () => end(settle);
  const inUse = ":hover, :focus-within";
  const wait = () =>
    say(text, UNDO_SECONDS, () => (byId("toast").matches(inUse) ? wait() : ending()), button);
  wait();
  addEventListener("pagehide", ending, { signal: controller.signal });
  return button;
}

/** Says `text` for a moment; a message that can still be taken back goes before. */
export function showMessage(text) {
  if (!ending) say(text, MESSAGE_SECONDS, () => say(""));
}

function say(text, seconds = 0, then = null, ...buttons) {
  clearTimeout(hiding);
  const toast = byId("toast");
  if (toast.firstChild?.textContent !== text)
    toast.replaceChildren(element("span", text), ...buttons);
  toast.hidden = !text;
  if (then) hiding = setTimeout(then, seconds * 1000);
}
