// The indexed files: folders that open, and are read when they do.

import { query, request } from "../lib/api.js";
import { byId, element, icon } from "../lib/dom.js";
import { plural } from "../lib/format.js";
import { page } from "../lib/page.js";
import { recall, remember } from "../lib/preferences.js";
import { failureText } from "../lib/widgets.js";
import { closeSidebar } from "./sidebar.js";

const file = ({ name, path }) => {
  const onclick = ({ currentTarget: opener }) => {
    closeSidebar();
    page.panel.openFile(path, 0, 0, { opener });
  };
  return element(
    "li",
    element("button", { title: path, onclick }, icon("file"), element("bdi", name)),
  );
};

export function setUpFileTree() {
  const top = byId("files");

  const folder = ({ name, path, files }) => {
    const title = `${path} · ${plural(files, "file")}`;
    const summary = element("summary", { title }, icon("chevron"), icon("folder"));
    summary.append(element("bdi", name));
    return element("li", readWhenOpened(element("details", summary, element("ul")), path));
  };
  function readWhenOpened(details, path) {
    const list = details.querySelector("ul");
    details.addEventListener("toggle", async () => {
      if (!details.open || list.querySelector("bdi")) return;
      try {
        const { folders, files } = await request(`/api/tree${query({ repo: page.repo, path })}`);
        list.replaceChildren(...folders.map(folder), ...files.map(file));
        if (!list.children.length) list.append(element("li.help", "No file is indexed yet."));
      } catch (error) {
        list.replaceChildren(element("li.help", failureText(error)));
      }
    });
    return details;
  }

  readWhenOpened(top, "").open = recall("files") === "open";
  top.addEventListener("toggle", () => remember("files", top.open ? "open" : ""));
  // Up and down go over what is in view, left and right close and open a folder.
  top.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const opens = { ArrowRight: true, ArrowLeft: false }[event.key];
    const rows = [...top.querySelectorAll("summary, li > button")].filter((row) =>
      row.checkVisibility(),
    );
    const at = rows.indexOf(event.target);
    if (at < 0 || (step ?? opens) === undefined) return;
    event.preventDefault();
    const around = event.target.parentElement;
    if (step) rows[at + step]?.focus();
    else if (around.matches("details") && around.open !== opens) around.open = opens;
    else if (!opens) around.parentElement.closest("details")?.firstElementChild.focus();
  });
}
