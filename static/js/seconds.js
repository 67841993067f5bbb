// How long answers took in this browser, so that the next one can be expected to.

import { recall, remember } from "./switches.js";

const KEPT = 9; // answers whose times are kept per kind: enough that one slow one does not count
const KINDS = 24; // kinds that are kept, the ones not used for longest go first

/** Median milliseconds of the answers of this kind, null before there was one. */
export function expected(effort, model) {
  const times = [...(read()[nameOf(effort, model)] ?? [])].sort((one, other) => one - other);
  return times.length ? times[Math.floor(times.length / 2)] : null;
}

/** Notes that an answer of this kind took so many milliseconds. */
export function noted(effort, model, milliseconds) {
  if (!Number.isFinite(milliseconds)) return;
  const name = nameOf(effort, model);
  const { [name]: times = [], ...others } = read();
  const kept = Object.entries(others).slice(-(KINDS - 1));
  remember("seconds", JSON.stringify({ ...Object.fromEntries(kept), [name]: [...times, Math.round(milliseconds)].slice(-KEPT) }));
}

const nameOf = (effort, model) => `${effort} ${model}`;

function read() {
  try {
    const values = JSON.parse(recall("seconds") || "{}");
    return Object.fromEntries(Object.entries(values).filter(([, times]) => Array.isArray(times) && times.every(Number.isFinite)));
  } catch {
    return {}; // somebody else's; it is written anew
  }
}
