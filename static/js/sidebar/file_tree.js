// The indexed files as a tree: folders are read when they are opened.

import { query, request } from "../lib/api.js";
import { announce, byId, element, icon } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { recall, remember } from "../lib/preferences.js";
import { failureText } from "../lib/widgets.js";

const TYPING_PAUSE = 700; // milliseconds in which further letters belong to the same name

export class FileTree {
  #repo;
  #open;
  #toggle = byId("files-toggle");
  #root = byId("files-tree");
  #letters = "";
  #lettersAt = 0;

  /** `open(path, opener)` shows a file. */
  constructor(repo, open) {
    this.#repo = repo;
    this.#open = open;
    this.#toggle.addEventListener("click", () => this.#show(this.#root.hidden));
    this.#root.addEventListener("click", ({ target }) => {
      const item = target.closest("[role=treeitem]");
      if (item) this.#use(item);
    });
    this.#root.addEventListener("keydown", (event) => this.#key(event));
    if (recall("files") === "open") this.#show(true);
  }

  async #show(visible) {
    this.#root.hidden = !visible;
    this.#toggle.setAttribute("aria-expanded", String(visible));
    remember("files", visible ? "open" : "");
    if (visible && !this.#root.children.length) await this.#fill(this.#root, "", 1);
  }

  /** Reads what lies in a folder into `group`. */
  async #fill(group, path, level) {
    try {
      const branch = await request(`/api/tree${query({ repo: this.#repo, path })}`);
      const items = [
        ...branch.folders.map((folder) => folderOf(folder, level)),
        ...branch.files.map((file) => fileOf(file, level)),
      ];
      group.replaceChildren(...items);
      if (!items.length)
        group.append(element("li.help", { role: "none" }, "No file is indexed yet."));
      if (level === 1 && items[0]) items[0].tabIndex = 0;
    } catch (error) {
      group.replaceChildren(element("li.help", { role: "none" }, failureText(error)));
    }
  }

  async #use(item) {
    this.#focus(item);
    if (!item.hasAttribute("aria-expanded")) this.#open(item.dataset.path, item);
    else await this.#expand(item, item.getAttribute("aria-expanded") === "false");
  }

  async #expand(item, open) {
    item.setAttribute("aria-expanded", String(open));
    let group = item.nextElementSibling?.matches("[role=none].branch")
      ? item.nextElementSibling
      : null;
    if (!group && open) {
      group = element("li", { role: "none", class: "branch" }, element("ul", { role: "group" }));
      item.after(group);
      await this.#fill(
        group.firstChild,
        item.dataset.path,
        Number(item.getAttribute("aria-level")) + 1,
      );
      announce(plural(group.firstChild.children.length, "entry", "entries"));
    }
    if (group) group.hidden = !open;
  }

  #key(event) {
    const item = event.target.closest("[role=treeitem]");
    if (!item || event.ctrlKey || event.metaKey || event.altKey) return;
    const items = [...this.#root.querySelectorAll("[role=treeitem]")].filter(
      (one) => one.offsetParent,
    );
    const at = items.indexOf(item);
    const expanded = item.getAttribute("aria-expanded");
    const to = {
      ArrowDown: items[at + 1],
      ArrowUp: items[at - 1],
      Home: items[0],
      End: items.at(-1),
    }[event.key];
    if (to) this.#focus(to);
    else if (event.key === "ArrowRight") {
      if (expanded === "false") this.#expand(item, true);
      else if (expanded === "true") this.#focus(items[at + 1] ?? item);
    } else if (event.key === "ArrowLeft") {
      if (expanded === "true") this.#expand(item, false);
      else this.#focus(item.closest(".branch")?.previousElementSibling ?? item);
    } else if (event.key === "Enter" || event.key === " ") this.#use(item);
    else if (event.key.length === 1) this.#seek(event.key, items, at);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Goes on to the next name that begins with what is typed. */
  #seek(letter, items, at) {
    const now = Date.now();
    this.#letters =
      (now - this.#lettersAt < TYPING_PAUSE ? this.#letters : "") + letter.toLowerCase();
    this.#lettersAt = now;
    const from = this.#letters.length > 1 ? at : at + 1;
    const order = [...items.slice(from), ...items.slice(0, from)];
    const found = order.find((item) => item.dataset.name.toLowerCase().startsWith(this.#letters));
    if (found) this.#focus(found);
  }

  #focus(item) {
    for (const other of this.#root.querySelectorAll('[tabindex="0"]')) other.tabIndex = -1;
    item.tabIndex = 0;
    item.focus();
  }
}

function folderOf({ name, path, files }, level) {
  return itemOf(
    name,
    path,
    level,
    { "aria-expanded": "false", title: `${path} · ${plural(files, "file")}` },
    icon("chevron"),
    icon("folder"),
  );
}

function fileOf({ name, path }, level) {
  return itemOf(name, path, level, { title: path }, element("span.icon"), icon("file"));
}

function itemOf(name, path, level, attributes, ...icons) {
  const item = element(
    "li",
    {
      role: "treeitem",
      tabindex: "-1",
      "aria-level": level,
      "data-path": path,
      "data-name": name,
      ...attributes,
    },
    ...icons,
    element("bdi", name),
  );
  item.style.setProperty("--level", level);
  return item;
}
