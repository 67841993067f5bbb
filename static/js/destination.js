// Where a model would send questions and code: addresses, and what they mean in words.

import { element } from "./dom.js";

const LOOPBACK = String.raw`([\w-]+\.)*localhost|127(\.\d+){3}|\[::1\]`;
const LOCAL = new RegExp(`^(${LOOPBACK})(:\\d+)?$`, "i");
const LOCAL_BARE = new RegExp(`^(${LOOPBACK})(:\\d+)?(/|$)`, "i");

/** What choosing a model there means for questions and code. */
export function whereOf(host, local) {
  if (local) return ["Runs on this machine: questions and code stay here."];
  if (!host) return ["Questions and the code found for them would be sent to the address below."];
  return ["Questions and the code found for them would be sent to ", element("strong", {}, host), "."];
}

/** What is known of the key, and what happens to one that is entered. */
export function keyHelp({ key: state, key_variable: variable, local, needs_address: own }, host) {
  if (state === "stored") return `A key for ${host} is kept on this machine.`;
  if (state === "exported") return `${variable || "A key"} was found in the environment and would be used. A key entered here takes its place.`;
  const optional = local || own ? "Only if the server asks for one. " : "";
  return `${optional}Kept on this machine, readable by you alone, and never shown again.`;
}

/** An address as it is meant: on this machine http:// may be left out. */
export function fullAddress(text) {
  const address = text.trim();
  return LOCAL_BARE.test(address) ? `http://${address}` : address;
}

/** What keeps `text` from being an address of a server, "" when nothing does. */
export function addressProblem(text) {
  const address = fullAddress(text);
  if (!/^https?:\/\//i.test(address)) return "Begin the address with https://, or with http:// where the server speaks no TLS.";
  return hostOf(address) ? "" : "Name the server after http:// or https://.";
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
