// The list of providers: what runs here first, then those with a key, then the rest.

import { element, icon, plural } from "./dom.js";

/** Fills `node` with one radio button per provider; `looking` while servers here are looked for. */
export function showProviders(node, providers, { chosen, current, looking, choose }) {
  const focused = node.contains(document.activeElement);
  const rest = (one) => !one.running && !["exported", "stored"].includes(one.key);
  const groups = [
    ["", [{ name: "", title: "No model", detail: "from the code alone" }]],
    ["On this machine", providers.filter(({ running }) => running)],
    ["With a key", providers.filter((one) => !one.running && !rest(one))],
    ["Others", providers.filter(rest)],
  ];
  node.replaceChildren();
  for (const [title, members] of groups) {
    if (title && members.length) node.append(element("p", { class: "providers-group", "aria-hidden": "true" }, title));
    for (const one of members) node.append(providerRow(one, { chosen, current, choose }));
    if (!title && looking) node.append(element("p", { class: "providers-looking" }, element("span", { class: "dot", "data-state": "indexing" }), "Looking for models on this machine…"));
  }
  if (focused) node.querySelector("input:checked")?.focus();
}

function providerRow(one, { chosen, current, choose }) {
  const radio = element("input", { type: "radio", name: "provider", value: one.name, class: "visually-hidden" });
  radio.checked = one.name === chosen;
  radio.addEventListener("change", () => choose(one.name));
  const row = element("label", { class: "provider" }, radio,
    icon(one.name ? (one.local ? "home" : "cloud") : "file"),
    element("span", { class: "provider-text" }, element("span", { class: "provider-title" }, one.title), element("span", { class: "provider-detail" }, detailOf(one))),
    one.name === current ? element("span", { class: "provider-current" }, icon("check"), element("span", {}, "in use")) : null);
  // On a phone the list and the form are two pages: the chosen one leads on, too.
  row.addEventListener("click", () => { if (radio.checked) choose(one.name); });
  return row;
}

function detailOf({ detail, running, models, key, key_variable: variable, host, local, needs_address: needsAddress }) {
  if (detail) return detail;
  if (running) return `running, ${plural(models.length, "model")}`;
  if (key === "exported") return `found ${variable || "a key"}`;
  if (key === "stored") return `key kept for ${host}`;
  if (needsAddress) return "any server with this API";
  return local ? "not running" : host;
}
