// Building elements. Text only ever enters the page as text; the one exception is `setHtml`.

const SVG = "http://www.w3.org/2000/svg";

/** `element("p", { class: "note", onclick: f }, "text", child)`. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** A symbol of the page's sprite. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#icon-${name}`);
  svg.append(use);
  return svg;
}

export const byId = (id) => document.getElementById(id);

/**
 * The only place where markup enters the page. `html` must come from the server's renderer,
 * which sanitises it; nothing from a model, a file or a person may reach this directly.
 */
export function setHtml(node, html) {
  node.innerHTML = html;
}

let announced = 0;

/** Tells screen readers what has happened. */
export function announce(text) {
  const region = byId("announce");
  region.textContent = "";
  clearTimeout(announced);
  announced = setTimeout(() => { region.textContent = text; }, 60);
}

/** Copies `text`; returns whether that worked. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Over plain HTTP from another machine there is no clipboard interface.
    const field = element("textarea", { class: "visually-hidden", readonly: true });
    field.value = text;
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    return copied;
  }
}

/** A button that copies what `text()` gives and says so for a moment. */
export function copyButton(className, label, text) {
  const words = element("span", {}, label);
  const button = element("button", { type: "button", class: className }, icon("copy"), words);
  button.addEventListener("click", async () => {
    const copied = await copyText(await text());
    words.textContent = copied ? "Copied" : "Not copied";
    button.classList.toggle("done", copied);
    button.firstChild.replaceWith(icon(copied ? "check" : "alert"));
    announce(words.textContent);
    setTimeout(() => {
      words.textContent = label;
      button.classList.remove("done");
      button.firstChild.replaceWith(icon("copy"));
    }, 1600);
  });
  return button;
}

export const count = (number) => number.toLocaleString("en-GB");

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** `850` → `0.9 s`, `42` → `42 ms`. */
export function duration(milliseconds) {
  if (milliseconds < 100) return `${Math.round(milliseconds)} ms`;
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

/** Seconds since the epoch → `3 min ago`. */
export function ago(seconds) {
  const passed = Math.max(0, Date.now() / 1000 - seconds);
  if (passed < 60) return "just now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h ago`;
  return new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric" });
}

/** The same, for where there is little room: `now`, `3 min`, `5 h`, `2 d`, `4 Mar`. */
export function age(seconds) {
  const passed = Math.max(0, Date.now() / 1000 - seconds);
  if (passed < 60) return "now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h`;
  if (passed < 7 * 86400) return `${Math.floor(passed / 86400)} d`;
  return new Date(seconds * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
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
