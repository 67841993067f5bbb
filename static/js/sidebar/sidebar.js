// The sidebar: a drawer on narrow screens; on wide ones it can be hidden.

import { byId } from "../lib/dom.js";
import { recall, remember } from "../lib/preferences.js";

const opener = byId("open-sidebar");
const narrow = matchMedia("(max-width: 1100px)");
const isOpen = () => document.body.classList.contains("sidebar-open");
const isAway = () => document.body.classList.contains("sidebar-away");

export function setUpSidebar() {
  opener.addEventListener("click", () => showSidebar(byId("close-sidebar")));
  byId("close-sidebar").addEventListener("click", () =>
    narrow.matches ? closeSidebar() : putAway(true),
  );
  byId("backdrop").addEventListener("click", closeSidebar);
  narrow.addEventListener("change", () => {
    if (!narrow.matches) leaveDrawer();
  });
  putAway(recall("sidebar") === "away", null);
}

/** Shows it, with the focus on `first` in it. */
export function showSidebar(first) {
  if (narrow.matches) {
    document.body.classList.add("sidebar-open");
    byId("backdrop").hidden = false;
  } else {
    putAway(false, null);
  }
  opener.setAttribute("aria-expanded", "true");
  first.focus();
}

/** Shows or hides it. */
export function toggleSidebar() {
  if (narrow.matches ? isOpen() : !isAway()) byId("close-sidebar").click();
  else opener.click();
}

/** Closes the drawer; returns whether it was open. */
export function closeSidebar() {
  if (!isOpen()) return false;
  leaveDrawer();
  opener.focus();
  return true;
}

function leaveDrawer() {
  if (!isOpen()) return;
  document.body.classList.remove("sidebar-open");
  opener.setAttribute("aria-expanded", "false");
  byId("backdrop").hidden = true;
}

function putAway(away, focus = opener) {
  document.body.classList.toggle("sidebar-away", away);
  opener.setAttribute("aria-expanded", String(!away && !narrow.matches));
  remember("sidebar", away ? "away" : "");
  focus?.focus();
}
