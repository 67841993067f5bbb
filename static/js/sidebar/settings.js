// The dialog of what is set for whoever uses this browser, and what the server has set.

import { byId, element } from "../lib/dom.js";
import { page } from "../lib/page.js";
import { recall, remember } from "../lib/preferences.js";
import { closesByClick } from "../lib/widgets.js";

const dialog = byId("settings");
const editor = byId("editor");
const address = byId("editor-address");

export function setUpSettings() {
  const kept = recall("editor");
  const own = kept.includes("{path}");
  editor.value = own ? "own" : kept;
  address.value = own ? kept : "";
  for (const field of [editor, address]) field.addEventListener("change", keepEditor);
  keepEditor();
  byId("show-settings").addEventListener("click", open);
  byId("change-answer").addEventListener("click", () => {
    dialog.close();
    byId("effort").click();
  });
  closesByClick(dialog, byId("settings-close"));
}

function open() {
  byId("settings-answer").textContent = byId("effort").title.replace("How to answer: ", "");
  const { reranker, embedding, hyde } = page.settings;
  const fixed = [
    ["Language model", page.models.described],
    ["Reranker", reranker],
    ["Embedding", embedding || "none"],
  ];
  if (hyde) fixed.push(["Draft code first", { off: "never", one: "once", two: "twice" }[hyde]]);
  byId("server-settings").replaceChildren(
    ...fixed.map(([name, value]) => element("div", element("dt", name), " ", element("dd", value))),
  );
  dialog.showModal();
}

/** Opens the dialog at its list of keys, or closes it. */
export function toggleSettings() {
  if (dialog.open) {
    dialog.close();
    return;
  }
  open();
  byId("keyboard").scrollIntoView();
}

function keepEditor() {
  const own = editor.value === "own";
  byId("editor-address-part").hidden = !own;
  remember("editor", own ? address.value.trim() : editor.value);
}
