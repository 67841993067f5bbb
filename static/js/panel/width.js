// How wide the panel is: its edge is dragged, or moved by arrow keys, and stays where it was left.

import { byId } from "../lib/dom.js";
import { recall, remember } from "../lib/preferences.js";

const STEP = 32; // pixels by which an arrow key moves it

export function setUpWidth() {
  const edge = byId("panel-edge");
  const set = (width) => {
    const part = Math.round(Math.min(Math.max((width / innerWidth) * 100, 25), 70));
    document.body.style.setProperty("--panel-width", `${part}%`);
    edge.setAttribute("aria-valuenow", part);
    remember("panel-width", String(part));
  };
  const kept = Number(recall("panel-width"));
  if (kept) set((kept * innerWidth) / 100);
  edge.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    edge.setPointerCapture(event.pointerId);
  });
  edge.addEventListener("pointermove", (event) => {
    if (edge.hasPointerCapture(event.pointerId)) set(innerWidth - event.clientX);
  });
  edge.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key];
    if (step && !event.altKey) set(byId("panel").offsetWidth + step);
  });
}
