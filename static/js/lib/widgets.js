// Small parts that several places of the page use: copy buttons, failures, notices, and the
// message at the lower edge that goes away by itself.

import { announce, byId, copyText, element, icon } from "./dom.js";

const UNDO_SECONDS = 8;
const MESSAGE_SECONDS = 3; // seconds for what needs no answer

let ending = null; // ends the message in view
let hiding = 0; // ends one that needs no answer

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

/** A line with a symbol; `kind` is one more class. */
export function noticeLine(symbol, text, kind = "") {
  return element("p", { class: `turn-notice ${kind}`.trim() }, icon(symbol), element("span", text));
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
 * Says `text` with the button `label`; `undo` runs when it is pressed, else `settle` once the
 * time is over, another message comes or the page is left. While pointed at or focused it stays.
 */
export function offerUndo(text, { label, undo, settle }) {
  ending?.(settle);
  clearTimeout(hiding);
  const toast = byId("toast");
  let timer = 0;
  const button = element("button.link", { onclick: () => end(undo) }, label);
  toast.replaceChildren(element("span", text), button);
  toast.hidden = false;

  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => end(settle), UNDO_SECONDS * 1000);
  };
  const hold = () => clearTimeout(timer);
  const release = () => {
    if (!toast.matches(":hover") && !toast.contains(document.activeElement)) wait();
  };
  const leaving = () => end(settle);
  const controller = new AbortController();
  const { signal } = controller;
  for (const kind of ["pointerenter", "focusin"]) toast.addEventListener(kind, hold, { signal });
  for (const kind of ["pointerleave", "focusout"])
    toast.addEventListener(kind, () => setTimeout(release), { signal });
  addEventListener("pagehide", leaving, { signal });

  function end(how) {
    clearTimeout(timer);
    controller.abort();
    toast.hidden = true;
    toast.replaceChildren();
    ending = null;
    how();
  }
  ending = () => end(settle);
  wait();
  return button;
}

/** Says `text` for a moment; a message that can still be taken back goes before. */
export function showMessage(text) {
  if (ending) return;
  const toast = byId("toast");
  toast.replaceChildren(element("span", text));
  toast.hidden = false;
  clearTimeout(hiding);
  hiding = setTimeout(() => {
    if (!ending) toast.hidden = true;
  }, MESSAGE_SECONDS * 1000);
}
