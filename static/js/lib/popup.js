// A menu or a form that a button opens. Escape and a click elsewhere close it.

import { element, icon } from "./dom.js";

const GAP = 6; // pixels between the button and the form that it opens
const MENU_GAP = 4;
const EDGE = 8; // pixels between a menu and the edge of the window

let open = null; // the menu in view

/**
 * Opens a menu at `button` with `items` `{ symbol, label, action, danger }`; again closes it.
 * Arrow keys move in it. `focusBack()` is called when Escape closes it.
 */
export function openMenu(button, items, focusBack) {
  const again = open?.button === button;
  open?.close(false);
  if (again) return;
  const menu = element("div.menu", {
    role: "menu",
    "aria-label": button.getAttribute("aria-label"),
  });
  const entries = items.map(({ symbol, label, action, danger }) =>
    element(
      "button",
      {
        role: "menuitem",
        tabindex: "-1",
        class: danger ? "danger" : null,
        onclick: () => {
          close(false);
          action();
        },
      },
      icon(symbol),
      label,
    ),
  );
  menu.append(...entries);
  menu.addEventListener("keydown", (event) => {
    const at = entries.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length - 1 }[
      event.key
    ];
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

  const outside = (event) => {
    if (!menu.contains(event.target) && !button.contains(event.target)) close(false);
  };
  function close(focus) {
    if (open?.close !== close) return;
    open = null; // first: what is removed loses the focus
    menu.remove();
    removeEventListener("pointerdown", outside, true);
    removeEventListener("resize", leave);
    button.setAttribute("aria-expanded", "false");
    if (focus) focusBack();
  }
  const leave = () => close(false);
  addEventListener("pointerdown", outside, true);
  addEventListener("resize", leave);

  document.body.append(menu);
  placeMenu(menu, button);
  button.setAttribute("aria-expanded", "true");
  open = { button, close };
  entries[0].focus();
}

/** Below the button where there is room, else above it, aligned at its right edge. */
function placeMenu(menu, button) {
  placeBeside(button, menu, button.getBoundingClientRect().right - menu.offsetWidth);
}

/** Puts `node` below `anchor` where there is room, else above it; its left edge at `left`. */
export function placeBeside(anchor, node, left = anchor.getBoundingClientRect().left) {
  const at = anchor.getClientRects()[0];
  const { offsetWidth: width, offsetHeight: height } = node;
  const below = at.bottom + MENU_GAP;
  node.style.top = `${below + height <= innerHeight ? below : Math.max(EDGE, at.top - MENU_GAP - height)}px`;
  node.style.left = `${within(left, width, EDGE)}px`;
}

/**
 * Opens `form`, an element with the attribute `popover`, above or below `button`; again closes it.
 * On a phone it is a sheet at the lower edge.
 */
export function openPopover(button, form) {
  if (!form.dataset.ready) setUpPopover(button, form);
  if (form.matches(":popover-open")) form.hidePopover();
  else if (form.dataset.closed !== "now") showPopover(button, form);
}

function showPopover(button, form) {
  form.showPopover();
  placePopover(button, form);
  (
    form.querySelector("input:checked:not(:disabled)") ?? form.querySelector("input:not(:disabled)")
  )?.focus({ preventScroll: true });
}

function setUpPopover(button, form) {
  form.dataset.ready = "yes";
  form.addEventListener("toggle", ({ newState }) =>
    button.setAttribute("aria-expanded", String(newState === "open")),
  );
  // The press that closes it from outside may be one of its own button.
  button.addEventListener("pointerdown", () => {
    form.dataset.closed = form.matches(":popover-open") ? "now" : "";
  });
  button.addEventListener("click", () => {
    form.dataset.closed = "";
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation(); // an answer that is being written goes on
    form.hidePopover();
    button.focus();
  });
  addEventListener("resize", () => {
    if (form.matches(":popover-open")) placePopover(button, form);
  });
}

function placePopover(button, form) {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = form;
  const above = at.top - GAP - height;
  const top = above >= GAP ? above : Math.min(at.bottom + GAP, innerHeight - height - GAP);
  form.style.setProperty("--top", `${Math.max(GAP, top)}px`);
  form.style.setProperty("--left", `${within(at.left, width, GAP)}px`);
}

/** `left` moved so far that all of `width` is in the window. */
const within = (left, width, edge) => Math.max(edge, Math.min(left, innerWidth - width - edge));
