// The list of conversations in the sidebar: open, pin, rename, export, delete with undo.

import { addressWith, inAddress } from "../lib/address.js";
import { query, request } from "../lib/api.js";
import { announce, byId, copyText, element, icon, onPlainClick } from "../lib/dom.js";
import { ago, dayOf, moment } from "../lib/format.js";
import { page } from "../lib/page.js";
import { openMenu } from "../lib/popup.js";
import { rememberQuestion } from "../lib/preferences.js";
import { offerUndo, showMessage } from "../lib/widgets.js";
import { closeSidebar } from "./sidebar.js";

export class ConversationList {
  #list = byId("conversations");
  #kept = []; // as the server gave them, the one used last first
  #deleted = new Set(); // gone from view, but for a while not yet for good
  #running = new Map(); // conversations that are being answered, by id
  #current = { id: "", title: "", turns: [] };
  #renaming = false;
  #changes = 0; // so many were made: a list that was asked for before one has the old values

  constructor() {
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.refresh();
    });
    // The page comes with the list, so that it is whole when it is first painted.
    const listed = JSON.parse(this.#list.dataset.listed);
    if (listed) this.#take(listed);
    else this.refresh();
  }

  #take({ conversations }) {
    this.#kept = conversations;
    this.#render();
  }

  async refresh() {
    const changes = this.#changes;
    try {
      const listed = await request(`/api/conversations${query({ repo: page.repo })}`);
      if (changes !== this.#changes) return this.refresh();
      this.#take(listed);
    } catch {
      // The state of the index, in view below, says that the server is gone.
    }
  }

  /** Marks the conversation in view; one without questions is not listed yet. */
  show({ id, title, turns }) {
    this.#current = { id, title, turns };
    this.#render();
  }

  /** Marks a conversation that is being answered, be it in view or not. */
  setRunning(conversation) {
    if (conversation.running) this.#running.set(conversation.id, conversation);
    else this.#running.delete(conversation.id);
    this.#render();
  }

  titleOf(id) {
    return this.#kept.find((one) => one.id === id)?.title;
  }

  #render() {
    if (this.#renaming || document.querySelector(".menu")) return; // afterwards it is
    const focus = document.activeElement?.closest?.("#conversations [data-focus]")?.dataset.focus;
    const known = new Set(this.#kept.map(({ id }) => id));
    const fresh = [
      ...new Map([...this.#running.values(), this.#current].map((one) => [one.id, one])).values(),
    ]
      .filter(({ id, turns }) => turns.length && !known.has(id))
      .map(({ id, title }) => ({ id, title, updated: Date.now() / 1000 }))
      .reverse();
    // By the server's clock, which may differ from that of this page, whose own come first.
    const kept = this.#kept.toSorted((a, b) => b.updated - a.updated);
    const rows = [
      ...kept.filter((row) => row.pinned),
      ...fresh,
      ...kept.filter((row) => !row.pinned),
    ].filter(({ id }) => !this.#deleted.has(id));
    const titles = rows.map(({ title }) => title);
    const repeated = new Set(titles.filter((title, index) => titles.indexOf(title) !== index));
    let day = "";
    const items = rows.flatMap((row) => {
      const before = day;
      day = row.pinned ? "Pinned" : dayOf(row.updated);
      const item = this.#row(row, repeated.has(row.title));
      return day === before ? [item] : [element("li.day", day), item];
    });
    this.#list.replaceChildren(...items);
    byId("no-conversations").hidden = rows.length > 0;
    if (focus) this.#part(focus)?.focus();
  }

  /** One that has the title of another says how it went on. */
  #row({ id, title, updated, second, pinned }, repeated) {
    const current = id === this.#current.id;
    const open = element(
      "a.conversation-open",
      {
        href: addressWith({ repo: page.repo, c: id, file: "", lines: "" }),
        "aria-current": current ? "page" : null,
        "data-focus": `open ${id}`,
        title: `${title}\nLast used ${ago(updated)}`,
        onclick: onPlainClick(() => page.open(id)),
      },
      ...(this.#running.has(id) ? writingMark() : []),
      element(
        "span.titles",
        element("span.title", { dir: "auto" }, title),
        repeated ? element("span.help.title-more", second || moment(updated)) : null,
      ),
    );
    const more = element(
      "button.more",
      {
        "aria-label": `More for “${title}”`,
        "aria-haspopup": "menu",
        "aria-expanded": "false",
        "data-focus": `more ${id}`,
      },
      icon("more"),
    );
    const row = element(
      "li",
      { class: current ? "conversation current" : "conversation" },
      element("div.conversation-row", open, more),
      current ? outlineOf(this.#current.turns) : null,
    );
    more.addEventListener("click", () =>
      openMenu(
        more,
        [
          { symbol: "edit", label: "Rename", action: () => this.#rename(id, title) },
          {
            symbol: "pin",
            label: pinned ? "Unpin" : "Pin",
            action: () => this.#change(id, { pinned: !pinned }, pinned ? "Unpinned" : "Pinned"),
          },
          ...exportsOf(id),
          { symbol: "trash", label: "Delete", action: () => this.#delete(id, title), danger: true },
        ],
        () => this.#render(),
      ),
    );
    return row;
  }

  /** The link `open …` or the button `more …` of a row, as the list was written last. */
  #part(name) {
    return this.#list.querySelector(`[data-focus="${CSS.escape(name)}"]`);
  }

  #rename(id, title) {
    const link = this.#part(`open ${id}`);
    if (!link) return; // it was deleted meanwhile, in another tab
    this.#renaming = true;
    const field = element("input.rename", {
      type: "text",
      maxlength: "200",
      "aria-label": "Title of the conversation",
    });
    field.value = title;
    link.parentElement.classList.add("renaming");
    link.replaceWith(field);
    field.focus();
    field.select();
    field.scrollLeft = 0; // its beginning stays in view
    const end = async (keep) => {
      if (!this.#renaming) return;
      this.#renaming = false;
      const wanted = field.value.replace(/\s+/g, " ").trim();
      if (keep && wanted && wanted !== title) await this.#change(id, { title: wanted }, "Renamed");
      this.#render();
      this.#part(`open ${id}`)?.focus();
    };
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === "Escape") {
        event.preventDefault();
        event.stopPropagation(); // Escape elsewhere stops an answer
        end(event.key === "Enter");
      }
    });
    field.addEventListener("blur", () => end(true));
  }

  async #change(id, values, done) {
    try {
      const changed = await request(this.#address(id), { body: values });
      this.#changes += 1;
      const row = this.#kept.find((one) => one.id === id);
      if (row) Object.assign(row, changed);
      if (id === this.#current.id) this.#current.title = changed.title;
      page.renamed(id, changed.title);
      announce(done);
    } catch (error) {
      page.failed(error);
    }
    this.#render();
  }

  /** Hides it at once; the server deletes it when the time for undo is over. */
  #delete(id, title) {
    const current = id === (inAddress("c") || this.#current.id); // or it is being opened
    this.#deleted.add(id);
    if (current) page.leave(id);
    this.#render();
    const undo = () => {
      this.#deleted.delete(id);
      this.#render();
      if (current) page.open(id);
      else this.#part(`open ${id}`)?.focus();
    };
    const button = offerUndo(`Deleted “${shortened(title)}”`, undo, () => this.#deleteForGood(id));
    button.focus({ preventScroll: true });
  }

  async #deleteForGood(id) {
    try {
      await request(this.#address(id), { method: "DELETE", keepalive: true });
      this.#kept = this.#kept.filter((one) => one.id !== id);
      rememberQuestion(page.repo, "", id);
    } catch (error) {
      if (error.code !== "not_found") {
        this.#deleted.delete(id);
        page.failed(error);
      }
    }
    this.#render();
  }

  #address(id) {
    return `/api/conversations/${encodeURIComponent(id)}${query({ repo: page.repo })}`;
  }
}

/** The questions of the conversation in view; a single one is its title already. */
function outlineOf(turns) {
  if (turns.length < 2) return null;
  return element(
    "ol.outline",
    { id: "outline", "aria-label": "Questions of this conversation" },
    ...turns.map((turn) => {
      const onclick = onPlainClick(() => {
        closeSidebar();
        page.scroll.show(turn.node);
      });
      const { text } = turn.asked;
      return element("li", element("a", { href: `#${turn.node.id}`, title: text, onclick }, text));
    }),
  );
}

const writingMark = () => [
  element("span.dot", { "data-state": "indexing" }),
  element("span.visually-hidden", "Being answered: "),
];

const shortened = (text) => (text.length > 40 ? `${text.slice(0, 39)}…` : text);

/** Entries of a conversation's menu that take it along, as a file or as its address. */
function exportsOf(id) {
  return [
    { symbol: "link", label: "Copy link", action: () => copyLink(id) },
    { symbol: "file", label: "Export as Markdown", action: () => download(id, "markdown") },
    { symbol: "file", label: "Export as JSON", action: () => download(id, "json") },
  ];
}

async function copyLink(id) {
  const copied = await copyText(
    new URL(addressWith({ repo: page.repo, c: id, file: "", lines: "" }), location.origin).href,
  );
  showMessage(copied ? "Link copied. Only you can open it." : "Not copied");
}

function download(id, format) {
  const values = query({ repo: page.repo, format });
  const address = `/api/conversations/${encodeURIComponent(id)}/export${values}`;
  element("a", { href: address, download: "" }).click();
  showMessage("Exporting …");
}
