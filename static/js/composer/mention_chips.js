// The mentions of a question, as chips below the field, where they can be removed.

import { latestOnly, query, request } from "../lib/api.js";
import { announce, element, icon } from "../lib/dom.js";
import { LONGEST } from "../lib/fields.js";
import { splitPath } from "../lib/format.js";
import { page } from "../lib/page.js";
import { mentionsIn, signOf, withoutMention } from "./mentions.js";

const PAUSE = 350; // milliseconds without a key before the server is asked

export class MentionChips {
  #field;
  #list;
  #hooks;
  #known = new Map(); // what each mention stands for, by what is written
  #shown = "";
  #lookUp = latestOnly((signal) => this.#ask(signal));

  /**
   * `list` is the list below `field`. `hooks`: `typing()` what is still being typed,
   * `searched()` whether the code is searched for anyway.
   */
  constructor(field, list, hooks) {
    this.#field = field;
    this.#list = list;
    this.#hooks = hooks;
  }

  /** A mention that was chosen from the list is known already. */
  learn(written, place) {
    this.#known.set(written, {
      text: written,
      kind: place.kind,
      path: place.path,
      line: place.line,
      end_line: place.end_line,
      places: 1,
    });
  }

  /** Shows what the field mentions now. */
  refresh() {
    const typing = this.#hooks.typing();
    const mentions = mentionsIn(this.#field.value).filter(({ text }) => text !== typing);
    if (mentions.some(({ text }) => !this.#known.has(text))) this.#lookUp.run(PAUSE);
    else this.#lookUp.cancel();
    this.#show(mentions.map(({ text }) => this.#known.get(text)).filter(Boolean));
  }

  async #ask(signal) {
    const text = this.#field.value.slice(0, LONGEST);
    try {
      const { mentions } = await request(`/api/mentions${query({ repo: page.repo })}`, {
        body: { text },
        signal,
      });
      for (const mention of mentions) this.#known.set(mention.text, mention);
      for (const mention of mentionsIn(text))
        if (!this.#known.has(mention.text)) this.#known.set(mention.text, null);
      if (!signal.aborted) this.refresh();
    } catch {
      // Without an index nothing can be looked up; the question says so when it is asked.
    }
  }

  #show(mentions) {
    const searched = this.#hooks.searched();
    const shown = JSON.stringify([mentions, searched]);
    if (shown === this.#shown) return; // the focus may be on one of them
    this.#shown = shown;
    const alone = mentions.some(({ kind }) => kind) && !searched; // all that is looked up
    this.#list.replaceChildren(
      ...(alone ? [element("li.mention-note", "To be looked up:")] : []),
      ...mentions.map((mention) => this.#chip(mention)),
    );
    this.#list.hidden = mentions.length === 0;
  }

  #chip(mention) {
    const { text, kind, path, line, end_line: end } = mention;
    const remove = element(
      "button.mention-remove",
      {
        "aria-label": `Remove @${text}`,
        title: "Remove",
        onclick: () => this.#remove(text),
      },
      icon("close"),
    );
    if (!kind) {
      return element(
        "li.mention.unknown",
        { title: "Nothing in the index has this name, so it is read as a word" },
        element("span.mention-name", `@${text}`),
        element("span.mention-more", "not in the index"),
        remove,
      );
    }
    const name = element(
      kind === "folder" ? "span" : "button",
      {
        type: kind === "folder" ? null : "button",
        class: "mention-name",
        title: whatOf(mention),
        onclick:
          kind === "folder"
            ? null
            : ({ currentTarget: opener }) => page.panel.openFile(path, line, end, { opener }),
      },
      signOf(mention),
      element("bdi", nameOf(mention)),
    );
    return element("li.mention", { "data-kind": kind }, name, remove);
  }

  #remove(written) {
    this.#field.value = withoutMention(this.#field.value, written);
    this.#field.dispatchEvent(new Event("input"));
    this.#field.focus();
    announce(`Removed: ${written}`);
  }
}

/** What a chip calls a mention: a file by its name, the rest as it is written. */
function nameOf({ text, kind, path, line, end_line: end, places }) {
  if (kind === "file" && places === 1)
    return splitPath(path)[1] + (line ? `:${line}${end > line ? `-${end}` : ""}` : "");
  return text;
}

function whatOf({ kind, path, line, places }) {
  const where = kind === "symbol" && line ? `${path}:${line}` : path;
  if (places > 1) return `${places} places, first ${where}: looked up for this question`;
  if (kind === "folder") return `${where}: only this folder is searched`;
  return `${where}: looked up for this question`;
}
