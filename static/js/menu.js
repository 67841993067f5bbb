// A small menu at a button: arrow keys move, Escape and a click elsewhere close.

import { element, icon } from "./dom.js";

let open = null; // the menu in view

/**
 * Opens a menu at `button` with `items` `{ symbol, label, detail, action, danger, checked, disabled }`:
 * where one is `checked` or not, it is one of several to choose from. `about` is said above them.
 */
export function openMenu(button, items, { about = "", label = button.getAttribute("aria-label"), className = "" } = {}) {
  const again = open?.button === button;
  open?.close(false);
  if (again) return;
  const menu = element("div", { class: `menu ${className}`.trim(), role: "menu", "aria-label": label, "aria-describedby": about ? "menu-about" : null });
  if (about) menu.append(element("p", { id: "menu-about" }, about));
  const entries = items.map(({ symbol, label: name, detail, action, danger, checked, disabled }) => element("button", {
    type: "button",
    role: checked === undefined ? "menuitem" : "menuitemradio",
    "aria-checked": checked === undefined ? null : String(checked),
    "aria-disabled": disabled ? "true" : null,
    tabindex: "-1",
    class: danger ? "danger" : null,
    onclick: () => { if (!disabled) { close(checked !== undefined); action(); } },
  }, symbol || checked ? icon(symbol ?? "check") : element("span", { class: "icon" }),
  detail ? element("span", {}, element("span", {}, name), " ", element("span", { class: "detail" }, detail)) : name));
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
  menu.addEventListener("focusout", ({ relatedTarget: to }) => {
    if (to && !menu.contains(to) && to !== button) close(false);
  });

  const outside = (event) => { if (!menu.contains(event.target) && !button.contains(event.target)) close(false); };
  function close(focus) {
    if (open?.close !== close) return;
    open = null; // first: what is removed loses the focus
    menu.remove();
    removeEventListener("pointerdown", outside, true);
    removeEventListener("resize", leave);
    button.setAttribute("aria-expanded", "false");
    if (focus) button.focus();
  }
  const leave = () => close(false);
  addEventListener("pointerdown", outside, true);
  addEventListener("resize", leave);

  document.body.append(menu);
  place(menu, button);
  button.setAttribute("aria-expanded", "true");
  open = { button, close };
  (menu.querySelector("[aria-checked=true]") ?? menu.querySelector("button:not([aria-disabled])") ?? entries[0]).focus();
}

/** Under the button where there is room, else above it. */
function place(menu, button) {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const below = at.bottom + 4 + height <= innerHeight;
  menu.style.top = `${below ? at.bottom + 4 : Math.max(8, at.top - 4 - height)}px`;
  // Menus of one word hang from the button's end, wide ones begin where it does.
  const left = width > 2 * at.width + 120 ? at.left : at.right - width;
  menu.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
}
