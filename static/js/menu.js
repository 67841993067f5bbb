// A small menu at a button: arrow keys move, Escape and a click elsewhere close.

import { element, icon } from "./dom.js";

let open = null; // the menu in view

/** Opens a menu at `button` with `items` `{ symbol, label, action, danger }`. */
export function openMenu(button, items) {
  const again = open?.button === button;
  open?.close(false);
  if (again) return;
  const menu = element("div", { class: "menu", role: "menu", "aria-label": button.getAttribute("aria-label") });
  const entries = items.map(({ symbol, label, action, danger }) => element("button", {
    type: "button",
    role: "menuitem",
    tabindex: "-1",
    class: danger ? "danger" : null,
    onclick: () => { close(false); action(); },
  }, icon(symbol), label));
  menu.append(...entries);
  menu.addEventListener("keydown", (event) => {
    const at = entries.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length - 1 }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      entries.at(next % entries.length).focus();
    } else if (event.key === "Escape" || event.key === "Tab") {
      if (event.key === "Escape") event.preventDefault();
      event.stopPropagation(); // an answer that is being written goes on
      close(true);
    }
  });

  const outside = (event) => { if (!menu.contains(event.target) && !button.contains(event.target)) close(false); };
  function close(focus) {
    menu.remove();
    removeEventListener("pointerdown", outside, true);
    removeEventListener("resize", leave);
    button.setAttribute("aria-expanded", "false");
    open = null;
    if (focus) button.focus();
  }
  const leave = () => close(false);
  addEventListener("pointerdown", outside, true);
  addEventListener("resize", leave);

  document.body.append(menu);
  place(menu, button);
  button.setAttribute("aria-expanded", "true");
  open = { button, close };
  entries[0].focus();
}

/** Under the button where there is room, else above it. */
function place(menu, button) {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const below = at.bottom + 4 + height <= innerHeight;
  menu.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - 4 - height)}px`;
  menu.style.left = `${Math.max(8, Math.min(at.right - width, innerWidth - width - 8))}px`;
}
