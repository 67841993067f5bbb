// Building elements. Text only ever enters the page as text; the one exception is `setHtml`.

const SVG = "http://www.w3.org/2000/svg";

/**
 * `element("p.note", { onclick: f }, "text", child)`: tag and classes, attributes that may be left
 * out, children. An attribute or child that is null is left out; `on…` is a listener.
 */
export function element(name, ...rest) {
  const [tag, ...classes] = name.split(".");
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(" ");
  if (tag === "button") node.type = "button"; // nothing is submitted unless it says so
  const [attributes, children] =
    rest[0]?.constructor === Object ? [rest[0], rest.slice(1)] : [{}, rest];
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
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

/** A listener for a link that the page follows itself; with a modifier key the browser does. */
export const onPlainClick = (action) => (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  action(event);
};

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
  announced = setTimeout(() => {
    region.textContent = text;
  }, 60);
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
