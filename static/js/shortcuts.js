// Keyboard shortcuts, and the dialog that lists them and switches them off.

import { announce, byId, element } from "./dom.js";
import { recall, remember } from "./switches.js";

const MAC = /mac|iphone|ipad/i.test(navigator.platform);

/**
 * `key` as the event names it, or `code` where Shift changes what the key writes; `mod` is
 * Cmd on a Mac, else Ctrl. Those that are `always` there cannot be switched off.
 */
export const SHORTCUTS = [
  { does: "Search the conversations", mod: true, key: "k", action: "search" },
  { does: "Go to a file or symbol", mod: true, key: "p", action: "symbols" },
  { does: "New conversation", mod: true, shift: true, key: "o", action: "fresh" },
  { does: "Show or hide the sidebar", mod: true, shift: true, key: "s", action: "sidebar" },
  { does: "Copy the last answer", mod: true, shift: true, key: "c", action: "copyAnswer" },
  { does: "Copy the last code block", mod: true, shift: true, key: ";", code: "Semicolon", action: "copyCode" },
  { does: "Go to the question field", shift: true, key: "Escape", shown: "Esc", action: "field" },
  { does: "The same, while nothing is typed", key: "/", action: "field", idle: true },
  { does: "Edit the last question, from the empty field", key: "ArrowUp", shown: "↑", action: "editLast", empty: true },
  { does: "This list", mod: true, key: "/", action: "help" },
];
const ALWAYS = [
  { does: "Stop the answer; close what is open", shown: "Esc" },
  { does: "Send the question", shown: "Enter" },
  { does: "New line in the question", shift: true, shown: "Enter" },
  { does: "Other versions of a question", shown: "← →" },
];

export const shortcutsOn = () => recall("shortcuts") !== "off";

/** `actions` by the names above; one that returns false leaves the key to the browser. */
export function setUpShortcuts(actions) {
  const dialog = byId("help");
  const run = { ...actions, help: () => (dialog.open ? dialog.close() : open(dialog)) };
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || !shortcutsOn()) return;
    const shortcut = SHORTCUTS.find((one) => fits(one, event));
    if (!shortcut) return;
    const modal = document.querySelector("dialog[open]");
    if (modal && !(modal === dialog && shortcut.action === "help")) return;
    if (run[shortcut.action]?.() === false) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // Escape with Shift stops nothing
  });
  byId("show-help").addEventListener("click", () => open(dialog));
  byId("help-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", ({ target }) => { if (target === dialog) dialog.close(); });
  const toggle = byId("shortcuts-on");
  toggle.checked = shortcutsOn();
  toggle.addEventListener("change", () => {
    remember("shortcuts", toggle.checked ? "" : "off");
    dialog.classList.toggle("without", !toggle.checked);
    announce(toggle.checked ? "Shortcuts are on" : "Shortcuts are off");
  });
  dialog.classList.toggle("without", !toggle.checked);
  byId("shortcut-list").replaceChildren(...SHORTCUTS.map(rowOf));
  byId("shortcuts-always").replaceChildren(...ALWAYS.map(rowOf));
}

function open(dialog) {
  if (!dialog.open) dialog.showModal();
}

function fits({ mod, shift, key, code, idle, empty }, event) {
  const { target } = event;
  const pressed = MAC ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  if (event.altKey || Boolean(mod) !== pressed || (!mod && (event.ctrlKey || event.metaKey))) return false;
  // Where a slash needs Shift, as on many keyboards, it is a slash all the same.
  if (Boolean(shift) !== event.shiftKey && key !== "/") return false;
  const typing = Boolean(target.closest?.("input, textarea, select"));
  if (idle && typing) return false;
  if (empty && !(target.id === "question" && !target.value)) return false;
  return event.key.toLowerCase() === key.toLowerCase() || (code !== undefined && event.code === code);
}

function rowOf({ does, mod, shift, key, shown }) {
  const keys = [mod ? (MAC ? "⌘" : "Ctrl") : "", shift ? (MAC ? "⇧" : "Shift") : "", shown ?? key.toUpperCase()].filter(Boolean);
  return element("div", {}, element("dt", {}, does), element("dd", {}, ...keys.flatMap((name, at) => (at ? [" ", element("kbd", {}, name)] : [element("kbd", {}, name)]))));
}
