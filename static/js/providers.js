// The list of providers: this machine first, then those with a key, then the rest. Its rows stay
// where they are while servers on this machine are looked for.

import { element, icon, plural } from "./dom.js";

/** Fills `node` with one radio button per provider; `looking` while servers here are looked for. */
export function showProviders(node, providers, { chosen, current, looking, choose }) {
  const focused = node.contains(document.activeElement) ? document.activeElement.value : null;
  const hasKey = (one) => !one.local && ["exported", "stored"].includes(one.key);
  const groups = [
    ["", [{ name: "", title: "No model", detail: "from the code alone" }]],
    ["On this machine", providers.filter(({ local }) => local)],
    ["With a key", providers.filter(hasKey)],
    ["Others", providers.filter((one) => !one.local && !hasKey(one))],
  ];
  node.replaceChildren();
  for (const [title, members] of groups) {
    if (title && members.length) node.append(element("p", { class: "providers-group" }, element("span", { "aria-hidden": "true" }, title), members[0].local && looking ? lookingMark() : null));
    for (const one of members) node.append(providerRow(one, { chosen, current, looking, choose }));
  }
  const value = node.querySelector("input:checked")?.value ?? focused;
  if (focused !== null) radioOf(node, value)?.focus();
}

/** The radio button of the provider `name`. */
export const radioOf = (node, name) => node.querySelector(`input[value="${CSS.escape(name)}"]`);

const lookingMark = () => element("span", { class: "providers-looking" }, element("span", { class: "dot", "data-state": "indexing" }), "Looking for models…");

function providerRow(one, { chosen, current, looking, choose }) {
  const radio = element("input", { type: "radio", name: "provider", value: one.name, class: "visually-hidden" });
  radio.checked = one.name === chosen;
  radio.addEventListener("change", () => choose(one.name));
  const row = element("label", { class: "provider" }, radio,
    icon(one.name ? (one.local ? "home" : "cloud") : "file"),
    element("span", { class: "provider-text" }, element("span", { class: "provider-title" }, one.title), element("span", { class: one.needs_address ? "provider-detail whole" : "provider-detail" }, detailOf(one, looking))),
    one.name === current ? element("span", { class: "provider-current" }, icon("check"), element("span", {}, "in use")) : null);
  // On a phone the list and the form are two pages: the chosen one leads on, too.
  row.addEventListener("click", () => { if (radio.checked) choose(one.name); });
  return row;
}

function detailOf({ detail, running, models, key, key_variable: variable, host, local, needs_address: needsAddress }, looking) {
  if (detail) return detail;
  if (running) return `running, ${models.length ? plural(models.length, "model") : "no model that chats"}`;
  if (local && looking) return host;
  if (needsAddress) return "any server with OpenAI’s chat-completions API";
  if (key === "exported") return `found ${variable || "a key"}`;
  if (key === "stored") return `key kept for ${host}`;
  return local ? "not running" : host;
}
