// A message for a while, with one thing that can still be taken back.

import { byId, element } from "./dom.js";

const SECONDS = 8;
const BRIEF = 3; // seconds for what needs no answer

let ending = null; // ends the message in view
let telling = 0; // ends one that needs no answer

/**
 * Says `text` with the button `label`; `undo` runs when it is pressed, else `settle` once the
 * time is over, another message comes or the page is left. While pointed at or focused it stays.
 */
export function offer(text, { label, undo, settle }) {
  ending?.(settle);
  clearTimeout(telling);
  const toast = byId("toast");
  let timer = 0;
  const button = element("button", { type: "button", class: "link", onclick: () => end(undo) }, label);
  toast.replaceChildren(element("span", {}, text), button);
  toast.hidden = false;

  const wait = () => { clearTimeout(timer); timer = setTimeout(() => end(settle), SECONDS * 1000); };
  const hold = () => clearTimeout(timer);
  const release = () => { if (!toast.matches(":hover") && !toast.contains(document.activeElement)) wait(); };
  const leaving = () => end(settle);
  const controller = new AbortController();
  const { signal } = controller;
  for (const kind of ["pointerenter", "focusin"]) toast.addEventListener(kind, hold, { signal });
  for (const kind of ["pointerleave", "focusout"]) toast.addEventListener(kind, () => setTimeout(release), { signal });
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
export function tell(text) {
  if (ending) return;
  const toast = byId("toast");
  toast.replaceChildren(element("span", {}, text));
  toast.hidden = false;
  clearTimeout(telling);
  telling = setTimeout(() => { if (!ending) toast.hidden = true; }, BRIEF * 1000);
}
