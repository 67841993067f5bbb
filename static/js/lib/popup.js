// Menus that a button opens, and where a small window stands beside what it is of. Popovers: Escape, a
// click elsewhere and a second press of the button close them, which is the browser's work, and styles
// place them. Forms that open are popovers of the templates alone.

import { element, icon } from "./dom.js";

const GAP = 4; // pixels between a window and what it is of
const EDGE = 8; // pixels between a window and the edge of the page

/**
 * Opens a menu at `button`, which was pressed, with `items` `{ symbol, label, action, danger }`; arrow
 * keys move in it. `closed()` is called when it is gone.
 */
export function openMenu(button, items, closed) {
  if (button.popoverTargetElement) return; // this press closes it
  const entries = items.map(({ symbol, label, action, danger }, index) =>
    element(
      "button",
      {
        role: "menuitem",
        tabindex: "-1",
        autofocus: index === 0,
        class: danger ? "danger" : null,
        onclick: () => {
          menu.hidePopover();
          action();
        },
      },
      icon(symbol),
      label,
    ),
  );
  const label = button.getAttribute("aria-label");
  const menu = element(
    "div.menu",
    { popover: true, role: "menu", "aria-label": label },
    ...entries,
  );
  menu.addEventListener("keydown", (event) => {
    const at = entries.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Tab") menu.hidePopover();
    if (next === undefined) return;
    event.preventDefault();
    entries.at(next % entries.length).focus();
  });
  menu.addEventListener("beforetoggle", ({ newState }) => {
    button.setAttribute("aria-expanded", String(newState === "open"));
  });
  menu.addEventListener("toggle", ({ newState }) => {
    if (newState === "open") return;
    menu.remove();
    button.popoverTargetElement = null;
    closed();
  });
  document.body.append(menu);
  button.popoverTargetElement = menu; // with which the browser opens it
}

/** Puts `node` below `anchor` where there is room, else above it. */
export function placeBeside(anchor, node) {
  const at = anchor.getClientRects()[0];
  const { offsetWidth: width, offsetHeight: height } = node;
  const below = at.bottom + GAP;
  const left = Math.max(EDGE, Math.min(at.left, innerWidth - width - EDGE));
  node.style.top = `${below + height <= innerHeight ? below : Math.max(EDGE, at.top - GAP - height)}px`;
  node.style.left = `${left}px`;
}
