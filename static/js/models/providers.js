// The list of providers (this machine first, then those with a key, then the rest), and where each
// would send questions and code. Rows keep their place while local servers are looked for.

import { element, icon } from "../lib/dom.js";
import { plural } from "../lib/format.js";

const LOOPBACK = String.raw`([\w-]+\.)*localhost|127(\.\d+){3}|\[::1\]`;
const LOCAL = new RegExp(`^(${LOOPBACK})(:\\d+)?$`, "i");
const LOCAL_BARE = new RegExp(`^(${LOOPBACK})(:\\d+)?(/|$)`, "i");
const HERE = "On this machine";
const NO_CHAT = /embed|whisper|tts|dall-e|moderation/i;

/** Fills `node` with one radio button per provider; `looking` while servers here are looked for. */
export function showProviders(node, providers, { chosen, current, looking }) {
  const focused = node.contains(document.activeElement) ? document.activeElement.value : null;
  const all = [{ name: "", title: "No model", detail: "from the code alone" }, ...providers];
  node.replaceChildren();
  for (const title of ["", HERE, "With a key", "Others"]) {
    const members = all.filter((one) => groupOf(one) === title);
    const mark = title === HERE && looking ? lookingMark() : null;
    if (title && members.length)
      node.append(
        element("p.providers-group", element("span", { "aria-hidden": "true" }, title), mark),
      );
    node.append(...members.map((one) => providerRow(one, chosen, current, looking)));
  }
  const value = node.querySelector("input:checked")?.value ?? focused;
  if (focused !== null) radioOf(node, value)?.focus();
}

/** What somebody may have and the list cannot know comes before the long part of it. */
function groupOf(one) {
  if (!one.name || one.needs_address) return "";
  if (one.local) return HERE;
  return hasKey(one) ? "With a key" : "Others";
}

/** Whether a provider has a key already. */
export const hasKey = ({ key }) => ["exported", "stored"].includes(key);

/** The radio button of the provider `name`. */
export const radioOf = (node, name) => node.querySelector(`input[value="${CSS.escape(name)}"]`);

const lookingMark = () =>
  element("span.providers-looking", element("span.dot", { "data-state": "indexing" }), "Looking…");

function providerRow(one, chosen, current, looking) {
  const { name, title, local } = one;
  const radio = { type: "radio", name: "provider", value: name, checked: name === chosen };
  return element(
    "label.provider",
    element("input.visually-hidden", radio),
    icon(name ? (local ? "home" : "cloud") : "file"),
    element(
      "span.provider-text",
      element("span.provider-title", title),
      element("span.provider-detail", detailOf(one, looking)),
    ),
    name === current
      ? element("span.provider-current", icon("check"), element("span", "in use"))
      : null,
  );
}

function detailOf(one, looking) {
  const { detail, running, models, key, host, local } = one;
  if (detail) return detail;
  if (running)
    return `running, ${models.length ? plural(models.length, "model") : "no chat model"}`;
  if (local && looking) return host;
  if (one.needs_address) return "any server with OpenAI’s chat API";
  if (key === "exported") return `found ${one.key_variable || "a key"}`;
  if (key === "stored") return `key stored for ${host}`;
  return local ? "not running" : host;
}

/** What choosing a model there means for questions and code. */
export function whereOf(host, local) {
  if (local) return ["Runs on this machine: questions and code stay here."];
  if (!host) return ["Your questions and the code for them will be sent to the address below."];
  return ["Your questions and the code for them will be sent to ", element("strong", host), "."];
}

/** What is known of the key, and what happens to one that is entered. */
export function keyHelp({ key: state, key_variable: variable, local, needs_address: own }, host) {
  if (state === "stored") return `A key for ${host} is stored on this machine.`;
  if (state === "exported")
    return `${variable || "A key"} is set in the environment and will be used, unless you enter another key here.`;
  const optional = local || own ? "Only if the server asks for one. " : "";
  return `${optional}It is stored on this machine, only you can read it, and it is never shown again.`;
}

/** An address as it is meant: on this machine http:// may be left out. */
export function fullAddress(text) {
  const address = text.trim();
  return LOCAL_BARE.test(address) ? `http://${address}` : address;
}

/** What is wrong with `text` as the address of a server, "" for nothing. */
export function addressProblem(text, needed) {
  const address = fullAddress(text);
  if (!address) return needed ? "Enter the address of the server first." : "";
  if (!/^https?:\/\//i.test(address))
    return "Begin the address with https://, or with http:// if the server has no TLS.";
  return hostOf(address) ? "" : "Write the name of the server after http:// or https://.";
}

/** Host and port of an address, "" when it is none. */
export function hostOf(text) {
  try {
    return new URL(fullAddress(text)).host;
  } catch {
    return "";
  }
}

export const isLocal = (host) => LOCAL.test(host);

/** Those of `names` that may write an answer; what embeds, listens, speaks or draws is left out. */
export const chatModels = (names) => names.filter((name) => !NO_CHAT.test(name));
