// Taking a conversation along: as a file, or as the address at which it is found again.

import { addressWith } from "./address.js";
import { query } from "./api.js";
import { copyText, element } from "./dom.js";
import { tell } from "./toast.js";

/** Entries of a conversation's menu. */
export function exportsOf(repo, id) {
  return [
    { symbol: "link", label: "Copy link", action: () => copyLink(repo, id) },
    { symbol: "file", label: "Export as Markdown", action: () => download(repo, id, "markdown") },
    { symbol: "file", label: "Export as JSON", action: () => download(repo, id, "json") },
  ];
}

async function copyLink(repo, id) {
  const copied = await copyText(new URL(addressWith({ repo, c: id, file: "", lines: "" }), location.origin).href);
  tell(copied ? "Link copied. It opens for you, on this server." : "Not copied");
}

function download(repo, id, format) {
  const address = `/api/conversations/${encodeURIComponent(id)}/export${query({ repo, format })}`;
  const link = element("a", { href: address, download: "" });
  document.body.append(link);
  link.click();
  link.remove();
  tell("Exporting …");
}
