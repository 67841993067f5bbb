// A form that a button opens above or below itself; a click elsewhere and Escape close it. On
// a phone it is a sheet at the lower edge.

const GAP = 6; // pixels between the button and what it opens

/** Opens `node`, an element with the attribute `popover`, at `button`; again closes it. */
export function openPopover(button, node) {
  if (!node.dataset.ready) setUp(button, node);
  if (node.matches(":popover-open")) node.hidePopover();
  else if (node.dataset.closed !== "now") show(button, node);
}

function show(button, node) {
  node.showPopover();
  place(button, node);
  (node.querySelector("input:checked:not(:disabled)") ?? node.querySelector("input:not(:disabled)"))?.focus({ preventScroll: true });
}

function setUp(button, node) {
  node.dataset.ready = "yes";
  node.addEventListener("toggle", ({ newState }) => button.setAttribute("aria-expanded", String(newState === "open")));
  // The press that closes it from outside may be one of its own button.
  button.addEventListener("pointerdown", () => { node.dataset.closed = node.matches(":popover-open") ? "now" : ""; });
  button.addEventListener("click", () => { node.dataset.closed = ""; });
  node.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation(); // an answer that is being written goes on
    node.hidePopover();
    button.focus();
  });
  addEventListener("resize", () => { if (node.matches(":popover-open")) place(button, node); });
}

function place(button, node) {
  const at = button.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = node;
  const above = at.top - GAP - height;
  node.style.setProperty("--top", `${Math.max(GAP, above >= GAP ? above : Math.min(at.bottom + GAP, innerHeight - height - GAP))}px`);
  node.style.setProperty("--left", `${Math.max(GAP, Math.min(at.left, innerWidth - width - GAP))}px`);
}
