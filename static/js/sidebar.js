// The sidebar is a drawer where there is no room for it.

import { byId } from "./dom.js";

const opener = byId("open-sidebar");
const isOpen = () => document.body.classList.contains("sidebar-open");

export function setUpSidebar() {
  opener.addEventListener("click", () => {
    document.body.classList.add("sidebar-open");
    opener.setAttribute("aria-expanded", "true");
    byId("backdrop").hidden = false;
    byId("close-sidebar").focus();
  });
  byId("close-sidebar").addEventListener("click", closeSidebar);
  byId("backdrop").addEventListener("click", closeSidebar);
}

/** Returns whether it was open. */
export function closeSidebar() {
  if (!isOpen()) return false;
  document.body.classList.remove("sidebar-open");
  opener.setAttribute("aria-expanded", "false");
  byId("backdrop").hidden = true;
  opener.focus();
  return true;
}
