// Keyboard shortcuts, and their list in the settings, which switches them off.

import { announce, byId, copyText, element } from "../lib/dom.js";
import { page } from "../lib/page.js";
import { recall, remember } from "../lib/preferences.js";
import { showMessage } from "../lib/widgets.js";
import { toggleSettings } from "../sidebar/settings.js";
import { showSidebar, toggleSidebar } from "../sidebar/sidebar.js";

const MAC = /mac|iphone|ipad/i.test(navigator.platform);

const IN_NO_FIELD = ":not(input, textarea, select)";
const toField = () => byId("question").focus();
/**
 * What each is for, its keys, and what it does; if that returns false, the key is the browser's.
 * `Mod` is Cmd on a Mac, else Ctrl. With a selector it counts only there.
 */
const SHORTCUTS = [
  ["Search the conversations", "Mod+K", () => showSidebar(byId("conversation-search"))],
  ["Go to a file or symbol", "Mod+P", () => page.goTo.show()],
  ["New conversation", "Mod+Shift+O", () => page.startOver()],
  ["Show or hide the sidebar", "Mod+Shift+S", toggleSidebar],
  ["Copy the last answer", "Mod+Shift+C", copyAnswer],
  ["Copy the last code block", "Mod+Shift+;", copyCode],
  ["Go to the question field", "Shift+Escape", toField],
  ["The same, outside of text fields", "/", toField, IN_NO_FIELD],
  [
    "Edit the last question, from an empty field",
    "ArrowUp",
    editLast,
    "#question:placeholder-shown",
  ],
  ["This list", "Mod+/", toggleSettings],
  ["The same, outside of a field", "?", toggleSettings, IN_NO_FIELD],
];
/** Those that cannot be switched off. */
const ALWAYS = [
  ["Stop the answer; close what is open", "Escape"],
  ["Send the question", "Enter"],
  ["New line in the question", "Shift+Enter"],
  ["Other versions of a question", "ArrowLeft+ArrowRight"],
  ["Choose lines of a file; with Shift, several", "ArrowUp+ArrowDown"],
  ["List the names in the chosen lines", "Enter"],
];
const NAMES = {
  Mod: MAC ? "⌘" : "Ctrl",
  Shift: MAC ? "⇧" : "Shift",
  Escape: "Esc",
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
};
const CODES = { ";": "Semicolon" }; // of keys that write something else with Shift

const shortcutsOn = () => recall("shortcuts") !== "off";

export function setUpShortcuts() {
  const dialog = byId("settings");
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || !shortcutsOn()) return;
    const [, , action] = SHORTCUTS.find((one) => fits(one, event)) ?? [];
    if (!action) return;
    const modal = document.querySelector("dialog[open]");
    if (modal && !(modal === dialog && action === toggleSettings)) return;
    if (action() === false) return;
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

function fits([, keys, , where = "*"], event) {
  const { target, key, code, shiftKey } = event;
  const parts = keys.split("+");
  const wanted = parts.at(-1);
  const mod = MAC ? event.metaKey && !event.ctrlKey : event.ctrlKey && !event.metaKey;
  const other = event.altKey || (!mod && (event.ctrlKey || event.metaKey));
  // Where a slash needs Shift, as on many keyboards, it is a slash all the same.
  const shifted = "/?".includes(wanted) || parts.includes("Shift") === shiftKey;
  if (other || parts.includes("Mod") !== mod || !shifted || !target.matches?.(where)) return false;
  return key.toLowerCase() === wanted.toLowerCase() || code === CODES[wanted];
}

function rowOf([does, keys]) {
  const shown = keys.split("+").map((name) => element("kbd", NAMES[name] ?? name));
  return element("div", element("dt", does), element("dd", ...shown.flatMap((one) => [one, " "])));
}

function editLast() {
  return page.view?.turns.length ? page.edit(page.view.turns.at(-1)) : false;
}

function copyAnswer() {
  copy(page.view?.turns.at(-1)?.text.trim(), "Answer");
}

function copyCode() {
  const blocks = document.querySelectorAll("#thread .code-block pre");
  copy([...blocks].at(-1)?.textContent.replace(/\n$/, ""), "Code");
}

async function copy(text, name) {
  if (text) showMessage((await copyText(text)) ? `${name} copied` : "Not copied");
  else showMessage(`No ${name.toLowerCase()} to copy yet`);
}
