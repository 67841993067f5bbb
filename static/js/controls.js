// What clicks and keys do, wherever on the page they happen.

import { byId } from "./dom.js";
import { copiesOf } from "./last.js";
import { setUpShortcuts } from "./shortcuts.js";
import { closeSidebar, showSidebar, toggleSidebar } from "./sidebar.js";

/** `view()` gives the conversation on the page; the others are what is done with it. */
export function setUpControls({ thread, panel, startOver, edit, view, symbols }) {
  // Citations open the panel; with a modifier key a new tab as usual.
  thread.addEventListener("click", (event) => {
    const link = event.target.closest("[data-path]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    panel.openFile(link.dataset.path, Number(link.dataset.start), Number(link.dataset.end), { opener: link });
  });
  byId("show-skipped").addEventListener("click", (event) => {
    closeSidebar();
    panel.openSkipped(event.currentTarget);
  });
  for (const id of ["new-conversation", "new-conversation-top"]) byId(id).addEventListener("click", startOver);
  setUpShortcuts({
    search: () => showSidebar(byId("find")),
    fresh: startOver,
    sidebar: toggleSidebar,
    field: () => byId("question").focus(),
    ...copiesOf(thread, view),
    editLast: () => (view()?.turns.length ? edit(view().turns.at(-1)) : false),
    symbols,
  });
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.key !== "Escape" || document.querySelector("dialog[open]")) return;
    if (closeSidebar()) return;
    if (view()?.running) view().stop();
    else panel.close();
  });
}
