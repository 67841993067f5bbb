// HyDE: whether the model drafts code that may answer the question, which is then searched
// for as well.

import { plural } from "./dom.js";

export const DRAFTS = ["off", "one", "two"];

/** What became of the drafts in a few words: `2 drafts`, `1 draft, 1 timed out`; "" for none wanted. */
export function draftsIn(stages = []) {
  const outcomes = (stages ?? []).filter(({ name }) => name.startsWith("hyde-")).map(({ outcome }) => outcome);
  if (!outcomes.length) return "";
  const late = outcomes.filter((outcome) => outcome === "timed out").length;
  const made = outcomes.filter((outcome) => outcome === "done").length;
  if (!made && !late) return "no draft";
  return [made ? plural(made, "draft") : "", late ? `${late} timed out` : ""].filter(Boolean).join(", ");
}
