// The search in the titles, questions and answers of all conversations.

import { addressWith } from "../lib/address.js";
import { latestOnly, query, request } from "../lib/api.js";
import { announce, byId, element, onPlainClick } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { page } from "../lib/page.js";

const PAUSE = 180; // milliseconds without a key before it is searched

export class ConversationSearch {
  #field = byId("conversation-search");
  #list = byId("conversations-found");
  #none = byId("nothing-found");
  #lookUp = latestOnly((signal) => this.#search(signal));

  constructor() {
    this.#field.addEventListener("input", () => {
      if (this.#words) this.#lookUp.run(PAUSE);
      else this.clear();
    });
    this.#field.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.#field.value) {
        event.preventDefault(); // an answer that is being written goes on
        this.clear();
      } else if (event.key === "ArrowDown" || (event.key === "Enter" && this.#words)) {
        event.preventDefault();
        this.#list.querySelector("a")?.focus();
      }
    });
    this.#list.addEventListener("keydown", (event) => this.#move(event));
  }

  clear() {
    this.#field.value = "";
    this.#lookUp.cancel();
    this.#show(null);
  }

  get #words() {
    return this.#field.value.trim();
  }

  async #search(signal) {
    const words = this.#words;
    try {
      const { conversations } = await request(
        `/api/conversations${query({ repo: page.repo, q: words })}`,
        { signal },
      );
      if (signal.aborted) return;
      this.#show(conversations.map((one) => this.#row(one, words)));
      announce(
        conversations.length
          ? `${plural(conversations.length, "conversation")} found`
          : "No conversation found",
      );
    } catch (error) {
      if (!signal.aborted) page.failed(error);
    }
  }

  /** `rows` of the result; null shows the list of all again. */
  #show(rows) {
    byId("conversations").hidden = rows !== null;
    byId("conversations-about").hidden = rows !== null;
    this.#list.hidden = !rows?.length;
    this.#none.hidden = !rows || rows.length > 0;
    this.#list.replaceChildren(...(rows ?? []));
  }

  #row({ id, title, turn, snippet }, words) {
    const link = element(
      "a.search-result",
      {
        href: addressWith({ repo: page.repo, c: id, file: "", lines: "" }),
        onclick: onPlainClick(() => page.open(id, { turn })),
      },
      element("span.title", { dir: "auto" }, ...marked(title, words)),
      snippet ? element("span.snippet", { dir: "auto" }, ...marked(snippet, words)) : null,
    );
    return element("li", link);
  }

  #move(event) {
    const links = [...this.#list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    if (event.key === "ArrowDown") links[Math.min(at + 1, links.length - 1)]?.focus();
    else if (event.key === "ArrowUp") (links[at - 1] ?? this.#field).focus();
    else if (event.key === "Escape") {
      this.clear();
      this.#field.focus();
    } else return;
    event.preventDefault();
  }
}

/** `text` in pieces, the words that were looked for as marks: text alone, never markup. */
function marked(text, words) {
  const escaped = words.split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pieces = text.split(new RegExp(`(${escaped.join("|")})`, "giu"));
  return pieces.map((piece, index) => (index % 2 ? element("mark", piece) : piece));
}
