// Files, folders and symbols as rows of a list: what the server completes a name to.

import { query, request } from "./api.js";
import { element, icon } from "./dom.js";

const LETTERS = { class: "C", struct: "S", enum: "E", trait: "T", interface: "I", type: "T", module: "M" };
const AGAIN = 300; // milliseconds after which names that were not read yet are asked for again

/** The best places for what is typed; waits until the names have been read. */
export async function complete(repo, typed, { limit, signal }) {
  for (;;) {
    const { items, ready } = await request(`/api/complete${query({ repo, q: typed, limit })}`, { signal });
    if (ready) return items;
    await new Promise((resolve) => { setTimeout(resolve, AGAIN); });
  }
}

/** The sign in front of a place. */
export function signOf({ kind, what }) {
  if (kind === "file" || kind === "folder") return icon(kind);
  return element("span", { class: "sign", "aria-hidden": "true" }, kind === "tag" ? "@" : LETTERS[what] ?? "ƒ");
}

/** Contents of an option: sign, name, where it is, and for screen readers what it is. */
export function rowOf(place) {
  const kind = place.kind === "symbol" ? place.what : place.kind === "tag" ? "" : place.kind;
  return [
    signOf(place),
    element("span", { class: "place-name" }, element("bdi", {}, place.label)),
    element("span", { class: "visually-hidden" }, kind ? `, ${kind}, ` : ", "),
    element("span", { class: "place-detail" }, element("bdi", {}, place.detail)),
  ];
}

/** Whether a place still fits when more has been typed and the server has not said so yet. */
export function stillFits({ label, text }, typed) {
  const words = typed.toLowerCase();
  return [label, text].some((name) => name.toLowerCase().includes(words));
}
