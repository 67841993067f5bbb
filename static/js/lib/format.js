// Numbers, times and paths in words.

const CHARACTERS_PER_TOKEN = 4; // of code and plain English, about; no tokenizer is at hand here

export const count = (number) => number.toLocaleString("en-GB");

export const plural = (number, one, many = `${one}s`) =>
  `${count(number)} ${number === 1 ? one : many}`;

/** `2 pieces pinned, 1 piece left out`, "" for neither; both are lists of places. */
export const chosenCode = (pin, exclude) =>
  Object.entries({ pinned: pin, "left out": exclude })
    .filter(([, { length }]) => length)
    .map(([how, { length }]) => `${plural(length, "piece")} ${how}`)
    .join(", ");

/** `850` → `0.9 s`, `42` → `42 ms`, `0.2` → `<1 ms`. */
export function duration(milliseconds) {
  if (milliseconds < 0.5) return "<1 ms";
  if (milliseconds < 100) return `${Math.round(milliseconds)} ms`;
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

/** Seconds since the epoch → `12 s ago`, `3 min ago`. */
export function ago(seconds) {
  const passed = Math.max(0, Date.now() / 1000 - seconds);
  if (passed < 5) return "just now";
  if (passed < 60) return `${Math.floor(passed)} s ago`;
  if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h ago`;
  return new Date(seconds * 1000).toLocaleDateString("en-GB", {
    day: "numeric",
    month: "short",
    year: "numeric",
  });
}

/** Seconds → `8 s left`, `3 min left`; "" while nothing is known. */
export function left(seconds) {
  if (!seconds) return "";
  return seconds < 60 ? `${Math.ceil(seconds)} s left` : `${Math.ceil(seconds / 60)} min left`;
}

/** `Today`, `Yesterday`, `Last 7 days`, or the month. */
export function dayOf(seconds) {
  const then = new Date(seconds * 1000);
  const midnight = new Date(then).setHours(0, 0, 0, 0);
  const days = Math.round((new Date().setHours(0, 0, 0, 0) - midnight) / 86_400_000);
  if (days < 7) return ["Today", "Yesterday"][Math.max(0, days)] ?? "Last 7 days";
  return then.toLocaleDateString("en-GB", { month: "long", year: "numeric" });
}

/** A time that does not age while it is in view: `at 14:05`, `on 4 Mar 2026 at 14:05`. */
export function moment(seconds) {
  const then = new Date(seconds * 1000);
  const time = then.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  if (then.toDateString() === new Date().toDateString()) return `at ${time}`;
  return `on ${then.toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" })} at ${time}`;
}

/** The directory and the name of `path`. */
export function splitPath(path) {
  const cut = path.lastIndexOf("/") + 1;
  return [path.slice(0, cut), path.slice(cut)];
}

/** The model's own name: `openai/gpt-4o` → `gpt-4o`; the host beside it says where. */
export const withoutProvider = (model) => model.slice(model.indexOf("/") + 1);

/** About how many tokens so many characters are. */
export const tokensIn = (characters) => Math.ceil(characters / CHARACTERS_PER_TOKEN);

/** `912` → `912 bytes`, `15300` → `15 kB`. */
export function byteSize(bytes) {
  if (bytes < 1000) return plural(bytes, "byte");
  const [unit, size] =
    bytes < 1e6 ? ["kB", bytes / 1e3] : bytes < 1e9 ? ["MB", bytes / 1e6] : ["GB", bytes / 1e9];
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${unit}`;
}
