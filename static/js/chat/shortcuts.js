// Keyboard shortcuts, and their list in the settings, which switches them off.

import { announce, byId, copyText, element } from "../lib/dom.js";
import { recall, remember } from "../lib/preferences.js";
import { showMessage } from "../lib/widgets.js";

const MAC = /mac|iphone|ipad/i.test(navigator.platform);

/**
 * `key` as the event names it, or `code` where Shift changes what the key writes; `mod` is
 * Cmd on a Mac, else Ctrl. Those that are `always` there cannot be switched off.
 */
const SHORTCUTS = [
  { does: "Search the conversations", mod: true, key: "k", action: "search" },
  { does: "Go to a file or symbol", mod: true, key: "p", action: "goTo" },
  { does: "New conversation", mod: true, shift: true, key: "o", action: "fresh" },
  { does: "Show or hide the sidebar", mod: true, shift: true, key: "s", action: "sidebar" },
  { does: "Copy the last answer", mod: true, shift: true, key: "c", action: "copyAnswer" },
  {
    does: "Copy the last code block",
    mod: true,
    shift: true,
    key: ";",
    code: "Semicolon",
    action: "copyCode",
  },
  { does: "Go to the question field", shift: true, key: "Escape", named: "Esc", action: "field" },
  { does: "The same, while nothing is typed", key: "/", action: "field", idle: true },
  {
    does: "Edit the last question, from the empty field",
    key: "ArrowUp",
    named: "↑",
    action: "editLast",
    empty: true,
  },
  { does: "This list", mod: true, key: "/", action: "help" },
];
const ALWAYS = [
  { does: "Stop the answer; close what is open", named: "Esc" },
  { does: "Send the question", named: "Enter" },
  { does: "New line in the question", shift: true, named: "Enter" },
  { does: "Other versions of a question", named: "← →" },
];

const shortcutsOn = () => recall("shortcuts") !== "off";

/** `actions` by the names above; one that returns false leaves the key to the browser. */
export function setUpShortcuts(actions) {
  const dialog = byId("settings");
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || !shortcutsOn()) return;
    const shortcut = SHORTCUTS.find((one) => fits(one, event));
    if (!shortcut) return;
    const modal = document.querySelector("dialog[open]");
    if (modal && !(modal === dialog && shortcut.action === "help")) return;
    if (actions[shortcut.action]?.() === false) return;
    event.preventDefault();
    event.stopImmediatePropagation(); // Escape with Shift stops nothing
  });
  const toggle = byId("shortcuts-on");
  toggle.checked = shortcutsOn();
  toggle.addEventListener("change", () => {
    remember("shortcuts", toggle.checked ? "" : "off");
    dialog.classList.toggle("shortcuts-off", !toggle.checked);
    announce(toggle.checked ? "Shortcuts are on" : "Shortcuts are off");
  });
  dialog.classList.toggle("shortcuts-off", !toggle.checked);
  byId("shortcut-list").replaceChildren(...SHORTCUTS.map(rowOf));
  byId("keys-always").replaceChildren(...ALWAYS.map(rowOf));
}

function fits({ mod, shift, key, code, idle, empty }, event) {
  const { target } = event;
  const pressed = MAC ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  if (event.altKey || Boolean(mod) !== pressed || (!mod && (event.ctrlKey || event.metaKey)))
    return false;
  // Where a slash needs Shift, as on many keyboards, it is a slash all the same.
  if (Boolean(shift) !== event.shiftKey && key !== "/") return false;
  const typing = Boolean(target.closest?.("input, textarea, select"));
  if (idle && typing) return false;
  if (empty && !(target.id === "question" && !target.value)) return false;
  return (
    event.key.toLowerCase() === key.toLowerCase() || (code !== undefined && event.code === code)
  );
}

function rowOf({ does, mod, shift, key, named }) {
  const keys = [
    mod ? (MAC ? "⌘" : "Ctrl") : "",
    shift ? (MAC ? "⇧" : "Shift") : "",
    named ?? key.toUpperCase(),
  ].filter(Boolean);
  return element(
    "div",
    element("dt", does),
    element(
      "dd",
      ...keys.flatMap((name, at) => (at ? [" ", element("kbd", name)] : [element("kbd", name)])),
    ),
  );
}

/** The actions that copy from the conversation that `view()` gives. */
export const clipboardActions = (thread, view) => ({
  copyAnswer: () => copy(view()?.turns.at(-1)?.text.trim(), "Answer"),
  copyCode: () =>
    copy(
      [...thread.querySelectorAll(".code-block pre")].at(-1)?.textContent.replace(/\n$/, ""),
      "Code",
    ),
});

async function copy(text, name) {
  if (text) showMessage((await copyText(text)) ? `${name} copied` : "Not copied");
  else showMessage(`No ${name.toLowerCase()} to copy yet`);
}
