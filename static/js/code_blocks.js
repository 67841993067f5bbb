// The code in an answer: its language, a copy of it, and the way to its place in the source
// where it stands there exactly so.

import { query, request } from "./api.js";
import { copyButton, element, icon } from "./dom.js";
import { matchOf } from "./match.js";

const PLACES = 4; // cited places that a block is looked for at
const { repo } = document.body.dataset;
const read = new Map(); // lines that were asked for, by their address

/** Gives a rendered block of code its head. */
export function frameCode(block) {
  const pre = block.querySelector("pre");
  pre.tabIndex = 0; // so that long lines can be scrolled from the keyboard
  const language = block.dataset.language || "text";
  pre.setAttribute("aria-label", `Code, ${language}`);
  pre.setAttribute("role", "region");
  block.prepend(element("div", { class: "code-head" },
    element("span", { class: "language" }, language),
    copyButton("copy", "Copy", () => pre.textContent.replace(/\n$/, ""))));
}

/** Looks the code of `answer` up at the places that it cites, each block once it is near. */
export function lookUpCode(answer) {
  const blocks = answer.querySelectorAll(".code-block");
  if (!blocks.length || !answer.querySelector("a.citation")) return;
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      watch.unobserve(target);
      lookUp(target, answer).catch(() => {}); // without it there is no button, no more
    }
  }, { rootMargin: "400px" });
  for (const block of blocks) watch.observe(block);
}

async function lookUp(block, answer) {
  const text = block.querySelector("pre").textContent.replace(/\n+$/, "");
  const length = text.split("\n").length;
  for (const { path, start, end } of placesFor(block, answer)) {
    const first = Math.max(1, start - length);
    const lines = await linesOf(path, first, end + length);
    const found = matchOf(text, lines);
    if (!found) continue;
    const [from, to] = [first + found.start, first + found.end];
    const label = `Open ${path}, lines ${from} to ${to}`;
    block.querySelector(".copy").before(element("button", {
      type: "button", class: "copy open-file", "data-path": path, "data-start": from, "data-end": to, title: label, "aria-label": label,
    }, icon("file"), "Open in file"));
    return;
  }
}

/** The places cited nearest to `block`, those before it first. */
function placesFor(block, answer) {
  const links = [...answer.querySelectorAll("a.citation")];
  const after = links.findIndex((link) => block.compareDocumentPosition(link) & Node.DOCUMENT_POSITION_FOLLOWING);
  const cut = after < 0 ? links.length : after;
  const ordered = [...links.slice(0, cut).reverse(), ...links.slice(cut)];
  const places = ordered.map(({ dataset }) => ({ path: dataset.path, start: Number(dataset.start), end: Number(dataset.end) }));
  return [...new Map(places.map((place) => [JSON.stringify(place), place])).values()].slice(0, PLACES);
}

function linesOf(path, start, end) {
  const address = `/api/lines${query({ repo, path, start, end })}`;
  if (!read.has(address)) read.set(address, request(address).then(({ text }) => text.split("\n")));
  return read.get(address);
}
