// Diagrams in answers: the part of Mermaid's flowcharts that CodeQA writes, drawn without Mermaid.
// What it cannot read stays a block of code. Everything enters the page as text.

import { plural } from "../lib/format.js";

const HEAD = /^(?:flowchart|graph) (LR|TD|TB)$/;
const BOX = String.raw`([A-Za-z_][\w-]*?)(?:\["([^"]*)"\])?`;
const NODE = new RegExp(`^${BOX}$`);
const ARROW = new RegExp(String.raw`^${BOX} ?-->(?:\|"?([^|"]*)"?\|)? ?${BOX}$`);
const MOST = { boxes: 120, arrows: 400, places: 5000 }; // beyond that nobody reads it
const LETTER = 7.3; // pixels of one, in the fixed-width font of the boxes
const LINE = 17;
const PADDING = { x: 12, y: 8 };
const GAP = { layers: 46, boxes: 16, bends: 10, edge: 4 };
const SWEEPS = 8; // over all layers, to and fro, for their order and then for where boxes stand
const TIP = 7;
const FRAME = 24; // pixels left and right of a drawing, together
const SMALLEST = 0.75; // of its size, to which a drawing shrinks before it scrolls

/**
 * The drawing of `source`, an `svg` element; null when it is not all of the known form. One that is
 * wider than `room` pixels is turned by a quarter if that makes it narrower.
 */
export function drawDiagram(source, room = Infinity) {
  const drawing = drawn(source);
  if (!drawing || widthIn(drawing) <= room) return drawing;
  const turned = drawn(source, true);
  return widthIn(turned) < widthIn(drawing) ? turned : drawing;
}

const widthIn = (drawing) => drawing.viewBox.baseVal.width;

/**
 * Has `node` show `source` as its room allows, which is that of `head` above it: where it must be
 * scrolled, it begins at the box in which most arrows meet.
 */
export function fitDiagram(node, source, head) {
  let width = 0;
  const fit = () => {
    if (!head.clientWidth || head.clientWidth === width) return;
    width = head.clientWidth;
    const drawing = drawDiagram(source, width - FRAME);
    node.replaceChildren(drawing);
    node.scrollLeft = drawing.dataset.middle * node.scrollWidth - width / 2;
  };
  new ResizeObserver(fit).observe(head); // whose height does not depend on the drawing's
}

function drawn(source, turned = false) {
  const graph = read(source);
  if (!graph) return null;
  graph.sideways = graph.sideways !== turned;
  const layers = layersOf(graph);
  if (layers.flat().length > MOST.places) return null;
  place(order(layers), graph);
  return draw(graph);
}

function read(source) {
  const lines = source.split("\n").map((line) => line.trim().replace(/;$/, ""));
  const [head, ...rest] = lines.filter((line) => line && !line.startsWith("%%"));
  const direction = HEAD.exec(head ?? "")?.[1];
  if (!direction || rest.length > MOST.boxes + MOST.arrows) return null;
  const graph = { sideways: direction === "LR", boxes: new Map(), arrows: [] };
  for (const line of rest) {
    const [, from, label, words, to, other] = ARROW.exec(line) ?? [];
    const node = from ? null : NODE.exec(line);
    if (!from && !node) return null;
    const first = box(graph.boxes, from ?? node[1], from ? label : node[2]);
    if (!from) continue;
    const last = box(graph.boxes, to, other);
    if (first === last) first.again = true;
    else graph.arrows.push({ from: first, to: last, words: plain(words ?? ""), bends: [] });
  }
  for (const one of graph.boxes.values()) if (one.again) resize(one, `${one.label} ↻`);
  const few = graph.boxes.size <= MOST.boxes && graph.arrows.length <= MOST.arrows;
  return graph.boxes.size && few ? graph : null;
}

function box(boxes, name, label) {
  if (!boxes.has(name)) boxes.set(name, { label: name, next: [], before: [], layer: 0 });
  const one = boxes.get(name);
  return resize(one, label === undefined ? one.label : plain(label));
}

const resize = (one, label) =>
  Object.assign(one, {
    label,
    width: widthOf(label) + 2 * PADDING.x,
    height: LINE + 2 * PADDING.y,
  });

const plain = (text) => text.replaceAll("#quot;", '"').trim();
const widthOf = (text) =>
  LETTER * [...text].reduce((sum, letter) => sum + (letter > "\u2e7f" ? 1.7 : 1), 0);

/** Boxes and bends by layer: a box stands the longest way from the first, and an arrow has a bend in
 * each layer that it passes. */
function layersOf({ boxes, arrows }) {
  const all = [...boxes.values()];
  breakCircles(all, arrows);
  const waiting = new Map(all.map((one) => [one, one.before.length]));
  const ready = all.filter((one) => !one.before.length);
  for (const one of ready) {
    for (const next of one.next) {
      next.layer = Math.max(next.layer, one.layer + 1);
      waiting.set(next, waiting.get(next) - 1);
      if (!waiting.get(next)) ready.push(next);
    }
  }
  const layers = [];
  for (const one of all) {
    (layers[one.layer] ??= []).push(one);
    one.next = [];
    one.before = [];
  }
  for (const arrow of arrows) {
    const last = arrow.backwards ? arrow.from : arrow.to;
    let end = arrow.backwards ? arrow.to : arrow.from;
    for (let layer = end.layer + 1; layer < last.layer; layer += 1) {
      const bend = { next: [], before: [], width: 0, height: 0 };
      arrow.bends.push(bend);
      layers[layer].push(bend);
      join(end, bend);
      end = bend;
    }
    join(end, last);
  }
  return layers;
}

function join(from, to) {
  from.next.push(to);
  to.before.push(from);
}

/** Joins the boxes by their arrows, those the other way round that would close a circle. */
function breakCircles(all, arrows) {
  const entered = new Set();
  const left = new Set();
  const visit = (one) => {
    entered.add(one);
    for (const arrow of arrows.filter(({ from }) => from === one)) {
      const { to } = arrow;
      arrow.backwards = entered.has(to) && !left.has(to);
      if (arrow.backwards) join(to, one);
      else join(one, to);
      if (!entered.has(to)) visit(to);
    }
    left.add(one);
  };
  for (const one of all) if (!entered.has(one)) visit(one);
}

/** Each layer, from the first to the last and back, with the side on which its neighbours are set. */
function* sweeps(layers) {
  for (let sweep = 0; sweep < SWEEPS; sweep += 1)
    for (const layer of sweep % 2 ? layers.toReversed() : layers)
      yield [layer, sweep % 2 ? "next" : "before"];
}

/** The middle of the neighbours on one side of `one`, by `what`; its own where it has none. */
const middleOf = (one, side, what) =>
  one[side].length
    ? one[side].reduce((sum, other) => sum + other[what], 0) / one[side].length
    : one[what];

/** Orders each layer by where its neighbours stand in the layer beside it. */
function order(layers) {
  for (const layer of layers) for (const [at, one] of layer.entries()) one.at = at;
  for (const [layer, side] of sweeps(layers)) {
    for (const one of layer) one.middle = middleOf(one, side, "at");
    layer.sort((one, other) => one.middle - other.middle);
    for (const [at, one] of layer.entries()) one.at = at;
  }
  return layers;
}

/** Gives everything its middle: first along and across the layers, then as `x` and `y`. */
function place(layers, { sideways, arrows }) {
  const [deep, wide] = sideways ? ["width", "height"] : ["height", "width"];
  const room = arrows.map(({ words }) => (sideways ? widthOf(words) : LINE * Boolean(words)));
  const apart = (one, other) =>
    (one[wide] + other[wide]) / 2 + (one.label || other.label ? GAP.boxes : GAP.bends);
  let along = GAP.edge;
  for (const layer of layers) {
    const depth = Math.max(...layer.map((one) => one[deep]));
    for (const [at, one] of layer.entries()) {
      one.along = along + depth / 2;
      one.across = at ? layer[at - 1].across + apart(layer[at - 1], one) : 0;
    }
    along += depth + GAP.layers + Math.max(0, ...room);
  }
  for (const [layer, side] of sweeps(layers)) {
    // As near to the neighbours as the others of the layer leave room, seen from both ends.
    const low = layer.map((one) => middleOf(one, side, "across"));
    const high = [...low];
    for (let at = 1; at < layer.length; at += 1)
      low[at] = Math.max(low[at], low[at - 1] + apart(layer[at - 1], layer[at]));
    for (let at = layer.length - 1; at > 0; at -= 1)
      high[at - 1] = Math.min(high[at - 1], high[at] - apart(layer[at - 1], layer[at]));
    for (const [at, one] of layer.entries()) one.across = (low[at] + high[at]) / 2;
  }
  const all = layers.flat();
  const least = Math.min(...all.map((one) => one.across - one[wide] / 2)) - GAP.edge;
  for (const one of all) {
    one.across -= least;
    [one.x, one.y] = sideways ? [one.along, one.across] : [one.across, one.along];
  }
}

function draw({ sideways, boxes, arrows }) {
  const all = [...boxes.values()];
  const ends = [...all, ...arrows.flatMap(({ bends }) => bends)];
  const width = Math.max(...ends.map((one) => one.x + one.width / 2)) + GAP.edge;
  const height = Math.max(...ends.map((one) => one.y + one.height / 2)) + GAP.edge;
  const size = { viewBox: `0 0 ${width} ${height}`, width, height, role: "img" };
  const title = `Diagram: ${plural(all.length, "box", "boxes")}, ${plural(arrows.length, "arrow")}`;
  const told = arrows.map(
    ({ from, to, words }) => `${from.label} to ${to.label}${words && ` (${words})`}`,
  );
  const lines = arrows.map((arrow) => drawArrow(arrow, sideways));
  const meeting = (one) => arrows.filter(({ from, to }) => from === one || to === one).length;
  const most = Math.max(...all.map(meeting));
  const middle = all.findLast((one) => meeting(one) === most).x / width;
  const drawing = svg("svg", { ...size, "data-middle": middle }, [
    svg("title", {}, [title]),
    svg("desc", {}, [told.join("; ")]),
    ...lines.flatMap(([line]) => line),
    ...all.flatMap(({ label, x, y, width: w, height: h }) => [
      svg("rect", { x: x - w / 2, y: y - h / 2, width: w, height: h, rx: 8 }),
      svg("text", { x, y }, [label]),
    ]),
    ...lines.flatMap(([, words]) => words), // above all lines
  ]);
  drawing.style.setProperty("--least", `${SMALLEST * width}px`);
  return drawing;
}

/** The line of an arrow with its head, and the words on it. */
function drawArrow({ from, to, bends, words, backwards }, sideways) {
  const way = backwards ? -1 : 1;
  const beside = ({ x, y, width, height }, side, off = 0) =>
    sideways ? [x + side * (width / 2 + off), y] : [x, y + side * (height / 2 + off)];
  const passed = (backwards ? bends.toReversed() : bends).map(({ x, y }) => [x, y]);
  const points = [beside(from, way), ...passed, beside(to, -way, TIP)];
  let d = `M${points[0]}`;
  for (const [at, [x, y]] of points.slice(1).entries()) {
    const [fromX, fromY] = points[at];
    const [halfX, halfY] = [(fromX + x) / 2, (fromY + y) / 2];
    d += sideways
      ? `C${halfX},${fromY} ${halfX},${y} ${x},${y}`
      : `C${fromX},${halfY} ${x},${halfY} ${x},${y}`;
  }
  const [x, y] = points.at(-1);
  const [dx, dy] = sideways ? [0, TIP / 2] : [TIP / 2, 0];
  const head = `M${x - dx},${y - dy}L${beside(to, -way)}L${x + dx},${y + dy}Z`;
  const [[a, b], [c, e]] = points;
  const middle = { x: (a + c) / 2, y: (b + e) / 2, class: "words" };
  const line = [svg("path", { d, class: "arrow" }), svg("path", { d: head, class: "head" })];
  return [line, words ? [svg("text", middle, [words])] : []];
}

function svg(name, attributes, children = []) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
