// The lines that a citation names, while it is pointed at or reached with Tab.

import { inAddress } from "../lib/address.js";
import { byId, element } from "../lib/dom.js";
import { page } from "../lib/page.js";
import { placeBeside } from "../lib/popup.js";
import { excerptOf, numberedLine } from "./code_references.js";

const SOON = 250; // milliseconds of pointing after which the lines are shown
const LEFT = 200; // and after which they go, so that the pointer can get to them
const LINES_SHOWN = 8;

const linkAt = (target) => target.closest?.("a[data-path]");

/** Whether the panel shows these lines already. */
function inPanel({ path, start, end }) {
  const [first, last = first] = inAddress("lines").split("-").map(Number);
  return inAddress("file") === path && first <= start && end <= last;
}

/** A link to the lines where others see them. */
function hostLink(hosted, start, end) {
  const href = hosted.replace("{start}", start).replace("{end}", end);
  const name = { "github.com": "GitHub", "gitlab.com": "GitLab", "codeberg.org": "Codeberg" };
  const { host } = new URL(href);
  return element("a", { href, target: "_blank", rel: "noopener" }, `Open on ${name[host] ?? host}`);
}

/** Has links of answers that carry `data-path`, `data-start` and `data-end` show their lines: beside
 * the pointer, and by a click in the panel. */
export function setUpPreview() {
  const thread = byId("thread");
  const node = element("div.preview.code-block", { popover: "manual" });
  document.body.append(node);
  let wanted = null; // the link whose lines are in view, or will be
  let timer = 0;

  const later = (milliseconds, link) => {
    clearTimeout(timer);
    timer = setTimeout(() => (link ? show(link) : hide()), milliseconds);
  };
  const hide = () => {
    clearTimeout(timer);
    wanted = null;
    node.hidePopover();
  };
  const show = async (link) => {
    if (inPanel(link.dataset)) return hide();
    wanted = link;
    const { path, start, end } = link.dataset;
    const shown = Math.min(end, Number(start) + LINES_SHOWN - 1);
    const { lines, hosted } = await excerptOf(path, start, shown).catch(() => ({}));
    if (!lines || wanted !== link || !link.isConnected) return;
    const rows = lines.map((html, at) => numberedLine(html, Number(start) + at));
    const more = end - shown;
    node.replaceChildren(
      element("p.code-head", link.title, hosted ? hostLink(hosted, start, end) : null),
      element("pre", element("code", ...rows)),
    );
    if (more > 0) node.append(element("p.preview-more", `… ${more} more; a click opens the file`));
    node.showPopover();
    placeBeside(link, node);
  };

  // With a modifier key a new tab as usual.
  thread.addEventListener("click", (event) => {
    const link = event.target.closest("[data-path]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const { path, start, end } = link.dataset;
    page.panel.openFile(path, Number(start), Number(end), { opener: link });
  });
  thread.addEventListener("pointerover", ({ target, pointerType }) => {
    const link = linkAt(target);
    if (link && link !== wanted && pointerType === "mouse") later(SOON, link);
    else if (link) clearTimeout(timer);
  });
  thread.addEventListener("pointerout", ({ target }) => linkAt(target) && later(LEFT));
  node.addEventListener("pointerenter", () => clearTimeout(timer));
  node.addEventListener("pointerleave", () => later(LEFT));
  // With Tab, and not when the panel gives the focus back.
  thread.addEventListener("keyup", ({ key, target }) => {
    if (key === "Tab" && linkAt(target)) show(target);
  });
  for (const kind of ["focusout", "pointerdown"]) thread.addEventListener(kind, hide);
  const scrolled = ({ target }) => node.contains(target) || hide();
  addEventListener("scroll", scrolled, { capture: true, passive: true });
  addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape" || !node.matches(":popover-open")) return;
      event.preventDefault();
      event.stopPropagation(); // an answer that is being written goes on
      hide();
    },
    true,
  );
}
