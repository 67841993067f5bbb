// Diagrams in answers. Mermaid draws them in a frame without rights (`diagram_frame.js`), which is there
// from the first diagram on; the page shows them as pictures.

import { byId, element, icon } from "../lib/dom.js";

const PATIENCE = 10_000; // milliseconds for one drawing, from when the frame is there
const SMALLEST = 0.75; // of its size, to which a drawing shrinks before it scrolls
const SIDEWAYS = /^(\s*(?:flowchart|graph)\s+)(?:LR|RL)\b/m;

let frame = null; // resolves to the frame's window
let last = 0;
const waiting = new Map(); // what takes a drawing, by its number

/** Shows the Mermaid text of `pre` as a picture, or says why it stays text; `head` is above it. */
export async function showDiagram(pre, head) {
  const source = pre.textContent;
  const canDraw = "diagrams" in byId("thread").dataset;
  let drawing = canDraw ? await drawn(source) : {};
  const room = head.clientWidth || Infinity; // none where it is out of sight
  if (drawing.width * SMALLEST > room && SIDEWAYS.test(source)) {
    const turned = await drawn(source.replace(SIDEWAYS, "$1TB"));
    if (turned.width < drawing.width) drawing = turned;
  }
  const { svg, width, words, line } = drawing;
  const src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  const picture = element("img", { src, alt: `Diagram: ${words}` });
  const isWhole =
    Boolean(svg) &&
    (await picture.decode().then(
      () => true,
      () => false,
    ));
  if (!isWhole) {
    const where = line ? ` (line ${line})` : "";
    const why = canDraw
      ? `This diagram cannot be drawn${where}, so here is its text.`
      : "Diagrams are drawn where the server has the package mermaidx; this is the text.";
    pre.before(element("p.undrawn", why));
    return;
  }
  picture.style.maxWidth = `max(100%, ${SMALLEST * width}px)`;
  const about = { role: "region", "aria-label": "Diagram", tabindex: 0 };
  const shown = element("div.diagram", about, picture);
  const onclick = ({ currentTarget: button }) => {
    pre.hidden = !pre.hidden;
    shown.hidden = !pre.hidden;
    button.setAttribute("aria-pressed", String(shown.hidden));
  };
  pre.hidden = true;
  pre.before(shown);
  head.firstChild.textContent = "diagram";
  const text = element("button.copy", { "aria-pressed": "false", onclick }, icon("file"), "Text");
  head.firstChild.after(text);
}

/** `{ svg, width, words }`, or `{ line }` where it cannot be drawn. */
async function drawn(source) {
  frame ??= open();
  const { contentWindow } = await frame;
  last += 1;
  const id = last;
  const { promise, resolve } = Promise.withResolvers();
  waiting.set(id, resolve);
  const late = setTimeout(() => close(), PATIENCE);
  contentWindow.postMessage({ id, source }, "*"); // it has no origin that could be named
  const drawing = await promise;
  clearTimeout(late);
  return drawing;
}

/** A frame that has loaded; it is out of sight but laid out, so that text in it can be measured. */
function open() {
  const node = element("iframe.drawing", { src: "/static/diagram", sandbox: "allow-scripts" });
  node.setAttribute("aria-hidden", "true");
  node.tabIndex = -1;
  document.body.append(node);
  return new Promise((resolve) => node.addEventListener("load", () => resolve(node)));
}

/** Gives up a frame that does not come back, with all that wait for it. */
async function close() {
  const gone = frame;
  frame = null;
  for (const resolve of waiting.values()) resolve({});
  waiting.clear();
  (await gone)?.remove();
}

addEventListener("message", async ({ source, data }) => {
  if (!frame || source !== (await frame).contentWindow) return;
  waiting.get(data.id)?.(data);
  waiting.delete(data.id);
});
